//! `doctor`: what is wrong with this node, and what helps.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::install::{PlaceArgs, programs};
use super::table::table;
use super::{Output, print, print_json};
use crate::setup::doctor::{self, Diagnosis, Held, Options};

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

pub(super) fn doctor(args: &DoctorArgs) -> Result<ExitCode, String> {
    let paths = args.paths.paths(None);
    let options = Options {
        cni_path: programs(&paths, args.cni_path.as_ref()),
        paths,
        conf: args.conf.clone(),
        node: node_name(args.node.as_deref()),
        is_node_told: told_name(args.node.as_deref()).is_some(),
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

/// What somebody says that the cluster calls this node.
pub(super) fn told_name(given: Option<&str>) -> Option<String> {
    let told = given.map(str::to_owned);
    let told = told.or_else(|| std::env::var("NODE_NAME").ok());
    told.filter(|name| !name.is_empty())
}

/// What the cluster calls this node: as kubelet names it unless it is told otherwise.
pub(super) fn node_name(given: Option<&str>) -> String {
    told_name(given).unwrap_or_else(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        host.trim().to_lowercase()
    })
}

fn for_people(diagnosis: &Diagnosis) -> Vec<String> {
    let mut out = checks(diagnosis);
    if !diagnosis.held.is_empty() {
        let rows: Vec<Vec<String>> = diagnosis.held.iter().map(held).collect();
        let header = ["EXCLUSIVE", "ON", "POD", "CONTAINER", "NETWORK"];
        out.push(String::new());
        out.extend(table(&header, &rows));
    }
    out
}

fn held(held: &Held) -> Vec<String> {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    vec![
        held.what.clone(),
        or_dash(&held.segment),
        or_dash(&held.pod),
        held.container.clone(),
        format!("{} ({})", held.network, held.interface),
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
            vec![
                finding.check.to_string(),
                finding.about.clone(),
                finding.finding.clone(),
                finding.remedy.clone(),
            ]
        })
        .collect();
    table(&["CHECK", "ABOUT", "FINDING", "REMEDY"], &rows)
}
