//! The pods that are attached when the faults end: all of them get what they select, and nothing is left
//! after them.

use std::thread;
use std::time::{Duration, Instant};

use super::cluster::Cluster;
use super::node::{Kind, Node};
use super::pod::Pod;
use super::status::{self, Attachments};

/// How long it may take until every pod has what it selects. A change that failed waits longer each time.
const AGREES_WITHIN: Duration = Duration::from_secs(120);
/// The runtime's pause between two calls of STATUS.
const PAUSE: Duration = Duration::from_secs(1);

/// Judges the survivors, then detaches them.
pub(super) fn judge(node: &Node, cluster: &dyn Cluster, mut pods: Vec<Pod<'_>>) {
    pods.iter_mut().for_each(Pod::disarm);
    // Detaches what the runtime has forgotten.
    collect(node);
    let attachments = wait_until_all_agree(node, cluster, &pods);
    compare_leases(node, &pods, &attachments);
    for pod in pods {
        pod.container.check();
        pod.container.del(None, true);
        cluster.delete(&pod.name);
    }
    collect(node);
}

/// GC, which must succeed.
fn collect(node: &Node) {
    let outcome = node.gc();
    if outcome.exit != Some(0) {
        let finding = format!("GC fails without a fault: {outcome}");
        node.report.finding(finding);
    }
}

/// The attachments of each pod, as soon as its network-status, its network namespace and its annotation
/// agree.
fn wait_until_all_agree(
    node: &Node,
    cluster: &dyn Cluster,
    pods: &[Pod<'_>],
) -> Vec<(String, Attachments)> {
    let until = Instant::now() + AGREES_WITHIN;
    let mut agreed = Vec::new();
    let mut waiting: Vec<&Pod<'_>> = pods.iter().collect();
    loop {
        let mut differences = Vec::new();
        waiting.retain(|pod| {
            let compared = status::compare(pod, cluster.status(&pod.name).as_ref());
            let is_different = compared.is_err();
            match compared {
                Ok(attachments) => agreed.push((pod.container.id(), attachments)),
                Err(difference) => differences.push(format!("{}: {difference}", pod.name)),
            }
            is_different
        });
        if waiting.is_empty() {
            return agreed;
        }
        if Instant::now() > until {
            for difference in differences {
                let finding = format!("after the faults: {difference}");
                node.report.finding(finding);
            }
            return agreed;
        }
        match node.kind {
            Kind::Api => node.status(),
            Kind::Folder => {
                for pod in &waiting {
                    let _ = node.reconcile(&pod.name).wait();
                }
            }
        }
        thread::sleep(PAUSE);
    }
}

/// Every attachment has a lease of the reference plugin, and no lease has no attachment.
fn compare_leases(node: &Node, pods: &[Pod<'_>], attachments: &[(String, Attachments)]) {
    // Without all attachments, some leases are another finding's.
    if attachments.len() < pods.len() {
        return;
    }
    let is_bridged = |(_, network): &(&String, &String)| network.ends_with("/bridged");
    let mut expected = Vec::new();
    for (container, attachments) in attachments {
        let bridged = attachments.iter().filter(is_bridged);
        expected.extend(bridged.map(|(interface, _)| format!("{container} {interface}")));
    }
    expected.sort();
    let leases = status::leases(&node.lab.path("ipam/bridged"));
    if leases != expected {
        let finding = format!("leases are {leases:?}, attachments {expected:?}");
        node.report.finding(finding);
    }
}
