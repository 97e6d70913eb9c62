//! `hwt-ib-sriov`: gives a pod the IPoIB interface of a VF with the GUID that it requests. It
//! imitates ib-sriov-cni and its order: the GUIDs on the PF, then a rebind of the VF, then the
//! interface. Like ib-sriov-cni it answers no hardware address.
//!
//! It leaves behind the GUIDs on the PF, after every DEL and after an ADD that fails later (its key
//! `fails`: `rebind` or `after`). After a DEL without a network namespace it leaves everything
//! behind.

use std::fs;

use device_info::PciAddress;
use serde_json::{Value, json};

use super::call::PluginCall;
use super::device::{interface_of, vf_of};
use crate::case::{Stop, present};
use crate::rig::{command, netdev, sysfs};

pub(super) const TYPE: &str = "hwt-ib-sriov";

pub(super) fn run(call: &PluginCall) -> Result<Option<Value>, Stop> {
    match call.verb.as_str() {
        "ADD" => add(call).map(Some),
        "DEL" => del(call).map(|()| None),
        _ => Ok(None),
    }
}

fn add(call: &PluginCall) -> Result<Value, Stop> {
    let netns = call.netns()?;
    let device = call.device()?;
    let address: PciAddress = device.parse()?;
    let own = present("the VF's interface", interface_of(device))?;
    let fails = call.text("fails");
    if let Some(guid) = call.text("infinibandGUID") {
        let (pf, number, _) = present("the VF's PF", vf_of(device)?)?;
        let number = number.to_string();
        for key in ["node_guid", "port_guid"] {
            let vf = ["link", "set", "dev", &pf, "vf", &number, key, guid];
            command("ip", &vf)?;
        }
        if fails == Some("rebind") {
            return Err(Stop::failed("write driver/unbind: no such device"));
        }
        let driver = sysfs::function(address).join("driver").canonicalize()?;
        sysfs::write(driver.join("unbind"), device)?;
        sysfs::write(driver.join("bind"), device)?;
    }
    let name = netdev(address)?;
    fs::write(call.cache()?, own)?;
    let set = |words: &[&str]| command("ip", &[&["link", "set", "dev", &name], words].concat());
    set(&["down"])?;
    set(&["netns", netns, "name", &call.ifname])?;
    if fails == Some("after") {
        return Err(Stop::failed("failed to set up IPAM plugin"));
    }
    let up = ["-netns", netns, "link", "set", "dev", &call.ifname, "up"];
    command("ip", &up)?;
    let sandbox = std::env::var("CNI_NETNS").unwrap_or_default();
    let interface = json!({ "name": call.ifname, "sandbox": sandbox });
    Ok(json!({ "cniVersion": call.conf["cniVersion"], "interfaces": [interface] }))
}

fn del(call: &PluginCall) -> Result<(), Stop> {
    let file = call.cache()?;
    let Ok(own) = fs::read_to_string(&file) else {
        return Ok(());
    };
    fs::remove_file(&file)?;
    let Some(netns) = &call.netns else {
        return Ok(());
    };
    let at = ["-netns", netns, "link", "set", "dev", &call.ifname];
    command("ip", &[at.as_slice(), &["down"]].concat())?;
    let home = ["netns", "1", "name", &own];
    command("ip", &[at.as_slice(), &home].concat())?;
    Ok(())
}
