//! devlink's ports and eswitch, and the names of representors, on netdevsim.

use std::collections::BTreeMap;

use device_info::{Devlink, DevlinkHandle, EswitchMode, PhysPortName, PortFlavour, Switch};
use serde::Deserialize;

use crate::case::{Case, Outcome, Stop, holds, present, same};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{Netdevsim, command, sysfs, until};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "switchdev/the_mode_comes_from_devlink_and_not_from_a_switch_id",
        needs: &[Feature::Switchdev],
        run: the_mode_comes_from_devlink_and_not_from_a_switch_id,
    },
    Case {
        name: "switchdev/the_ports_are_those_that_devlink_shows",
        needs: &[Feature::Switchdev],
        run: the_ports_are_those_that_devlink_shows,
    },
    Case {
        name: "switchdev/a_representors_name_in_sysfs_agrees_with_its_port",
        needs: &[Feature::Switchdev],
        run: a_representors_name_in_sysfs_agrees_with_its_port,
    },
    Case {
        name: "switchdev/a_missing_device_has_no_mode",
        needs: &[Feature::Switchdev],
        run: a_missing_device_has_no_mode,
    },
];

const ID: u32 = 4_711;
const PORTS: usize = 2;
const VFS: usize = 3;

fn handle(device: &Netdevsim) -> DevlinkHandle {
    DevlinkHandle {
        bus: "netdevsim".to_owned(),
        name: device.name(),
    }
}

fn switchdev() -> Result<Netdevsim, Stop> {
    let device = Netdevsim::add(ID, PORTS)?;
    device.make_vfs(VFS)?;
    device.set_mode("switchdev")?;
    until("a representor for each VF", || {
        (device.netdevs().len() == PORTS + VFS).then_some(())
    })?;
    Ok(device)
}

fn the_mode_comes_from_devlink_and_not_from_a_switch_id(_: &Node) -> Outcome {
    let device = Netdevsim::add(ID, PORTS)?;
    device.make_vfs(VFS)?;
    let mut devlink = Devlink::open()?;
    let handle = handle(&device);
    let port = present("a port's interface", device.netdevs().pop())?;
    let switch_id = sysfs::read(format!("/sys/class/net/{port}/phys_switch_id"))?;
    holds(
        "it has a switch ID in legacy mode already",
        !switch_id.is_empty(),
    )?;
    for (name, mode) in [
        ("legacy", EswitchMode::Legacy),
        ("switchdev", EswitchMode::Switchdev),
        ("legacy", EswitchMode::Legacy),
    ] {
        if devlink.eswitch_mode(&handle)? != Some(mode) {
            device.set_mode(name)?;
        }
        same("mode", devlink.eswitch_mode(&handle)?, Some(mode))?;
    }
    Ok(())
}

/// A port in the output of `devlink -j port show`.
#[derive(Debug, Deserialize)]
struct PortEntry {
    netdev: Option<String>,
    flavour: String,
    port: Option<u32>,
    controller: Option<u32>,
    pfnum: Option<u32>,
    vfnum: Option<u32>,
    #[serde(default)]
    external: bool,
}

fn devlink_ports(device: &Netdevsim) -> Result<BTreeMap<u32, PortEntry>, Stop> {
    #[derive(Deserialize)]
    struct Answer {
        port: BTreeMap<String, PortEntry>,
    }
    let output = command("devlink", &["-j", "port", "show"])?;
    let answer: Answer = serde_json::from_str(&output)?;
    let prefix = format!("{}/", device.handle());
    Ok(answer
        .port
        .into_iter()
        .filter_map(|(name, port)| Some((name.strip_prefix(&prefix)?.parse().ok()?, port)))
        .collect())
}

fn the_ports_are_those_that_devlink_shows(_: &Node) -> Outcome {
    let device = switchdev()?;
    let switch = Switch::read(&mut Devlink::open()?, &handle(&device))?;
    same("mode", switch.mode, Some(EswitchMode::Switchdev))?;
    let shown = devlink_ports(&device)?;
    same("ports shown", shown.len(), PORTS + VFS)?;
    same("ports", switch.ports.len(), shown.len())?;
    for port in &switch.ports {
        let expected = present(format!("port {}", port.index), shown.get(&port.index))?;
        let what = |part: &str| format!("port {}: {part}", port.index);
        same(what("interface"), &port.netdev, &expected.netdev)?;
        let flavour = match expected.flavour.as_str() {
            "physical" => PortFlavour::Physical,
            "pcivf" => PortFlavour::PciVf,
            other => return Err(Stop::failed(what(&format!("flavour {other}")))),
        };
        same(what("flavour"), port.flavour, flavour)?;
        same(what("number"), port.number, expected.port)?;
        same(
            what("controller"),
            port.controller,
            expected.controller.unwrap_or(0),
        )?;
        same(what("PF"), port.pf, expected.pfnum)?;
        same(what("VF"), port.vf, expected.vfnum)?;
        same(what("external"), port.external, expected.external)?;
    }
    Ok(())
}

fn a_representors_name_in_sysfs_agrees_with_its_port(_: &Node) -> Outcome {
    let device = switchdev()?;
    let switch = Switch::read(&mut Devlink::open()?, &handle(&device))?;
    let mut representors = 0;
    for port in &switch.ports {
        let netdev = present(
            format!("port {}'s interface", port.index),
            port.netdev.as_ref(),
        )?;
        let text = sysfs::read(format!("/sys/class/net/{netdev}/phys_port_name"))?;
        let name: PhysPortName = text.parse()?;
        same("the name, written again", name.to_string(), text.as_str())?;
        same(
            format!("{netdev} is a representor"),
            name.is_representor(),
            port.flavour == PortFlavour::PciVf,
        )?;
        if let PhysPortName::Vf { pf, vf, .. } = name {
            representors += 1;
            same(format!("{netdev}'s VF"), Some(vf), port.vf)?;
            same(format!("{netdev}'s PF"), Some(pf), port.pf)?;
        }
    }
    same("representors", representors, VFS)
}

fn a_missing_device_has_no_mode(_: &Node) -> Outcome {
    let gone = {
        let device = Netdevsim::add(ID, PORTS)?;
        handle(&device)
    };
    let mut devlink = Devlink::open()?;
    same("mode", devlink.eswitch_mode(&gone)?, None)?;
    same("ports", devlink.ports(&gone)?.len(), 0)
}
