//! The networks whose plugins GC calls: the networks in the node configuration and the networks in
//! the journal.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::time::Instant;

use crate::journal::Sandbox;
use crate::operation::{Context, Failure, Note, networks};
use crate::plan::KnownNetwork;

/// The maximum total size, in bytes, of the configurations that one GC handles. The limit for one
/// pod is the same.
const MOST_CONFIGURATIONS: usize = 8 << 20;

/// The networks, without duplicate configurations.
#[derive(Debug, Default)]
pub(super) struct Networks {
    pub(super) known: Vec<KnownNetwork>,
    /// Hashes of the name and configuration of every network seen so far.
    seen: HashSet<u64>,
    hashes: RandomState,
    bytes: usize,
    left_out: usize,
}

impl Networks {
    /// Adds the networks of a record.
    pub(super) fn add_recorded(&mut self, sandbox: &Sandbox) {
        for attachment in &sandbox.header.attachments {
            let network = KnownNetwork {
                label: attachment.label.clone(),
                name: attachment.network.clone(),
                config: attachment.config.clone(),
            };
            self.add(network);
        }
    }

    /// Adds the networks that the node configuration names. Asks the cluster for these networks,
    /// unless all of them are on disk.
    pub(super) fn add_administrators(
        &mut self,
        context: &Context<'_>,
        until: Instant,
        failures: &mut Vec<Failure>,
    ) {
        let answer = match networks::answer(context, until) {
            Ok(answer) => answer,
            Err(failure) => return failures.push(failure.into()),
        };
        let (cluster, others) = networks::named(context, &answer);
        for named in std::iter::once(cluster).chain(others) {
            match named.read(context) {
                Ok(network) => self.add(network),
                Err(failure) => failures.push(failure),
            }
        }
    }

    fn add(&mut self, network: KnownNetwork) {
        let text = network.config.raw().trim();
        let hash = self.hashes.hash_one((&network.name, text));
        if !self.seen.insert(hash) {
            return;
        }
        let bytes = self.bytes.saturating_add(text.len());
        if bytes > MOST_CONFIGURATIONS {
            self.left_out += 1;
            return;
        }
        self.bytes = bytes;
        self.known.push(network);
    }

    /// Adds a note with the number of networks that GC skips because of the size limit.
    pub(super) fn note_left_out(&self, context: &Context<'_>) {
        if self.left_out > 0 {
            context.note(Note::TooManyConfigurations {
                left_out: self.left_out,
                limit: MOST_CONFIGURATIONS,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cni::NetworkConfig;

    fn network(number: usize, bytes: usize) -> KnownNetwork {
        let config = format!(
            r#"{{"cniVersion":"1.0.0","name":"n","type":"x","n":{number},"long":"{}"}}"#,
            "x".repeat(bytes)
        );
        KnownNetwork {
            label: "demo/n".to_owned(),
            name: "n".parse().unwrap(),
            config: NetworkConfig::parse(config.as_bytes()).unwrap(),
        }
    }

    #[test]
    fn duplicate_and_excess_configurations_are_dropped() {
        let mut networks = Networks::default();
        for number in [0, 1, 2, 3, 4, 5, 0, 1] {
            networks.add(network(number, 2_000_000));
        }
        networks.add(network(9, 10));
        assert_eq!(networks.known.len(), 5);
        assert_eq!(networks.left_out, 2);
    }
}
