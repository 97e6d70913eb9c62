//! Checks Multus' cache. Jackfield needs it to detach pods that Multus attached.

use super::Findings;
use crate::cni::InterfaceName;
use crate::journal::{Key, MultusCache};
use crate::operation::Context;

/// The remedy for a file of the cache that cannot be read.
const LACKS: &str = "delete its pod while the pod's definitions are in the cluster: the DEL reads \
                     from the definitions what the file does not contain";

/// Checks whether every file of the cache can be read.
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
            let about = format!("container {} of Multus", key.container);
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
