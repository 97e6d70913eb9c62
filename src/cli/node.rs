//! `gc`, `status`: calls of the runtime about the whole node.

use std::borrow::Cow;
use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;

use super::{ArgumentError, CommandError, GcArgs, NodeArgs, StatusArgs, note, print};
use crate::cni::{RawObject, ValidAttachment};
use crate::delegate::Ran;
use crate::operation::{self, Context};
use crate::plugin::with_host;
use crate::request::{Call, Request};
use crate::setup::conf::OurConf;

/// `CONTAINER_ID:IFNAME` of an attachment to keep.
#[derive(Debug, Clone)]
pub(super) struct KeptAttachment(ValidAttachment);

impl FromStr for KeptAttachment {
    type Err = ArgumentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (container, ifname) = text
            .rsplit_once(':')
            .ok_or(ArgumentError::AttachmentSyntax)?;
        Ok(KeptAttachment(ValidAttachment {
            container_id: container.parse()?,
            ifname: ifname.parse()?,
        }))
    }
}

pub(super) fn gc(args: &GcArgs) -> Result<ExitCode, CommandError> {
    let keep: Vec<&ValidAttachment> = args.keep.iter().map(|kept| &kept.0).collect();
    let keep = serde_json::value::to_raw_value(&keep)
        .map_err(|cause| CommandError::Document(cause.into()))?;
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
    let collected = collected?;
    for key in &collected.sandboxes {
        print([format!("detached {}:{}", key.container, key.ifname)])?;
    }
    for (network, attached) in &collected.networks {
        print([format!("collected network {network}, {attached} attached")])?;
    }
    if collected.sandboxes.is_empty() && collected.networks.is_empty() {
        print(["nothing to collect"])?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn status(args: &StatusArgs) -> Result<ExitCode, CommandError> {
    let request = request("STATUS", &args.node, |_| {})?;
    let ready = with_host(&request.config, |host| {
        let context = Context::new(host, &request, request.config.deadlines.status);
        let ready = operation::status::status(&context);
        context.notes().iter().for_each(|it| note(&it.to_string()));
        ready
    });
    let ready = ready?;
    let plugins = match ready.asked {
        Some(Ran::All) => "its plugins say so too",
        Some(Ran::None) => "its plugins have no STATUS before cniVersion 1.1.0",
        None => "its plugins are not asked, since only the agent knows them",
    };
    print([format!(
        "ready: cluster network {}; {plugins}",
        ready.network
    )])?;
    Ok(ExitCode::SUCCESS)
}

/// What the runtime would pass on stdin: our part of a list that begins with Jackfield, and any other
/// file as it is.
fn on_stdin(file: &[u8]) -> Cow<'_, [u8]> {
    let list = RawObject::parse_stdin(file).ok();
    let ours = list
        .filter(|list| list.contains("plugins"))
        .and_then(|list| OurConf::read(&list));
    match ours {
        Some(ours) => ours.on_stdin().to_string().into_bytes().into(),
        None => file.into(),
    }
}

/// The node configuration in a file, as the runtime would pass it on stdin.
pub(super) fn read_conf(file: &Path) -> Result<RawObject, CommandError> {
    let path = || file.to_owned();
    let text = std::fs::read(file).map_err(|cause| CommandError::ConfFile {
        file: path(),
        cause,
    })?;
    RawObject::parse_stdin(&on_stdin(&text)).map_err(|cause| CommandError::ConfJson {
        file: path(),
        cause,
    })
}

/// The request that the runtime would make, with `change` made to the configuration. The verbs are
/// those of CNI 1.1.0 whatever the version of the configuration, since only Jackfield reads it.
fn request(
    verb: &str,
    node: &NodeArgs,
    change: impl FnOnce(&mut RawObject),
) -> Result<Request, CommandError> {
    let mut conf = read_conf(&node.conf)?;
    change(&mut conf);
    let call = Call::read(|wanted| match wanted {
        "CNI_COMMAND" => Some(verb.to_owned()),
        "CNI_PATH" => Some(node.cni_path.clone()),
        _ => None,
    })?;
    let request = Request::for_people(call, conf).map_err(|cause| CommandError::Conf {
        file: node.conf.clone(),
        cause: Box::new(cause),
    })?;
    request.config.warnings.iter().for_each(|line| note(line));
    Ok(request)
}
