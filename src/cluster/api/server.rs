//! Requests to the API server, each with a limit in time and an error that names it.

use std::fmt;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use http::{HeaderValue, Method, Request, header};
use kube::Config;
use kube::client::Body;
use kube::config::KubeConfigOptions;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::answer::Lookup;
use super::body;
use super::connection::ApiClient;
use super::credentials;
use super::definitions::LARGEST_DEFINITION;
use super::error::{AnswerError, RequestError};
use super::kinds::Objects;
use super::objects::{PodObject, PodView};
use super::pages::Item;
use super::slices::{SliceObject, SliceView};
use super::{ApiError, CredentialsError};
use crate::cluster::lookup::{LookupError, Place};
use crate::kubelet::PodResources;
use crate::npwg::{Definition, IpamClaim, ObjectRef};
use crate::regular_file;

/// How long one request may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The API group of definitions and, first of all, of claims (NPWG 1.3 §3.1, §8.2.1).
pub(super) const GROUP: &str = "k8s.cni.cncf.io";

/// The media type of requests and answers.
pub(super) const JSON: &str = "application/json";
/// The largest answer that is read, in bytes: a list of the largest objects that etcd keeps.
pub(super) const LARGEST: usize = 16 << 20;

/// The reason of a refusal's cause when a field is longer than it may be (Kubernetes API, Status).
const FIELD_TOO_LONG: &str = "FieldValueTooLong";

/// Who sends requests, as the API server's audit log shows it (`User-Agent`).
#[derive(Debug, Clone, Copy)]
pub enum Caller<'a> {
    /// The agent of a node.
    Agent {
        /// The node's name.
        node: &'a str,
    },
    /// A plugin without an agent, or a command for people.
    Plugin,
}

impl fmt::Display for Caller<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let release = env!("CARGO_PKG_VERSION");
        match self {
            Caller::Agent { node } => write!(f, "jackfield/{release} (agent; {node})"),
            Caller::Plugin => write!(f, "jackfield/{release} (plugin)"),
        }
    }
}

/// A connection to the API server.
#[derive(Clone)]
pub struct ApiServer {
    client: Rc<ApiClient>,
    address: String,
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ApiServer").field(&self.address).finish()
    }
}

impl ApiServer {
    /// The API server that a kubeconfig's current context names.
    ///
    /// # Errors
    /// [`ApiError::Kubeconfig`] when the file, or one that it names, cannot be used.
    pub async fn from_kubeconfig(path: &Path, caller: Caller<'_>) -> Result<ApiServer, ApiError> {
        let server = async {
            let kubeconfig = credentials::kubeconfig(path)?;
            for file in credentials::files(&kubeconfig) {
                let opened = regular_file::open(Path::new(file));
                opened.map_err(|source| CredentialsError::File {
                    path: file.to_owned(),
                    source,
                })?;
            }
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
            ApiServer::new(config, caller)
        };
        server.await.map_err(|source| ApiError::Kubeconfig {
            path: path.to_owned(),
            source: Box::new(source),
        })
    }

    /// The API server of the cluster that this process is a pod of.
    ///
    /// # Errors
    /// [`ApiError::ServiceAccount`] outside of a pod.
    pub fn in_cluster(caller: Caller<'_>) -> Result<ApiServer, ApiError> {
        Config::incluster()
            .map_err(CredentialsError::from)
            .and_then(|config| ApiServer::new(config, caller))
            .map_err(|error| ApiError::ServiceAccount(Box::new(error)))
    }

    fn new(config: Config, caller: Caller<'_>) -> Result<ApiServer, CredentialsError> {
        let mut config = credentials::with_token(config)?;
        let name = HeaderValue::from_str(&caller.to_string())?;
        config.headers.push((header::USER_AGENT, name));
        let address = config.cluster_url.to_string();
        Ok(ApiServer {
            client: Rc::new(ApiClient::new(config)?),
            address,
        })
    }

    /// Whether both send the same credentials.
    pub fn has_credentials_of(&self, other: &ApiServer) -> bool {
        self.client.headers() == other.client.headers()
    }

    /// One pod; `None` when no pod has that name, or no pod can have it.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn pod(&self, namespace: &str, name: &str) -> Result<Option<PodView>, ApiError> {
        // Checked before it becomes a part of a URL.
        let Ok(pod) = ObjectRef::new(namespace, name) else {
            return Ok(None);
        };
        let path = pod_path(&pod);
        let object: Option<PodObject> = found(self.request(Method::GET, &path, None).await)?;
        Ok(object.map(PodView::from))
    }

    /// Changes a pod's status by a JSON Patch (RFC 6902).
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn patch_pod_status(
        &self,
        pod: &ObjectRef,
        patch: &Value,
    ) -> Result<PodView, ApiError> {
        let path = format!("{}/status", pod_path(pod));
        let object: PodObject = self.request(Method::PATCH, &path, Some(patch)).await?;
        Ok(PodView::from(object))
    }

    /// Creates an event.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn create_event(&self, namespace: &str, event: &Value) -> Result<(), ApiError> {
        let path = format!("/api/v1/namespaces/{namespace}/events");
        let _: serde::de::IgnoredAny = self.request(Method::POST, &path, Some(event)).await?;
        Ok(())
    }

    pub(super) async fn request<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, ApiError> {
        let name = format!("{method} {path}");
        let answer = self
            .request_up_to(method, path, body, JSON, LARGEST)
            .await?;
        answer.ok_or_else(|| self.too_long(&name))
    }

    pub(super) fn too_long(&self, request: &str) -> ApiError {
        ApiError::Answer {
            server: self.address.clone(),
            request: request.to_owned(),
            source: AnswerError::TooLong(LARGEST),
        }
    }

    /// A request whose answer has at most `most` bytes, else `None`.
    pub(super) async fn request_up_to<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        accept: &str,
        most: usize,
    ) -> Result<Option<T>, ApiError> {
        let name = format!("{method} {path}");
        let text = self.text_up_to(method, path, body, accept, most).await?;
        let read = text.map(|text| self.parse(&name, &text));
        read.transpose()
    }

    /// Reads an answer; `name` says what was asked.
    pub(super) fn parse<'a, T: Deserialize<'a>>(
        &self,
        name: &str,
        text: &'a [u8],
    ) -> Result<T, ApiError> {
        serde_json::from_slice(text).map_err(|error| ApiError::Answer {
            server: self.address.clone(),
            request: name.to_owned(),
            source: error.into(),
        })
    }

    /// The text of an answer of at most `most` bytes, else `None`.
    pub(super) async fn text_up_to(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        accept: &str,
        most: usize,
    ) -> Result<Option<Vec<u8>>, ApiError> {
        let name = format!("{method} {path}");
        let content = if method == Method::PATCH {
            "application/json-patch+json"
        } else {
            JSON
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, content)
            .header(header::ACCEPT, accept)
            .body(
                body.map(|body| body.to_string().into_bytes())
                    .unwrap_or_default(),
            )
            .map_err(|error| self.unreachable(&name, error.into()))?;
        // A GET that is sent over a new connection too has the whole limit there.
        let limit = match *request.method() {
            Method::GET => LIMIT + body::PATIENCE,
            _ => LIMIT,
        };
        let read = body::read(&self.client, request, most);
        self.in_time(&name, limit, read).await
    }

    /// The body of an answer, which may take any time once it has begun.
    pub(super) async fn stream(
        &self,
        name: &str,
        request: Request<Vec<u8>>,
    ) -> Result<Body, ApiError> {
        let client = self.client.client();
        let begun = body::send(&client, request);
        self.in_time(name, LIMIT, begun).await
    }

    async fn in_time<T>(
        &self,
        name: &str,
        limit: Duration,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, ApiError> {
        match tokio::time::timeout(limit, request).await {
            Ok(answer) => answer.map_err(|error| self.error(name, error)),
            Err(_) => Err(self.unreachable(name, RequestError::Late(limit))),
        }
    }

    /// The error of a request that the caller sent itself; `request` names it.
    pub(crate) fn explain(&self, request: &str, error: kube::Error) -> ApiError {
        self.error(request, error)
    }

    pub(super) fn unreachable(&self, request: &str, source: RequestError) -> ApiError {
        ApiError::Unreachable {
            server: self.address.clone(),
            request: request.to_owned(),
            source,
        }
    }

    fn error(&self, request: &str, error: kube::Error) -> ApiError {
        match error {
            // The answer about a missing object has details with its name.
            kube::Error::Api(status) if status.code == 404 && status.details.is_none() => {
                ApiError::NotServed {
                    server: self.address.clone(),
                    request: request.to_owned(),
                    is_deployed: request.contains(GROUP),
                }
            }
            kube::Error::Api(status) => ApiError::Refused {
                server: self.address.clone(),
                request: request.to_owned(),
                code: status.code,
                message: status
                    .message
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" "),
                is_field_too_long: status.details.iter().any(|details| {
                    let mut causes = details.causes.iter();
                    causes.any(|cause| cause.reason == FIELD_TOO_LONG)
                }),
                retry_after: status
                    .details
                    .map(|details| u64::from(details.retry_after_seconds))
                    .filter(|seconds| *seconds > 0)
                    .map(Duration::from_secs),
            },
            error => self.unreachable(request, RequestError::Client(Box::new(error))),
        }
    }
}

impl Lookup for ApiServer {
    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<PodView>, ApiError> {
        ApiServer::pod(self, namespace, name).await
    }

    async fn pod_uncached(&self, _: &str, _: &str) -> Option<Result<Option<PodView>, ApiError>> {
        None
    }

    async fn definition(&self, object: &ObjectRef) -> Result<Definition, Rc<LookupError>> {
        let read = self.read_definition(object, LARGEST_DEFINITION).await;
        let (definition, _) = read.map_err(LookupError::from)?.whole(object)?;
        Ok(definition)
    }

    async fn claim(&self, namespace: &str, name: &str) -> Result<IpamClaim, LookupError> {
        let claim = ObjectRef::new(namespace, name)?;
        let path = format!("/apis/{GROUP}/v1alpha1/namespaces/{namespace}/ipamclaims/{name}");
        match found::<Value>(self.request(Method::GET, &path, None).await)? {
            Some(body) => Ok(IpamClaim::from_json(&body)?),
            None => Err(LookupError::Missing {
                kind: "IPAMClaim",
                object: claim.to_string(),
                place: Place::ApiServer,
            }),
        }
    }

    fn kubelet(&self, socket: &Path) -> Rc<PodResources> {
        Rc::new(PodResources::at(socket))
    }

    async fn slices(&self, node: &str) -> Result<Vec<Rc<SliceView>>, ApiError> {
        let mut slices = Vec::new();
        let take = |item: Item<'_>| {
            slices.extend(item.read().map(|slice: SliceObject| Rc::new(slice.into())));
            true
        };
        // A cluster without that API has no devices of this kind.
        served(self.list(&Objects::slices(node), take).await)?;
        Ok(slices)
    }

    async fn slices_uncached(&self, _: &str) -> Option<Result<Vec<Rc<SliceView>>, ApiError>> {
        None
    }
}

fn pod_path(pod: &ObjectRef) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", pod.namespace(), pod.name())
}

/// `None` for a kind that the API server does not know: there are no objects of it.
pub(super) fn served<T>(answer: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match answer {
        Ok(objects) => Ok(Some(objects)),
        Err(ApiError::NotServed { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// `None` for an object that does not exist.
fn found<T>(answer: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.code() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}
