//! Whether the pod that the cluster knows is the one that the runtime means.

/// The annotation of a mirror pod that holds the static pod's UID.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// The annotation by which kubelet marks a static pod's own configuration.
const HASH: &str = "kubernetes.io/config.hash";

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The names that a pod goes by: the API's UID and, for the mirror of a static pod, the UID that
/// kubelet and the runtime know it by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// `metadata.uid`.
    pub uid: String,
    /// The static pod's own UID, where this is a mirror pod.
    pub mirrors: Option<String>,
}

impl Identity {
    /// The identity of an object with these annotations. Only a pod with both annotations, equal,
    /// is a mirror: kubelet writes both, and a user's pod that carries one of them by accident
    /// keeps its own UID alone.
    pub fn new(uid: &str, annotations: &BTreeMap<String, String>) -> Identity {
        let mirror = annotations.get(MIRROR).filter(|uid| !uid.is_empty());
        Identity {
            uid: uid.to_owned(),
            mirrors: mirror
                .filter(|mirror| annotations.get(HASH) == Some(mirror))
                .cloned(),
        }
    }

    /// Whether the runtime's `K8S_POD_UID` means this pod; one that was not told means any.
    pub fn is(&self, asked: Option<&str>) -> bool {
        asked.is_none_or(|asked| asked == self.uid || Some(asked) == self.mirrors.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_pod_goes_by_two_uids_and_any_other_by_one() {
        let both = BTreeMap::from([(MIRROR.into(), "h".into()), (HASH.into(), "h".into())]);
        let one = BTreeMap::from([(HASH.into(), "h".into())]);
        let table = [
            (&both, Some("api"), true),
            (&both, Some("h"), true),
            (&both, Some("x"), false),
            (&both, None, true),
            (&one, Some("h"), false),
            (&one, Some("api"), true),
        ];
        for (annotations, asked, expected) in table {
            let identity = Identity::new("api", annotations);
            assert_eq!(identity.is(asked), expected, "{annotations:?} {asked:?}");
        }
    }
}
