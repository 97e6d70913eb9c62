//! `retry`: one detachment that is owed is tried again, for a call of the runtime that begins it and
//! does not wait.

use std::io;
use std::process::ExitCode;

use super::RetryArgs;
use crate::cni::RawObject;
use crate::journal::Key;
use crate::operation::Context;
use crate::operation::recovery;
use crate::plugin::with_host;
use crate::request::{Call, Request, read_stdin};

pub(super) fn retry(args: &RetryArgs) -> Result<ExitCode, String> {
    let stdin = read_stdin(io::stdin().lock()).map_err(|error| error.to_string())?;
    let conf = RawObject::parse_stdin(&stdin).map_err(|error| error.to_string())?;
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
    let call = call.map_err(|error| error.to_string())?;
    let request = Request::for_people(call, conf).map_err(|error| error.to_string())?;
    let log = &request.config.log;
    let tried = with_host(&request.config, |host| {
        let context = Context::new(host, &request, request.config.deadlines.del);
        recovery::retry::retry(&context, &key);
        let named = format!(
            "retry of container {}, interface {}",
            key.container, key.ifname
        );
        let notes = context.notes();
        notes
            .iter()
            .for_each(|note| log.warn(&named, &note.to_string()));
        Ok(ExitCode::SUCCESS)
    });
    tried.map_err(|failure| failure.in_full())
}
