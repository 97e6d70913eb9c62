//! The node configuration: the CNI configuration that the runtime passes on stdin
//! (`docs/configuration.md`).
//!
//! Jackfield reads the configuration as leniently as Multus does. The case of keys does not matter,
//! `null` counts as absent, and an unknown key only causes a warning. An invalid value is an error
//! that names the key, the value and a remedy.

mod error;
mod keys;
mod schema;
mod values;

use std::path::PathBuf;

use serde_json::value::RawValue;

use super::deadlines::Deadlines;
use super::log::{Level, Log, Rotation};
use super::policy::Policy;
use crate::cni::{NetworkName, RawObject, Version};
use crate::npwg::{Dialect, StatusAddresses};

pub use error::{NodeConfigError, ValueError};
pub(super) use keys::Keys;
pub use schema::{ACCEPTED, MULTUS_ONLY, keys};

/// The node configuration with all keys checked. `docs/configuration.md` describes the keys.
#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// The protocol version of the results for the runtime: see [`version`].
    pub version: Version,
    /// `name`: the network's name in the runtime.
    pub name: NetworkName,
    /// `clusterNetwork`, or the first element of `delegates`.
    pub cluster_network: ClusterNetwork,
    /// The other elements of `delegates`: additional networks of every pod, even in the system
    /// namespaces.
    pub further_delegates: Vec<Box<RawValue>>,
    /// `defaultNetworks`: additional networks of every pod, except for pods of the system
    /// namespaces.
    pub default_networks: Vec<String>,
    /// `systemNamespaces`.
    pub system_namespaces: Vec<String>,
    /// The source of pods and NetworkAttachmentDefinitions.
    pub source: Source,
    /// `confDir`: the directory of network configurations.
    pub conf_dir: PathBuf,
    /// `binDir`: the directory in which Jackfield looks for plugins before it looks in `CNI_PATH`.
    pub bin_dir: PathBuf,
    /// `cniDir`: the cache of Multus.
    pub cni_dir: PathBuf,
    /// `multusNamespace`: the default namespace of the definitions in `clusterNetwork`,
    /// `defaultNetworks` and the annotation `v1.multus-cni.io/default-network`.
    pub multus_namespace: String,
    /// `namespaceIsolation`: whether a pod may select only definitions of its own namespace and of
    /// the global namespaces.
    pub namespace_isolation: bool,
    /// `globalNamespaces`: the namespaces whose definitions every pod may select.
    pub global_namespaces: Vec<String>,
    /// `readinessindicatorfile`: the cluster network is ready once this file exists.
    pub readiness_indicator: Option<PathBuf>,
    /// `auxiliaryCNIChainName`: the name of a folder of plugin configurations. The configured
    /// plugins run for every pod. On ADD, they run after the plugins of all the pod's networks.
    pub auxiliary_chain: Option<NetworkName>,
    /// `journalDir`.
    pub journal_dir: PathBuf,
    /// `devInfoDir`.
    pub dev_info_dir: PathBuf,
    /// `sysfsRoot`.
    pub sysfs_root: PathBuf,
    /// `podResourcesSocket`.
    pub pod_resources_socket: PathBuf,
    /// `kubeletCheckpoint`.
    pub kubelet_checkpoint: PathBuf,
    /// `invalidAnnotation`: whether the ADD of a pod with an invalid annotation fails.
    pub fail_invalid_annotation: bool,
    /// `verify`: the strictness for every difference that verification finds, except the
    /// differences that `verifyCluster` covers.
    pub verify: Strictness,
    /// `verifyCluster`: the strictness for differences between the kernel and the result of the
    /// cluster network's plugins. It does not cover values that the pod requested.
    pub verify_cluster: Strictness,
    /// Whether `delegateCheck` is `strict`.
    pub strict_delegate_check: bool,
    /// `undeclared`.
    pub undeclared: Undeclared,
    /// `npwgVersion`.
    pub dialect: Dialect,
    /// `statusAddresses`.
    pub status_addresses: StatusAddresses,
    /// `statusNeedsAgent`: whether STATUS fails if the agent has not answered for a minute.
    pub status_needs_agent: bool,
    /// `dynamicAttachment`: whether a changed annotation changes the networks of a running pod.
    pub dynamic_attachment: bool,
    /// `deadlines`.
    pub deadlines: Deadlines,
    /// `policy`.
    pub policy: Policy,
    /// `logFile`, `logLevel`, `logToStderr`, `logOptions`.
    pub log: Log,
    /// Warnings about ignored keys, one line each.
    pub warnings: Vec<String>,
}

impl NodeConfig {
    /// Whether a changed annotation changes the networks of running pods in this namespace.
    pub fn allows_changes(&self, namespace: &str) -> bool {
        let rule = self.policy.rule(namespace);
        self.dynamic_attachment && !rule.is_some_and(|rule| rule.denies_changes)
    }
}

/// The network of the pod's first interface.
#[derive(Debug, Clone)]
pub enum ClusterNetwork {
    /// `clusterNetwork`: the name of a configuration in `confDir`, the name of a definition, or the
    /// path of a file or directory.
    Named(String),
    /// The first element of `delegates`, which is a configuration.
    Inline(Box<RawValue>),
}

impl ClusterNetwork {
    /// Returns the name that messages use before Jackfield has found the network.
    pub fn label(&self) -> &str {
        match self {
            ClusterNetwork::Named(name) => name,
            ClusterNetwork::Inline(_) => "delegates",
        }
    }
}

/// The source of pods and definitions (NetworkAttachmentDefinitions).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// `manifestDir`: a folder of manifests replaces the cluster.
    Folder(PathBuf),
    /// `agentSocket`, and `kubeconfig` for nodes without an agent.
    Cluster {
        /// The agent's socket.
        agent_socket: PathBuf,
        /// The kubeconfig for nodes without an agent.
        kubeconfig: Option<PathBuf>,
    },
}

/// What happens if verification finds a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// The ADD fails and is rolled back. A CHECK fails.
    Strict,
    /// An ADD creates an event. A CHECK only logs the difference.
    Warn,
    /// The difference is ignored.
    Off,
}

/// How Jackfield passes the requested `ips` and `mac` to the plugins. Has no effect if
/// `npwgVersion` is `1.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undeclared {
    /// As capability arguments. If no plugin declares the capability, the ADD fails (NPWG 1.3
    /// §4.1.2.1.3.2). The cluster network is an exception: its plugins then get the addresses in
    /// `CNI_ARGS`.
    Fail,
    /// In `CNI_ARGS`. A plugin that declares the capability also gets the addresses as capability
    /// arguments. Verification shows whether a plugin applied the addresses.
    Args,
}

impl NodeConfig {
    /// Reads the configuration.
    ///
    /// # Errors
    /// Codes 1, 6 and 7 of CNI 1.1.0 §5 Error. Each error contains a remedy.
    pub fn parse(conf: &RawObject) -> Result<NodeConfig, NodeConfigError> {
        let version = version(conf)?;
        let keys = Keys::of(conf, String::new());
        let config = NodeConfig::read(version, &keys)?;
        Ok(NodeConfig {
            warnings: schema::warnings(keys),
            ..config
        })
    }

    /// Reads all keys except `cniVersion` and `cniVersions`.
    fn read(version: Version, keys: &Keys<'_>) -> Result<NodeConfig, NodeConfigError> {
        let name = keys.name("name")?.ok_or(NodeConfigError::Missing {
            key: "name",
            remedy: "set it to the network's name in the runtime, such as \"jackfield\"",
        })?;
        let (cluster_network, further_delegates) = keys.cluster_network()?;
        Ok(NodeConfig {
            version,
            name,
            cluster_network,
            further_delegates,
            default_networks: keys.default_networks()?,
            system_namespaces: keys.system_namespaces()?,
            source: keys.source()?,
            conf_dir: keys.path("confDir", "/etc/cni/multus/net.d")?,
            bin_dir: keys.path("binDir", "/opt/cni/bin")?,
            cni_dir: keys.path("cniDir", "/var/lib/cni/multus")?,
            multus_namespace: keys.multus_namespace()?,
            namespace_isolation: keys.read("namespaceIsolation")?.unwrap_or(true),
            global_namespaces: keys.global_namespaces()?,
            readiness_indicator: keys.optional_path("readinessindicatorfile")?,
            auxiliary_chain: keys.name("auxiliaryCNIChainName")?,
            journal_dir: keys.path("journalDir", "/var/lib/jackfield")?,
            dev_info_dir: keys.path("devInfoDir", "/var/run/k8s.cni.cncf.io/devinfo")?,
            sysfs_root: keys.path("sysfsRoot", "/sys")?,
            pod_resources_socket: keys.path(
                "podResourcesSocket",
                "/var/lib/kubelet/pod-resources/kubelet.sock",
            )?,
            kubelet_checkpoint: keys.path(
                "kubeletCheckpoint",
                "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
            )?,
            fail_invalid_annotation: keys.choice(
                "invalidAnnotation",
                &INVALID_ANNOTATION,
                false,
            )?,
            verify: keys.choice("verify", &STRICTNESS, Strictness::Strict)?,
            verify_cluster: keys.choice("verifyCluster", &STRICTNESS, Strictness::Warn)?,
            strict_delegate_check: keys.choice("delegateCheck", &DELEGATE_CHECK, false)?,
            undeclared: keys.choice("undeclared", &UNDECLARED, Undeclared::Fail)?,
            dialect: keys.choice("npwgVersion", &DIALECTS, Dialect::V1_3)?,
            status_addresses: keys.choice(
                "statusAddresses",
                &ADDRESSES,
                StatusAddresses::Address,
            )?,
            status_needs_agent: keys.read("statusNeedsAgent")?.unwrap_or(false),
            dynamic_attachment: keys.read("dynamicAttachment")?.unwrap_or(true),
            deadlines: keys.inside("deadlines", Deadlines::read)?,
            policy: keys.inside("policy", Policy::read)?,
            log: Log {
                file: keys.optional_path("logFile")?,
                level: keys.choice("logLevel", &Level::NAMES, Level::Error)?,
                to_stderr: keys.read("logToStderr")?.unwrap_or(true),
                rotation: keys.inside("logOptions", Rotation::read)?,
            },
            warnings: Vec::new(),
        })
    }
}

const INVALID_ANNOTATION: [(&str, bool); 2] = [("ignore", false), ("fail", true)];
const DELEGATE_CHECK: [(&str, bool); 2] = [("warn", false), ("strict", true)];
const UNDECLARED: [(&str, Undeclared); 2] =
    [("fail", Undeclared::Fail), ("args", Undeclared::Args)];
const DIALECTS: [(&str, Dialect); 2] = [("1.0", Dialect::V1_0), ("1.3", Dialect::V1_3)];
const ADDRESSES: [(&str, StatusAddresses); 2] = [
    ("address", StatusAddresses::Address),
    ("prefix", StatusAddresses::Prefix),
];
const STRICTNESS: [(&str, Strictness); 3] = [
    ("strict", Strictness::Strict),
    ("warn", Strictness::Warn),
    ("off", Strictness::Off),
];

/// Returns the protocol version in which Jackfield writes results for the runtime: `cniVersion`
/// (CNI 1.1.0 §5). If `cniVersion` is missing or not supported, returns the highest supported
/// version in `cniVersions`. A configuration without any version has version 0.1.0.
///
/// # Errors
/// Code 6 if `cniVersion` is not a string, 7 if `cniVersions` is not a list of strings, 1 if the
/// configuration names versions and Jackfield supports none of them.
pub fn version(conf: &RawObject) -> Result<Version, NodeConfigError> {
    let (supplied, highest) = versions(conf)?;
    Ok(supplied.unwrap_or(highest))
}

/// Returns two versions. The first is `cniVersion`, or `None` if it is missing or not supported.
/// The second is the highest supported version in `cniVersion` and `cniVersions`.
///
/// # Errors
/// As [`version`].
pub(super) fn versions(conf: &RawObject) -> Result<(Option<Version>, Version), NodeConfigError> {
    let version = conf.read::<String>("cniVersion");
    let version = version.map_err(NodeConfigError::VersionType)?;
    let versions = conf.read::<Vec<String>>("cniVersions");
    let versions = versions.map_err(NodeConfigError::VersionList)?;
    let supplied = version.as_deref().and_then(|version| version.parse().ok());
    let highest = Version::negotiate(version.as_deref(), &versions.unwrap_or_default());
    Ok((supplied, highest.map_err(NodeConfigError::Version)?))
}
