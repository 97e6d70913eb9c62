//! Decides whether a pod of the cluster is the pod that the runtime names.

/// The annotation in which kubelet names the source of the pod: `api` for the API server, and
/// `file` or `http` for a static pod.
const SOURCE: &str = "kubernetes.io/config.source";
/// A mirror pod's annotation with the UID of its static pod.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// The annotation with kubelet's hash of a static pod's manifest. The hash is also the pod's UID.
const HASH: &str = "kubernetes.io/config.hash";

use std::collections::BTreeMap;

/// The UIDs of a pod. A mirror pod has two UIDs: `metadata.uid` in the API, and the UID of its
/// static pod. Kubelet and the runtime use the UID of the static pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// `metadata.uid`.
    pub uid: String,
    /// The UID of the static pod, if this is a mirror pod.
    pub mirrors: Option<String>,
}

impl Identity {
    /// Returns the identity of the pod with this UID and these annotations. The pod is a mirror pod
    /// only if the annotations `kubernetes.io/config.mirror` and `kubernetes.io/config.hash`
    /// contain the same hash. A user's pod with only one of these annotations is not a mirror pod.
    pub fn new(uid: &str, annotations: &BTreeMap<String, String>) -> Identity {
        let mirror = annotations.get(MIRROR).filter(|uid| is_of_static_form(uid));
        let mirror = mirror.filter(|mirror| annotations.get(HASH) == Some(mirror));
        Identity {
            uid: uid.to_owned(),
            mirrors: mirror.cloned(),
        }
    }

    /// Whether the runtime's `K8S_POD_UID` is a UID of this pod. If the runtime passes no UID,
    /// every pod matches.
    pub fn is(&self, asked: Option<&str>) -> bool {
        asked.is_none_or(|asked| asked == self.uid || Some(asked) == self.mirrors.as_deref())
    }
}

/// Whether the pod with this `uid` is static according to the annotations in `kubelets`. Kubelet
/// writes these annotations, and the runtime passes them to Jackfield. Callers must not pass the
/// annotations of an object in the API: users can set them, so they do not prove that a pod is
/// static.
pub fn is_static(uid: Option<&str>, kubelets: &BTreeMap<String, String>) -> bool {
    let source = kubelets.get(SOURCE).map(String::as_str);
    source.is_some_and(|source| source != "api")
        && uid.is_some()
        && kubelets.get(HASH).map(String::as_str) == uid
}

/// Whether a UID has the form of a static pod's UID: a hash of 32 hexadecimal digits.
/// The API server's UIDs contain hyphens.
pub fn is_of_static_form(uid: &str) -> bool {
    uid.len() == 32 && uid.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_pod_is_recognized_by_source_and_hash() {
        let hash = "0f4e95722eac8ac020f944d9ddf89dd7";
        let kubelets = |source: &str, hash: &str| {
            BTreeMap::from([(SOURCE.into(), source.into()), (HASH.into(), hash.into())])
        };
        let table = [
            (kubelets("file", hash), Some(hash), true),
            (kubelets("http", hash), Some(hash), true),
            (kubelets("api", hash), Some(hash), false),
            (kubelets("file", "other"), Some(hash), false),
            (kubelets("file", hash), None, false),
            (BTreeMap::new(), Some(hash), false),
        ];
        for (annotations, uid, expected) in table {
            assert_eq!(
                is_static(uid, &annotations),
                expected,
                "{annotations:?} {uid:?}"
            );
        }
        assert!(is_of_static_form(hash));
        assert!(!is_of_static_form("3b668ca5-a920-4b68-b9d9-dca5de6dd481"));
        assert!(!is_of_static_form(""));
    }

    #[test]
    fn only_a_mirror_pod_has_two_uids() {
        let hash = "0f4e95722eac8ac020f944d9ddf89dd7";
        let mirror =
            |hash: &str| BTreeMap::from([(MIRROR.into(), hash.into()), (HASH.into(), hash.into())]);
        let both = mirror(hash);
        let one = BTreeMap::from([(HASH.into(), hash.into())]);
        let long = "0".repeat(100_000);
        let no_hash = mirror(&long);
        let table = [
            (&both, Some("api"), true),
            (&both, Some(hash), true),
            (&both, Some("x"), false),
            (&both, None, true),
            (&one, Some(hash), false),
            (&one, Some("api"), true),
            (&no_hash, Some(long.as_str()), false),
        ];
        for (annotations, asked, expected) in table {
            let identity = Identity::new("api", annotations);
            assert_eq!(identity.is(asked), expected, "{annotations:?} {asked:?}");
        }
    }
}
