//! `gc`, `status`: the runtime's part, played for the whole node.

use std::borrow::Cow;
use std::process::ExitCode;
use std::str::FromStr;

use super::{GcArgs, NodeArgs, StatusArgs, note, print};
use crate::cni::{RawObject, ValidAttachment};
use crate::delegate::Ran;
use crate::operation::{self, Context};
use crate::plugin::with_host;
use crate::request::{Call, Request};
use crate::setup::conf::OurConf;

/// `CONTAINER_ID:IFNAME` of an attachment that stays.
#[derive(Debug, Clone)]
pub(super) struct Kept(ValidAttachment);

impl FromStr for Kept {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (container, ifname) = text
            .rsplit_once(':')
            .ok_or("write it as CONTAINER_ID:IFNAME, as in demo-web:eth0")?;
        Ok(Kept(ValidAttachment {
            container_id: container.parse().map_err(|cause| format!("{cause}"))?,
            ifname: ifname.parse().map_err(|cause| format!("{cause}"))?,
        }))
    }
}

pub(super) fn gc(args: &GcArgs) -> Result<ExitCode, String> {
    let keep: Vec<&ValidAttachment> = args.keep.iter().map(|kept| &kept.0).collect();
    let keep = serde_json::value::to_raw_value(&keep).map_err(|cause| cause.to_string())?;
    let request = request("GC", &args.node, |conf| {
        for key in ValidAttachment::KEYS {
            conf.remove(key);
        }
        conf.set("cni.dev/valid-attachments", keep);
    })?;
    let collected = with_host(&request.config, |host| {
        let context = Context::new(host, &request, request.config.deadlines.gc);
        let collected = operation::gc::gc(&context);
        context.notes().iter().for_each(|it| note(&it.to_string()));
        collected
    });
    let collected = collected.map_err(|failure| failure.in_full())?;
    for key in &collected.sandboxes {
        print([format!("detached {}:{}", key.container, key.ifname)])?;
    }
    for (network, left) in &collected.networks {
        print([format!("collected network {network}, {left} attached")])?;
    }
    if collected.sandboxes.is_empty() && collected.networks.is_empty() {
        print(["nothing to collect"])?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn status(args: &StatusArgs) -> Result<ExitCode, String> {
    let request = request("STATUS", &args.node, |_| {})?;
    let ready = with_host(&request.config, |host| {
        let context = Context::new(host, &request, request.config.deadlines.status);
        let ready = operation::status::status(&context);
        context.notes().iter().for_each(|it| note(&it.to_string()));
        ready
    });
    let ready = ready.map_err(|failure| failure.in_full())?;
    let asked = match ready.asked {
        Some(Ran::All) => "its plugins say so too",
        Some(Ran::TooOld | Ran::Disabled) => "its plugins have no STATUS before cniVersion 1.1.0",
        None => "its plugins are not asked, since only the agent knows them",
    };
    print([format!("ready: cluster network {}; {asked}", ready.network)])?;
    Ok(ExitCode::SUCCESS)
}

/// What the runtime would hand over of a file: of a list that begins with us our own part, and
/// anything else as it is.
pub(super) fn on_stdin(file: &[u8]) -> Cow<'_, [u8]> {
    let list = RawObject::parse_stdin(file).ok();
    let ours = list
        .filter(|list| list.contains("plugins"))
        .and_then(|list| OurConf::read(&list));
    match ours {
        Some(ours) => ours.on_stdin().to_string().into_bytes().into(),
        None => file.into(),
    }
}

/// The request that the runtime would make, with `change` made to the configuration. The verbs
/// are those of CNI 1.1.0, whatever version the configuration is in: nobody else is asked to
/// understand it.
fn request(
    verb: &str,
    node: &NodeArgs,
    change: impl FnOnce(&mut RawObject),
) -> Result<Request, String> {
    let file = node.conf.display();
    let conf = std::fs::read(&node.conf)
        .map_err(|cause| format!("--conf {file}: {cause}; name a readable file"))?;
    let mut conf = RawObject::parse_stdin(&on_stdin(&conf))
        .map_err(|cause| format!("{file}: {cause}; correct it"))?;
    change(&mut conf);
    let call = Call::read(|wanted| match wanted {
        "CNI_COMMAND" => Some(verb.to_owned()),
        "CNI_PATH" => Some(node.cni_path.clone()),
        _ => None,
    })
    .map_err(|error| error.to_string())?;
    let request = Request::for_people(call, conf).map_err(|error| format!("{file}: {error}"))?;
    request.config.warnings.iter().for_each(|line| note(line));
    Ok(request)
}
