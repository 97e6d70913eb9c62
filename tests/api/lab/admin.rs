//! Requests to the API server, past everything that is tested.

use http::{Method, Request};
use kube::{Client, Config};
use serde_json::Value;

use super::Server;

/// Somebody with a token.
pub(crate) struct Admin {
    runtime: tokio::runtime::Runtime,
    client: Client,
    token: String,
}

impl Admin {
    /// Whoever `token` is.
    pub(crate) fn new(server: &Server, token: &str) -> Admin {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let client = runtime.block_on(async { client(server) });
        Admin {
            runtime,
            client,
            token: token.to_owned(),
        }
    }

    /// One request; a refusal is its HTTP status and message.
    pub(crate) fn request(
        &self,
        method: Method,
        path: &str,
        content: &str,
        body: Option<&Value>,
    ) -> Result<Value, (u16, String)> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content)
            .header("authorization", format!("Bearer {}", self.token))
            .body(
                body.map(|body| body.to_string().into_bytes())
                    .unwrap_or_default(),
            )
            .unwrap();
        match self.runtime.block_on(self.client.request_text(request)) {
            Ok(text) => Ok(serde_json::from_str(&text).unwrap_or(Value::String(text))),
            Err(kube::Error::Api(status)) => Err((status.code, status.message)),
            Err(error) => Err((0, error.to_string())),
        }
    }

    /// Whether the API server is ready, or why not.
    pub(crate) fn ready(&self) -> Result<Value, (u16, String)> {
        self.request(Method::GET, "/readyz", "text/plain", None)
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        match self.request(Method::GET, path, "", None) {
            Ok(object) => Some(object),
            Err((404, _)) => None,
            Err(error) => panic!("GET {path}: {error:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn create(&self, path: &str, body: &Value) -> Value {
        self.request(Method::POST, path, "application/json", Some(body))
            .unwrap_or_else(|error| panic!("POST {path}: {error:?}"))
    }

    #[track_caller]
    pub(crate) fn merge(&self, path: &str, body: &Value) -> Value {
        self.request(
            Method::PATCH,
            path,
            "application/merge-patch+json",
            Some(body),
        )
        .unwrap_or_else(|error| panic!("PATCH {path}: {error:?}"))
    }

    #[track_caller]
    pub(crate) fn delete(&self, path: &str) {
        let now = format!("{path}?gracePeriodSeconds=0");
        self.request(Method::DELETE, &now, "", None)
            .unwrap_or_else(|error| panic!("DELETE {path}: {error:?}"));
    }
}

/// A client without credentials of its own.
pub(super) fn client(server: &Server) -> Client {
    let mut config = Config::new(server.url().parse().unwrap());
    config.root_cert_file = Some(server.dir.join("pki/apiserver.crt"));
    config.default_retry = false;
    Client::try_from(config).unwrap()
}
