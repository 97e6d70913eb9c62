//! What the simulated plugins do to the node.

use serde_json::{Value, json};

use super::work::{Part, Work};
use super::world::{LeaseKey, PodLink, World};
use crate::cni::{self, Verb};
use crate::kernel::{Address, DefaultRoute, Link, VfVlan};

/// The first link that the plugin `bridge` creates in a pod gets this index plus one. Links in
/// different network namespaces may have the same index, as in the kernel.
const FIRST_LINK: u32 = 100;
/// The gateway of every network.
pub(super) const GATEWAY: &str = "10.1.0.1";

pub(super) fn apply(work: &Work, world: &mut World, part: Part) -> Result<(), cni::Error> {
    match (work.plugin.as_str(), work.verb) {
        ("bridge", Verb::Add) => bridge_add(work, world, part),
        ("bridge", Verb::Del) => bridge_del(work, world, part),
        ("sriov", Verb::Add) => sriov_add(work, world, part),
        ("sriov", Verb::Del) => sriov_del(work, world, part),
        _ => Ok(()),
    }
}

fn error<T>(msg: &str) -> Result<T, cni::Error> {
    Err(cni::Error::new(100, msg))
}

impl Work {
    fn lease(&self) -> LeaseKey {
        (
            self.network.clone(),
            self.container.clone(),
            self.ifname.clone(),
        )
    }

    fn requested_mac(&self) -> Option<Vec<u8>> {
        let mac = self.conf["runtimeConfig"]["mac"].as_str()?;
        let octets = mac.split(':').map(|it| u8::from_str_radix(it, 16).unwrap());
        Some(octets.collect())
    }

    /// The network namespace, if it exists.
    fn netns<'w>(&self, world: &'w World) -> Option<(&'w String, &'w super::world::Netns)> {
        world.netns.get_key_value(self.netns.as_deref()?)
    }
}

/// Takes a lease, as host-local does.
fn take_lease(work: &Work, world: &mut World) -> Result<(), cni::Error> {
    if world.leases.contains_key(&work.lease()) {
        return error("duplicate allocation is not allowed");
    }
    let number = world.number();
    world.leases.insert(work.lease(), number);
    Ok(())
}

fn bridge_add(work: &Work, world: &mut World, part: Part) -> Result<(), cni::Error> {
    let Some((name, netns)) = work.netns(world) else {
        return error("no such network namespace");
    };
    if netns.links.iter().any(|it| it.link.name == work.ifname) {
        return error("the interface exists");
    }
    if part == Part::First {
        return take_lease(work, world);
    }
    let name = name.clone();
    let bridge = work.conf["bridge"].as_str().unwrap_or("cni0").to_owned();
    let requested = work.requested_mac();
    let Some(number) = world.leases.get(&work.lease()).copied() else {
        return error("the lease is gone");
    };
    if let Some(mac) = &requested {
        let others = world.netns.values().flat_map(|it| &it.links);
        let mut others = others.filter(|it| it.bridge == bridge && it.link.address == *mac);
        if others.next().is_some() {
            let container = &work.container;
            world.breaks(format!(
                "{container}: MAC {mac:02x?} is used twice on {bridge}"
            ));
        }
    }
    let [_, a, b, c] = number.to_be_bytes();
    let netns = world.netns.get_mut(&name).unwrap();
    let highest = netns.links.iter().map(|it| it.link.index).max();
    let index = highest.unwrap_or(FIRST_LINK) + 1;
    let route = default_route(work, index);
    netns.routes.extend(route.clone());
    netns.links.push(PodLink {
        link: Link {
            index,
            name: work.ifname.clone(),
            address: requested.unwrap_or_else(|| vec![0x0a, 0, 0, a, b, c]),
            mtu: 1500,
            up: true,
            carrier: true,
            arp_type: 1,
            kind: Some("veth".to_owned()),
            ..Link::default()
        },
        addresses: vec![address(index, number)],
        bridge,
        route,
    });
    Ok(())
}

/// Returns the default route that the plugin creates, if its configuration demands one. Only the
/// route of the cluster network has no metric. Every other route has its own metric, because the
/// kernel refuses two default routes with the same metric.
fn default_route(work: &Work, index: u32) -> Option<DefaultRoute> {
    let is_wanted = work.conf["isDefaultGateway"] == true;
    let metric = (work.network != "cluster").then_some(index);
    is_wanted.then(|| DefaultRoute::via(GATEWAY.parse().unwrap(), &work.ifname, metric))
}

fn address(index: u32, number: u32) -> Address {
    let [_, _, b, c] = number.to_be_bytes();
    Address {
        index,
        address: format!("10.1.{b}.{c}/16").parse().unwrap(),
        dad_failed: false,
        tentative: false,
        optimistic: false,
    }
}

fn bridge_del(work: &Work, world: &mut World, part: Part) -> Result<(), cni::Error> {
    if part == Part::Second {
        world.leases.remove(&work.lease());
    } else if let Some(netns) = work.netns.as_deref().and_then(|it| world.netns.get_mut(it)) {
        if netns.container != work.container {
            let (container, other) = (&work.container, &netns.container);
            let rule = format!("{container}: a DEL got the network namespace of {other}");
            world.wrong.push(rule);
            return Ok(());
        }
        netns.retain_links(|it| it.link.name != work.ifname);
    }
    Ok(())
}

fn sriov_add(work: &Work, world: &mut World, part: Part) -> Result<(), cni::Error> {
    let Some((netns, _)) = work.netns(world) else {
        return error("no such network namespace");
    };
    let netns = netns.clone();
    let device = work.conf["deviceID"].as_str().unwrap_or_default();
    let mut functions = world.functions.iter();
    let Some(index) = functions.position(|it| it.address == device) else {
        return error("no such device");
    };
    if part == Part::Second {
        take_lease(work, world)?;
        let function = &mut world.functions[index];
        if let Some(mac) = work.requested_mac() {
            function.link.address = mac;
        }
        function.go(&netns, &work.ifname);
        return Ok(());
    }
    let function = &mut world.functions[index];
    let user = function.user.replace(work.container.clone());
    if function.place.is_some() {
        return error("the device is in another network namespace");
    }
    let vlan = work.conf["vlan"].as_u64().unwrap_or(0);
    function.state.vlan = Some(VfVlan {
        id: u16::try_from(vlan).unwrap(),
        ..VfVlan::default()
    });
    if let Some(mac) = work.requested_mac() {
        let octets: [u8; 6] = mac.try_into().unwrap();
        function.state.mac = Some(octets.into());
    }
    if let Some(user) = user.filter(|user| *user != work.container) {
        let container = &work.container;
        world.breaks(format!("{container}: {device} is still used by {user}"));
    }
    Ok(())
}

fn sriov_del(work: &Work, world: &mut World, part: Part) -> Result<(), cni::Error> {
    let device = work.conf["deviceID"].as_str().unwrap_or_default();
    let mut functions = world.functions.iter();
    let position = functions.position(|it| it.address == device);
    let Some(index) = position.filter(|index| {
        let user = world.functions[*index].user.as_deref();
        user == Some(&work.container)
    }) else {
        world.leases.remove(&work.lease());
        return Ok(());
    };
    if part == Part::First {
        let function = &world.functions[index];
        if function.place.is_some() && function.place == work.netns && !work.is_sloppy {
            let _ = world.send_home(index, "dev%d");
        }
        return Ok(());
    }
    world.leases.remove(&work.lease());
    let function = &mut world.functions[index];
    function.user = None;
    if !work.is_sloppy {
        function.state.vlan = Some(VfVlan::default());
        function.state.mac = Some([0; 6].into());
    }
    Ok(())
}

/// The answer of an ADD.
pub(super) fn answer(work: &Work, world: &World) -> Value {
    let version = &work.conf["cniVersion"];
    let netns = work.netns.as_deref().unwrap_or_default();
    if work.plugin == "tuning" {
        let mut answer = work.conf["prevResult"].clone();
        answer["cniVersion"] = version.clone();
        return answer;
    }
    let link = world.links(netns).into_iter();
    let link = link.rev().find(|link| link.name == work.ifname);
    let octets = link.map(|it| it.address).unwrap_or_default();
    let octets: Vec<String> = octets.iter().map(|it| format!("{it:02x}")).collect();
    let lease = world.leases.get(&work.lease()).copied();
    let address = lease.map(|number| address(0, number).address.to_string());
    let path = work.netns.as_deref().map(|name| format!("/netns/{name}"));
    let ips: Vec<Value> = match work.plugin.as_str() {
        "sriov" => Vec::new(),
        _ => address
            .iter()
            .map(|it| json!({"address": it, "interface": 0}))
            .collect(),
    };
    let made = world.netns.get(netns).into_iter().flat_map(|it| &it.links);
    let made = made.filter(|it| it.link.name == work.ifname);
    let routes: Vec<Value> = made
        .filter_map(|it| it.route.as_ref())
        .map(|it| json!({"dst": "0.0.0.0/0", "gw": GATEWAY, "priority": it.metric}))
        .collect();
    json!({
        "cniVersion": version,
        "interfaces": [{"name": work.ifname, "mac": octets.join(":"), "sandbox": path}],
        "ips": ips,
        "routes": routes,
    })
}

/// Runs the plugin's GC: frees the leases of attachments that are not in Jackfield's list of valid
/// attachments.
///
/// If the ADD of a sandbox succeeded before Jackfield's GC began, the list must contain every
/// attachment that the sandbox still uses. This includes the attachments that a change of the
/// running pod added before Jackfield made the list. After Jackfield has made the list, no change
/// adds an attachment, because Jackfield's GC holds the lock that excludes changes. If the list
/// lacks an attachment that is in use, this function keeps the lease, and records that a rule of
/// the simulation was broken ([`World::breaks`]).
///
/// If the ADD of a sandbox is still running, or succeeded after Jackfield's GC began, this function
/// keeps the leases of the sandbox. The simulation may run an ADD during a GC, but a real runtime
/// does not (CNI 1.1.0 §2 GC).
pub(super) fn collect(work: &Work, world: &mut World) {
    let valid = work.conf["cni.dev/valid-attachments"].as_array();
    let valid: Vec<(&str, &str)> = valid
        .into_iter()
        .flatten()
        .map(|it| {
            let text = |key: &str| it[key].as_str().unwrap_or_default();
            (text("containerID"), text("ifname"))
        })
        .collect();
    let is_valid = |key: &LeaseKey| valid.contains(&(key.1.as_str(), key.2.as_str()));
    let leases = world.leases.keys();
    let stale = leases.filter(|key| key.0 == work.network && !is_valid(key));
    let stale: Vec<LeaseKey> = stale.cloned().collect();
    for key in stale {
        let (network, container, ifname) = &key;
        let sandbox = world.sandboxes.get(container);
        let since = sandbox.and_then(|it| it.attached_since);
        let is_older = since.is_some_and(|since| since < work.process_began);
        if is_older && is_used(world, container, ifname) {
            world.breaks(format!(
                "{container}: a GC would free the container's lease on {network}"
            ));
        } else if is_older || since.is_none() && !sandbox.is_some_and(|it| it.is_adding) {
            world.leases.remove(&key);
        }
    }
}

/// Whether the pod has the interface, or a plugin is working on the pod.
fn is_used(world: &World, container: &str, ifname: &str) -> bool {
    let mut netns = world.netns.iter();
    let own = netns.find(|(_, netns)| netns.container == container);
    let has_link = |(name, _): (&String, _)| world.links(name).iter().any(|it| it.name == ifname);
    world.delegates.contains_key(container) || own.is_some_and(has_link)
}
