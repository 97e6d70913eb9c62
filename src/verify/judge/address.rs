//! Has it the right IP addresses, and may they be used?

use std::collections::HashSet;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::kernel::{Address, Link};
use crate::npwg::RequestedIp;

use super::Judgement;
use crate::verify::{Observed, Source, Weight, What};

impl Judgement<'_> {
    pub(super) fn ip_addresses(&mut self, observed: &Observed, enslaved: Option<&str>) {
        let found = Found::new(observed.addresses.iter().map(|found| found.address));
        // Whoever enslaves an interface has its addresses; the kernel itself takes IPv6 away.
        let weight = |source: Source| match enslaved {
            Some(_) => Weight::Warning,
            None => source.into(),
        };
        self.requested_ips(&found, weight(Source::Requested));
        for answered in self.intended.answered_ips() {
            let asked = |ip: &&RequestedIp| ip.addr() == answered.addr();
            let requested = self.intended.requested.ips.iter().find(asked);
            if !found.all.contains(&answered) && requested.is_none_or(|ip| found.has(ip)) {
                let what = What::Address {
                    expected: answered.into(),
                    source: Source::Answered,
                    found: found.shown.clone(),
                };
                self.add(weight(Source::Answered), what);
            }
        }
    }

    pub(super) fn requested_ips(&mut self, found: &Found, weight: Weight) {
        for expected in &self.intended.requested.ips {
            if !found.has(expected) {
                let what = What::Address {
                    expected: *expected,
                    source: Source::Requested,
                    found: found.shown.clone(),
                };
                self.add(weight, what);
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
                self.add(weight, What::Duplicate { address: ip });
            } else if address.is_pending() && source.is_some() {
                let carrier = link.up && link.carrier;
                let weight = if carrier { weight } else { Weight::Warning };
                let address = ip;
                self.add(weight, What::Tentative { address, carrier });
            }
        }
    }
}

/// How many addresses a finding shows: a pod may have given itself thousands.
const SHOWN: usize = 16;

/// The addresses of an interface.
pub(super) struct Found {
    all: HashSet<IpNet>,
    hosts: HashSet<IpAddr>,
    shown: Vec<IpNet>,
}

impl Found {
    pub(super) fn new(found: impl Iterator<Item = IpNet>) -> Self {
        let mut shown: Vec<IpNet> = found.collect();
        let all = shown.iter().copied().collect();
        let hosts = shown.iter().map(IpNet::addr).collect();
        shown.truncate(SHOWN);
        Self { all, hosts, shown }
    }

    /// Whether an address is among those, with its prefix where one was asked for.
    fn has(&self, expected: &RequestedIp) -> bool {
        match expected.prefix() {
            None => self.hosts.contains(&expected.addr()),
            Some(prefix) => {
                IpNet::new(expected.addr(), prefix).is_ok_and(|net| self.all.contains(&net))
            }
        }
    }
}
