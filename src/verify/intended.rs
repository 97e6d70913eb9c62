//! An attachment as intended.

use ipnet::IpNet;

use crate::cni::{CniResult, Interface, InterfaceName};
use crate::npwg::RequestedIp;
use crate::plan::Requested;

/// What an attachment should be, according to the pod's request, the delegates' result and the
/// allocated device.
#[derive(Clone, Copy, Debug)]
pub struct Intended<'a> {
    /// The interface's name: `CNI_IFNAME` of the ADD.
    pub ifname: &'a InterfaceName,
    /// The pod's request.
    pub requested: &'a Requested,
    /// The final result of the delegate chain.
    pub answered: Option<&'a CniResult>,
    /// The ID of the allocated device. [`None`] if there is no device, or if Jackfield does not
    /// know the form of the ID. Verification then skips the device.
    pub device: Option<&'a str>,
    /// Whether a user-space program drives the device (vfio, vhost-user, memif). The pod may then
    /// have no kernel interface for the device.
    pub in_user_space: bool,
    /// The interfaces that verification accepts as the master of the attachment's interface.
    pub masters: Masters<'a>,
}

/// The interfaces that verification accepts as the master of the attachment's interface.
#[derive(Clone, Copy, Debug, Default)]
pub enum Masters<'a> {
    /// Any interface. This applies in two cases:
    /// - Right after the attachment's delegates have run for ADD. Only these delegates can have
    ///   enslaved the interface.
    /// - After a change of a running pod's networks. Jackfield then reads the interfaces only for
    ///   the new network-status. It ignores all findings, because CHECK reports them.
    #[default]
    Any,
    /// Only these interfaces. This applies on CHECK. The list contains the interfaces of later
    /// attachments, such as a bond over the interface. For an interface with a master in the list:
    /// - The expected hardware address must be the interface's current or permanent address.
    /// - A missing IP address is only a warning.
    Among(&'a [InterfaceName]),
}

impl<'a> Intended<'a> {
    /// Returns the result's entry for this interface: the entry with the interface's name,
    /// otherwise the first entry. Skips entries without a sandbox.
    pub(super) fn interface(&self) -> Option<&'a Interface> {
        let result = self.answered?;
        let named = |interface: &&Interface| {
            interface.sandbox.is_some() && interface.name == self.ifname.as_str()
        };
        let first = || result.sandbox_interface().map(|(_, interface)| interface);
        result.interfaces.iter().find(named).or_else(first)
    }

    /// Returns the IP addresses that the result assigns to this interface.
    ///
    /// An address without an interface index belongs to this interface, because results before
    /// 0.3.0 have only one interface and no index (CNI 1.1.0 §5 "Add Success").
    pub(super) fn answered_ips(&self) -> impl Iterator<Item = IpNet> + use<'a> {
        let ours = self.interface();
        let result = self.answered;
        result
            .into_iter()
            .flat_map(move |result| result.ips.iter().map(move |ip| (result, ip)))
            .filter(move |(result, ip)| {
                let points_at = ip.interface.and_then(|index| result.interfaces.get(index));
                points_at.is_none_or(|interface| {
                    interface.sandbox.is_some()
                        && ours.is_some_and(|ours| interface.name == ours.name)
                })
            })
            .map(|(_, ip)| ip.address)
    }

    /// Returns the source of an address: the request if the request contains the address, otherwise
    /// the result. Returns [`None`] if neither contains the address.
    pub(super) fn source_of(&self, address: IpNet) -> Option<super::Source> {
        let asked = |ip: &RequestedIp| ip.addr() == address.addr();
        if self.requested.ips.iter().any(asked) {
            Some(super::Source::Requested)
        } else if self.answered_ips().any(|ip| ip.addr() == address.addr()) {
            Some(super::Source::Answered)
        } else {
            None
        }
    }

    /// Returns whether there is a request or an allocated device to verify.
    pub(super) fn asks(&self) -> bool {
        let Requested { ips, mac, guid, .. } = self.requested;
        !ips.is_empty() || mac.is_some() || guid.is_some() || self.device.is_some()
    }
}
