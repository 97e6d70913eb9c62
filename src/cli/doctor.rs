//! `doctor`: lists the faults of this node, with a remedy for each finding.

use std::path::PathBuf;

use clap::Args;

use super::install::{PlaceArgs, programs};
use super::table::{cell, table};
use super::{CommandError, Output, no_findings, print, print_json};
use crate::setup::doctor::{self, Diagnosis, ExclusiveUse, Options};

/// Options of `doctor`.
#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    paths: PlaceArgs,
    /// The node configuration [default: the configuration of jackfield in --conf-dir]
    #[arg(long, value_name = "FILE")]
    conf: Option<PathBuf>,
    /// Directories to search for CNI plugins, separated by colons; the configuration's binDir is searched first [default: --bin-dir]
    #[arg(long, value_name = "DIRS")]
    cni_path: Option<String>,
    /// This node's name in the cluster [default: $NODE_NAME, else the host's name]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

pub(super) fn doctor(args: &DoctorArgs) -> Result<(), CommandError> {
    let paths = args.paths.paths(None);
    let options = Options {
        cni_path: programs(&paths, args.cni_path.as_ref()),
        paths,
        conf: args.conf.clone(),
        node: node_name(args.node.as_deref()),
        is_node_given: given_node_name(args.node.as_deref()).is_some(),
    };
    let diagnosis = doctor::doctor(&options);
    match args.output {
        Output::Table => print(for_people(&diagnosis))?,
        Output::Json => print_json(&serde_json::json!(diagnosis))?,
    }
    no_findings(diagnosis.findings.is_empty())
}

/// Returns this node's name in the cluster, from `--node` or `NODE_NAME`.
pub(super) fn given_node_name(given: Option<&str>) -> Option<String> {
    let given = given.map(str::to_owned);
    let name = given.or_else(|| std::env::var("NODE_NAME").ok());
    name.filter(|name| !name.is_empty())
}

/// Returns this node's name in the cluster. If neither `--node` nor `NODE_NAME` gives the name,
/// returns the host's name in lower case, which is also kubelet's default.
pub(super) fn node_name(given: Option<&str>) -> String {
    given_node_name(given).unwrap_or_else(|| host_name().to_lowercase())
}

/// Returns the name of this host.
pub(super) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

fn for_people(diagnosis: &Diagnosis) -> Vec<String> {
    let mut out = checks(diagnosis);
    if !diagnosis.exclusive_uses.is_empty() {
        out.push(String::new());
        let rows = diagnosis.exclusive_uses.iter().map(row);
        out.extend(table("EXCLUSIVE, ON, POD, CONTAINER, NETWORK", rows));
    }
    out
}

fn row(exclusive: &ExclusiveUse) -> Vec<String> {
    vec![
        exclusive.what.clone(),
        cell(&exclusive.segment),
        cell(&exclusive.pod),
        exclusive.container.clone(),
        format!("{} ({})", exclusive.network, exclusive.interface),
    ]
}

fn checks(diagnosis: &Diagnosis) -> Vec<String> {
    if diagnosis.findings.is_empty() {
        let lines = diagnosis.fine.iter();
        let rows = lines.map(|line| vec![line.check.to_string(), line.what.clone()]);
        return table("CHECK, FINE", rows);
    }
    let rows = diagnosis.findings.iter().map(|finding| {
        vec![
            finding.check.to_string(),
            finding.about.clone(),
            finding.finding.clone(),
            finding.remedy.clone(),
        ]
    });
    table("CHECK, ABOUT, FINDING, REMEDY", rows)
}
