//! Tests answers from a cache that may lag behind the API server.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::*;
use crate::cluster::PodAnnotations;
use crate::cluster::identity::Identity;

/// A fake cache and a fake API server. `asked` lists all look-ups except those of cached pods.
#[derive(Default)]
struct CacheAndServer {
    cached: Option<PodView>,
    fresh: Option<PodView>,
    asked: RefCell<Vec<String>>,
}

impl Lookup for CacheAndServer {
    fn cached_pod(&self, _: &str, _: &str) -> Option<PodView> {
        self.cached.clone()
    }

    async fn pod(&self, _: &str, _: &str) -> Result<Option<PodView>, ApiError> {
        self.asked.borrow_mut().push("pod".into());
        Ok(self.fresh.clone())
    }

    async fn definition(&self, object: &ObjectRef) -> Result<Definition, Rc<LookupError>> {
        self.asked.borrow_mut().push(object.to_string());
        Err(Rc::new(missing(
            "NetworkAttachmentDefinition",
            object.name(),
        )))
    }

    async fn claim(&self, _: &str, name: &str) -> Result<IpamClaim, LookupError> {
        self.asked.borrow_mut().push(format!("claim {name}"));
        Err(missing("IPAMClaim", name))
    }

    fn kubelet(&self, socket: &Path) -> Rc<PodResources> {
        self.asked.borrow_mut().push("kubelet".into());
        Rc::new(PodResources::at(socket))
    }

    async fn slices(&self, _: &str) -> Result<Vec<Rc<SliceView>>, ApiError> {
        self.asked.borrow_mut().push("slices".into());
        Ok(Vec::new())
    }
}

fn pod(uid: &str, node: &str, networks: &str) -> Option<PodView> {
    Some(PodView {
        identity: Identity::new(uid, &BTreeMap::new()),
        node: Some(node.into()),
        annotations: PodAnnotations {
            networks: Some(networks.into()),
            default_network: None,
        },
        ..PodView::default()
    })
}

fn missing(kind: &'static str, name: &str) -> LookupError {
    LookupError::Missing(kind, name.to_owned(), Place::ApiServer)
}

fn ask(two: &CacheAndServer, question: &Question) -> Result<Answer, ClusterError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(answer(two, Some("node-a"), question))
}

fn question(uid: &str) -> Question {
    Question {
        pod: Some(PodName {
            namespace: "a".into(),
            name: "web".into(),
            uid: Some(uid.into()),
        }),
        multus_namespace: "kube-system".into(),
        ..Question::default()
    }
}

#[test]
fn a_pod_in_the_cache_is_not_requested_again() {
    let two = CacheAndServer {
        cached: pod("u", "node-a", "x, b/y, x"),
        ..CacheAndServer::default()
    };
    let answer = ask(&two, &question("u")).unwrap();
    assert_eq!(answer.pod.unwrap().uid.as_deref(), Some("u"));
    assert_eq!(*two.asked.borrow(), ["a/x", "b/y"]);
}

#[test]
fn a_pod_that_replaced_the_cached_pod_comes_from_the_api_server() {
    let two = CacheAndServer {
        cached: pod("old", "node-a", "x"),
        fresh: pod("new", "node-a", "y"),
        ..CacheAndServer::default()
    };
    let answer = ask(&two, &question("new")).unwrap();
    assert_eq!(answer.definitions[0].0.to_string(), "a/y");
}

#[test]
fn the_api_server_is_asked_before_a_pod_is_refused() {
    let is_other_pod = |error: &ClusterError| matches!(error, ClusterError::OtherPod { asked, known, .. } if asked == "u" && known == "other");
    let is_other_node = |error: &ClusterError| matches!(error, ClusterError::OtherNode { node, ours, .. } if node == "node-b" && ours == "node-a");
    let is_unknown = |error: &ClusterError| matches!(error, ClusterError::UnknownPod(pod, Place::ApiServer) if pod == "a/web");
    type IsExpected<'a> = &'a dyn Fn(&ClusterError) -> bool;
    let table: [(_, IsExpected<'_>); 3] = [
        (pod("other", "node-a", "x"), &is_other_pod),
        (pod("u", "node-b", "x"), &is_other_node),
        (None, &is_unknown),
    ];
    for (fresh, is_expected) in table {
        let two = CacheAndServer {
            cached: fresh.clone(),
            fresh,
            ..CacheAndServer::default()
        };
        let error = ask(&two, &question("u")).unwrap_err();
        assert!(is_expected(&error), "{error}");
        assert_eq!(*two.asked.borrow(), ["pod"]);
    }
}

#[test]
fn annotations_in_the_question_override_annotations_in_the_cache() {
    let two = CacheAndServer {
        cached: pod("u", "node-a", "x"),
        ..CacheAndServer::default()
    };
    let mut question = question("u");
    question.annotations = Some(PodAnnotations {
        networks: Some(r#"[{"name":"z","ipam-claim-reference":"c"}]"#.into()),
        default_network: None,
    });
    let answer = ask(&two, &question).unwrap();
    assert_eq!(answer.claims[0].0, "c");
    assert_eq!(*two.asked.borrow(), ["claim c", "a/z"]);
}
