//! Checks the interface, its device and its hardware address.

use device_info::PciAddress;

use crate::baseline::port_guid;
use crate::kernel::Link;

use super::address::AddressSet;
use super::{Judgement, hardware};
use crate::verify::{Mismatch, Observed, Source, Weight};

impl Judgement<'_> {
    pub(super) fn answered_name(&mut self) {
        if let Some(answered) = self.intended.interface()
            && answered.name != self.intended.ifname.as_str()
        {
            let mismatch = Mismatch::AnsweredName(answered.name.clone());
            self.add(Weight::Answered, mismatch);
        }
    }

    /// Compares the PCI device in the delegate's result with the allocated device (CNI 1.1.0 §5 Add
    /// Success: `pciID`). For a device in user space, the result is the only evidence.
    pub(super) fn answered_device(&mut self) {
        let answered = self.intended.interface();
        let answered = answered.and_then(|interface| interface.pci_id.as_deref());
        let (Some(expected), Some(found)) = (self.intended.device, answered) else {
            return;
        };
        let read = |text: &str| text.parse::<PciAddress>().ok();
        let address = read(expected);
        if address.is_some() && !found.is_empty() && read(found) != address {
            let (expected, found) = (expected.to_owned(), found.to_owned());
            let mismatch = Mismatch::AnsweredDevice { expected, found };
            self.add(Weight::Requested, mismatch);
        }
    }

    pub(super) fn device(&mut self, observed: &Observed) {
        let Some(expected) = self.intended.device else {
            return;
        };
        let found = &observed.device;
        // The hexadecimal digits of a PCI address may be upper case.
        if found.iter().any(|name| name.eq_ignore_ascii_case(expected)) {
            return;
        }
        let expected = expected.to_owned();
        if found.is_empty() {
            self.add(Weight::Warning, Mismatch::UnknownDevice(expected));
        } else {
            let found = found.clone();
            self.add(Weight::Requested, Mismatch::Device { expected, found });
        }
    }

    pub(super) fn hardware_address(&mut self, link: &Link, enslaved: Option<&str>) {
        let permanent = enslaved.and(link.perm_address.as_ref());
        for (origin, expected) in self.expected_macs() {
            let is = |octets: &Vec<u8>| hardware::is(octets, expected);
            if is(&link.address) || permanent.is_some_and(is) {
                continue;
            }
            match (enslaved, permanent) {
                (Some(master), None) => {
                    let master = master.to_owned();
                    let mismatch = Mismatch::HiddenHardwareAddress { expected, master };
                    self.add(Weight::Warning, mismatch);
                }
                _ => {
                    let found = permanent.unwrap_or(&link.address).clone();
                    let mismatch = Mismatch::HardwareAddress {
                        expected,
                        origin,
                        found,
                    };
                    self.add(origin.into(), mismatch);
                }
            }
        }
    }

    pub(super) fn guid(&mut self, link: &Link, enslaved: Option<&str>) {
        let Some(expected) = self.intended.requested.guid else {
            return;
        };
        let permanent = enslaved.and(link.perm_address.as_deref());
        let is = |octets: &[u8]| {
            link.arp_type == Link::INFINIBAND && port_guid(octets) == Some(expected)
        };
        if !is(&link.address) && !permanent.is_some_and(is) {
            let found = link.address.clone();
            self.add(Weight::Requested, Mismatch::Guid { expected, found });
        }
    }

    /// Judges an attachment without an interface. Compares the MAC and the IP addresses in the
    /// delegate's result with the requested ones. NPWG 1.0 §4.1.2.1.4.2 requires this comparison
    /// for the MAC. NPWG 1.3 does not.
    pub(super) fn answer_alone(&mut self) {
        let answered = self.answered_mac().map(hardware::octets);
        match (self.intended.requested.mac, answered) {
            (Some(expected), None) => {
                self.add(Weight::Warning, Mismatch::NoHardwareAddress(expected));
            }
            (Some(expected), Some(found)) if !hardware::is(&found, expected) => {
                let mismatch = Mismatch::HardwareAddress {
                    expected,
                    origin: Source::Requested,
                    found,
                };
                self.add(Weight::Requested, mismatch);
            }
            _ => {}
        }
        let found = AddressSet::new(self.intended.answered_ips());
        self.requested_ips(&found, Weight::Requested);
    }
}
