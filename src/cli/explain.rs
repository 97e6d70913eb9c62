//! `explain`: the plan of an ADD, and every reason why it would fail. Runs nothing.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::pod::read_request;
use super::{CommandError, ExplainArgs, Output, print, print_json};
use crate::allocation::Origin;
use crate::delegate::Binary;
use crate::kernel::capabilities;
use crate::operation::devices::reserve;
use crate::operation::prepare::{Prepared, prepare};
use crate::operation::{Context, Failure, readiness_indicator};
use crate::plan::{Attachment, PlanError};
use crate::plugin::with_host;
use crate::request::Strictness;
use crate::verify::IntendedFunction;

pub(super) fn explain(args: &ExplainArgs) -> Result<ExitCode, CommandError> {
    let variables = [
        ("CNI_COMMAND", "ADD".to_owned()),
        (
            "CNI_CONTAINERID",
            format!("{}-{}", args.pod.namespace, args.pod.name),
        ),
        ("CNI_NETNS", "/proc/self/ns/net".to_owned()),
        ("CNI_IFNAME", args.ifname.to_string()),
    ];
    let request = read_request(&args.node, &args.pod, &variables)?;
    let mut problems = Vec::new();
    let prepared = with_host(&request.config, |host| {
        let of_node = [
            capabilities::require().map_err(Failure::from),
            host.journal.check_writable().map_err(Failure::from),
            readiness_indicator::is_there(request.config.readiness_indicator.as_deref()),
        ];
        problems.extend(
            of_node
                .into_iter()
                .filter_map(Result::err)
                .map(|failure| failure.in_full()),
        );
        let context = Context::new(host, &request, request.config.deadlines.add);
        let mut prepared = prepare(&context)?;
        let in_use = reserve::foresee(&context, &prepared);
        prepared.problems.extend(in_use);
        Ok(prepared)
    });
    let in_full = |problem: &PlanError| Failure::Plan(problem.clone()).in_full();
    let mut ignored = Vec::new();
    let prepared = match prepared {
        Ok(prepared) => {
            problems.extend(prepared.problems.iter().map(in_full));
            ignored.extend(prepared.ignored.iter().map(in_full));
            Some(prepared)
        }
        Err(failure) => {
            problems.push(failure.in_full());
            None
        }
    };
    match args.output {
        Output::Table => {
            let proves = request.config.verify != Strictness::Off;
            let mut lines = for_people(prepared.as_ref(), proves);
            lines.extend(verdict(&problems, &ignored));
            print(lines)?;
        }
        Output::Json => print_json(&for_programs(prepared.as_ref(), &problems, &ignored))?,
    }
    Ok(if problems.is_empty() && ignored.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn for_people(prepared: Option<&Prepared>, proves: bool) -> Vec<String> {
    let mut out = Vec::new();
    for (number, (attachment, binaries)) in
        prepared.iter().flat_map(|it| &it.attachments).enumerate()
    {
        let mark = match attachment {
            it if it.is_cluster => ", the cluster network",
            it if it.is_auxiliary => ", the auxiliary chain: makes no interface",
            _ => "",
        };
        out.push(format!(
            "{}. {} ◀ {}{mark}",
            number + 1,
            attachment.ifname,
            attachment.label
        ));
        for binary in binaries.found() {
            out.push(format!("     run     {}", binary.path().display()));
        }
        if let Some(device) = &attachment.device {
            let origin = device.origin.iter();
            let origin: String = origin.map(|origin| format!(", from {origin}")).collect();
            out.push(format!(
                "     device  {} of {}{origin}",
                device.id, device.resource
            ));
        }
        for (name, value) in attachment.capability_args.iter() {
            out.push(format!("     pass    {name} = {}", value.get()));
        }
        for (name, value) in attachment.cni_args.iter().flat_map(|args| args.iter()) {
            out.push(format!("     args    {name} = {}", value.get()));
        }
        for what in proofs(attachment).iter().filter(|_| proves) {
            out.push(format!("     verify  {what}"));
        }
        if let Some(gateways) = &attachment.default_route {
            let list: Vec<String> = gateways.iter().map(ToString::to_string).collect();
            out.push(format!("     route   default via [{}]", list.join(", ")));
        }
    }
    for event in prepared.iter().flat_map(|it| &it.events) {
        out.push(format!("Note: {}", event.message));
    }
    for remark in prepared.iter().flat_map(|it| &it.remarks) {
        out.push(format!("Note: {remark}"));
    }
    out
}

/// Whether the ADD would succeed, and why not.
fn verdict(problems: &[String], ignored: &[String]) -> Vec<String> {
    let (heading, reasons) = match (problems, ignored) {
        ([], []) => (
            "It would succeed, as far as can be known before anything runs.",
            problems,
        ),
        ([], ignored) => (
            "The pod would start without the networks of an annotation that is invalid and ignored:",
            ignored,
        ),
        (problems, _) => ("It would fail:", problems),
    };
    let reasons = reasons.iter().map(|reason| format!("  - {reason}"));
    std::iter::once(heading.to_owned()).chain(reasons).collect()
}

/// What the verification compares with the kernel.
fn proofs(attachment: &Attachment) -> Vec<String> {
    let requested = &attachment.requested;
    let ips = requested.ips.iter().map(|ip| format!("address {ip}"));
    let mac = requested.mac.iter().map(|mac| format!("MAC {mac}"));
    let guid = requested.guid.iter().map(|guid| format!("GUID {guid}"));
    // A device ID in the device plugin's own form has no driver, and cannot be compared.
    let device = attachment.device.iter().filter(|it| it.driver.is_some());
    let device = device.map(|device| format!("that it is device {}", device.id));
    let set = requested_function(attachment);
    let function = set.iter().flat_map(IntendedFunction::lines);
    let function = function.map(|line| format!("{line} on its physical function"));
    let ips = ips.chain(mac).chain(guid).chain(device);
    ips.chain(function).collect()
}

/// The settings of the definition for a virtual function.
fn requested_function(attachment: &Attachment) -> Option<IntendedFunction> {
    attachment.device.as_ref()?.pci()?;
    let set = IntendedFunction::of(&attachment.config, &attachment.requested);
    (!set.is_empty()).then_some(set)
}

fn for_programs(prepared: Option<&Prepared>, problems: &[String], ignored: &[String]) -> Value {
    let attachments: Vec<Value> = prepared
        .iter()
        .flat_map(|it| &it.attachments)
        .map(|(attachment, binaries)| {
            json!({
                "network": attachment.label,
                "interface": attachment.ifname,
                "cluster": attachment.is_cluster,
                "auxiliary": attachment.is_auxiliary,
                "plugins": binaries.found().map(Binary::path).collect::<Vec<_>>(),
                "device": attachment.device.as_ref().map(|device| &device.id),
                "deviceFrom": attachment.device.as_ref().and_then(|device| device.origin).map(Origin::as_str),
                "capabilityArgs": attachment.capability_args,
                "cniArgs": attachment.cni_args,
                "ips": attachment.requested.ips.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "mac": attachment.requested.mac.map(|mac| mac.to_string()),
                "defaultRoute": attachment.default_route,
            })
        })
        .collect();
    let events = prepared.iter().flat_map(|it| &it.events);
    let remarks = prepared.iter().flat_map(|it| &it.remarks);
    let notes: Vec<String> = events
        .map(|event| event.message.clone())
        .chain(remarks.map(ToString::to_string))
        .collect();
    json!({ "attachments": attachments, "notes": notes, "ignored": ignored, "problems": problems })
}
