//! Checks an interface's IP addresses, and whether duplicate address detection accepted them.

use std::collections::HashSet;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::kernel::Link;
use crate::npwg::RequestedIp;

use super::Judgement;
use crate::verify::{Mismatch, Observed, Source, Weight};

impl Judgement<'_> {
    pub(super) fn ip_addresses(&mut self, observed: &Observed, enslaved: Option<&str>) {
        let found = AddressSet::new(observed.addresses.iter().map(|found| found.address));
        // An enslaved interface usually loses its addresses: a plugin moves them to the master, or
        // the kernel removes them (IPv6). So a missing address is only a warning.
        let weight = |source: Source| match enslaved {
            Some(_) => Weight::Warning,
            None => source.into(),
        };
        self.requested_ips(&found, weight(Source::Requested));
        for answered in self.intended.answered_ips() {
            let asked = |ip: &&RequestedIp| ip.addr() == answered.addr();
            let requested = self.intended.requested.ips.iter().find(asked);
            if !found.all.contains(&answered) && requested.is_none_or(|ip| found.has(ip)) {
                let weight = weight(Source::Answered);
                self.add(weight, found.lacks(answered.into(), Source::Answered));
            }
        }
    }

    pub(super) fn requested_ips(&mut self, found: &AddressSet, weight: Weight) {
        for expected in &self.intended.requested.ips {
            if !found.has(expected) {
                self.add(weight, found.lacks(*expected, Source::Requested));
            }
        }
    }

    pub(super) fn duplicates(&mut self, link: &Link, observed: &Observed) {
        let addresses = observed.addresses.iter();
        for found in addresses.filter(|it| it.dad_failed || it.is_pending()) {
            let address = found.address;
            let source = self.intended.source_of(address);
            let weight = source.map_or(Weight::Warning, Weight::from);
            if found.dad_failed {
                self.add(weight, Mismatch::Duplicate(address));
            } else if source.is_some() && link.up && link.carrier {
                self.add(weight, Mismatch::Tentative(address));
            } else if source.is_some() {
                let mismatch = Mismatch::TentativeWithoutCarrier(address);
                self.add(Weight::Warning, mismatch);
            }
        }
    }
}

/// How many addresses a finding lists. A pod may have thousands.
const LISTED: usize = 16;

/// The addresses of an interface. `all` and `hosts` are for comparisons, and `listed` has the first
/// addresses for messages.
pub(super) struct AddressSet {
    all: HashSet<IpNet>,
    hosts: HashSet<IpAddr>,
    listed: Vec<IpNet>,
}

impl AddressSet {
    pub(super) fn new(found: impl Iterator<Item = IpNet>) -> Self {
        let mut listed: Vec<IpNet> = found.collect();
        let all = listed.iter().copied().collect();
        let hosts = listed.iter().map(IpNet::addr).collect();
        listed.truncate(LISTED);
        Self { all, hosts, listed }
    }

    /// Returns the finding for a missing address.
    fn lacks(&self, expected: RequestedIp, origin: Source) -> Mismatch {
        Mismatch::Address {
            expected,
            origin,
            found: self.listed.clone(),
        }
    }

    /// Returns whether the set contains the requested address. Compares the prefix only if the
    /// request has one.
    fn has(&self, expected: &RequestedIp) -> bool {
        match expected.prefix() {
            None => self.hosts.contains(&expected.addr()),
            Some(prefix) => {
                IpNet::new(expected.addr(), prefix).is_ok_and(|net| self.all.contains(&net))
            }
        }
    }
}
