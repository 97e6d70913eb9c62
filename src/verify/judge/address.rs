//! Has it the right IP addresses, and may they be used?

use ipnet::IpNet;

use crate::kernel::{Address, Link};
use crate::npwg::RequestedIp;

use super::Judgement;
use crate::verify::{Observed, Source, Weight, What};

impl Judgement<'_> {
    pub(super) fn ip_addresses(&mut self, observed: &Observed, enslaved: Option<&str>) {
        let found: Vec<_> = observed.addresses.iter().map(|a| a.address).collect();
        // Whoever enslaves an interface has its addresses; the kernel itself takes IPv6 away.
        let weight = |source: Source| match enslaved {
            Some(_) => Weight::Warning,
            None => source.into(),
        };
        self.requested_ips(&found, weight(Source::Requested));
        for answered in self.intended.answered_ips() {
            let asked = |ip: &&RequestedIp| ip.addr() == answered.addr();
            let requested = self.intended.requested.ips.iter().find(asked);
            if !found.contains(&answered) && requested.is_none_or(|ip| has(&found, ip)) {
                let what = What::Address {
                    expected: answered.into(),
                    source: Source::Answered,
                    found: found.clone(),
                };
                self.add(weight(Source::Answered), what);
            }
        }
    }

    pub(super) fn requested_ips(&mut self, found: &[IpNet], weight: Weight) {
        for expected in &self.intended.requested.ips {
            if !has(found, expected) {
                let what = What::Address {
                    expected: *expected,
                    source: Source::Requested,
                    found: found.to_vec(),
                };
                self.add(weight, what);
            }
        }
    }

    pub(super) fn duplicates(&mut self, link: &Link, observed: &Observed) {
        for address in &observed.addresses {
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

/// Whether an address is among those, with its prefix where one was asked for.
fn has(found: &[IpNet], expected: &RequestedIp) -> bool {
    found.iter().any(|ip| {
        ip.addr() == expected.addr()
            && expected
                .prefix()
                .is_none_or(|prefix| prefix == ip.prefix_len())
    })
}
