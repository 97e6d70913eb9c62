//! The rehearsal: prepares an ADD for every pod on the node. Runs no plugin.

use std::path::PathBuf;
use std::time::Duration;

use super::super::conf::OurConf;
use super::super::{HostPaths, SetupError, about_the_node};
use super::FromMultus;
use crate::cluster::{ClusterError, PodName};
use crate::cni::{InterfaceName, RawObject};
use crate::diagnostic::Problem;
use crate::journal::multus_cache::CacheDamage;
use crate::journal::{Key, MultusCache};
use crate::operation::examine::every_network;
use crate::operation::prepare::prepare;
use crate::operation::{Context, Failure, Host};
use crate::plugin::with_host;
use crate::request::{Call, ClusterNetwork, NodeConfig, Request, RequestError, Source};

/// The time limit for one pod. The limit is short because kubelet already knows the devices of
/// running pods: unlike the ADD of a new pod, a rehearsal need not wait for kubelet.
const PER_POD: Duration = Duration::from_secs(5);
/// The time limit for all networks together.
const NETWORKS: Duration = Duration::from_secs(60);

/// The outcome of a rehearsal.
#[derive(Debug)]
pub struct Rehearsal {
    /// How many pods would fail.
    pub failing: usize,
    /// All findings. The last finding contains the totals.
    pub findings: Vec<RehearsalFinding>,
}

/// A finding of a rehearsal.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalFinding {
    /// A pod would fail.
    #[error("pod {} would fail: {}", .0, .1.in_full())]
    Pod(PodName, Failure),
    /// A network to which no pod can be attached, and the reason.
    #[error("network {0} cannot be used: {1}")]
    Network(String, String),
    /// A file of Multus' cache cannot be read.
    #[error("cache of Multus: {0}")]
    Cache(CacheDamage),
    /// The numbers of rehearsed pods and networks.
    #[error("{pods} pods and {networks} networks were examined, {failing} pods would fail")]
    Total {
        /// The number of pods.
        pods: usize,
        /// The number of networks.
        networks: usize,
        /// The number of pods that would fail.
        failing: usize,
    },
}

impl Problem for RehearsalFinding {
    fn words(&self) -> String {
        self.to_string()
    }

    fn remedy(&self) -> Option<String> {
        let remedy = "delete the pod whose sandbox ID is in the file's name, and keep the \
                      definitions of the pod's networks until the pod is gone";
        matches!(self, RehearsalFinding::Cache(_)).then(|| remedy.to_owned())
    }
}

/// With a configuration that is not installed yet, rehearses the ADD of every pod on the node. Also
/// checks every network, unless `from` limits the rehearsal to the pods.
///
/// # Errors
/// [`SetupError::NoRehearsal`] if the configuration is invalid, or if the pods or networks of the
/// node are unknown.
pub fn rehearse(
    paths: &HostPaths,
    conf: &OurConf,
    from: &FromMultus,
) -> Result<Rehearsal, SetupError> {
    let impossible = |failure| SetupError::NoRehearsal(Box::new(failure));
    let stdin = conf.on_stdin();
    let request = about_the_node(stdin.clone(), &from.cni_path);
    let request = in_this_process(paths, request.map_err(|cause| impossible(cause.into()))?);
    let of_node = |host: &Host<'_>| {
        let context = Context::new(host, &request, NETWORKS);
        let census = host.cluster.census(&from.node, !from.pods_alone)?;
        if census.version.is_some() && !census.listed {
            return Err(ClusterError::NotListed.into());
        }
        let networks = match from.pods_alone {
            true => Vec::new(),
            false => every_network(&context, &census.definitions)?,
        };
        let (mut failing, mut findings) = (0, Vec::new());
        for pod in &census.pods {
            let failures = of_pod(host, paths, &stdin, &from.cni_path, pod);
            let failures = failures.unwrap_or_else(|failure| vec![failure]);
            failing += usize::from(!failures.is_empty());
            let failures = failures.into_iter();
            findings.extend(failures.map(|it| RehearsalFinding::Pod(pod.clone(), it)));
        }
        let total = RehearsalFinding::Total {
            pods: census.pods.len(),
            networks: networks.len(),
            failing,
        };
        for network in networks {
            let problems = network.problems.into_iter();
            findings
                .extend(problems.map(|it| RehearsalFinding::Network(network.label.clone(), it)));
        }
        findings.extend(damage(&request.config));
        findings.push(total);
        Ok(Rehearsal { failing, findings })
    };
    let rehearsal = with_host(&request.config, |host| {
        let rehearsal = of_node(host);
        // Without `close`, the connections stay open until the process ends. `install --watch`
        // rehearses many times in one process.
        host.cluster.close();
        rehearsal
    });
    rehearsal.map_err(impossible)
}

/// Returns every reason why this pod's ADD would fail. With `"invalidAnnotation": "ignore"`, also
/// returns each invalid annotation. Multus refuses a pod with such an annotation, but Jackfield
/// would start the pod without the annotation's networks.
fn of_pod(
    host: &Host<'_>,
    paths: &HostPaths,
    stdin: &RawObject,
    cni_path: &str,
    pod: &PodName,
) -> Result<Vec<Failure>, Failure> {
    let request = add(paths, stdin, cni_path, pod)?;
    let prepared = prepare(&Context::new(host, &request, PER_POD))?;
    let problems = prepared.ignored.into_iter().chain(prepared.problems);
    Ok(problems.map(Failure::Plan).collect())
}

/// Makes the request that the runtime would make for the pod's ADD.
fn add(
    paths: &HostPaths,
    stdin: &RawObject,
    cni_path: &str,
    pod: &PodName,
) -> Result<Request, RequestError> {
    let (namespace, name) = (&pod.namespace, &pod.name);
    let mut args = format!("IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name}");
    if let Some(uid) = &pod.uid {
        args += &format!(";K8S_POD_UID={uid}");
    }
    let call = Call::of(&[
        ("CNI_COMMAND", "ADD"),
        ("CNI_CONTAINERID", &format!("{namespace}-{name}")),
        ("CNI_NETNS", "/proc/self/ns/net"),
        ("CNI_IFNAME", InterfaceName::first().as_str()),
        ("CNI_PATH", cni_path),
        ("CNI_ARGS", &args),
    ])?;
    let request = Request::for_people(call, stdin.clone())?;
    Ok(in_this_process(paths, request))
}

/// Converts the host's paths in a request to paths of this process, because a container has the
/// host's directories at other paths. Does not convert the path of the readiness indicator file,
/// because a rehearsal does not use this file.
fn in_this_process(paths: &HostPaths, mut request: Request) -> Request {
    if paths.is_host() {
        return request;
    }
    let node = &mut request.config;
    for path in [&mut node.bin_dir, &mut node.conf_dir, &mut node.cni_dir] {
        *path = paths.here(path);
    }
    if let ClusterNetwork::Named(name) = &mut node.cluster_network
        && name.starts_with('/')
    {
        *name = paths.here(name.as_ref()).display().to_string();
    }
    // Inside a container, a socket may be mounted at the path that it has on the host. Then nothing
    // exists at the converted path, and this closure keeps the path.
    let below_its_root = |path: &mut PathBuf| {
        let there = paths.here(path);
        if there.exists() {
            *path = there;
        }
    };
    match &mut node.source {
        Source::Folder(folder) => below_its_root(folder),
        Source::Cluster {
            agent_socket,
            kubeconfig,
        } => {
            below_its_root(agent_socket);
            kubeconfig.iter_mut().for_each(below_its_root);
        }
    }
    request
}

/// The files of Multus' cache that cannot be read.
fn damage(config: &NodeConfig) -> impl Iterator<Item = RehearsalFinding> {
    let cache = MultusCache::new(&config.cni_dir);
    let containers = cache.containers().into_iter();
    let damage = containers.flat_map(move |container| {
        let ifname = InterfaceName::first();
        cache.read(&Key { container, ifname }).damage
    });
    damage.map(RehearsalFinding::Cache)
}
