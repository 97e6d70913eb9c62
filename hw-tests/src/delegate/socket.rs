//! `hwt-socket`: reports a vhost-user or memif socket that a program serves or will serve. It
//! imitates userspace-cni and similar plugins: it writes the key `deviceInfo` of its configuration
//! to the file that it is given.

use std::fs;

use serde_json::Value;

use super::call::PluginCall;
use crate::case::{Stop, present};

pub(super) const TYPE: &str = "hwt-socket";

pub(super) fn run(call: &PluginCall) -> Result<Option<Value>, Stop> {
    if call.verb != "ADD" {
        return Ok(None);
    }
    let file = present("CNIDeviceInfoFile", call.text("CNIDeviceInfoFile"))?;
    fs::write(file, call.conf["deviceInfo"].to_string())?;
    Ok(Some(call.result(None)))
}
