//! What Multus left of the pods that it attached: their DEL needs it.

use super::{Check, Diagnosis};
use crate::cni::InterfaceName;
use crate::journal::{Key, MultusCache};
use crate::operation::Context;

/// Looks whether the cache can be read.
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
            diagnosis.find(
                Check::Multus,
                format!("container {} of Multus", key.container),
                damage,
                "delete its pod while its definitions are in the cluster: what the file does not say is taken from them",
            );
        }
    }
    if diagnosis.is_fine(Check::Multus) && count > 0 {
        diagnosis.fine(
            Check::Multus,
            format!("{count} containers of Multus' in {}", dir.display()),
        );
    }
}
