//! What an agent's token must not do, however its account is called.

use http::Method;
use serde_json::{Value, json};

use crate::lab::claims::{Claim, device, ready};
use crate::lab::{Admin, STATUS, pod};

const MERGE: &str = "application/merge-patch+json";

/// A node's pod and claim and another node's, in one namespace.
pub(crate) struct Victim {
    namespace: String,
    node: String,
    /// The pod `web`, on the agent's own node. The other node's is `far`.
    web: Value,
}

impl Victim {
    /// Creates both pods and claims.
    pub(crate) fn new(admin: &Admin, namespace: &str, node: &str) -> Victim {
        let pods = format!("/api/v1/namespaces/{namespace}/pods");
        admin.create(&pods, &pod("far", "node-far", &json!({})));
        for (name, node) in [("near", node), ("far", "node-far")] {
            let claim = Claim {
                admin,
                namespace,
                name,
            };
            claim.create(node, &["vf1", "vf2"], ("web", "u"));
            let of_driver = json!([device("vf2", &ready())]);
            claim.apply(admin, "driver", &of_driver).unwrap();
        }
        Victim {
            namespace: namespace.to_owned(),
            node: node.to_owned(),
            web: admin.create(&pods, &pod("web", node, &json!({"own": "x"}))),
        }
    }

    /// The agent's own work is done: a status of a pod of its node, an event about it, one about the
    /// node, and the network data of claims.
    #[track_caller]
    pub(crate) fn takes(&self, agent: &Admin) {
        let space = format!("/api/v1/namespaces/{}", self.namespace);
        let status = annotated(STATUS, "[]");
        agent.merge(&format!("{space}/pods/web/status"), &status);
        let told = event(&self.namespace, &self.web, &self.node);
        agent.create(&format!("{space}/events"), &told);
        let mut of_the_node = event("default", &self.web, &self.node);
        of_the_node["involvedObject"] = json!({"kind": "Node", "name": self.node});
        agent.create("/api/v1/namespaces/default/events", &of_the_node);
        let near = self.claim(agent, "near");
        let data = json!({"networkData": {"interfaceName": "net1"}});
        for entries in [
            json!([device("vf1", &data), device("vf2", &data)]),
            json!([]),
        ] {
            near.apply(agent, "jackfield-u", &entries).unwrap();
        }
        assert_eq!(near.entry("vf1"), Value::Null);
        assert_eq!(near.entry("vf2")["conditions"][0]["type"], "Ready");
    }

    /// Everything else is refused to it. Its account is `account` of `system`.
    #[track_caller]
    pub(crate) fn refuses(&self, agent: &Admin, system: &str, account: &str) {
        self.refuses_writes_of_status(agent);
        self.refuses_writes_of_claims(agent);
        let space = format!("/api/v1/namespaces/{}", self.namespace);
        let pods = format!("{space}/pods");
        let definitions = format!(
            "/apis/k8s.cni.cncf.io/v1/namespaces/{}/network-attachment-definitions",
            self.namespace
        );
        let definition = json!({"apiVersion": "k8s.cni.cncf.io/v1",
            "kind": "NetworkAttachmentDefinition", "metadata": {"name": "x"}, "spec": {}});
        let token = format!("/api/v1/namespaces/{system}/serviceaccounts/{account}/token");
        let slices = "/apis/resource.k8s.io/v1/resourceslices".to_owned();
        let empty = json!({"metadata": {"name": "x"}, "spec": {}});
        let mut of_a_node = event("default", &self.web, &self.node);
        of_a_node["involvedObject"] = json!({"kind": "Node", "name": "node-far"});
        let mut of_a_kind = event(&self.namespace, &self.web, &self.node);
        of_a_kind["involvedObject"]["kind"] = json!("ConfigMap");
        let by_another = event(&self.namespace, &self.web, "node-far");
        let ours = || event(&self.namespace, &self.web, &self.node);
        let mut by_kubelet = ours();
        by_kubelet["reportingComponent"] = json!("kubelet");
        let mut large = ours();
        large["metadata"]["annotations"] = json!({"x": "x".repeat(10_000)});
        type Refused<'a> = (&'a str, Method, String, Option<Value>, &'a str);
        #[rustfmt::skip]
        let table: [Refused<'_>; 13] = [
            ("the pod itself", Method::PATCH, format!("{pods}/web"), Some(annotated(STATUS, "[]")),
                "cannot patch resource \"pods\""),
            ("deleting a pod", Method::DELETE, format!("{pods}/web"), None, "cannot delete"),
            ("creating a pod", Method::POST, pods.clone(), Some(pod("new", &self.node, &json!({}))),
                "cannot create resource \"pods\""),
            ("a shell in a pod", Method::POST, format!("{pods}/web/exec?command=sh"), None,
                "cannot create resource \"pods/exec\""),
            ("secrets", Method::GET, "/api/v1/secrets".into(), None, "cannot list resource \"secrets\""),
            ("writing a definition", Method::POST, definitions, Some(definition), "cannot create"),
            ("offering a device", Method::POST, slices, Some(empty),
                "cannot create resource \"resourceslices\""),
            ("an event of another node", Method::POST, format!("{space}/events"), Some(by_another),
                "own node as its source"),
            ("an event as if by kubelet", Method::POST, format!("{space}/events"), Some(by_kubelet),
                "must name jackfield"),
            ("a large event", Method::POST, format!("{space}/events"), Some(large), "no annotations, labels"),
            ("an event about another node", Method::POST, "/api/v1/namespaces/default/events".into(),
                Some(of_a_node), "and its own node"),
            ("an event about a kind", Method::POST, format!("{space}/events"), Some(of_a_kind), "about pods and"),
            ("a token", Method::POST, token, Some(json!({"spec": {}})),
                "cannot create resource \"serviceaccounts/token\""),
        ];
        for (what, method, path, body, expected) in table {
            let content = match method {
                Method::PATCH => MERGE,
                _ => "application/json",
            };
            let answer = agent.request(method, &path, content, body.as_ref());
            assert_refused(what, answer, expected);
        }
    }

    fn claim<'a>(&'a self, admin: &'a Admin, name: &'a str) -> Claim<'a> {
        Claim {
            admin,
            namespace: &self.namespace,
            name,
        }
    }

    fn refuses_writes_of_claims(&self, agent: &Admin) {
        let (near, far) = (self.claim(agent, "near"), self.claim(agent, "far"));
        let own = "only to claims that are allocated to its own node";
        let alone = "only the networkData";
        let data = device("vf1", &json!({"networkData": {"interfaceName": "net1"}}));
        // Before Kubernetes 1.36 the policy alone refuses it.
        let answer = far.apply(agent, "jackfield-u", &json!([data]));
        assert_refused("another node's claim", answer, "resourceclaims/driver");
        let status = format!("{}/status", far.path());
        let answer = agent.request(Method::PATCH, &status, MERGE, Some(&json!({})));
        assert_refused("another node's claim as it is", answer, own);
        for (what, device) in [
            ("conditions", device("vf1", &ready())),
            ("data", device("vf1", &json!({"data": {"a": 1}}))),
        ] {
            let answer = near.apply(agent, "jackfield-u", &json!([device]));
            assert_refused(what, answer, alone);
        }
        let status = format!("{}/status", near.path());
        let removed = json!({"status": {"devices": []}});
        let answer = agent.request(Method::PATCH, &status, MERGE, Some(&removed));
        assert_refused("a driver's entry away", answer, alone);
        let reserved = json!({"status": {"reservedFor": []}});
        let answer = agent.request(Method::PATCH, &status, MERGE, Some(&reserved));
        assert_refused("the reservation", answer, "resourceclaims/binding");
        let labels = json!({"metadata": {"labels": {"a": "b"}}});
        let answer = agent.request(Method::PATCH, &near.path(), MERGE, Some(&labels));
        assert_refused(
            "the claim itself",
            answer,
            "cannot patch resource \"resourceclaims\"",
        );
    }

    fn refuses_writes_of_status(&self, agent: &Admin) {
        let pods = format!("/api/v1/namespaces/{}/pods", self.namespace);
        let own = |of: Value| json!({ "metadata": of });
        let (alone, as_it_was) = ("only the annotation", "labels, finalizers or owners");
        let far = "write only to pods of its own node: the pod is on node-far";
        for (what, pod, patch, expected) in [
            ("another node's pod", "far", annotated(STATUS, "[]"), far),
            ("another annotation", "web", annotated("own", "y"), alone),
            ("a new annotation", "web", annotated("new", "y"), alone),
            (
                "a status that leaves no room",
                "web",
                annotated(STATUS, &"x".repeat(200_000)),
                "at most 192 KiB",
            ),
            (
                "an annotation away",
                "web",
                own(json!({"annotations": {"own": null}})),
                alone,
            ),
            (
                "the selection of networks",
                "web",
                annotated("k8s.v1.cni.cncf.io/networks", "x"),
                alone,
            ),
            (
                "a pod's phase",
                "web",
                json!({"status": {"phase": "Failed"}}),
                "may not change a pod's status",
            ),
            (
                "labels",
                "web",
                own(json!({"labels": {"app": "x"}})),
                as_it_was,
            ),
            (
                "finalizers",
                "web",
                own(json!({"finalizers": ["a.b/c"]})),
                as_it_was,
            ),
        ] {
            let path = format!("{pods}/{pod}/status");
            let answer = agent.request(Method::PATCH, &path, MERGE, Some(&patch));
            assert_refused(what, answer, expected);
        }
    }
}

#[track_caller]
fn assert_refused(what: &str, answer: Result<Value, (u16, String)>, expected: &str) {
    match answer {
        Err((403 | 422, words)) => assert!(words.contains(expected), "{what}: {words}"),
        other => panic!("{what}: {other:?}"),
    }
}

/// A change of one annotation.
pub(crate) fn annotated(key: &str, value: &str) -> Value {
    json!({"metadata": {"annotations": {key: value}}})
}

/// An event about the pod `web`, by the agent on `host`.
fn event(namespace: &str, web: &Value, host: &str) -> Value {
    json!({
        "metadata": {"generateName": "web."},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": namespace,
                           "name": "web", "uid": web["metadata"]["uid"]},
        "type": "Normal", "reason": "AddedInterface", "message": "x",
        "source": {"component": "jackfield", "host": host},
    })
}
