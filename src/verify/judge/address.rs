//! Checks the IP addresses and their duplicate detection.

use std::collections::HashSet;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::kernel::{Address, Link};
use crate::npwg::RequestedIp;

use super::Judgement;
use crate::verify::{Mismatch, Observed, Source, Weight};

impl Judgement<'_> {
    pub(super) fn ip_addresses(&mut self, observed: &Observed, enslaved: Option<&str>) {
        let found = AddressSet::new(observed.addresses.iter().map(|found| found.address));
        // A master has the addresses of its ports, and the kernel removes their IPv6 addresses.
        let weight = |source: Source| match enslaved {
            Some(_) => Weight::Warning,
            None => source.into(),
        };
        self.requested_ips(&found, weight(Source::Requested));
        for answered in self.intended.answered_ips() {
            let asked = |ip: &&RequestedIp| ip.addr() == answered.addr();
            let requested = self.intended.requested.ips.iter().find(asked);
            if !found.all.contains(&answered) && requested.is_none_or(|ip| found.has(ip)) {
                let mismatch = Mismatch::Address {
                    expected: answered.into(),
                    source: Source::Answered,
                    found: found.listed.clone(),
                };
                self.add(weight(Source::Answered), mismatch);
            }
        }
    }

    pub(super) fn requested_ips(&mut self, found: &AddressSet, weight: Weight) {
        for expected in &self.intended.requested.ips {
            if !found.has(expected) {
                let mismatch = Mismatch::Address {
                    expected: *expected,
                    source: Source::Requested,
                    found: found.listed.clone(),
                };
                self.add(weight, mismatch);
            }
        }
    }

    pub(super) fn duplicates(&mut self, link: &Link, observed: &Observed) {
        for address in &observed.addresses {
            if !address.dad_failed && !address.is_pending() {
                continue;
            }
            let Address { address: ip, .. } = *address;
            let source = self.intended.source_of(ip);
            let weight = source.map_or(Weight::Warning, Weight::from);
            if address.dad_failed {
                self.add(weight, Mismatch::Duplicate { address: ip });
            } else if address.is_pending() && source.is_some() {
                let carrier = link.up && link.carrier;
                let weight = if carrier { weight } else { Weight::Warning };
                let address = ip;
                self.add(weight, Mismatch::Tentative { address, carrier });
            }
        }
    }
}

/// The number of addresses that a finding names. A pod may have thousands.
const LISTED: usize = 16;

/// The addresses of an interface: all of them for comparison, the first ones for messages.
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

    /// Returns whether the address is in the set, with its prefix if the request has one.
    fn has(&self, expected: &RequestedIp) -> bool {
        match expected.prefix() {
            None => self.hosts.contains(&expected.addr()),
            Some(prefix) => {
                IpNet::new(expected.addr(), prefix).is_ok_and(|net| self.all.contains(&net))
            }
        }
    }
}
