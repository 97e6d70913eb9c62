//! The commands `gc` and `status`. They make the calls GC and STATUS, which are about the whole
//! node. A runtime makes these calls only with a configuration of CNI 1.1.0 or later. The commands
//! accept a configuration of any version.

use super::{ArgumentError, CommandError, NodeArgs, call, print};
use crate::cni::ValidAttachment;
use crate::delegate::Ran;
use crate::operation;
use crate::request::Request;

/// Parses the `CONTAINER_ID:IFNAME` of an attachment to keep.
pub(super) fn kept_attachment(text: &str) -> Result<ValidAttachment, ArgumentError> {
    let parts = text.rsplit_once(':');
    let (container, ifname) = parts.ok_or(ArgumentError::AttachmentSyntax)?;
    Ok(ValidAttachment {
        container_id: container.parse()?,
        ifname: ifname.parse()?,
    })
}

pub(super) fn gc(node: &NodeArgs, keep: &[ValidAttachment]) -> Result<(), CommandError> {
    let mut conf = call::read_conf(&node.conf)?;
    for key in ValidAttachment::KEYS {
        conf.remove(key);
    }
    let keep = serde_json::value::to_raw_value(keep);
    let keep = keep.map_err(|cause| CommandError::Stdout(cause.into()))?;
    conf.set("cni.dev/valid-attachments", keep);
    let verb = [("CNI_COMMAND", "GC")];
    let request = call::request(node, conf, &verb, Request::for_people)?;
    let collected = call::run(&request, request.config.deadlines.gc, operation::gc::gc)?;
    let detached = collected.sandboxes.iter();
    print(detached.map(|key| format!("detached {}:{}", key.container, key.ifname)))?;
    let ran = collected.networks.iter().map(|(network, attached)| {
        format!("ran GC for network {network}; attachments that remain: {attached}")
    });
    print(ran)?;
    if collected.sandboxes.is_empty() && collected.networks.is_empty() {
        print(["collected nothing"])?;
    }
    Ok(())
}

pub(super) fn status(args: &NodeArgs) -> Result<(), CommandError> {
    let conf = call::read_conf(&args.conf)?;
    let verb = [("CNI_COMMAND", "STATUS")];
    let request = call::request(args, conf, &verb, Request::for_people)?;
    let time = request.config.deadlines.status;
    let ready = call::run(&request, time, operation::status::status)?;
    let plugins = match ready.asked {
        Some(Ran::All) => "its plugins are ready too",
        Some(Ran::None) => {
            "jackfield did not ask the network's plugins, because the network's cniVersion is older than 1.1.0, the first version with STATUS"
        }
        None => {
            "jackfield did not ask the network's plugins, because the network's definition comes from the agent, and the agent does not answer"
        }
    };
    let network = ready.network;
    print([format!("ready: cluster network {network}; {plugins}")])
}
