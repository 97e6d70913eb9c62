//! Requests to the API server. Each request has a time limit. Each error contains the name of its
//! request.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use http::{HeaderValue, Method, Request, header};
use kube::Config;
use kube::client::Body;
use kube::config::KubeConfigOptions;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::body;
use super::connection::ApiClient;
use super::credentials;
use super::error::RequestError;
use super::kinds::Objects;
use super::{ApiError, CredentialsError};
use crate::npwg::ObjectRef;

/// The time limit of a request. [`ApiServer::get`] allows [`body::PATIENCE`] more, because it may
/// make a second attempt.
const LIMIT: Duration = Duration::from_secs(10);

/// The API group of definitions and IPAMClaims (NPWG 1.3 §3.1, §8.2.1).
pub(super) const GROUP: &str = "k8s.cni.cncf.io";

/// The media type of JSON.
pub(super) const JSON: &str = "application/json";
/// The media type of a JSON Patch (RFC 6902).
pub(super) const JSON_PATCH: &str = "application/json-patch+json";
/// The media type of a server-side apply. JSON is valid YAML, so the body may be JSON.
pub(super) const APPLY_PATCH: &str = "application/apply-patch+yaml";
/// The size limit of an answer, in bytes, for requests that set no limit of their own. An answer
/// may contain several objects of the largest size that etcd accepts.
pub(super) const LARGEST: usize = 16 << 20;

/// A client of the API server.
#[derive(Debug, Clone)]
pub struct ApiServer {
    client: Rc<ApiClient>,
}

impl ApiServer {
    /// Creates a client from the current context of the kubeconfig `path`. `caller` identifies this
    /// process in the API server's audit log.
    ///
    /// # Errors
    /// [`ApiError::Kubeconfig`] when the file, or a file that it names, cannot be used.
    pub async fn from_kubeconfig(path: &Path, caller: &str) -> Result<ApiServer, ApiError> {
        let server = async {
            let kubeconfig = credentials::kubeconfig(path)?;
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
            ApiServer::new(config, caller)
        };
        let server = server.await;
        server.map_err(|error| ApiError::Kubeconfig(path.to_owned(), Box::new(error)))
    }

    /// Creates a client for a process in a pod. The client uses the pod's service account.
    ///
    /// # Errors
    /// [`ApiError::ServiceAccount`] outside of a pod, or when the service account cannot be used.
    pub fn in_cluster(caller: &str) -> Result<ApiServer, ApiError> {
        Config::incluster()
            .map_err(CredentialsError::from)
            .and_then(|config| ApiServer::new(config, caller))
            .map_err(|error| ApiError::ServiceAccount(Box::new(error)))
    }

    fn new(config: Config, caller: &str) -> Result<ApiServer, CredentialsError> {
        let mut config = credentials::with_token(config)?;
        let name = format!("jackfield/{} ({caller})", env!("CARGO_PKG_VERSION"));
        let name = HeaderValue::from_str(&name)?;
        config.headers.push((header::USER_AGENT, name));
        let client = Rc::new(ApiClient::new(config)?);
        Ok(ApiServer { client })
    }

    /// Whether both clients have the same credentials: the same headers, including the token, and
    /// the same certificate authorities.
    pub fn has_credentials_of(&self, other: &ApiServer) -> bool {
        self.client.has_credentials_of(&other.client)
    }

    /// Sends `body`, and returns the object in the API server's answer.
    pub(super) async fn write<T: DeserializeOwned>(
        &self,
        method: Method,
        content: &str,
        path: &str,
        body: &Value,
    ) -> Result<T, ApiError> {
        let name = format!("{method} {path}");
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, content)
            .header(header::ACCEPT, JSON)
            .body(body.to_string().into_bytes());
        let answer = async { body::read(&self.client, request?, LARGEST).await };
        let answer = self.in_time(&name, LIMIT, answer);
        self.parse(&name, &answer.await?)
    }

    /// Reads an object; `None` if it does not exist.
    pub(super) async fn find<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<T>, ApiError> {
        match self.get(path, JSON, LARGEST).await {
            Ok(text) => self.parse(&format!("GET {path}"), &text).map(Some),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a GET, and returns the text of the answer. The answer may have at most `most` bytes.
    pub(super) async fn get(
        &self,
        path: &str,
        accept: &str,
        most: usize,
    ) -> Result<Vec<u8>, ApiError> {
        let request = Request::get(path).header(header::ACCEPT, accept);
        let request = request.body(Vec::new());
        let answer = async { body::read(&self.client, request?, most).await };
        // `body::read` may begin a second attempt after `PATIENCE`. The second attempt also gets
        // the whole `LIMIT`.
        let limit = LIMIT + body::PATIENCE;
        self.in_time(&format!("GET {path}"), limit, answer).await
    }

    /// Begins a watch and returns the body of the answer. Reading the body has no time limit.
    /// `name` is the watch's name in errors.
    pub(super) async fn stream(
        &self,
        name: &str,
        objects: &Objects,
        version: &str,
    ) -> Result<Body, ApiError> {
        let path = objects.path(&format!(
            "watch=true&timeoutSeconds={}&allowWatchBookmarks=true&resourceVersion={}",
            self.client.watch_seconds(),
            utf8_percent_encode(version, NON_ALPHANUMERIC),
        ));
        let request = Request::get(path).header(header::ACCEPT, objects.watched_as);
        let request = request.body(Vec::new());
        let client = self.client.client();
        let answer = async { body::send(&self.client, &client, request?).await };
        self.in_time(name, LIMIT, answer).await
    }

    async fn in_time<T>(
        &self,
        name: &str,
        limit: Duration,
        answer: impl Future<Output = Result<T, RequestError>>,
    ) -> Result<T, ApiError> {
        let answer = tokio::time::timeout(limit, answer).await;
        answer
            .unwrap_or(Err(RequestError::Late(limit)))
            .map_err(|error| self.failed(name, error))
    }

    /// Parses an answer. `request` is the request's name in errors.
    pub(super) fn parse<'a, T: Deserialize<'a>>(
        &self,
        request: &str,
        text: &'a [u8],
    ) -> Result<T, ApiError> {
        serde_json::from_slice(text).map_err(|error| self.failed(request, error))
    }

    /// Returns the error of a request with the name `request`.
    pub(super) fn failed(&self, request: &str, source: impl Into<RequestError>) -> ApiError {
        ApiError::Request {
            server: self.client.address(),
            request: request.to_owned(),
            source: source.into(),
        }
    }
}

/// Returns the path of a pod.
pub(super) fn pod_path(pod: &ObjectRef) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", pod.namespace(), pod.name())
}
