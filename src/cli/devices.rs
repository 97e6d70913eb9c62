//! `devices` and `capture`: the node's network hardware, for people and for fixtures.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use device_info::{Capture, Devlink, EswitchMode, Inventory, PciAddress, Sysfs};
use serde::Serialize;

use super::table::table;
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
    /// The journal, which says which pod has a device
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

/// The JSON document: the hardware and its users.
#[derive(Debug, Serialize)]
struct DevicesDocument<'a> {
    #[serde(flatten)]
    inventory: &'a Inventory,
    #[serde(flatten)]
    usage: &'a Usage,
}

pub(super) fn devices(args: &DevicesArgs) -> Result<ExitCode, CommandError> {
    let mut devlink = Devlink::open().ok();
    let mut inventory = Inventory::read(&Sysfs::host(), &mut |device| {
        devlink.as_mut()?.switch(device)
    });
    let table = names::table().unwrap_or_else(|problem| {
        report(&problem);
        Vec::new()
    });
    inventory.name(&table);
    inventory.remarks.iter().for_each(|remark| note(remark));
    let usage = usage(&inventory, &Journal::new(&args.journal_dir));
    match args.output {
        Form::Table => print(for_people(&inventory, &usage))?,
        Form::Json => {
            let document = DevicesDocument {
                inventory: &inventory,
                usage: &usage,
            };
            print_json(&serde_json::json!(document))?;
        }
        Form::Svg => print_document(&picture::picture(&node_name(), &inventory, &usage))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The users of the devices. A user who may not read the journal or enter network namespaces still
/// sees the hardware.
fn usage(inventory: &Inventory, journal: &Journal) -> Usage {
    let users = match journal.device_users() {
        Ok(users) => users,
        Err(cause) => {
            note(&format!("{cause}; shown without pods and orphans"));
            return Usage::default();
        }
    };
    let orphans = orphans(inventory, &users, devices_in_all_namespaces);
    let orphans = orphans.unwrap_or_else(|cause| {
        note(&format!("{cause}; shown without orphans"));
        Vec::new()
    });
    orphans.iter().for_each(|orphan| report(orphan));
    Usage {
        users: users.into_iter().map(User::from).collect(),
        orphans,
    }
}

/// The name of this node.
fn node_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "this node".to_owned(),
        name => name.to_owned(),
    }
}

pub(super) fn capture() -> Result<ExitCode, CommandError> {
    let mut devlink = Devlink::open().ok();
    let capture = Capture::read(&Sysfs::host(), devlink.as_mut());
    print_json(&capture.to_json())?;
    Ok(ExitCode::SUCCESS)
}

fn for_people(inventory: &Inventory, usage: &Usage) -> Vec<String> {
    let mut out = Vec::new();
    section(&mut out, &functions(inventory, usage), &FUNCTIONS);
    section(
        &mut out,
        &subfunctions(inventory, usage),
        &[
            "SUBFUNCTION",
            "SFNUM",
            "PARENT",
            "NETDEV",
            "REPRESENTOR",
            "POD",
        ],
    );
    section(
        &mut out,
        &vdpa(inventory, usage),
        &["VDPA", "DRIVER", "PATH", "PCI", "POD"],
    );
    section(
        &mut out,
        &rdma(inventory),
        &["RDMA", "NODE GUID", "LINK", "PORT GUID", "PCI"],
    );
    if out.is_empty() {
        out.push("no PCI network function, subfunction, vDPA or RDMA device".to_owned());
    }
    out
}

fn section(out: &mut Vec<String>, rows: &[Vec<String>], header: &[&str]) {
    if rows.is_empty() {
        return;
    }
    if !out.is_empty() {
        out.push(String::new());
    }
    out.extend(table(header, rows));
}

const FUNCTIONS: [&str; 10] = [
    "DEVICE",
    "KIND",
    "ID",
    "DRIVER",
    "NUMA",
    "NETDEV",
    "REPRESENTOR",
    "USED AS",
    "POD",
    "NAME",
];

/// Physical functions, each followed by its VFs, then the other functions.
fn functions(inventory: &Inventory, usage: &Usage) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for pf in &inventory.physical_functions {
        let eswitch = pf
            .eswitch
            .map(|mode| format!(", {}", mode_name(mode)))
            .unwrap_or_default();
        let kind = format!("PF, {} of {} VFs{eswitch}", pf.vfs.len(), pf.total_vfs);
        rows.push(row(usage, &pf.function, kind, None));
        for vf in &pf.vfs {
            rows.push(row(
                usage,
                &vf.function,
                format!("VF {}", vf.index),
                vf.representor.as_ref(),
            ));
        }
    }
    rows.extend(
        inventory
            .functions
            .iter()
            .map(|function| row(usage, function, "function".to_owned(), None)),
    );
    rows
}

fn row(
    usage: &Usage,
    function: &device_info::Function,
    kind: String,
    representor: Option<&String>,
) -> Vec<String> {
    let id = |number: Option<u16>| number.map_or_else(|| "?".to_owned(), |id| format!("{id:04x}"));
    let mut uses: Vec<String> = function
        .rdma
        .iter()
        .map(|name| format!("RDMA {name}"))
        .collect();
    uses.extend(function.vdpa.iter().map(|name| format!("vDPA {name}")));
    let vfio = function.vfio.as_ref().and_then(|vfio| vfio.path.as_ref());
    uses.extend(vfio.map(|path| format!("VFIO {path}")));
    vec![
        function.address.to_string(),
        kind,
        format!("{}:{}", id(function.vendor), id(function.device)),
        or_dash(function.driver.as_ref()),
        or_dash(function.numa_node.as_ref()),
        or_dash(function.netdev.as_ref()),
        or_dash(representor),
        if uses.is_empty() {
            "-".to_owned()
        } else {
            uses.join(", ")
        },
        Usage::cell(usage.of_function(function)),
        or_dash(function.name().as_ref()),
    ]
}

fn subfunctions(inventory: &Inventory, usage: &Usage) -> Vec<Vec<String>> {
    let row = |entry: &device_info::SubfunctionEntry| {
        vec![
            entry.name.clone(),
            or_dash(entry.number.as_ref()),
            or_dash(entry.parent.as_ref()),
            or_dash(entry.netdev.as_ref()),
            or_dash(entry.representor.as_ref()),
            Usage::cell(usage.of(&entry.name)),
        ]
    };
    inventory.subfunctions.iter().map(row).collect()
}

fn vdpa(inventory: &Inventory, usage: &Usage) -> Vec<Vec<String>> {
    let row = |entry: &device_info::VdpaEntry| {
        vec![
            entry.name.clone(),
            or_dash(entry.driver.as_ref()),
            or_dash(entry.path.as_ref()),
            or_dash(entry.pci_address.as_ref()),
            Usage::cell(usage.of(&entry.name)),
        ]
    };
    inventory.vdpa.iter().map(row).collect()
}

/// One row per port.
fn rdma(inventory: &Inventory) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for entry in &inventory.rdma {
        let pci: Option<&PciAddress> = entry.pci_address.as_ref();
        for port in &entry.ports {
            rows.push(vec![
                format!("{}/{}", entry.name, port.number),
                or_dash(entry.node_guid.as_ref()),
                or_dash(port.link_layer.as_ref()),
                or_dash(port.guid.as_ref()),
                or_dash(pci),
            ]);
        }
    }
    rows
}

/// As `devlink dev eswitch show` writes it.
fn mode_name(mode: EswitchMode) -> &'static str {
    match mode {
        EswitchMode::Legacy => "legacy",
        EswitchMode::Switchdev => "switchdev",
    }
}

fn or_dash<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(|| "-".to_owned(), T::to_string)
}
