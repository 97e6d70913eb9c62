//! `hwt-socket`: tells of a vhost-user or memif socket that a program serves or will serve. It stands
//! for userspace-cni and its like: the key `deviceInfo` of its configuration is what it writes to
//! the file that it is handed.

use std::fs;

use serde_json::Value;

use super::call::Call;
use crate::case::{Stop, present};

pub(super) const TYPE: &str = "hwt-socket";

pub(super) fn run(call: &Call) -> Result<Option<Value>, Stop> {
    if call.verb != "ADD" {
        return Ok(None);
    }
    let file = present("CNIDeviceInfoFile", call.text("CNIDeviceInfoFile"))?;
    fs::write(file, call.conf["deviceInfo"].to_string())?;
    Ok(Some(call.result(None)))
}
