//! What an attachment was to be.

use ipnet::IpNet;

use crate::cni::{CniResult, Interface, InterfaceName};
use crate::npwg::RequestedIp;
use crate::plan::Requested;

/// What an attachment was to be: what the pod asked for, what the delegates answered, which
/// device it was given.
#[derive(Clone, Copy, Debug)]
pub struct Intended<'a> {
    /// The name of the interface: `CNI_IFNAME` of its ADD.
    pub ifname: &'a InterfaceName,
    /// What was asked for.
    pub requested: &'a Requested,
    /// The final result of its chain.
    pub answered: Option<&'a CniResult>,
    /// The ID of the device that kubelet allocated, where its form is known; [`None`] passes
    /// without any proof of identity.
    pub device: Option<&'a str>,
    /// The device is driven from user space (vfio, vhost-user, memif), so the pod need not have
    /// an interface of the kernel's for it.
    pub in_user_space: bool,
    /// Who may have enslaved it.
    pub masters: Masters<'a>,
}

/// Which interface may have enslaved the attachment's.
#[derive(Clone, Copy, Debug, Default)]
pub enum Masters<'a> {
    /// Any: right after ADD its own chain alone was at work.
    #[default]
    Any,
    /// These, on CHECK: the interfaces of later attachments (a bond over it), and the one that
    /// was its master right after ADD. Below one of them the permanent hardware address is
    /// compared, and missing IP addresses are no more than a warning.
    Among(&'a [InterfaceName]),
}

/// Of an attachment that asks for nothing.
static NOTHING: Requested = Requested {
    ips: Vec::new(),
    mac: None,
    guid: None,
    device: None,
};

impl<'a> Intended<'a> {
    /// An attachment of which nothing but its interface is known yet.
    #[must_use]
    pub fn new(ifname: &'a InterfaceName) -> Self {
        Self {
            ifname,
            requested: &NOTHING,
            answered: None,
            device: None,
            in_user_space: false,
            masters: Masters::Any,
        }
    }

    /// What the answer says of this interface: by name, else the first one in the sandbox.
    pub(super) fn interface(&self) -> Option<&'a Interface> {
        let result = self.answered?;
        let named = |interface: &&Interface| {
            interface.sandbox.is_some() && interface.name == self.ifname.as_str()
        };
        let first = || result.sandbox_interface().map(|(_, interface)| interface);
        result.interfaces.iter().find(named).or_else(first)
    }

    /// The addresses that the answer gives to this interface.
    ///
    /// An address that points at no interface is this one's: results before 0.3.0 know no others
    /// (CNI 1.1.0 §5 "Add Success").
    pub(super) fn answered_ips(&self) -> impl Iterator<Item = IpNet> + use<'a> {
        let ours = self.interface();
        let result = self.answered;
        result
            .into_iter()
            .flat_map(move |result| result.ips.iter().map(move |ip| (result, ip)))
            .filter(move |(result, ip)| {
                let points_at = ip.interface.and_then(|index| result.interfaces.get(index));
                match (points_at, ours) {
                    (Some(interface), Some(ours)) => {
                        interface.sandbox.is_some() && interface.name == ours.name
                    }
                    // On the host, and nothing else was answered.
                    (Some(interface), None) => interface.sandbox.is_some(),
                    (None, _) => true,
                }
            })
            .map(|(_, ip)| ip.address)
    }

    /// Whether an address is one that somebody asked for or answered.
    pub(super) fn concerns(&self, address: IpNet) -> bool {
        self.source_of(address).is_some()
    }

    /// Whether an address is one that was asked for, or else one that was answered.
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

    /// Whether something was asked for that only an interface can show.
    pub(super) fn asks(&self) -> bool {
        let Requested { ips, mac, guid, .. } = self.requested;
        !ips.is_empty() || mac.is_some() || guid.is_some() || self.device.is_some()
    }
}
