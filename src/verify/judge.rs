//! The rules.

mod address;
mod identity;
#[cfg(test)]
mod tests;

use crate::kernel::Link;
use crate::npwg::RequestedMac;

use super::hardware;
use super::{Finding, Intended, Masters, Observed, Source, Weight, What};

/// Compares what an attachment was to be with what the kernel shows of it.
///
/// No finding is the proof. They come in the order in which a reader would ask: is it there, is
/// it the right device, has it the right addresses, does it work.
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
            let of = link.name.clone();
            let weight = judgement.weight_of_presence();
            judgement.add(weight, What::AlternativeName { of });
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
    fn add(&mut self, weight: Weight, what: What) {
        self.findings.push(Finding {
            interface: self.intended.ifname.clone(),
            what,
            weight,
        });
    }

    fn present(&mut self, link: &Link, observed: &Observed) {
        let enslaved = self.master(observed);
        self.device(observed);
        self.hardware_address(link, enslaved);
        self.guid(link, enslaved);
        self.mtu(link);
        if link.up {
            if !link.carrier {
                self.add(Weight::Warning, What::NoCarrier);
            }
        } else {
            self.add(Weight::Answered, What::Down);
        }
        self.ip_addresses(observed, enslaved);
        self.duplicates(link, observed);
    }

    /// Without any interface the delegate's answer is all there is, and only for a device that is
    /// driven from user space that is enough.
    fn absent(&mut self) {
        if self.intended.in_user_space {
            self.answer_alone();
            return;
        }
        let intended = self.intended;
        let answers = intended.interface().is_some() || intended.answered_ips().next().is_some();
        if intended.asks() || answers {
            self.add(self.weight_of_presence(), What::Missing);
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
        // A result's 0 is Go's way to say nothing.
        let answered = self.intended.interface().and_then(|answer| answer.mtu);
        if let Some(expected) = answered
            && expected != 0
            && expected != link.mtu
        {
            let found = link.mtu;
            self.add(Weight::Answered, What::Mtu { expected, found });
        }
    }

    /// Whether a later attachment has enslaved it, and so changed what it is.
    fn master<'o>(&mut self, observed: &'o Observed) -> Option<&'o str> {
        let master = observed
            .master
            .as_ref()
            .filter(|master| master.changes_it())?;
        let Masters::Among(names) = self.intended.masters else {
            return None;
        };
        if names.iter().any(|name| name.as_str() == master.name) {
            return Some(&master.name);
        }
        let found = master.name.clone();
        self.add(Weight::Answered, What::Master { found });
        None
    }

    /// The answered hardware address; a broken one is a finding.
    fn answered_mac(&mut self) -> Option<RequestedMac> {
        let text = self.intended.interface()?.mac.as_deref()?;
        let read = hardware::parse(text);
        if read.is_none() && !text.is_empty() {
            let found = text.to_owned();
            self.add(Weight::Answered, What::BrokenHardwareAddress { found });
        }
        // All zeros are what a plugin says that does not know it.
        read.filter(|mac| !matches!(mac, RequestedMac::Ethernet(mac) if mac.is_zero()))
    }

    /// The expected hardware addresses: the requested one, and the answered one where it differs.
    fn expected_macs(&mut self) -> impl Iterator<Item = (Source, RequestedMac)> + use<> {
        let requested = self.intended.requested.mac;
        let answered = self.answered_mac();
        let answered = answered.filter(|answered| Some(*answered) != requested);
        let requested = requested.map(|mac| (Source::Requested, mac));
        let answered = answered.map(|mac| (Source::Answered, mac));
        requested.into_iter().chain(answered)
    }
}
