//! What is in the cluster: nodes, pods, definitions, and the agents' credentials.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::Failure;
use crate::settings::{PODS, node_name};

/// How many objects are created at a time.
const AT_ONCE: usize = 32;
const FLOW: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
/// The name of the flow that gets 429.
const BUSY: &str = "scale-busy";
/// The name of the pods that have a status, as after an earlier ADD.
const ATTACHED: &str = "pod";
const ACCOUNT: &str = "/api/v1/namespaces/kube-system";

/// Creates objects as an administrator.
pub(crate) struct Population {
    client: Client,
    folder: PathBuf,
}

impl Population {
    /// Uses `admin.kubeconfig` in the folder.
    pub(crate) async fn new(folder: &Path) -> Result<Population, Failure> {
        let kubeconfig = Kubeconfig::read_from(folder.join("admin.kubeconfig"))?;
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        // Retries of refused requests would outlast the time in which they are wanted.
        config.default_retry = false;
        Ok(Population {
            client: Client::try_from(config)?,
            folder: folder.to_owned(),
        })
    }

    async fn create(&self, path: &str, body: Value) -> Result<Value, Failure> {
        let request = Request::post(path)
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes())?;
        let created = self.client.request(request).await;
        created.map_err(|error| format!("POST {path}: {error}").into())
    }

    /// Creates nodes with [`PODS`] pods and the credentials of an agent each.
    pub(crate) async fn nodes(&self, numbers: std::ops::Range<usize>) -> Result<(), Failure> {
        let nodes = stream::iter(numbers).map(|number| self.node(number));
        nodes.buffer_unordered(AT_ONCE).try_collect().await
    }

    async fn node(&self, number: usize) -> Result<(), Failure> {
        let node = node_name(number);
        self.create("/api/v1/nodes", json!({"metadata": {"name": &node}}))
            .await?;
        let agent = format!("agent-{node}");
        let pod = json!({
            "metadata": {"name": &agent},
            "spec": {"nodeName": &node, "serviceAccountName": "jackfield-agent", "hostNetwork": true,
                     "containers": [{"name": "agent", "image": "jackfield"}]},
        });
        let pod = self.create(&format!("{ACCOUNT}/pods"), pod).await?;
        let bound = json!({"spec": {"boundObjectRef": {
            "apiVersion": "v1", "kind": "Pod", "name": &agent, "uid": pod["metadata"]["uid"]}}});
        let path = format!("{ACCOUNT}/serviceaccounts/jackfield-agent/token");
        let answer = self.create(&path, bound).await?;
        let admin = fs::read_to_string(self.folder.join("admin.kubeconfig"))?;
        let mut kubeconfig: Value = serde_json::from_str(&admin)?;
        kubeconfig["users"][0]["user"]["token"] = answer["status"]["token"].clone();
        fs::write(kubeconfig_of(&self.folder, number), kubeconfig.to_string())?;
        self.pods(number, ATTACHED, PODS).await
    }

    /// Creates pods `NODE-NAME-0`, `NODE-NAME-1`, … that select two networks.
    pub(crate) async fn pods(&self, node: usize, name: &str, count: usize) -> Result<(), Failure> {
        let node = node_name(node);
        for number in 0..count {
            let mut annotations = json!({"k8s.v1.cni.cncf.io/networks": "first,second"});
            if name == ATTACHED {
                annotations["k8s.v1.cni.cncf.io/network-status"] = json!("[]");
            }
            let pod = json!({
                "metadata": {"name": format!("{node}-{name}-{number}"), "annotations": annotations},
                "spec": {"nodeName": &node, "containers": [{"name": "app", "image": "app"}]},
            });
            self.create("/api/v1/namespaces/bench/pods", pod).await?;
        }
        Ok(())
    }

    /// Makes the API server too busy for agents, which it then answers with 429.
    pub(crate) async fn make_busy(&self) -> Result<(), Failure> {
        let level = json!({"metadata": {"name": BUSY}, "spec": {"type": "Limited", "limited": {
            "nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"}}}});
        let subject = json!({"kind": "ServiceAccount", "serviceAccount": {
            "namespace": "kube-system", "name": "jackfield-agent"}});
        let anything = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
            "namespaces": ["*"], "clusterScope": true});
        let schema = json!({"metadata": {"name": BUSY}, "spec": {
            "matchingPrecedence": 100, "priorityLevelConfiguration": {"name": BUSY},
            "rules": [{"subjects": [subject], "resourceRules": [anything]}]}});
        self.create(&format!("{FLOW}/prioritylevelconfigurations"), level)
            .await?;
        self.create(&format!("{FLOW}/flowschemas"), schema).await?;
        Ok(())
    }

    /// Sends requests of the agents' account for `time`, so that the one request that their flow may
    /// have at a time is under way.
    pub(crate) async fn keep_busy(&self, time: Duration) {
        let until = Instant::now() + time;
        let path = "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions?limit=1000";
        let lists = (0..AT_ONCE).map(async |_| {
            while Instant::now() < until {
                let request = Request::get(path)
                    .header(
                        "impersonate-user",
                        "system:serviceaccount:kube-system:jackfield-agent",
                    )
                    .body(Vec::new());
                if let Ok(request) = request {
                    // Most of them are refused too.
                    let _ = self.client.request_text(request).await;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let lists = futures_util::future::join_all(lists);
        let _ = tokio::time::timeout(time, lists).await;
    }

    /// Ends what [`Population::make_busy`] began.
    pub(crate) async fn make_free(&self) -> Result<(), Failure> {
        let path = format!("{FLOW}/flowschemas/{BUSY}");
        let request = Request::delete(path).body(Vec::new())?;
        self.client.request::<Value>(request).await?;
        Ok(())
    }

    /// Creates definitions that no pod selects, of about 1 KiB each.
    pub(crate) async fn definitions(&self, numbers: std::ops::Range<usize>) -> Result<(), Failure> {
        let note = "x".repeat(900);
        let path = "/apis/k8s.cni.cncf.io/v1/namespaces/bench/network-attachment-definitions";
        let definitions = stream::iter(numbers).map(|number| {
            let config = json!({"cniVersion": "1.0.0", "type": "rename", "note": &note});
            let definition = json!({
                "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
                "metadata": {"name": format!("other-{number}")}, "spec": {"config": config.to_string()},
            });
            async move { self.create(path, definition).await.map(|_| ()) }
        });
        definitions.buffer_unordered(AT_ONCE).try_collect().await
    }
}

/// The file with the credentials of a node's agent.
pub(crate) fn kubeconfig_of(folder: &Path, node: usize) -> PathBuf {
    folder.join(format!("kubeconfigs/{node}"))
}
