//! Checks Multus' cache, which the DEL of the pods that Multus attached needs.

use super::{Check, Diagnosis};
use crate::cni::InterfaceName;
use crate::diagnostic::Problem;
use crate::journal::{Key, MultusCache};
use crate::operation::Context;

/// A file of the cache cannot be read; the journal's description.
#[derive(Debug)]
struct Damage(String);

impl Problem for Damage {
    fn words(&self) -> String {
        self.0.clone()
    }

    fn remedy(&self) -> Option<String> {
        let remedy = "delete its pod while its definitions are in the cluster: the DEL takes from \
                      them what the file lacks";
        Some(remedy.to_owned())
    }
}

/// Checks whether the cache can be read.
pub(super) fn look(context: &Context<'_>, diagnosis: &mut Diagnosis) {
    let dir = &context.request.config.cni_dir;
    let cache = MultusCache::new(dir);
    let mut count = 0_usize;
    for container in cache.containers() {
        let key = Key {
            container,
            ifname: InterfaceName::first(),
        };
        if context.host.journal.is_adopted(&key) {
            continue;
        }
        count += 1;
        for damage in cache.read(&key).damage {
            let about = format!("container {} of Multus", key.container);
            diagnosis.find(Check::Multus, about, Damage(damage));
        }
    }
    if diagnosis.is_fine(Check::Multus) && count > 0 {
        diagnosis.fine(
            Check::Multus,
            format!("{count} containers of Multus' in {}", dir.display()),
        );
    }
}
