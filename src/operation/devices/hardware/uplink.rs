//! Finds the node's own uplinks, and refuses configurations that make a plugin move an uplink into
//! a pod. An uplink is an interface with a default route or an address of the node, or an interface
//! below such an interface. For example, the members of a bond are below the bond.

mod named;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Instant;

use named::named;

use super::{DeviceProblem, Hardware};
use crate::clock;
use crate::kernel::{DeviceLinks, KernelError, Link};
use crate::plan::{Attachment, Reason};

/// Kinds of links that have members.
const MASTERS: [&str; 5] = ["bond", "bridge", "team", OPENVSWITCH, "vrf"];
const OPENVSWITCH: &str = "openvswitch";
/// The maximum length of a link's alternative name in bytes (`ALTIFNAMSIZ` without the final zero).
const LONGEST_NAME: usize = 127;
/// The buses on which plugins look up a device by name.
const BUSES: [&str; 3] = ["pci", "auxiliary", "virtio"];
/// Kinds of links that report their peer as their lower link, although the peer is not below them.
const PAIRS: [&str; 3] = ["veth", "netkit", "vxcan"];

/// The links of the host, and the host's uplinks. Both are read on first use.
pub(in crate::operation) struct HostLinks<'a> {
    open: &'a dyn Fn() -> Result<Box<dyn DeviceLinks>, KernelError>,
    links: Option<Box<dyn DeviceLinks>>,
    /// Each uplink with a text that says what the node would lose without the uplink: a default
    /// route or an address. An example is `this node's default route (interface eth0)`.
    uplinks: Option<Vec<(Link, String)>>,
}

impl<'a> HostLinks<'a> {
    /// Creates a `HostLinks` that has read nothing yet. `open` opens the links of the host.
    pub(in crate::operation) fn new(
        open: &'a dyn Fn() -> Result<Box<dyn DeviceLinks>, KernelError>,
    ) -> HostLinks<'a> {
        HostLinks {
            open,
            links: None,
            uplinks: None,
        }
    }

    /// Returns the links of the host. Opens them on first use.
    pub(super) fn links(&mut self) -> Result<&mut dyn DeviceLinks, KernelError> {
        let links = match self.links.take() {
            Some(links) => links,
            None => (self.open)()?,
        };
        Ok(self.links.insert(links).as_mut())
    }

    /// Returns the text of the uplink with this index, or `None` if the link with this index is not
    /// an uplink.
    pub(super) fn carried(&mut self, index: u32) -> Result<Option<String>, KernelError> {
        self.find(|link| link.index == index)
    }

    /// Returns the text of the first uplink that `is_meant` accepts, or `None` if it accepts none.
    fn find(&mut self, is_meant: impl Fn(&Link) -> bool) -> Result<Option<String>, KernelError> {
        let uplinks = match self.uplinks.take() {
            Some(uplinks) => uplinks,
            None => uplinks(self.links()?)?,
        };
        let uplinks = self.uplinks.insert(uplinks).iter();
        let mut meant = uplinks.filter(|(link, _)| is_meant(link));
        Ok(meant.next().map(|(_, carried)| carried.clone()))
    }
}

/// Finds the uplinks of the host. Returns each uplink with its text ([`HostLinks::uplinks`]).
fn uplinks(links: &mut dyn DeviceLinks) -> Result<Vec<(Link, String)>, KernelError> {
    let all = links.device_links()?;
    let mut by_index: HashMap<u32, &Link> = all.iter().map(|link| (link.index, link)).collect();
    // In Open vSwitch, the ports of all bridges have one common master (`ovs-system`). The kernel
    // does not show which ports a bridge has. So in `members`, all these bridges share the key
    // `None`, and each port counts as a member of every bridge.
    let key = |master: &Link| {
        let is_switch = master.kind.as_deref() == Some(OPENVSWITCH);
        (!is_switch).then_some(master.index)
    };
    let mut members: HashMap<Option<u32>, Vec<u32>> = HashMap::new();
    for link in &all {
        if let Some(master) = link.master.and_then(|master| by_index.get(&master)) {
            members.entry(key(master)).or_default().push(link.index);
        }
    }
    let mut queue = VecDeque::new();
    for name in links.uplinks()? {
        let carried = format!("this node's default route (interface {name})");
        let link = all.iter().find(|link| link.name == name);
        queue.extend(link.map(|link| (link.index, carried)));
    }
    for index in links.addressed()? {
        if let Some(link) = by_index.get(&index) {
            let carried = format!("an address of this node (interface {})", link.name);
            queue.push_back((index, carried));
        }
    }
    let mut carried: BTreeMap<u32, (Link, String)> = BTreeMap::new();
    while let Some((index, what)) = queue.pop_front() {
        let Some(link) = by_index.remove(&index) else {
            continue;
        };
        let kind = link.kind.as_deref().unwrap_or_default();
        let is_below = link.lower_netns.is_none() && !PAIRS.contains(&kind);
        let lower = link.lower.filter(|_| is_below);
        let mut below: Vec<u32> = lower.into_iter().collect();
        if MASTERS.contains(&kind) {
            below.extend(members.remove(&key(link)).unwrap_or_default());
        }
        queue.extend(below.into_iter().map(|below| (below, what.clone())));
        carried.insert(index, (link.clone(), what));
    }
    Ok(carried.into_values().collect())
}

impl Hardware<'_> {
    /// Checks that no plugin of the attachment takes an uplink of the node. Examines only keys with
    /// which a plugin takes an interface of the host. Reads nothing from the host if the attachment
    /// has no such key.
    ///
    /// # Errors
    /// - If such a key names an uplink.
    /// - If the value of such a key is a glob pattern or an ambiguous path ([`is_pattern`]).
    /// - If a macvlan in passthru mode has no master. The plugin would take over the interface of
    ///   the default route.
    /// - If the attachment names too many interfaces.
    /// - If the kernel does not answer, or if the check does not finish by `until`.
    pub(in crate::operation) fn spares_uplinks(
        &self,
        attachment: &Attachment,
        host: &mut HostLinks<'_>,
        until: Instant,
    ) -> Result<(), Reason> {
        for named in named(attachment)? {
            if clock::now() >= until {
                return Err(Reason::NoTime);
            }
            if named.value.is_empty() {
                return Err(DeviceProblem::DefaultRoute(named.key).into());
            }
            if is_pattern(&named.value) {
                return Err(DeviceProblem::Pattern(named).into());
            }
            match self.carried_by(&named.value, host) {
                Ok(None) => {}
                Ok(Some(carried)) => return Err(DeviceProblem::Uplink(named, carried).into()),
                Err(error) => return Err(DeviceProblem::UnknownUplink(named, error).into()),
            }
        }
        Ok(())
    }

    /// Returns the text of the uplink that `value` identifies, or `None` if `value` identifies no
    /// uplink. `value` can be anything that plugins accept as an identifier of an interface: its
    /// name, an alternative name, its hardware address, the name of its device on a bus, or the
    /// sysfs directory of its device.
    fn carried_by(
        &self,
        value: &str,
        host: &mut HostLinks<'_>,
    ) -> Result<Option<String>, KernelError> {
        let address = hardware_address(value);
        let below = self.interfaces_below(value);
        let found = host.find(|link| {
            link.name == value
                || below.contains(&link.name)
                || link.parent_name.as_deref() == Some(value)
                || address.as_ref().is_some_and(|address| {
                    link.address == *address || link.perm_address.as_ref() == Some(address)
                })
        })?;
        if found.is_some() || value.contains('/') || value.len() > LONGEST_NAME {
            return Ok(found);
        }
        // `value` may be an alternative name.
        match host.links()?.device_link(value)? {
            Some(link) => host.carried(link.index),
            None => Ok(None),
        }
    }

    /// Returns the interfaces of a device. `value` is the name of the device on a bus, or the path
    /// of the device's sysfs directory.
    fn interfaces_below(&self, value: &str) -> Vec<String> {
        let root = self.sysfs.root();
        let directories: Vec<PathBuf> = match value.strip_prefix("/sys/") {
            Some(path) => vec![root.join(path.trim_start_matches('/'))],
            None if value.contains('/') => Vec::new(),
            None => BUSES
                .map(|bus| root.join("bus").join(bus).join("devices").join(value))
                .into(),
        };
        let mut interfaces = Vec::new();
        for directory in directories {
            interfaces.extend(names(&directory.join("net")));
            let inside = names(&directory).into_iter();
            let virtio = inside.filter(|name| name.starts_with("virtio"));
            interfaces.extend(virtio.flat_map(|name| names(&directory.join(name).join("net"))));
        }
        interfaces
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

/// Whether a plugin could find a device by this value although [`Hardware::carried_by`] does not
/// find it. `carried_by` compares the value with the names of devices, character by character. But
/// a plugin can append the value to a sysfs directory, or use it as a glob pattern. For example, a
/// plugin that appends `./x`, `/x` or `x/` to a sysfs directory finds the device `x`, although none
/// of these values equals the name `x`. A plugin that appends `x/physfn` finds the physical
/// function of `x`.
///
/// Returns true if the value contains a path component `..`, a glob character, or NUL (which ends a
/// path in C). Also returns true if the value contains `/` and does not begin with `/sys/` or
/// `/dev/`. A value with such a beginning is safe: if a plugin appends it to a sysfs directory, the
/// path leads to no device. For example, a plugin that appends `/sys/x` to `/sys/bus/pci/devices`
/// gets a path that does not exist.
fn is_pattern(value: &str) -> bool {
    let is_whole = ["/sys/", "/dev/"].iter().any(|dir| value.starts_with(dir));
    value.contains('/') && !is_whole
        || value.split('/').any(|part| part == "..")
        || value.contains(['*', '?', '[', '\\', '\0'])
}

/// Reads a hardware address in every form that Go's `net.ParseMAC` accepts, and in some other
/// forms.
fn hardware_address(value: &str) -> Option<Vec<u8>> {
    let digits = value.chars().filter(|it| !matches!(it, ':' | '-' | '.'));
    let digits: Vec<u32> = digits.map(|it| it.to_digit(16)).collect::<Option<_>>()?;
    let octets = digits.chunks_exact(2);
    let octets = octets.map(|pair| u8::try_from(pair[0] << 4 | pair[1]).ok());
    let octets: Vec<u8> = octets.collect::<Option<_>>()?;
    Some(octets).filter(|octets| octets.len() >= 6)
}

#[cfg(test)]
mod tests;
