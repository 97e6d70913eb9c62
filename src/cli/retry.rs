//! `retry`: retries one owed detachment, for a call of the runtime that starts it and does not wait.

use std::io;
use std::process::ExitCode;

use super::{CommandError, RetryArgs};
use crate::cni::RawObject;
use crate::journal::Key;
use crate::operation::Context;
use crate::operation::recovery;
use crate::plugin::with_host;
use crate::request::{Call, Request, read_stdin};

pub(super) fn retry(args: &RetryArgs) -> Result<ExitCode, CommandError> {
    let stdin = read_stdin(io::stdin().lock()).map_err(CommandError::Stdin)?;
    let conf = RawObject::parse_stdin(&stdin).map_err(CommandError::StdinJson)?;
    let key = Key {
        container: args.container.clone(),
        ifname: args.ifname.clone(),
    };
    let call = Call::read(|wanted| match wanted {
        "CNI_COMMAND" => Some("DEL".to_owned()),
        "CNI_CONTAINERID" => Some(key.container.to_string()),
        "CNI_IFNAME" => Some(key.ifname.to_string()),
        "CNI_PATH" => std::env::var("CNI_PATH").ok(),
        _ => None,
    });
    let request = Request::for_people(call?, conf)
        .map_err(|cause| CommandError::StdinConf(Box::new(cause)))?;
    let log = &request.config.log;
    let outcome = with_host(&request.config, |host| {
        let context = Context::new(host, &request, request.config.deadlines.del);
        recovery::retry::retry(&context, &key);
        let place = format!(
            "retry of container {}, interface {}",
            key.container, key.ifname
        );
        let notes = context.notes();
        notes
            .iter()
            .for_each(|note| log.warn(&place, &note.to_string()));
        Ok(ExitCode::SUCCESS)
    });
    Ok(outcome?)
}
