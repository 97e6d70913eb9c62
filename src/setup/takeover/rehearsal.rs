//! The rehearsal: prepares the ADD of every pod of the node, by the code of the ADD, and runs nothing.

use std::path::PathBuf;
use std::time::Duration;

use super::super::conf::OurConf;
use super::super::request::about_the_node;
use super::super::{HostPaths, SetupError};
use super::FromMultus;
use crate::cluster::{Census, ClusterError, PodName};
use crate::cni::{InterfaceName, RawObject};
use crate::diagnostic::Problem;
use crate::journal::{Key, MultusCache};
use crate::operation::examine::every_network;
use crate::operation::prepare::prepare;
use crate::operation::{Context, Failure, Host};
use crate::plugin::with_host;
use crate::request::{Call, ClusterNetwork, NodeConfig, Request, RequestError, Source};

/// How long one pod may take: kubelet knows the devices of pods that run.
const PER_POD: Duration = Duration::from_secs(5);
/// How long all networks together may take.
const NETWORKS: Duration = Duration::from_secs(60);

/// The outcome of a rehearsal.
#[derive(Debug, Default)]
pub struct Rehearsal {
    /// How many pods it prepared.
    pub pods: usize,
    /// How many networks it examined.
    pub networks: usize,
    /// The pods that would fail, each with every reason.
    pub failing: Vec<(PodName, Vec<Failure>)>,
    /// Networks that no pod can be attached to, each with every reason.
    pub unusable: Vec<(String, Vec<String>)>,
    /// What cannot be read of Multus' cache.
    pub damage: Vec<String>,
}

/// A finding of a rehearsal.
#[derive(Debug)]
pub enum RehearsalFinding<'a> {
    /// A pod would fail.
    Pod(&'a PodName, &'a Failure),
    /// No pod can be attached to a network.
    Network(&'a str, &'a str),
    /// A file of Multus' cache cannot be read.
    Cache(&'a str),
    /// How much was rehearsed.
    Total {
        /// The number of pods.
        pods: usize,
        /// The number of networks.
        networks: usize,
        /// The number of pods that would fail.
        failing: usize,
    },
}

impl Problem for RehearsalFinding<'_> {
    fn words(&self) -> String {
        match self {
            RehearsalFinding::Pod(pod, failure) => {
                format!("pod {pod} would fail: {}", failure.in_full())
            }
            RehearsalFinding::Network(network, problem) => {
                format!("network {network} cannot be used: {problem}")
            }
            RehearsalFinding::Cache(damage) => format!("cache of Multus: {damage}"),
            RehearsalFinding::Total {
                pods,
                networks,
                failing,
            } => format!(
                "{pods} pods and {networks} networks were looked at, {failing} pods would fail"
            ),
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            RehearsalFinding::Cache(_) => {
                Some("delete its pod while its definitions are in the cluster".to_owned())
            }
            _ => None,
        }
    }
}

impl Rehearsal {
    /// All findings, and the total.
    pub fn findings(&self) -> Vec<RehearsalFinding<'_>> {
        let failing = self.failing.iter().flat_map(|(pod, failures)| {
            let failures = failures.iter();
            failures.map(move |failure| RehearsalFinding::Pod(pod, failure))
        });
        let unusable = self.unusable.iter().flat_map(|(network, problems)| {
            let problems = problems.iter();
            problems.map(move |problem| RehearsalFinding::Network(network, problem))
        });
        let damage = self.damage.iter();
        let damage = damage.map(|damage| RehearsalFinding::Cache(damage));
        let total = RehearsalFinding::Total {
            pods: self.pods,
            networks: self.networks,
            failing: self.failing.len(),
        };
        failing
            .chain(unusable)
            .chain(damage)
            .chain([total])
            .collect()
    }
}

/// Rehearses the ADD of every pod of the node with a configuration that is not installed yet.
///
/// # Errors
/// [`SetupError::NoRehearsal`] when the pods of the node are unknown.
pub fn rehearse(
    paths: &HostPaths,
    conf: &OurConf,
    from: &FromMultus,
) -> Result<Rehearsal, SetupError> {
    let impossible = |failure: Failure| SetupError::NoRehearsal {
        cause: Box::new(failure),
    };
    let stdin = conf.on_stdin();
    let request = about_the_node(stdin.clone(), &from.cni_path);
    let request = request.map_err(|cause| impossible(cause.into()))?;
    let request = Request {
        config: with_paths_of_this_process(paths, request.config),
        ..request
    };
    let rehearsal = with_host(&request.config, |host| {
        let context = Context::new(host, &request, NETWORKS);
        let census = host.cluster.census(&from.node, !from.pods_alone)?;
        if census.version.is_some() && !census.listed {
            return Err(ClusterError::NotListed.into());
        }
        let mut rehearsal = Rehearsal {
            pods: census.pods.len(),
            damage: damage(&request.config),
            ..Rehearsal::default()
        };
        let networks = match from.pods_alone {
            true => Vec::new(),
            false => every_network(&context, &census.definitions)?,
        };
        rehearsal.networks = networks.len();
        for network in networks {
            if !network.problems.is_empty() {
                rehearsal.unusable.push((network.label, network.problems));
            }
        }
        let Census { pods, .. } = census;
        for pod in pods {
            let problems = of_pod(host, paths, &stdin, &from.cni_path, &pod);
            if !problems.is_empty() {
                rehearsal.failing.push((pod, problems));
            }
        }
        Ok(rehearsal)
    });
    rehearsal.map_err(impossible)
}

/// Every reason why this pod's ADD would fail. An ignored annotation is one: Multus refuses such a
/// pod, and Jackfield would start it without its networks.
fn of_pod(
    host: &Host<'_>,
    paths: &HostPaths,
    stdin: &RawObject,
    cni_path: &str,
    pod: &PodName,
) -> Vec<Failure> {
    let request = match add(paths, stdin, cni_path, pod) {
        Ok(request) => request,
        Err(error) => return vec![error.into()],
    };
    match prepare(&Context::new(host, &request, PER_POD)) {
        Ok(prepared) => {
            let problems = prepared.ignored.into_iter().chain(prepared.problems);
            problems.map(Failure::Plan).collect()
        }
        Err(failure) => vec![failure],
    }
}

/// The call that the runtime would make.
fn add(
    paths: &HostPaths,
    stdin: &RawObject,
    cni_path: &str,
    pod: &PodName,
) -> Result<Request, RequestError> {
    let PodName {
        namespace,
        name,
        uid,
    } = pod;
    let mut args = format!("IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name}");
    if let Some(uid) = uid {
        args += &format!(";K8S_POD_UID={uid}");
    }
    let call = Call::read(|wanted| {
        Some(match wanted {
            "CNI_COMMAND" => "ADD".to_owned(),
            "CNI_CONTAINERID" => format!("{namespace}-{name}"),
            "CNI_NETNS" => "/proc/self/ns/net".to_owned(),
            "CNI_IFNAME" => InterfaceName::first().to_string(),
            "CNI_PATH" => cni_path.to_owned(),
            "CNI_ARGS" => args.clone(),
            _ => return None,
        })
    })?;
    let request = Request::for_people(call, stdin.clone())?;
    Ok(Request {
        config: with_paths_of_this_process(paths, request.config),
        ..request
    })
}

/// The configuration with paths as this process finds them: in a container the host's directories
/// are elsewhere. Drops the readiness indicator, which is not about a pod.
fn with_paths_of_this_process(paths: &HostPaths, mut node: NodeConfig) -> NodeConfig {
    node.readiness_indicator = None;
    if paths.is_host() {
        return node;
    }
    for path in [&mut node.bin_dir, &mut node.conf_dir, &mut node.cni_dir] {
        *path = paths.here(path);
    }
    if let ClusterNetwork::Named(name) = &mut node.cluster_network
        && name.starts_with('/')
    {
        *name = paths.here(name.as_ref()).display().to_string();
    }
    // A socket may be mounted at the host's own path.
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
    node
}

/// What cannot be read of Multus' cache, one line per file.
fn damage(config: &NodeConfig) -> Vec<String> {
    let cache = MultusCache::new(&config.cni_dir);
    let containers = cache.containers().into_iter();
    containers
        .flat_map(|container| {
            let ifname = InterfaceName::first();
            cache.read(&Key { container, ifname }).damage
        })
        .collect()
}
