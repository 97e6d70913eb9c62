//! `attach`, `detach`, `check`: calls of the runtime about one pod.

use std::process::ExitCode;

use super::table::{cell, table};
use super::{CommandError, NodeArgs, Output, PodArgs, PodRef, note, print, print_json, progress};
use crate::npwg::StatusEntry;
use crate::operation::{self, Context};
use crate::plugin::with_host;
use crate::request::{Call, Request};

pub(super) fn attach(args: &PodArgs) -> Result<ExitCode, CommandError> {
    let request = request("ADD", args)?;
    progress(&format!(
        "attaching {}/{} …",
        args.pod.namespace, args.pod.name
    ));
    let added = with_host(&request.config, |host| {
        let context = Context::new(host, &request, request.config.deadlines.add);
        let added = operation::add::add(&context);
        context.notes().iter().for_each(|it| note(&it.to_string()));
        added
    });
    show(args.output, &added?.status)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn detach(args: &PodArgs) -> Result<ExitCode, CommandError> {
    let request = request("DEL", args)?;
    progress(&format!(
        "detaching {}/{} …",
        args.pod.namespace, args.pod.name
    ));
    let outcome = with_host(&request.config, |host| {
        let context = Context::new(host, &request, request.config.deadlines.del);
        let outcome = operation::del::del(&context);
        context.notes().iter().for_each(|it| note(&it.to_string()));
        outcome
    });
    outcome?;
    show(args.output, &[])?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn check(args: &PodArgs) -> Result<ExitCode, CommandError> {
    let request = request("CHECK", args)?;
    let status = with_host(&request.config, |host| {
        let context = Context::new(host, &request, request.config.deadlines.check);
        let status = operation::check::check(&context);
        context.notes().iter().for_each(|it| note(&it.to_string()));
        status
    });
    show(args.output, &status?)?;
    Ok(ExitCode::SUCCESS)
}

/// The request that the runtime would make.
fn request(verb: &str, args: &PodArgs) -> Result<Request, CommandError> {
    let PodRef { namespace, name } = &args.pod;
    let container = args.container_id.as_ref();
    let container = container.map_or_else(|| format!("{namespace}-{name}"), ToString::to_string);
    let netns = args.netns.display().to_string();
    let variables = [
        ("CNI_COMMAND", verb.to_owned()),
        ("CNI_CONTAINERID", container),
        ("CNI_NETNS", netns),
        ("CNI_IFNAME", args.ifname.to_string()),
    ];
    read_request(&args.node, &args.pod, &variables)
}

/// Reads the node configuration as if it came on stdin.
pub(super) fn read_request(
    node: &NodeArgs,
    pod: &PodRef,
    variables: &[(&str, String)],
) -> Result<Request, CommandError> {
    let conf = super::node::read_conf(&node.conf)?;
    let args = format!(
        "IgnoreUnknown=1;K8S_POD_NAMESPACE={};K8S_POD_NAME={}",
        pod.namespace, pod.name
    );
    let call = Call::read(|wanted| match wanted {
        "CNI_PATH" => Some(node.cni_path.clone()),
        "CNI_ARGS" => Some(args.clone()),
        _ => variables
            .iter()
            .find(|(name, _)| *name == wanted)
            .map(|(_, value)| value.clone()),
    })?;
    let request = Request::new(call, conf).map_err(|cause| CommandError::Conf {
        file: node.conf.clone(),
        cause: Box::new(cause),
    })?;
    request.config.warnings.iter().for_each(|line| note(line));
    Ok(request)
}

fn show(output: Output, status: &[StatusEntry]) -> Result<(), CommandError> {
    match output {
        Output::Json => print_json(&serde_json::json!(status))?,
        Output::Table if status.is_empty() => {}
        Output::Table => {
            let rows: Vec<Vec<String>> = status.iter().map(row).collect();
            print(table(
                &[
                    "INTERFACE",
                    "NETWORK",
                    "ADDRESSES",
                    "MAC",
                    "MTU",
                    "DEFAULT ROUTE",
                ],
                &rows,
            ))?;
        }
    }
    Ok(())
}

fn row(entry: &StatusEntry) -> Vec<String> {
    let mark = if entry.default {
        " (cluster network)"
    } else {
        ""
    };
    vec![
        entry.interface.clone().unwrap_or_else(|| "-".to_owned()),
        format!("{}{mark}", entry.name),
        cell(&entry.ips),
        entry.mac.clone().unwrap_or_else(|| "-".to_owned()),
        entry
            .mtu
            .map_or_else(|| "-".to_owned(), |mtu| mtu.to_string()),
        cell(entry.default_route.as_deref().unwrap_or_default()),
    ]
}
