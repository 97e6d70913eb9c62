//! Who would fail with us, and why: every pod of the node is prepared as an ADD would be, by the
//! same code, and nothing runs.

use std::path::PathBuf;
use std::time::Duration;

use super::super::conf::OurConf;
use super::super::request::about_the_node;
use super::super::{HostPaths, SetupError};
use super::FromMultus;
use crate::cluster::{Census, ClusterError, PodName};
use crate::cni::{InterfaceName, RawObject};
use crate::journal::{Key, MultusCache};
use crate::operation::examine::every_network;
use crate::operation::prepare::prepare;
use crate::operation::{Context, Failure, Host};
use crate::plugin::with_host;
use crate::request::{Call, ClusterNetwork, NodeConfig, Request, Source};

/// How long one pod may take: kubelet knows the devices of pods that run.
const PER_POD: Duration = Duration::from_secs(5);
/// How long all networks together may take.
const NETWORKS: Duration = Duration::from_secs(60);

/// What a rehearsal has shown.
#[derive(Debug, Default)]
pub struct Rehearsal {
    /// How many pods were looked at.
    pub pods: usize,
    /// How many networks were.
    pub networks: usize,
    /// The pods that would fail, each with every reason.
    pub failing: Vec<(PodName, Vec<String>)>,
    /// Networks that no pod can be attached to, each with every reason.
    pub unusable: Vec<(String, Vec<String>)>,
    /// What cannot be read of what Multus attached.
    pub damage: Vec<String>,
}

impl Rehearsal {
    /// Everything that was found, a line each, and how much was looked at.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (pod, problems) in &self.failing {
            for problem in problems {
                lines.push(format!("pod {pod} would fail: {problem}"));
            }
        }
        for (network, problems) in &self.unusable {
            for problem in problems {
                lines.push(format!("network {network} cannot be used: {problem}"));
            }
        }
        for damage in &self.damage {
            lines.push(format!(
                "cache of Multus: {damage}; delete its pod while its definitions are in the cluster"
            ));
        }
        lines.push(format!(
            "{} pods and {} networks were looked at, {} pods would fail",
            self.pods,
            self.networks,
            self.failing.len()
        ));
        lines
    }
}

/// Rehearses the ADD of every pod of the node with a configuration that is not installed yet.
///
/// # Errors
/// [`SetupError::NoDryRun`] when nobody tells which pods there are.
pub fn rehearse(
    paths: &HostPaths,
    conf: &OurConf,
    from: &FromMultus,
) -> Result<Rehearsal, SetupError> {
    let impossible = |cause: String| SetupError::NoDryRun { cause };
    let stdin = conf.on_stdin();
    let request = about_the_node(stdin.clone(), &from.cni_path).map_err(impossible)?;
    let request = Request {
        config: seen_from_here(paths, request.config),
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
    rehearsal.map_err(|failure| impossible(failure.to_cni().msg))
}

/// Every reason why this pod's ADD would fail. An annotation that is ignored is one, since Multus
/// refuses the pod, and Jackfield would start it without its networks.
fn of_pod(
    host: &Host<'_>,
    paths: &HostPaths,
    stdin: &RawObject,
    cni_path: &str,
    pod: &PodName,
) -> Vec<String> {
    let request = match add(paths, stdin, cni_path, pod) {
        Ok(request) => request,
        Err(cause) => return vec![cause],
    };
    match prepare(&Context::new(host, &request, PER_POD)) {
        Ok(prepared) => {
            let problems = prepared.ignored.into_iter().chain(prepared.problems);
            problems
                .map(|problem| Failure::Plan(problem).in_full())
                .collect()
        }
        Err(failure) => vec![failure.in_full()],
    }
}

/// The call that the runtime would make.
fn add(
    paths: &HostPaths,
    stdin: &RawObject,
    cni_path: &str,
    pod: &PodName,
) -> Result<Request, String> {
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
    })
    .map_err(|error| error.to_string())?;
    let request = Request::for_people(call, stdin.clone()).map_err(|error| error.to_string())?;
    Ok(Request {
        config: seen_from_here(paths, request.config),
        ..request
    })
}

/// The configuration with paths as this process finds them: in a container the host's directories
/// are elsewhere. Whether the cluster network is ready is no matter of a pod.
fn seen_from_here(paths: &HostPaths, mut node: NodeConfig) -> NodeConfig {
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
    // Not everything that answers is the host's: a socket may be mounted where the host has it.
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

/// What cannot be read of Multus' cache, a line each.
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
