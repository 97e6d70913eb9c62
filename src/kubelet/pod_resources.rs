//! The client of kubelet's pod-resources API, the gRPC service `v1.PodResourcesLister`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use prost::Message;

use super::grpc::{Channel, GrpcError};
use super::message::{AllocatableResponse, GetRequest, GetResponse, ListResponse, Pod};
use super::usage::{Usage, count};
use super::{KubeletError, PodDevices};

const GET: &str = "/v1.PodResourcesLister/Get";
const LIST: &str = "/v1.PodResourcesLister/List";
const ALLOCATABLE: &str = "/v1.PodResourcesLister/GetAllocatableResources";

/// The time limit of one call of [`PodResources::devices_of`] or [`PodResources::usage`], for all
/// its requests together. Kubelet usually answers within milliseconds. The limit is short, because
/// Jackfield can read the devices of a pod from kubelet's checkpoint if kubelet does not answer.
const WITHIN: Duration = Duration::from_secs(2);
/// The maximum length of the pause after the first refusal. Kubelet allows 100 calls per second for
/// all clients on the node together, and refuses further calls. After a refusal, Jackfield pauses
/// for a random time and retries. The maximum length of the pause doubles with each retry.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The maximum length of any pause after a refusal.
const LONGEST_PAUSE: Duration = Duration::from_millis(320);

/// A client of kubelet's pod-resources API. The client keeps its connection open.
#[derive(Debug)]
pub struct PodResources {
    socket: PathBuf,
    channel: RefCell<Option<Channel>>,
}

impl PodResources {
    /// Creates a client of the API at `socket`. Does not connect yet.
    pub fn at(socket: &Path) -> PodResources {
        PodResources {
            socket: socket.to_owned(),
            channel: RefCell::default(),
        }
    }

    /// Returns the path of the socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the devices of a pod. If the pod has no device for a resource in `resources`,
    /// [`on_node`](PodDevices::on_node) lists all resources that have devices on this node. If a
    /// request fails, [`failure`](PodDevices::failure) contains the error.
    pub async fn devices_of(&self, namespace: &str, name: &str, resources: &[&str]) -> PodDevices {
        let until = Instant::now() + WITHIN;
        let mut devices = match self.pod(namespace, name, until).await {
            Ok(pod) => pod.map(PodDevices::from).unwrap_or_default(),
            Err(error) => return PodDevices::unknown(&self.error(error)),
        };
        let has_none_of = |resource: &&str| devices.ids_of(resource).next().is_none();
        if resources.iter().any(has_none_of) {
            match self.on_node(until).await {
                Ok(names) => devices.on_node = names,
                Err(error) => devices.failure = Some(self.error(error).to_string()),
            }
        }
        devices
    }

    /// Returns the number of devices of each resource, and how many of them kubelet has allocated
    /// to pods.
    ///
    /// # Errors
    /// When kubelet does not answer, refuses a call, or lacks `List` or
    /// `GetAllocatableResources`.
    pub async fn usage(&self) -> Result<Vec<Usage>, KubeletError> {
        let until = Instant::now() + WITHIN;
        let counted = async {
            let allocatable = self.call(ALLOCATABLE, &(), until).await?;
            Ok(count(allocatable, self.call(LIST, &(), until).await?))
        };
        counted.await.map_err(|error| self.error(error))
    }

    /// Returns a pod, or `None` if kubelet does not know the pod.
    async fn pod(
        &self,
        namespace: &str,
        name: &str,
        until: Instant,
    ) -> Result<Option<Pod>, GrpcError> {
        let request = GetRequest {
            pod_name: name.to_owned(),
            pod_namespace: namespace.to_owned(),
        };
        match self.call::<_, GetResponse>(GET, &request, until).await {
            Ok(answer) => Ok(answer.pod_resources),
            Err(error) if error.is_not_found() => Ok(None),
            // Kubernetes before 1.27 has no `Get`. In later versions, `Get` can be disabled.
            Err(error) if error.is_not_offered() => {
                let list: ListResponse = self.call(LIST, &(), until).await?;
                let mut pods = list.pod_resources.into_iter();
                Ok(pods.find(|pod| pod.name == name && pod.namespace == namespace))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the resources for which device plugins have devices. `None` if kubelet does not
    /// offer `GetAllocatableResources`.
    async fn on_node(&self, until: Instant) -> Result<Option<Vec<String>>, GrpcError> {
        let answer: AllocatableResponse = match self.call(ALLOCATABLE, &(), until).await {
            Err(error) if error.is_not_offered() => return Ok(None),
            answer => answer?,
        };
        let names = answer.devices.into_iter().map(|it| it.resource_name);
        let names = BTreeSet::from_iter(names);
        Ok(Some(names.into_iter().collect()))
    }

    /// Makes one call. Uses the open connection if there is one, and retries over a new connection
    /// if the open connection fails. Also retries if kubelet refuses the call because of the rate
    /// limit. Returns kubelet's last refusal if no retry succeeds before `until`.
    async fn call<Q: Message, A: Message + Default>(
        &self,
        method: &str,
        question: &Q,
        until: Instant,
    ) -> Result<A, GrpcError> {
        let mut longest = FIRST_PAUSE;
        let mut refusal = None;
        loop {
            let open_channel = self.channel.borrow().clone();
            let was_open = open_channel.is_some();
            let time = until.saturating_duration_since(Instant::now());
            let call = async {
                let channel = match open_channel {
                    Some(channel) => channel,
                    None => {
                        let channel = Channel::open(&self.socket).await?;
                        *self.channel.borrow_mut() = Some(channel.clone());
                        channel
                    }
                };
                channel.call(method, question).await
            };
            let error = match tokio::time::timeout(time, call).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => error,
                Err(_) => {
                    // The connection may hang, so do not use it again.
                    self.channel.borrow_mut().take();
                    return Err(refusal.unwrap_or(GrpcError::Late(WITHIN.as_millis())));
                }
            };
            if error.is_rate_limit() {
                let pause = longest.mul_f64(fastrand::f64());
                if Instant::now() + pause >= until {
                    return Err(error);
                }
                tokio::time::sleep(pause).await;
                longest = (longest * 2).min(LONGEST_PAUSE);
                refusal = Some(error);
                continue;
            }
            if error.is_of_connection() {
                self.channel.borrow_mut().take();
            }
            if !(was_open && error.is_of_connection()) {
                return Err(error);
            }
        }
    }

    fn error(&self, error: GrpcError) -> KubeletError {
        KubeletError(self.socket.clone(), error)
    }
}
