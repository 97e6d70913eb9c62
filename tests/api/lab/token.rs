//! Tokens of agents, also as the API server would issue them at another time: signed with its own key.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{Admin, Lab, Server};

/// The API server takes a token for so many seconds before and after its time.
const LEEWAY: i64 = 60;

/// A token as an agent on `node` has it, by an account of this name.
pub(crate) fn of_agent(admin: &Admin, namespace: &str, account: &str, node: &str) -> String {
    let name = format!("agent-{node}");
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    let pod = match admin.get(&format!("{path}/{name}")) {
        Some(pod) => pod,
        None => admin.create(
            &path,
            &json!({
                "metadata": {"name": name},
                "spec": {"nodeName": node, "serviceAccountName": account, "hostNetwork": true,
                         "containers": [{"name": "agent", "image": "jackfield"}]},
            }),
        ),
    };
    let bound = json!({"spec": {"boundObjectRef": {
        "apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"]}}});
    let request = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
    let answer = admin.create(&request, &bound);
    answer["status"]["token"].as_str().unwrap().to_owned()
}

impl Lab {
    /// From now on the agent's token counts for `seconds` more.
    pub(crate) fn token_that_ends_in(&self, seconds: i64) {
        self.token_with(|claims, now| claims["exp"] = json!(now - LEEWAY + seconds));
    }

    /// From now on the agent's token begins to count in `seconds`, as where the clock of whoever
    /// issued it is ahead.
    pub(crate) fn token_that_begins_in(&self, seconds: i64) {
        self.token_with(|claims, now| claims["nbf"] = json!(now + LEEWAY + seconds));
    }

    fn token_with(&self, change: impl FnOnce(&mut Value, i64)) {
        let token = self.agent_token(&self.node);
        let mut parts = token.split('.');
        let (head, claims) = (parts.next().unwrap(), parts.next().unwrap());
        let mut claims: Value =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        change(&mut claims, now.as_secs().cast_signed());
        let signed = format!("{head}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let text = self.path("token-to-sign");
        fs::write(&text, &signed).unwrap();
        let signature = Command::new("openssl")
            .args(["dgst", "-sha256", "-sign"])
            .arg(Server::get().dir.join("pki/sa.key"))
            .arg(&text)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
            .wait_with_output()
            .unwrap();
        assert!(signature.status.success());
        let signature = URL_SAFE_NO_PAD.encode(signature.stdout);
        fs::write(self.path("token"), format!("{signed}.{signature}")).unwrap();
    }
}
