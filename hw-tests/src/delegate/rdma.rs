//! `hwt-rdma`: gives a pod an RDMA device beside the interface of a previous plugin in the chain.
//! It imitates rdma-cni: it moves the RDMA device of the allocated function.

use std::fs;

use device_info::PciAddress;
use serde_json::Value;

use super::call::PluginCall;
use crate::case::{Stop, present};
use crate::rig::{command, sysfs};

pub(super) const TYPE: &str = "hwt-rdma";

pub(super) fn run(call: &PluginCall) -> Result<Option<Value>, Stop> {
    match call.verb.as_str() {
        "ADD" => add(call).map(|()| Some(call.previous())),
        "DEL" => del(call).map(|()| None),
        _ => Ok(None),
    }
}

fn add(call: &PluginCall) -> Result<(), Stop> {
    let netns = call.netns()?;
    let address: PciAddress = call.device()?.parse()?;
    let names = sysfs::names(sysfs::function(address).join("infiniband"));
    let name = present("the function's RDMA device", names.first())?;
    fs::write(call.cache()?, name)?;
    command("rdma", &["dev", "set", name, "netns", netns])?;
    Ok(())
}

/// The kernel moves the device back by itself if the network namespace is gone.
fn del(call: &PluginCall) -> Result<(), Stop> {
    let Some(netns) = &call.netns else {
        return Ok(());
    };
    let inside = ["netns", "exec", netns];
    let file = call.cache()?;
    let Ok(name) = fs::read_to_string(&file) else {
        return Ok(());
    };
    // The `rdma` tool takes network namespaces by name only, and the host's has none.
    const HOST: &str = "hwt-host";
    command("ip", &["netns", "attach", HOST, "1"])?;
    let back = ["rdma", "dev", "set", &name, "netns", HOST];
    let moved = command("ip", &[inside.as_slice(), &back].concat());
    command("ip", &["netns", "del", HOST])?;
    moved?;
    fs::remove_file(file)?;
    Ok(())
}
