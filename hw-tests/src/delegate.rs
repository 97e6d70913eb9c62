//! The suite's own CNI plugins: this program, called through a link with the name of a plugin type.
//!
//! Each imitates a plugin that is not built here, as far as a case needs it. Its module says which
//! plugin it imitates, and what it leaves behind on purpose.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::case::Stop;
use call::PluginCall;

mod bond;
mod call;
mod device;
mod ib;
mod rdma;
mod socket;

/// A plugin. Returns the result of an ADD; `None` for the other verbs.
type Plugin = fn(&PluginCall) -> Result<Option<Value>, Stop>;

/// The plugin types, as networks name them.
const PLUGINS: [(&str, Plugin); 6] = [
    (bond::TYPE, bond::run),
    (device::TYPE, device::run),
    (device::SRIOV, device::run),
    (ib::TYPE, ib::run),
    (rdma::TYPE, rdma::run),
    (socket::TYPE, socket::run),
];

/// Returns all plugin types.
pub(crate) fn types() -> impl Iterator<Item = &'static str> {
    PLUGINS.iter().map(|(name, _)| *name)
}

/// Runs as a plugin if this program was called as one.
pub(crate) fn run() -> Option<ExitCode> {
    std::env::var_os("CNI_COMMAND")?;
    let called = std::env::args_os().next()?;
    let name = Path::new(&called).file_name().and_then(OsStr::to_str)?;
    let (_, plugin) = PLUGINS.iter().find(|(own, _)| *own == name)?;
    let mut stdin = Vec::new();
    let answer = io::stdin()
        .read_to_end(&mut stdin)
        .map_err(Stop::from)
        .and_then(|_| PluginCall::read(&stdin))
        .and_then(|call| plugin(&call));
    let (text, code) = match answer {
        Ok(None) => (String::new(), ExitCode::SUCCESS),
        Ok(Some(answer)) => (answer.to_string(), ExitCode::SUCCESS),
        Err(Stop::Failed(why) | Stop::Skipped(why)) => (
            json!({ "cniVersion": "1.0.0", "code": 999, "msg": why }).to_string(),
            ExitCode::FAILURE,
        ),
    };
    // The runtime has ended if this write fails.
    let _ = io::stdout().write_all(text.as_bytes());
    Some(code)
}
