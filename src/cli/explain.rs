//! `explain`: shows the plan of an ADD, but runs no plugin. Lists the problems that would end the
//! ADD before its first plugin.

use std::path::Path;

use serde_json::{Value, json};

use super::{CommandError, Output, PodArgs, no_findings, pod, print, print_json};
use crate::delegate::Binary;
use crate::kernel::capabilities;
use crate::operation::devices::reserve;
use crate::operation::prepare::{Prepared, prepare};
use crate::operation::{Context, Failure, readiness_indicator};
use crate::plan::{Attachment, PlanError};
use crate::plugin::with_host;
use crate::request::Strictness;
use crate::verify::IntendedFunction;

pub(super) fn explain(args: &PodArgs) -> Result<(), CommandError> {
    let request = pod::request("ADD", args, None, Path::new("/proc/self/ns/net"))?;
    let mut failures = Vec::new();
    let prepared = with_host(&request.config, |host| {
        let of_node = [
            capabilities::require().map_err(Failure::from),
            host.journal.check_writable().map_err(Failure::from),
            readiness_indicator::is_there(request.config.readiness_indicator.as_deref()),
        ];
        failures.extend(of_node.into_iter().filter_map(Result::err));
        let context = Context::new(host, &request, request.config.deadlines.add);
        let mut prepared = prepare(&context)?;
        let in_use = reserve::foresee(&context, &prepared);
        prepared.problems.extend(in_use);
        Ok(prepared)
    });
    let prepared = prepared.unwrap_or_else(|failure| {
        failures.push(failure);
        Prepared::default()
    });
    let in_full = |problem: &PlanError| Failure::Plan(problem.clone()).in_full();
    let of_plan = prepared.problems.iter().map(in_full);
    let problems = failures.iter().map(Failure::in_full).chain(of_plan);
    let problems: Vec<String> = problems.collect();
    let ignored: Vec<String> = prepared.ignored.iter().map(in_full).collect();
    match args.output {
        Output::Table => {
            let proves = request.config.verify != Strictness::Off;
            let plan = for_people(&prepared, proves);
            print(plan.into_iter().chain(verdict(&problems, &ignored)))?;
        }
        Output::Json => print_json(&for_programs(&prepared, &problems, &ignored))?,
    }
    no_findings(problems.is_empty() && ignored.is_empty())
}

fn for_people(prepared: &Prepared, proves: bool) -> Vec<String> {
    let mut out = Vec::new();
    for (number, (attachment, binaries)) in (1..).zip(&prepared.attachments) {
        let (ifname, label) = (&attachment.ifname, &attachment.label);
        let mark = match attachment {
            it if it.is_cluster => ", the cluster network",
            it if it.is_auxiliary => ", named by auxiliaryCNIChainName: creates no interface",
            _ => "",
        };
        out.push(format!("{number}. {ifname} ◀ {label}{mark}"));
        let mut fact = |kind: &str, text: String| out.push(format!("     {kind:<7} {text}"));
        for binary in binaries.found() {
            fact("run", binary.path().display().to_string());
        }
        if let Some(device) = &attachment.device {
            let (id, resource) = (&device.id, &device.resource);
            let origin = device.origin.map(|origin| format!(", from {origin}"));
            let origin = origin.unwrap_or_default();
            fact("device", format!("{id} of {resource}{origin}"));
        }
        for (name, value) in attachment.capability_args.iter() {
            fact("pass", format!("{name} = {}", value.get()));
        }
        for (name, value) in attachment.cni_args.iter().flat_map(|args| args.iter()) {
            fact("args", format!("{name} = {}", value.get()));
        }
        if proves {
            proofs(attachment).for_each(|what| fact("verify", what));
        }
        if let Some(gateways) = &attachment.default_route {
            let list: Vec<String> = gateways.iter().map(ToString::to_string).collect();
            fact("route", format!("default via [{}]", list.join(", ")));
        }
    }
    let notes = notes(prepared);
    out.extend(notes.iter().map(|note| format!("Note: {note}")));
    out
}

fn notes(prepared: &Prepared) -> Vec<String> {
    let events = prepared.events.iter().map(|event| event.message.clone());
    let remarks = prepared.remarks.iter().map(ToString::to_string);
    events.chain(remarks).collect()
}

/// Formats the ADD's expected outcome: success, a failure with its reasons, or an ignored
/// annotation with its reasons.
fn verdict(problems: &[String], ignored: &[String]) -> Vec<String> {
    let (heading, reasons) = if !problems.is_empty() {
        ("The ADD would fail:", problems)
    } else if ignored.is_empty() {
        let heading = "The ADD would succeed, unless a plugin fails.";
        (heading, ignored)
    } else {
        let heading = "Jackfield would ignore an invalid annotation, and the pod would start \
                       without that annotation's networks:";
        (heading, ignored)
    };
    let reasons = reasons.iter().map(|reason| format!("  - {reason}"));
    [heading.to_owned()].into_iter().chain(reasons).collect()
}

/// Lists the planned values that verification would compare with the kernel.
fn proofs(attachment: &Attachment) -> impl Iterator<Item = String> {
    let requested = &attachment.requested;
    let ips = requested.ips.iter().map(|ip| format!("address {ip}"));
    let mac = requested.mac.map(|mac| format!("MAC {mac}"));
    let guid = requested.guid.map(|guid| format!("GUID {guid}"));
    // `driver` is `None` for an ID in the device plugin's own format. Verification cannot compare
    // such an ID with the kernel's devices.
    let device = attachment.device.iter().filter(|it| it.driver.is_some());
    let device = device.map(|device| format!("device {}", device.id));
    let function = IntendedFunction::of(&attachment.config, requested);
    let is_pci = attachment.device.iter().any(|it| it.pci().is_some());
    let function: Vec<String> = function.lines().filter(|_| is_pci).collect();
    let function = function
        .into_iter()
        .map(|line| format!("{line} on its physical function"));
    let of_pod = ips.chain(mac).chain(guid);
    of_pod.chain(device).chain(function)
}

fn for_programs(prepared: &Prepared, problems: &[String], ignored: &[String]) -> Value {
    let attachments = prepared.attachments.iter();
    let attachments = attachments.map(|(attachment, binaries)| {
        let device = attachment.device.as_ref();
        let ips = attachment.requested.ips.iter();
        json!({
            "network": attachment.label,
            "interface": attachment.ifname,
            "cluster": attachment.is_cluster,
            "auxiliary": attachment.is_auxiliary,
            "plugins": binaries.found().map(Binary::path).collect::<Vec<_>>(),
            "device": device.map(|device| &device.id),
            "deviceFrom": device.and_then(|device| device.origin),
            "capabilityArgs": attachment.capability_args,
            "cniArgs": attachment.cni_args,
            "ips": ips.map(ToString::to_string).collect::<Vec<_>>(),
            "mac": attachment.requested.mac.map(|mac| mac.to_string()),
            "defaultRoute": attachment.default_route,
        })
    });
    json!({
        "attachments": attachments.collect::<Vec<_>>(),
        "notes": notes(prepared),
        "ignored": ignored,
        "problems": problems,
    })
}
