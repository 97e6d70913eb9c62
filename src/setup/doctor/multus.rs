//! Checks Multus' cache. Jackfield needs the cache to detach pods that Multus attached.

use super::Findings;
use crate::cni::InterfaceName;
use crate::journal::{Key, MultusCache};
use crate::operation::Context;

/// The remedy for a file of the cache that cannot be read.
const LACKS: &str = "delete the pod before you delete the pod's definitions, because a DEL \
                     without a readable cache needs the definitions";

/// Checks whether every file of the cache can be read. Skips adopted sandboxes: Jackfield has
/// written records of these sandboxes to the journal and no longer needs the cache for them.
pub(super) fn look(context: &Context<'_>, mut findings: Findings<'_>) {
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
            let about = format!("container {} in Multus' cache", key.container);
            findings.add(about, damage, LACKS);
        }
    }
    if count > 0 {
        findings.fine(format!(
            "{count} containers in Multus' cache {}",
            dir.display()
        ));
    }
}
