//! Makes the calls that the runtime would make, with the node configuration from a file.

use std::path::Path;
use std::time::Duration;

use super::{CommandError, NodeArgs, note};
use crate::cni::{JsonError, RawObject};
use crate::operation::{Context, Failure};
use crate::plugin::with_host;
use crate::request::{Call, Request, RequestError};
use crate::setup::conf::OurConf;

/// Reads and parses the file that `--conf` names.
pub(super) fn read_object(
    file: &Path,
    parse: impl Fn(&[u8]) -> Result<RawObject, JsonError>,
) -> Result<RawObject, CommandError> {
    let text = std::fs::read(file);
    let text = text.map_err(|cause| CommandError::ConfFile(file.to_owned(), cause))?;
    parse(&text).map_err(|cause| CommandError::ConfJson(file.to_owned(), cause))
}

/// Reads the configuration that the runtime would pass on stdin. If the file is a list whose first
/// plugin is Jackfield, returns Jackfield's part of the list. Returns any other file as it is.
pub(super) fn read_conf(file: &Path) -> Result<RawObject, CommandError> {
    read_object(file, |text| {
        let list = RawObject::parse_stdin(text).ok();
        let list = list.filter(|list| list.contains("plugins"));
        match list.and_then(|list| OurConf::read(&list)) {
            Some(ours) => RawObject::parse_stdin(ours.on_stdin().to_string().as_bytes()),
            None => RawObject::parse_stdin(text),
        }
    })
}

/// Returns the request that the runtime would make with these variables.
pub(super) fn request(
    node: &NodeArgs,
    conf: RawObject,
    variables: &[(&str, &str)],
    combine: impl Fn(Call, RawObject) -> Result<Request, RequestError>,
) -> Result<Request, CommandError> {
    let cni_path = ("CNI_PATH", node.cni_path.as_str());
    let call = Call::of(&[variables, &[cni_path]].concat()).map_err(RequestError::from)?;
    let request = combine(call, conf)
        .map_err(|cause| CommandError::Conf(node.conf.clone(), Box::new(cause)))?;
    request.config.warnings.iter().for_each(|line| note(line));
    Ok(request)
}

/// Runs a verb on this node with the time limit `time`, and prints the notes that the verb
/// collected.
pub(super) fn run<T>(
    request: &Request,
    time: Duration,
    verb: impl FnOnce(&Context<'_>) -> Result<T, Failure>,
) -> Result<T, CommandError> {
    let outcome = with_host(&request.config, |host| {
        let context = Context::new(host, request, time);
        let outcome = verb(&context);
        context.notes().iter().for_each(|it| note(&it.to_string()));
        outcome
    });
    Ok(outcome?)
}
