//! `hwt-device`, `hwt-sriov`: moves the interface of an allocated device into the pod and back.
//!
//! The second name is for VFs: it tells Jackfield that keys of the definition make settings on the
//! PF. It imitates sriov-cni and its order: on ADD and DEL first the settings on the PF, then the
//! interface; on DEL the address in the pod before the move. It remembers the PF's previous
//! settings. Like sriov-cni it leaves behind:
//! - after a DEL, the VF's own address as its address on the PF, whatever was there before;
//! - after a DEL without a network namespace, the interface's name in the pod, and the pod's
//!   address;
//! - on a VF of user space, a DEL that restores the PF's settings, forgets them, and fails.

use std::fs;

use device_info::PciAddress;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::PluginCall;
use crate::case::{Stop, present};
use crate::rig::{Link, LinkVf, command, pf_of, sysfs, vf_number};

pub(super) const TYPE: &str = "hwt-device";
pub(super) const SRIOV: &str = "hwt-sriov";

/// What DEL needs.
#[derive(Debug, Serialize, Deserialize)]
struct Cache {
    /// The interface's name and address on the host.
    interface: Option<(String, String)>,
    /// The VF's PF and number, and its previous settings on the PF.
    vf: Option<(String, u32, LinkVf)>,
}

pub(super) fn run(call: &PluginCall) -> Result<Option<Value>, Stop> {
    match call.verb.as_str() {
        "ADD" => add(call).map(Some),
        "DEL" => del(call).map(|()| None),
        _ => Ok(None),
    }
}

fn add(call: &PluginCall) -> Result<Value, Stop> {
    let netns = call.netns()?;
    // A plugin that takes another device than the allocated one.
    let device = call.text("instead").map_or_else(|| call.device(), Ok)?;
    let name = interface_of(device);
    let vf = match call.text("instead") {
        None => vf_of(device)?,
        Some(_) => None,
    };
    let interface = match &name {
        Some(name) => Some((name.clone(), Link::show(None, name)?.address)),
        None => None,
    };
    let cache = Cache { interface, vf };
    fs::write(call.cache()?, serde_json::to_vec(&cache)?)?;
    if let Some((pf, number, _)) = &cache.vf {
        set(call, pf, *number)?;
    }
    let Some(name) = name else {
        return Ok(call.result(call.text("mac")));
    };
    command("ip", &["link", "set", "dev", &name, "down"])?;
    if let Some(mac) = call.text("mac") {
        command("ip", &["link", "set", "dev", &name, "address", mac])?;
    }
    let to = ["netns", netns, "name", &call.ifname];
    command(
        "ip",
        &[&["link", "set", "dev", &name], to.as_slice()].concat(),
    )?;
    command(
        "ip",
        &["-netns", netns, "link", "set", "dev", &call.ifname, "up"],
    )?;
    let output = command(
        "ip",
        &[
            "-netns",
            netns,
            "-json",
            "link",
            "show",
            "dev",
            &call.ifname,
        ],
    )?;
    let links: Value = serde_json::from_str(&output)?;
    Ok(call.result(links[0]["address"].as_str()))
}

/// Makes the configuration's settings for the VF on its PF.
fn set(call: &PluginCall, pf: &str, number: u32) -> Result<(), Stop> {
    let number = number.to_string();
    let set = |words: &[&str]| {
        let vf = ["link", "set", "dev", pf, "vf", &number];
        command("ip", &[vf.as_slice(), words].concat())
    };
    if let Some(vlan) = call.conf["vlan"].as_u64() {
        let quality = call.conf["vlanQoS"].as_u64().unwrap_or(0);
        set(&["vlan", &vlan.to_string(), "qos", &quality.to_string()])?;
    }
    if let Some(mac) = call.text("mac") {
        set(&["mac", mac])?;
    }
    for key in ["spoofchk", "trust"] {
        if let Some(value) = call.text(key) {
            set(&[key, value])?;
        }
    }
    Ok(())
}

fn del(call: &PluginCall) -> Result<(), Stop> {
    let file = call.cache()?;
    let Ok(text) = fs::read(&file) else {
        return Ok(());
    };
    let cache: Cache = serde_json::from_slice(&text)?;
    fs::remove_file(&file)?;
    if let Some((pf, number, before)) = &cache.vf {
        let own = cache.interface.as_ref().map(|(_, mac)| mac.as_str());
        let own = own.filter(|_| call.text("mac").is_some());
        restore(pf, *number, before, own)?;
    }
    match (&cache.interface, &call.netns) {
        (Some((name, mac)), Some(netns)) => release(call, netns, name, mac),
        (Some(_), None) => Ok(()),
        (None, _) if call.text("deviceID").is_some_and(is_on_vfio) => {
            Err(Stop::failed("Link not found"))
        }
        (None, _) => Ok(()),
    }
}

/// Moves the interface to the host and restores its name and, if the pod changed it, its address.
fn release(call: &PluginCall, netns: &str, name: &str, mac: &str) -> Result<(), Stop> {
    let at = |name: &str, words: &[&str]| {
        let set = ["-netns", netns, "link", "set", "dev", name];
        command("ip", &[set.as_slice(), words].concat())
    };
    at(&call.ifname, &["down"])?;
    at(&call.ifname, &["name", name])?;
    if call.text("mac").is_some() {
        at(name, &["address", mac])?;
    }
    at(name, &["netns", "1"])?;
    Ok(())
}

/// Restores the settings on the PF, with the VF's own address instead of the previous one.
fn restore(pf: &str, number: u32, before: &LinkVf, own: Option<&str>) -> Result<(), Stop> {
    let number = number.to_string();
    let set = |words: &[&str]| {
        let vf = ["link", "set", "dev", pf, "vf", &number];
        command("ip", &[vf.as_slice(), words].concat())
    };
    if before.is_ethernet() {
        let (vlan, quality) = before.vlan();
        set(&["vlan", &vlan.to_string(), "qos", &quality.to_string()])?;
        let on = |is_on: Option<bool>| {
            if is_on.unwrap_or_default() {
                "on"
            } else {
                "off"
            }
        };
        set(&["spoofchk", on(before.spoofchk)])?;
        if let Some(mac) = own {
            set(&["mac", mac])?;
        }
        set(&["trust", on(before.trust)])?;
    }
    Ok(())
}

/// Returns the interface of a PCI function or vDPA device, if it has one on the host.
pub(super) fn interface_of(device: &str) -> Option<String> {
    let vdpa = sysfs::vdpa(device);
    let folders = match device.parse::<PciAddress>() {
        Ok(address) => vec![sysfs::function(address)],
        Err(_) => vec![vdpa],
    };
    folders.iter().find_map(|folder| {
        let virtio = sysfs::names(folder).into_iter();
        let virtio = virtio.filter(|name| name.starts_with("virtio"));
        let mut parents = virtio.map(|name| folder.join(name)).collect::<Vec<_>>();
        parents.push(folder.clone());
        parents
            .iter()
            .find_map(|parent| sysfs::names(parent.join("net")).into_iter().next())
    })
}

pub(super) fn vf_of(device: &str) -> Result<Option<(String, u32, LinkVf)>, Stop> {
    let Some((address, pf)) = device
        .parse::<PciAddress>()
        .ok()
        .and_then(|address| Some((address, pf_of(address)?)))
    else {
        return Ok(None);
    };
    let name = present("the PF's interface", interface_of(&pf.to_string()))?;
    let number = present("the VF's number", vf_number(pf, address))?;
    let state = LinkVf::of(&name, number)?;
    Ok(Some((name, number, state)))
}

fn is_on_vfio(device: &str) -> bool {
    let address = device.parse::<PciAddress>().ok();
    let driver = address.and_then(|address| sysfs::link(sysfs::function(address).join("driver")));
    driver.as_deref() == Some("vfio-pci")
}
