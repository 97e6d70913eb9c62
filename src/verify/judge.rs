//! The rules of verification.

mod address;
mod identity;
#[cfg(test)]
mod tests;

use crate::kernel::Link;
use crate::npwg::RequestedMac;

use super::hardware;
use super::{Finding, Intended, Masters, Mismatch, Observed, Source, Weight};

/// Compares an attachment as intended with the attachment as observed.
///
/// An empty list means that the attachment is as intended. The findings about an interface come in
/// the order of the checks, from its name and device to its IP addresses.
#[must_use]
pub fn judge(intended: &Intended<'_>, observed: &Observed) -> Vec<Finding> {
    let mut judgement = Judgement {
        intended,
        findings: Vec::new(),
    };
    judgement.answered_name();
    judgement.answered_device();
    match &observed.link {
        None => judgement.absent(),
        Some(link) if link.name != intended.ifname.as_str() => {
            let mismatch = Mismatch::AlternativeName(link.name.clone());
            judgement.add(judgement.weight_of_presence(), mismatch);
        }
        Some(link) => judgement.present(link, observed),
    }
    judgement.findings
}

/// The findings so far.
struct Judgement<'a> {
    intended: &'a Intended<'a>,
    findings: Vec<Finding>,
}

impl Judgement<'_> {
    fn add(&mut self, weight: Weight, mismatch: Mismatch) {
        let finding = Finding::new(self.intended.ifname, mismatch, weight);
        self.findings.push(finding);
    }

    fn present(&mut self, link: &Link, observed: &Observed) {
        let enslaved = self.master(observed);
        self.device(observed);
        self.hardware_address(link, enslaved);
        self.guid(link, enslaved);
        self.mtu(link);
        if !link.up {
            self.add(Weight::Answered, Mismatch::Down);
        } else if !link.carrier {
            self.add(Weight::Warning, Mismatch::NoCarrier);
        }
        self.ip_addresses(observed, enslaved);
        self.duplicates(link, observed);
    }

    /// Judges an attachment without an interface. For a device in user space, judges only the
    /// delegate's result. For any other attachment, adds [`Mismatch::Missing`] if the request, the
    /// allocated device or the result requires an interface.
    fn absent(&mut self) {
        if self.intended.in_user_space {
            self.answer_alone();
            return;
        }
        let intended = self.intended;
        let answers = intended.interface().is_some() || intended.answered_ips().next().is_some();
        if intended.asks() || answers {
            self.add(self.weight_of_presence(), Mismatch::Missing);
        }
    }

    fn weight_of_presence(&self) -> Weight {
        if self.intended.asks() {
            Weight::Requested
        } else {
            Weight::Answered
        }
    }

    fn mtu(&mut self, link: &Link) {
        // Go plugins write 0 for a missing MTU.
        let answered = self.intended.interface().and_then(|answer| answer.mtu);
        if let Some(expected) = answered
            && expected != 0
            && expected != link.mtu
        {
            let found = link.mtu;
            self.add(Weight::Answered, Mismatch::Mtu { expected, found });
        }
    }

    /// Returns the master if [`Masters::Among`] lists it. A master that is not listed becomes a
    /// finding. With [`Masters::Any`], ignores every master.
    fn master<'o>(&mut self, observed: &'o Observed) -> Option<&'o str> {
        let master = observed.master.as_deref()?;
        let Masters::Among(names) = self.intended.masters else {
            return None;
        };
        if names.iter().any(|name| name.as_str() == master) {
            return Some(master);
        }
        self.add(Weight::Answered, Mismatch::Master(master.to_owned()));
        None
    }

    /// Returns the hardware address in the result. An invalid address becomes a finding.
    fn answered_mac(&mut self) -> Option<RequestedMac> {
        let text = self.intended.interface()?.mac.as_deref()?;
        let read = hardware::parse(text);
        if read.is_none() && !text.is_empty() {
            let mismatch = Mismatch::BrokenHardwareAddress(text.to_owned());
            self.add(Weight::Answered, mismatch);
        }
        // Plugins return all zeros if they do not know the address.
        read.filter(|mac| !matches!(mac, RequestedMac::Ethernet(mac) if mac.is_zero()))
    }

    /// Returns the expected hardware addresses: the requested address, and the address in the
    /// result if it differs.
    fn expected_macs(&mut self) -> impl Iterator<Item = (Source, RequestedMac)> + use<> {
        let requested = self.intended.requested.mac;
        let answered = self.answered_mac().filter(|mac| Some(*mac) != requested);
        let macs = [(Source::Requested, requested), (Source::Answered, answered)].into_iter();
        macs.filter_map(|(origin, mac)| Some((origin, mac?)))
    }
}
