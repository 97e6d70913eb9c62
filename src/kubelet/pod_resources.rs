//! The client of `v1.PodResourcesLister`.

use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use prost::Message;

use super::grpc::{Channel, GrpcError};
use super::message::{AllocatableResponse, Empty, GetRequest, GetResponse, ListResponse, Pod};
use super::usage::{Usage, count};
use super::{KubeletError, PodDevices};

const GET: &str = "/v1.PodResourcesLister/Get";
const LIST: &str = "/v1.PodResourcesLister/List";
const ALLOCATABLE: &str = "/v1.PodResourcesLister/GetAllocatableResources";

/// How long kubelet may take for all that is asked of one pod. It answers within milliseconds;
/// past this its own record is asked, which is as good.
const WITHIN: Duration = Duration::from_secs(2);
/// The pause after kubelet's rate limit, of 100 calls a second for everybody on the node together:
/// doubled from one try to the next, and of a random length up to that.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(320);

/// kubelet's pod-resources API behind its socket; the connection is kept.
pub struct PodResources {
    socket: PathBuf,
    channel: RefCell<Option<Channel>>,
}

impl std::fmt::Debug for PodResources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PodResources").field(&self.socket).finish()
    }
}

impl PodResources {
    /// The API at `socket`; nothing is opened yet.
    pub fn at(socket: &Path) -> PodResources {
        PodResources {
            socket: socket.to_owned(),
            channel: RefCell::default(),
        }
    }

    /// Where it is.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The devices of a pod, and, when it has none of one of `resources`, which resources have
    /// devices on this node at all. What cannot be found out is in
    /// [`failure`](PodDevices::failure).
    pub async fn devices_of(&self, namespace: &str, name: &str, resources: &[&str]) -> PodDevices {
        let until = Instant::now() + WITHIN;
        let mut devices = match self.pod(namespace, name, until).await {
            Ok(pod) => pod.map(PodDevices::from).unwrap_or_default(),
            Err(error) => return PodDevices::unknown(&error),
        };
        if resources.iter().any(|resource| !devices.has(resource)) {
            match self.on_node(until).await {
                Ok(names) => devices.on_node = names,
                Err(error) => devices.failure = Some(error.to_string()),
            }
        }
        devices
    }

    /// How many devices of each resource there are, and how many pods have.
    ///
    /// # Errors
    /// When kubelet cannot be asked, or does not tell.
    pub async fn usage(&self) -> Result<Vec<Usage>, KubeletError> {
        let until = Instant::now() + WITHIN;
        let allocatable = self.call(ALLOCATABLE, &Empty {}, until).await;
        let allocatable = allocatable.map_err(|error| self.error(error))?;
        let list = self.call(LIST, &Empty {}, until).await;
        Ok(count(allocatable, list.map_err(|error| self.error(error))?))
    }

    /// A pod; `None` where kubelet does not know it.
    async fn pod(
        &self,
        namespace: &str,
        name: &str,
        until: Instant,
    ) -> Result<Option<Pod>, KubeletError> {
        let request = GetRequest {
            pod_name: name.to_owned(),
            pod_namespace: namespace.to_owned(),
        };
        match self.call::<_, GetResponse>(GET, &request, until).await {
            Ok(answer) => Ok(answer.pod_resources),
            Err(error) if error.is_not_found() => Ok(None),
            // Kubernetes before 1.27 has no Get.
            Err(error) if error.is_not_offered() => {
                let list: ListResponse = self
                    .call(LIST, &Empty {}, until)
                    .await
                    .map_err(|error| self.error(error))?;
                let mut pods = list.pod_resources.into_iter();
                Ok(pods.find(|pod| pod.name == name && pod.namespace == namespace))
            }
            Err(error) => Err(self.error(error)),
        }
    }

    /// The resources that device plugins have devices of; `None` where kubelet does not tell.
    async fn on_node(&self, until: Instant) -> Result<Option<Vec<String>>, KubeletError> {
        let answer = self.call(ALLOCATABLE, &Empty {}, until).await;
        let answer: AllocatableResponse = match answer {
            Ok(answer) => answer,
            Err(error) if error.is_not_offered() => return Ok(None),
            Err(error) => return Err(self.error(error)),
        };
        let of = answer.devices.into_iter();
        let mut names: Vec<String> = of.map(|devices| devices.resource_name).collect();
        names.sort_unstable();
        names.dedup();
        Ok(Some(names))
    }

    /// One call, made again while kubelet refuses it for its rate limit, and once more where the
    /// connection of before has ended with an earlier kubelet.
    async fn call<Q: Message, A: Message + Default>(
        &self,
        method: &str,
        question: &Q,
        until: Instant,
    ) -> Result<A, GrpcError> {
        let mut longest = FIRST_PAUSE;
        loop {
            let kept = self.channel.borrow().clone();
            let was_kept = kept.is_some();
            let left = until.saturating_duration_since(Instant::now());
            let call = async {
                let channel = match kept {
                    Some(channel) => channel,
                    None => {
                        let channel = Channel::open(&self.socket).await?;
                        *self.channel.borrow_mut() = Some(channel.clone());
                        channel
                    }
                };
                channel.call(method, question).await
            };
            let error = match tokio::time::timeout(left, call).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => error,
                Err(_) => GrpcError::Late(WITHIN.as_millis()),
            };
            if error.is_rate_limit() {
                let pause = random_up_to(longest);
                if Instant::now() + pause >= until {
                    return Err(error);
                }
                tokio::time::sleep(pause).await;
                longest = (longest * 2).min(LONGEST_PAUSE);
                continue;
            }
            if error.is_of_connection() || matches!(error, GrpcError::Late(_)) {
                self.channel.borrow_mut().take();
            }
            if !(was_kept && error.is_of_connection()) {
                return Err(error);
            }
        }
    }

    fn error(&self, error: GrpcError) -> KubeletError {
        KubeletError::of(&self.socket, error)
    }
}

/// A duration that others who wait do not have: the standard library's own random keys will do.
fn random_up_to(longest: Duration) -> Duration {
    let random = RandomState::new().hash_one(());
    let share = (random % 1024) as u32 + 1;
    longest * share / 1024
}
