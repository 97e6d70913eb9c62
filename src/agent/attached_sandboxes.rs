//! Lists the sandboxes that are attached on this node, and finds those whose pods' annotations have
//! changed.
//!
//! The plugin reports the sandbox after a successful ADD, a successful change of a running pod's
//! networks, or any DEL. The agent keeps the sandboxes only in memory, and does not read the
//! journal. So after a restart, the agent asks the next STATUS for the list of all sandboxes.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::{Duration, Instant};

use tracing::warn;

use super::cache::ObjectCache;
use crate::cluster::api::PodView;
use crate::cluster::{Answer, PodName, SandboxNetworks};
use crate::cni::{ContainerId, InterfaceName};
use crate::npwg::{NetworksDigest, ObjectRef};

/// The maximum number of sandboxes that the agent keeps.
const MOST: usize = 4096;
/// The maximum number of sandboxes that one answer names.
const MOST_DIFFERING: usize = 256;

/// The attached sandboxes.
#[derive(Debug, Default)]
pub(super) struct AttachedSandboxes {
    attached: RefCell<HashMap<(ContainerId, InterfaceName), Attached>>,
    is_listed: Cell<bool>,
}

#[derive(Debug)]
struct Attached {
    pod: PodName,
    /// The digest of the annotation that the attachments match.
    networks: NetworksDigest,
    /// When the agent noticed that the pod's annotation differs from the attachments, and the
    /// digest of that annotation. `None` if they do not differ.
    changed: Option<(Instant, NetworksDigest)>,
}

impl AttachedSandboxes {
    /// Records the report of a call, and compares the reported sandbox with its pod in `pods`.
    /// Returns how long the annotation had differed from the attachments before the report. Returns
    /// `None` if there was no difference, or if the sandbox is detached.
    pub(super) fn report(
        &self,
        sandbox: SandboxNetworks,
        pods: &ObjectCache<PodView>,
    ) -> Option<Duration> {
        let mut attached = self.attached.borrow_mut();
        let key = (sandbox.container, sandbox.ifname);
        let Some(pod) = sandbox.pod else {
            attached.remove(&key);
            return None;
        };
        if attached.len() >= MOST && !attached.contains_key(&key) {
            // Some sandboxes may have ended without a report. Forget all sandboxes, because the
            // next STATUS sends a list of the sandboxes that still exist.
            attached.clear();
            self.is_listed.set(false);
        }
        let mut current = Attached {
            pod,
            networks: sandbox.networks,
            changed: None,
        };
        let object = ObjectRef::new(&current.pod.namespace, &current.pod.name);
        if let Some(pod) = object.ok().and_then(|object| pods.get(&object)) {
            current.compare(&pod);
        }
        let before = attached.insert(key, current);
        before?.changed.map(|(since, _)| since.elapsed())
    }

    /// Records a part of the list of all sandboxes. `is_last` is set for the last part. Drops
    /// sandboxes beyond [`MOST`].
    pub(super) fn list(
        &self,
        list: Vec<SandboxNetworks>,
        is_last: bool,
        pods: &ObjectCache<PodView>,
    ) {
        for sandbox in list {
            // Keep a sandbox that a call has reported, because the report is newer than the list.
            let key = (sandbox.container.clone(), sandbox.ifname.clone());
            if self.attached.borrow().contains_key(&key) {
                continue;
            }
            if self.attached.borrow().len() >= MOST {
                warn!(
                    "more than {MOST} sandboxes are attached on this node, but the agent checks \
                     the annotations of only {MOST}; run `jackfield reconcile` for the others"
                );
                break;
            }
            self.report(sandbox, pods);
        }
        self.is_listed.set(is_last);
    }

    /// Compares the sandboxes of a pod with a new version of the pod.
    pub(super) fn observe(&self, object: &ObjectRef, pod: &PodView) {
        for attached in self.attached.borrow_mut().values_mut() {
            if attached.is_of(object) {
                attached.compare(pod);
            }
        }
    }

    /// Forgets the sandboxes of a deleted pod. This is necessary because some sandboxes end without
    /// a report: a GC does not report the sandboxes that it detaches, and a DEL that is killed
    /// reports nothing. Keeps the sandboxes of a new pod with the same name. Also keeps a sandbox
    /// for which the runtime passed no UID, because that sandbox may belong to the new pod.
    pub(super) fn forget(&self, object: &ObjectRef, deleted: &PodView) {
        let is_deleted = |it: &Attached| {
            let uid = it.pod.uid.as_deref();
            it.is_of(object) && uid.is_some() && deleted.identity.is(uid)
        };
        self.attached.borrow_mut().retain(|_, it| !is_deleted(it));
    }

    /// Adds to an answer the sandboxes whose pods have a changed annotation. Also sets whether the
    /// agent needs the list of all sandboxes.
    pub(super) fn complete(&self, answer: &mut Answer) {
        answer.wants_sandboxes = !self.is_listed.get();
        let attached = self.attached.borrow();
        let differing = attached
            .iter()
            .filter_map(|((container, ifname), attached)| {
                let (_, networks) = attached.changed.as_ref()?;
                Some(SandboxNetworks {
                    networks: networks.clone(),
                    ..SandboxNetworks::gone(container, ifname)
                })
            });
        answer.differing.extend(differing.take(MOST_DIFFERING));
    }
}

impl Attached {
    fn is_of(&self, pod: &ObjectRef) -> bool {
        self.pod.namespace == pod.namespace() && self.pod.name == pod.name()
    }

    /// Compares the attachments with the annotation of the pod.
    fn compare(&mut self, pod: &PodView) {
        let is_same = !pod.is_partial && pod.identity.is(self.pod.uid.as_deref());
        let networks = pod.annotations.digest();
        let since = self.changed.take().map(|(since, _)| since);
        if is_same && networks != self.networks {
            self.changed = Some((since.unwrap_or_else(Instant::now), networks));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::PodAnnotations;
    use crate::cluster::identity::Identity;

    fn sandbox(container: &str, networks: Option<&str>) -> SandboxNetworks {
        let pod = networks.map(|_| PodName {
            namespace: "demo".into(),
            name: "web".into(),
            uid: Some("u1".into()),
        });
        SandboxNetworks {
            container: container.parse().unwrap(),
            ifname: "eth0".parse().unwrap(),
            pod,
            networks: networks.map(NetworksDigest::of).unwrap_or_default(),
        }
    }

    fn pod(uid: &str, networks: &str) -> PodView {
        PodView {
            identity: Identity::new(uid, &Default::default()),
            annotations: PodAnnotations {
                networks: Some(networks.into()),
                default_network: None,
            },
            ..PodView::default()
        }
    }

    /// The node's only pod, `demo/web`, with the annotation `networks`.
    fn pods(networks: &str) -> ObjectCache<PodView> {
        let pods = ObjectCache::default();
        pods.put("demo/web".parse().unwrap(), Some(pod("u1", networks)));
        pods
    }

    /// The containers of the sandboxes that an answer names, sorted.
    fn differing(sandboxes: &AttachedSandboxes) -> Vec<String> {
        let mut answer = Answer::default();
        sandboxes.complete(&mut answer);
        let named = answer.differing.iter().map(|it| it.container.to_string());
        let mut named: Vec<String> = named.collect();
        named.sort();
        named
    }

    fn wants_list(sandboxes: &AttachedSandboxes) -> bool {
        let mut answer = Answer::default();
        sandboxes.complete(&mut answer);
        answer.wants_sandboxes
    }

    #[test]
    fn the_sandboxes_of_a_deleted_pod_are_forgotten() {
        let sandboxes = AttachedSandboxes::default();
        sandboxes.report(sandbox("c1", Some("a")), &pods("b"));
        for (name, uid, expected) in [
            ("demo/other", "u1", &["c1"][..]),
            ("demo/web", "u0", &["c1"]),
            ("demo/web", "u1", &[]),
        ] {
            sandboxes.forget(&name.parse().unwrap(), &pod(uid, "b"));
            assert_eq!(differing(&sandboxes), expected, "{name} {uid}");
        }
    }

    #[test]
    fn a_sandbox_is_outdated_only_if_its_pod_has_another_annotation() {
        let sandboxes = AttachedSandboxes::default();
        let web = "demo/web".parse().unwrap();
        sandboxes.report(sandbox("c1", Some("a")), &ObjectCache::default());
        for (uid, networks, expected) in [("u1", "a", 0), ("u1", "a,b", 1), ("u2", "a,b", 0)] {
            sandboxes.observe(&web, &pod(uid, networks));
            assert_eq!(differing(&sandboxes).len(), expected, "{uid} {networks}");
        }
        sandboxes.observe(&web, &pod("u1", "a,b"));
        let mut answer = Answer::default();
        sandboxes.complete(&mut answer);
        assert_eq!(answer.differing[0].networks, NetworksDigest::of("a,b"));
        let pods = pods("a,b");
        let changed = sandboxes.report(sandbox("c1", Some("a,b")), &pods);
        assert!(
            changed.is_some(),
            "the annotation differed before the report"
        );
        assert!(differing(&sandboxes).is_empty());
        assert!(
            sandboxes
                .report(sandbox("c1", Some("a,b")), &pods)
                .is_none()
        );
        sandboxes.report(sandbox("c1", Some("c")), &pods);
        assert_eq!(differing(&sandboxes), ["c1"]);
        sandboxes.report(sandbox("c1", None), &pods);
        assert!(differing(&sandboxes).is_empty());
    }

    #[test]
    fn the_agent_wants_the_list_until_its_last_part_arrives() {
        let sandboxes = AttachedSandboxes::default();
        let pods = pods("b");
        assert!(wants_list(&sandboxes));
        sandboxes.report(sandbox("c1", Some("b")), &pods);
        sandboxes.list(vec![sandbox("c1", Some("a"))], false, &pods);
        assert!(wants_list(&sandboxes));
        sandboxes.list(vec![sandbox("c2", Some("a"))], true, &pods);
        assert!(!wants_list(&sandboxes));
        assert_eq!(differing(&sandboxes), ["c2"]);
    }

    #[test]
    fn a_list_above_the_limit_loses_only_the_excess_sandboxes() {
        let sandboxes = AttachedSandboxes::default();
        let pods = pods("b");
        let all = (0..MOST + 10).map(|number| sandbox(&format!("c{number}"), Some("a")));
        let mut first: Vec<_> = all.collect();
        let last = first.split_off(MOST / 2);
        sandboxes.list(first, false, &pods);
        sandboxes.list(last, true, &pods);
        assert_eq!(sandboxes.attached.borrow().len(), MOST);
        assert!(!wants_list(&sandboxes));
        sandboxes.list(vec![sandbox("c1", Some("a"))], true, &pods);
        assert_eq!(sandboxes.attached.borrow().len(), MOST);
    }

    #[test]
    fn a_report_above_the_limit_makes_the_agent_want_a_new_list() {
        let sandboxes = AttachedSandboxes::default();
        let pods = pods("a");
        sandboxes.list(Vec::new(), true, &pods);
        for number in 0..=MOST {
            sandboxes.report(sandbox(&format!("c{number}"), Some("a")), &pods);
        }
        assert!(sandboxes.attached.borrow().len() < MOST);
        assert!(wants_list(&sandboxes));
    }
}
