//! `doctor`: what is wrong with this node, and a remedy for each finding.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::install::{PlaceArgs, programs};
use super::table::table;
use super::{CommandError, Output, print, print_json};
use crate::setup::doctor::{self, Diagnosis, ExclusiveUse, Options};

/// Options of the check.
#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    paths: PlaceArgs,
    /// The node configuration [default: jackfield's in --conf-dir]
    #[arg(long, value_name = "FILE")]
    conf: Option<PathBuf>,
    /// Directories with CNI plugins besides binDir, separated by colons [default: --bin-dir]
    #[arg(long, value_name = "DIRS")]
    cni_path: Option<String>,
    /// This node's name in the cluster [default: $NODE_NAME, else the host's name]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

pub(super) fn doctor(args: &DoctorArgs) -> Result<ExitCode, CommandError> {
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
    Ok(if diagnosis.findings.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// This node's name in the cluster, from `--node` or `NODE_NAME`.
pub(super) fn given_node_name(given: Option<&str>) -> Option<String> {
    let name = given.map(str::to_owned);
    let name = name.or_else(|| std::env::var("NODE_NAME").ok());
    name.filter(|name| !name.is_empty())
}

/// This node's name in the cluster; by default the host's name, as kubelet's.
pub(super) fn node_name(given: Option<&str>) -> String {
    given_node_name(given).unwrap_or_else(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        host.trim().to_lowercase()
    })
}

fn for_people(diagnosis: &Diagnosis) -> Vec<String> {
    let mut out = checks(diagnosis);
    if !diagnosis.exclusive_uses.is_empty() {
        let rows: Vec<Vec<String>> = diagnosis.exclusive_uses.iter().map(row).collect();
        let header = ["EXCLUSIVE", "ON", "POD", "CONTAINER", "NETWORK"];
        out.push(String::new());
        out.extend(table(&header, &rows));
    }
    out
}

fn row(exclusive: &ExclusiveUse) -> Vec<String> {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    vec![
        exclusive.what.clone(),
        or_dash(&exclusive.segment),
        or_dash(&exclusive.pod),
        exclusive.container.clone(),
        format!("{} ({})", exclusive.network, exclusive.interface),
    ]
}

fn checks(diagnosis: &Diagnosis) -> Vec<String> {
    if diagnosis.findings.is_empty() {
        let lines = diagnosis.fine.iter();
        let rows = lines.map(|line| vec![line.check.to_string(), line.what.clone()]);
        let rows: Vec<Vec<String>> = rows.collect();
        return table(&["CHECK", "FINE"], &rows);
    }
    let rows: Vec<Vec<String>> = diagnosis
        .findings
        .iter()
        .map(|finding| {
            let diagnostic = &finding.diagnostic;
            vec![
                finding.check.to_string(),
                diagnostic.place.clone(),
                diagnostic.problem.words(),
                diagnostic.remedy().unwrap_or_default(),
            ]
        })
        .collect();
    table(&["CHECK", "ABOUT", "FINDING", "REMEDY"], &rows)
}
