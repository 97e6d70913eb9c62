//! `devices`: shows the node's network hardware. `capture`: describes this hardware for a report or
//! a test fixture.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use device_info::{Capture, Devlink, EswitchMode, Function, Inventory, Sysfs};
use serde::Serialize;

use super::doctor::host_name;
use super::table::{cell, table};
use super::{CommandError, note, print, print_document, print_json, report};
use crate::journal::Journal;
use crate::kernel::devices_in_all_namespaces;
use crate::operation::devices::orphans::orphans;
use usage::{Usage, User};

mod names;
mod picture;
mod usage;

/// Options of `devices`.
#[derive(Debug, Args)]
pub(super) struct DevicesArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    output: Form,
    /// Directory of the journal, which records the pod of each device
    #[arg(long, value_name = "DIR", default_value = "/var/lib/jackfield")]
    journal_dir: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people
    Table,
    /// For programs
    Json,
    /// A picture for slides
    Svg,
}

/// The JSON document: the hardware, and the pods that use it.
#[derive(Debug, Serialize)]
struct DevicesDocument {
    #[serde(flatten)]
    inventory: Inventory,
    #[serde(flatten)]
    usage: Usage,
}

pub(super) fn devices(args: &DevicesArgs) -> Result<(), CommandError> {
    let mut devlink = Devlink::open().ok();
    let mut inventory = Inventory::read(&Sysfs::host(), &mut |device| {
        devlink.as_mut()?.switch(device)
    });
    let table = names::table().unwrap_or_else(|problem| {
        note(&problem.to_string());
        Vec::new()
    });
    inventory.name(&table);
    inventory.remarks.iter().for_each(|remark| note(remark));
    let usage = usage(&inventory, &Journal::new(&args.journal_dir));
    match args.output {
        Form::Table => print(for_people(&inventory, &usage)),
        Form::Json => print_json(&serde_json::json!(DevicesDocument { inventory, usage })),
        Form::Svg => print_document(&picture::picture(&host_name(), &inventory, &usage)),
    }
}

/// Finds the pods that have devices, and the orphans: VFs that belong to no pod and have lost their
/// interface. Without access to the journal, this function finds no pods and no orphans. Without
/// access to network namespaces, it finds no orphans. In both cases it prints a note, and the
/// command shows the rest.
fn usage(inventory: &Inventory, journal: &Journal) -> Usage {
    let users = match journal.device_users() {
        Ok(users) => users,
        Err(cause) => {
            note(&format!("{cause}; the output lacks pods and orphans"));
            return Usage::default();
        }
    };
    let orphans = orphans(inventory, &users, devices_in_all_namespaces);
    let orphans = orphans.unwrap_or_else(|cause| {
        note(&format!("{cause}; the output lacks orphans"));
        Vec::new()
    });
    orphans.iter().for_each(|orphan| report(orphan));
    Usage {
        users: users.into_iter().map(User::from).collect(),
        orphans,
    }
}

pub(super) fn capture() -> Result<(), CommandError> {
    let mut devlink = Devlink::open().ok();
    let capture = Capture::read(&Sysfs::host(), devlink.as_mut());
    print_json(&capture.to_json())
}

fn for_people(inventory: &Inventory, usage: &Usage) -> Vec<String> {
    let subfunctions = inventory.subfunctions.iter().map(|entry| {
        vec![
            entry.name.clone(),
            cell(entry.number),
            cell(entry.parent),
            cell(&entry.netdev),
            cell(&entry.representor),
            Usage::cell(usage.of(&entry.name)),
        ]
    });
    let vdpa = inventory.vdpa.iter().map(|entry| {
        vec![
            entry.name.clone(),
            cell(entry.driver),
            cell(&entry.path),
            cell(entry.pci_address),
            Usage::cell(usage.of(&entry.name)),
        ]
    });
    let rdma_ports = inventory.rdma.iter().flat_map(|entry| {
        entry.ports.iter().map(|port| {
            vec![
                format!("{}/{}", entry.name, port.number),
                cell(entry.node_guid),
                cell(&port.link_layer),
                cell(port.guid),
                cell(entry.pci_address),
            ]
        })
    });
    let sections = [
        table(
            "DEVICE, KIND, ID, DRIVER, NUMA, NETDEV, REPRESENTOR, USED AS, POD, NAME",
            functions(inventory, usage),
        ),
        table(
            "SUBFUNCTION, SFNUM, PARENT, NETDEV, REPRESENTOR, POD",
            subfunctions,
        ),
        table("VDPA, DRIVER, PATH, PCI, POD", vdpa),
        table("RDMA, NODE GUID, LINK, PORT GUID, PCI", rdma_ports),
    ];
    let has_rows = |section: &Vec<String>| section.len() > 1;
    let sections: Vec<Vec<String>> = sections.into_iter().filter(has_rows).collect();
    if sections.is_empty() {
        return vec!["no PCI network function, subfunction, vDPA or RDMA device".to_owned()];
    }
    sections.join(&String::new())
}

/// Returns a row for each physical function, followed by the rows of its VFs. The rows of all other
/// functions come last.
fn functions(inventory: &Inventory, usage: &Usage) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for pf in &inventory.physical_functions {
        let mut kind = format!("PF, {} of {} VFs", pf.vfs.len(), pf.total_vfs);
        if let Some(mode) = pf.eswitch {
            kind = format!("{kind}, {}", mode_name(mode));
        }
        rows.push(row(usage, &pf.function, kind, None));
        rows.extend(pf.vfs.iter().map(|vf| {
            let kind = format!("VF {}", vf.index);
            row(usage, &vf.function, kind, vf.representor.as_ref())
        }));
    }
    let others = inventory.functions.iter();
    rows.extend(others.map(|function| row(usage, function, "function".to_owned(), None)));
    rows
}

fn row(
    usage: &Usage,
    function: &Function,
    kind: String,
    representor: Option<&String>,
) -> Vec<String> {
    let rdma = function.rdma.iter().map(|name| format!("RDMA {name}"));
    let vdpa = function.vdpa.iter().map(|name| format!("vDPA {name}"));
    let vfio = function.vfio.as_ref().and_then(|vfio| vfio.path.as_ref());
    let vfio = vfio.map(|path| format!("VFIO {path}"));
    vec![
        function.address.to_string(),
        kind,
        pci_id(function),
        cell(&function.driver),
        cell(function.numa_node),
        cell(&function.netdev),
        cell(representor),
        cell(rdma.chain(vdpa).chain(vfio)),
        Usage::cell(usage.of_function(function)),
        cell(function.name()),
    ]
}

/// Formats the IDs of vendor and device, such as `8086:10c9`.
fn pci_id(function: &Function) -> String {
    let id = |number: Option<u16>| number.map_or_else(|| "?".to_owned(), |id| format!("{id:04x}"));
    format!("{}:{}", id(function.vendor), id(function.device))
}

/// Returns the mode's name, as `devlink dev eswitch show` prints it.
fn mode_name(mode: EswitchMode) -> &'static str {
    match mode {
        EswitchMode::Legacy => "legacy",
        EswitchMode::Switchdev => "switchdev",
    }
}
