//! `retry`: retries one failed detachment. During a call of the runtime, the plugin starts this
//! command as a process and does not wait for the process.

use std::io;

use super::CommandError;
use crate::cni::{ContainerId, InterfaceName, RawObject};
use crate::journal::Key;
use crate::operation::Context;
use crate::operation::recovery;
use crate::plugin::with_host;
use crate::request::{Call, Request, RequestError, read_stdin};

pub(super) fn retry(container: &ContainerId, ifname: &InterfaceName) -> Result<(), CommandError> {
    let key = Key {
        container: container.clone(),
        ifname: ifname.clone(),
    };
    let request = request(&key).map_err(|cause| CommandError::Call(Box::new(cause)))?;
    let outcome = with_host(&request.config, |host| {
        let context = Context::new(host, &request, request.config.deadlines.del);
        recovery::retry::retry(&context, &key);
        let place = format!("retry of container {container}, interface {ifname}");
        for note in context.notes().iter() {
            request.config.log.warn(&place, &note.to_string());
        }
        Ok(())
    });
    Ok(outcome?)
}

fn request(key: &Key) -> Result<Request, RequestError> {
    let stdin = read_stdin(io::stdin().lock())?;
    let conf = RawObject::parse_stdin(&stdin).map_err(RequestError::of_stdin)?;
    let call = Call::read(|wanted| match wanted {
        "CNI_COMMAND" => Some("DEL".to_owned()),
        "CNI_CONTAINERID" => Some(key.container.to_string()),
        "CNI_IFNAME" => Some(key.ifname.to_string()),
        "CNI_PATH" => std::env::var("CNI_PATH").ok(),
        _ => None,
    })?;
    Request::for_people(call, conf)
}
