//! `attach`, `detach` and `check` make the CNI calls ADD, DEL and CHECK for one pod. Normally, the
//! runtime makes these calls.

use std::path::Path;

use super::call;
use super::table::{cell, table};
use super::{CommandError, Output, PodArgs, SandboxArgs, print, print_json, progress};
use crate::npwg::StatusEntry;
use crate::operation;
use crate::request::Request;

pub(super) fn attach(args: &SandboxArgs) -> Result<(), CommandError> {
    let request = sandbox_request("ADD", args)?;
    progress(&format!("attaching {} …", args.pod.pod));
    let added = call::run(&request, request.config.deadlines.add, operation::add::add)?;
    show(args.pod.output, &added.status)
}

pub(super) fn detach(args: &SandboxArgs) -> Result<(), CommandError> {
    let request = sandbox_request("DEL", args)?;
    progress(&format!("detaching {} …", args.pod.pod));
    call::run(&request, request.config.deadlines.del, operation::del::del)?;
    show(args.pod.output, &[])
}

pub(super) fn check(args: &SandboxArgs) -> Result<(), CommandError> {
    let request = sandbox_request("CHECK", args)?;
    let deadline = request.config.deadlines.check;
    let status = call::run(&request, deadline, operation::check::check)?;
    show(args.pod.output, &status)
}

fn sandbox_request(verb: &str, args: &SandboxArgs) -> Result<Request, CommandError> {
    let container = args.container_id.as_ref().map(ToString::to_string);
    request(verb, &args.pod, container, &args.netns)
}

/// Returns the request that the runtime would make. The default container ID is `NS-NAME`.
pub(super) fn request(
    verb: &str,
    args: &PodArgs,
    container: Option<String>,
    netns: &Path,
) -> Result<Request, CommandError> {
    let (namespace, name) = (args.pod.namespace(), args.pod.name());
    let cni_args = format!("IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name}");
    let container = container.unwrap_or_else(|| format!("{namespace}-{name}"));
    let variables = [
        ("CNI_COMMAND", verb),
        ("CNI_CONTAINERID", &container),
        ("CNI_NETNS", &netns.display().to_string()),
        ("CNI_IFNAME", args.ifname.as_str()),
        ("CNI_ARGS", &cni_args),
    ];
    let conf = call::read_conf(&args.node.conf)?;
    call::request(&args.node, conf, &variables, Request::new)
}

fn show(output: Output, status: &[StatusEntry]) -> Result<(), CommandError> {
    match output {
        Output::Json => print_json(&serde_json::json!(status)),
        Output::Table => print(rows(status)),
    }
}

/// Returns the lines of the table for a network-status. Returns no lines for an empty status.
pub(super) fn rows(status: &[StatusEntry]) -> Vec<String> {
    if status.is_empty() {
        return Vec::new();
    }
    let header = "INTERFACE, NETWORK, ADDRESSES, MAC, MTU, DEFAULT ROUTE";
    table(header, status.iter().map(row))
}

fn row(entry: &StatusEntry) -> Vec<String> {
    let mark = match entry.default {
        true => " (cluster network)",
        false => "",
    };
    vec![
        cell(&entry.interface),
        format!("{}{mark}", entry.name),
        cell(&entry.ips),
        cell(&entry.mac),
        cell(entry.mtu),
        cell(entry.default_route.iter().flatten()),
    ]
}
