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

use super::ApiError;
use super::answer::Lookup;
use super::body;
use super::credentials;
use super::definitions::LARGEST_DEFINITION;
use super::kinds::Objects;
use super::line::Line;
use super::objects::{PodObject, PodView};
use super::pages::Item;
use super::slices::{SliceObject, SliceView};
use crate::cluster::Found;
use crate::kubelet::PodResources;
use crate::npwg::{Definition, IpamClaim, ObjectRef};
use crate::regular_file;

/// How long one request may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The API group of definitions and, first of all, of claims (NPWG 1.3 §3.1, §8.2.1).
pub(super) const GROUP: &str = "k8s.cni.cncf.io";

/// How objects are asked for.
pub(super) const JSON: &str = "application/json";
/// The largest answer that is read, in bytes: a list of the largest objects that etcd keeps.
pub(super) const LARGEST: usize = 16 << 20;

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
    line: Rc<Line>,
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
    /// [`ApiError::Config`] when the file, or one that it names, cannot be used.
    pub async fn from_kubeconfig(path: &Path, caller: Caller<'_>) -> Result<ApiServer, ApiError> {
        let wrong = |cause: &dyn std::fmt::Display| ApiError::Config {
            source_name: format!("kubeconfig {}", path.display()),
            cause: one_line(&cause.to_string()),
        };
        let kubeconfig = credentials::kubeconfig(path).map_err(|cause| wrong(&cause))?;
        for file in credentials::files(&kubeconfig) {
            let named = |cause| wrong(&format!("{file}: {cause}"));
            regular_file::open(Path::new(file)).map_err(named)?;
        }
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|error| wrong(&error))?;
        let config = credentials::with_token(config).map_err(|cause| wrong(&cause))?;
        ApiServer::new(config, caller).map_err(|error| wrong(&error))
    }

    /// The API server of the cluster that this process is a pod of.
    ///
    /// # Errors
    /// [`ApiError::Config`] outside of a pod.
    pub fn in_cluster(caller: Caller<'_>) -> Result<ApiServer, ApiError> {
        let wrong = |cause: &dyn std::fmt::Display| ApiError::Config {
            source_name: "the pod's service account".to_owned(),
            cause: format!("{cause}; outside of a pod, name a file with --kubeconfig"),
        };
        let config = Config::incluster().map_err(|error| wrong(&error))?;
        let config = credentials::with_token(config).map_err(|cause| wrong(&cause))?;
        ApiServer::new(config, caller).map_err(|error| wrong(&error))
    }

    fn new(mut config: Config, caller: Caller<'_>) -> Result<ApiServer, kube::Error> {
        let name = HeaderValue::from_str(&caller.to_string());
        let name = name.map_err(|error| kube::Error::HttpError(error.into()))?;
        config.headers.push((header::USER_AGENT, name));
        let address = config.cluster_url.to_string();
        Ok(ApiServer {
            line: Rc::new(Line::new(config)?),
            address,
        })
    }

    /// Whether both send the same credentials.
    pub fn has_credentials_of(&self, other: &ApiServer) -> bool {
        self.line.headers() == other.line.headers()
    }

    /// One pod; `None` when there is none of that name.
    ///
    /// # Errors
    /// [`ApiError`]; a name that can be no pod's is no error, there is no such pod.
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
            cause: format!("more than {LARGEST} bytes"),
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
        serde_json::from_slice(text).map_err(|cause| ApiError::Answer {
            server: self.address.clone(),
            request: name.to_owned(),
            cause: cause.to_string(),
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
            .map_err(|error| self.unreachable(&name, error.to_string()))?;
        // A read that goes over a new connection too has its whole time there.
        let limit = match *request.method() {
            Method::GET => LIMIT + body::PATIENCE,
            _ => LIMIT,
        };
        let read = body::read(&self.line, request, most);
        self.in_time(&name, limit, read).await
    }

    /// The body of an answer that may take any time once it has begun.
    pub(super) async fn stream(
        &self,
        name: &str,
        request: Request<Vec<u8>>,
    ) -> Result<Body, ApiError> {
        let client = self.line.client();
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
            Err(_) => {
                let cause = format!("nothing within {} s", limit.as_secs());
                Err(self.unreachable(name, cause))
            }
        }
    }

    /// Why a request failed that another part of the client made: `request` says what it was to do.
    pub(crate) fn explain(&self, request: &str, error: kube::Error) -> ApiError {
        self.error(request, error)
    }

    pub(crate) fn unreachable(&self, request: &str, cause: String) -> ApiError {
        ApiError::Unreachable {
            server: self.address.clone(),
            request: request.to_owned(),
            cause,
        }
    }

    fn error(&self, request: &str, error: kube::Error) -> ApiError {
        match error {
            // An object that is not there has a name, also in the answer.
            kube::Error::Api(status) if status.code == 404 && status.details.is_none() => {
                ApiError::NotServed {
                    server: self.address.clone(),
                    request: request.to_owned(),
                }
            }
            kube::Error::Api(status) => ApiError::Refused {
                server: self.address.clone(),
                request: request.to_owned(),
                code: status.code,
                message: one_line(&status.message),
                retry_after: status
                    .details
                    .map(|details| u64::from(details.retry_after_seconds))
                    .filter(|seconds| *seconds > 0)
                    .map(Duration::from_secs),
            },
            error => self.unreachable(request, one_line(&causes(&error))),
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

    async fn definition(&self, object: &ObjectRef) -> Found<Definition> {
        match self.read_definition(object, LARGEST_DEFINITION).await {
            Ok(read) => read.found(object),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn claim(&self, namespace: &str, name: &str) -> Found<IpamClaim> {
        let claim = ObjectRef::new(namespace, name).map_err(|error| error.to_string())?;
        let path = format!("/apis/{GROUP}/v1alpha1/namespaces/{namespace}/ipamclaims/{name}");
        match found::<Value>(self.request(Method::GET, &path, None).await) {
            Ok(Some(body)) => IpamClaim::from_json(&body).map_err(|error| error.to_string()),
            Ok(None) => Err(format!("no IPAMClaim {claim} in the cluster")),
            Err(error) => Err(error.to_string()),
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

/// A kind that is not there is no error: there are no objects of it.
pub(super) fn served<T>(answer: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match answer {
        Ok(objects) => Ok(Some(objects)),
        Err(ApiError::NotServed { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// An object that is not there is no error.
fn found<T>(answer: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.code() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

/// An error with its causes: the innermost names the reason.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
