//! `hwt-bond`: bonds existing interfaces of the pod, named by its key `links`, and gives the bond
//! the addresses that the pod requests. It imitates bond-cni in its mode `linksInContainer`,
//! active-backup, where each link keeps its own address.

use serde_json::Value;

use super::call::PluginCall;
use crate::case::Stop;
use crate::rig::command;

pub(super) const TYPE: &str = "hwt-bond";

pub(super) fn run(call: &PluginCall) -> Result<Option<Value>, Stop> {
    match call.verb.as_str() {
        "ADD" => add(call).map(Some),
        "DEL" => del(call).map(|()| None),
        _ => Ok(None),
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

fn add(call: &PluginCall) -> Result<Value, Stop> {
    let (netns, bond) = (call.netns()?, call.ifname.as_str());
    let ip = |words: &[&str]| command("ip", &[&["-netns", netns], words].concat());
    let kind = [
        "type",
        "bond",
        "mode",
        "active-backup",
        "fail_over_mac",
        "active",
    ];
    ip(&[["link", "add", bond].as_slice(), &kind, &["miimon", "100"]].concat())?;
    for link in texts(&call.conf["links"]) {
        ip(&["link", "set", "dev", link, "down"])?;
        ip(&["link", "set", "dev", link, "master", bond])?;
        ip(&["link", "set", "dev", link, "up"])?;
    }
    ip(&["link", "set", "dev", bond, "up"])?;
    let mut addresses = Vec::new();
    for address in texts(&call.conf["runtimeConfig"]["ips"]) {
        ip(&["addr", "add", address, "dev", bond])?;
        addresses.push(serde_json::json!({ "address": address, "interface": 0 }));
    }
    let output = ip(&["-json", "link", "show", "dev", bond])?;
    let links: Value = serde_json::from_str(&output)?;
    let mut result = call.result(links[0]["address"].as_str());
    result["ips"] = addresses.into();
    Ok(result)
}

fn del(call: &PluginCall) -> Result<(), Stop> {
    let Some(netns) = &call.netns else {
        return Ok(());
    };
    // The bond is missing on a second DEL.
    let _ = command("ip", &["-netns", netns, "link", "del", &call.ifname]);
    Ok(())
}
