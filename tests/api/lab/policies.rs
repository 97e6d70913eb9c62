//! Whether the policies of `deploy/` hold: they do once the API server has compiled them, which it does not
//! tell.

use http::Method;
use serde_json::{Value, json};

use super::claims::Claim;
use super::{Admin, STATUS, Server, eventually, pod};

impl Server {
    /// Waits until all policies refuse what an account writes whose token is bound to no node.
    #[track_caller]
    pub(crate) fn wait_for_policies(&self, namespace: &str, account: &str) {
        let writer = Writer::new(self, namespace, account);
        eventually("the policies hold", || {
            let is_refused = |answer: &Result<_, (u16, String)>| matches!(answer, Err((_, words)) if words.contains("ValidatingAdmissionPolicy"));
            writer.answers().iter().all(is_refused)
        });
    }

    /// Waits until its account's role alone counts.
    #[track_caller]
    pub(crate) fn wait_for_no_policies(&self, namespace: &str, account: &str) {
        let writer = Writer::new(self, namespace, account);
        eventually("no policy holds", || {
            writer.answers().iter().all(Result::is_ok)
        });
    }
}

/// Somebody with a token of an account that is bound to no node.
struct Writer {
    account: Admin,
    namespace: String,
}

impl Writer {
    fn new(server: &Server, namespace: &str, account: &str) -> Writer {
        let admin = Admin::new(server, "admin");
        let space = format!("/api/v1/namespaces/{namespace}");
        if admin.get(&format!("{space}/pods/probe")).is_none() {
            let probe = pod("probe", "nowhere", &json!({}));
            admin.create(&format!("{space}/pods"), &probe);
            let claim = Claim {
                admin: &admin,
                namespace,
                name: "probe",
            };
            claim.create("nowhere", &["vf1"], ("probe", "u"));
        }
        let path = format!("{space}/serviceaccounts/{account}/token");
        let token = admin.create(&path, &json!({"spec": {}}));
        Writer {
            account: Admin::new(server, token["status"]["token"].as_str().unwrap()),
            namespace: namespace.to_owned(),
        }
    }

    /// What becomes of a pod's status, an event and a claim's status, which are not stored.
    fn answers(&self) -> [Result<Value, (u16, String)>; 3] {
        let space = format!("/api/v1/namespaces/{}", self.namespace);
        let status = json!({"metadata": {"annotations": {STATUS: "[]"}}});
        let event = json!({"metadata": {"generateName": "probe."},
            "involvedObject": {"kind": "Pod", "namespace": self.namespace, "name": "probe"}});
        let pod = format!("{space}/pods/probe/status?dryRun=All");
        let events = format!("{space}/events?dryRun=All");
        let claim = format!(
            "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/probe/status?dryRun=All",
            self.namespace
        );
        let (merge, json) = ("application/merge-patch+json", "application/json");
        [
            self.account
                .request(Method::PATCH, &pod, merge, Some(&status)),
            self.account
                .request(Method::POST, &events, json, Some(&event)),
            // It changes nothing, because a right for drivers would be needed too.
            self.account
                .request(Method::PATCH, &claim, merge, Some(&json!({}))),
        ]
    }
}
