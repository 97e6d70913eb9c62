//! The node configuration: the CNI conf that the runtime hands over on stdin (`docs/configuration.md`).
//!
//! It is lenient where Multus is, since Multus' configurations move over by a change of `type`:
//! keys in any case, `null` for absent, unknown keys warned about and ignored. A wrong value is
//! an error that names key, value and remedy.

mod error;
mod keys;
mod known;
mod values;

use std::path::PathBuf;

use serde_json::value::RawValue;

use super::deadlines::Deadlines;
use super::log::Log;
use super::policy::Policy;
use crate::cni::{self, NetworkName, RawObject, Version};
use crate::npwg::{Dialect, StatusAddresses};

pub use error::NodeConfigError;
pub use known::{ACCEPTED, KEYS, MULTUS_ONLY};

use keys::{Keys, wrong};

/// The node configuration, every key checked. Keys without a note mean what they mean in Multus.
#[derive(Debug)]
pub struct NodeConfig {
    /// The protocol version spoken with the runtime: the highest of `cniVersion`, `cniVersions`.
    pub version: Version,
    /// `name`: the network's name as the runtime knows it.
    pub name: NetworkName,
    /// `clusterNetwork` or the first of `delegates`.
    pub cluster_network: ClusterNetwork,
    /// What follows the first of `delegates`: every pod gets these too, also those of the system
    /// namespaces.
    pub further_delegates: Vec<Box<RawValue>>,
    /// `defaultNetworks`: what every pod gets besides, but pods of the system namespaces.
    pub default_networks: Vec<String>,
    /// `systemNamespaces`.
    pub system_namespaces: Vec<String>,
    /// Where definitions and pods come from.
    pub source: Source,
    /// `confDir`: network configurations on disk.
    pub conf_dir: PathBuf,
    /// `binDir`: searched before `CNI_PATH`.
    pub bin_dir: PathBuf,
    /// `cniDir`: Multus' cache, read only.
    pub cni_dir: PathBuf,
    /// `multusNamespace`: where a bare name in `clusterNetwork` or `defaultNetworks` is looked up.
    pub multus_namespace: String,
    /// `namespaceIsolation`: a pod may name definitions of its own and the global namespaces only.
    pub namespace_isolation: bool,
    /// `globalNamespaces`: whose definitions everyone may name.
    pub global_namespaces: Vec<String>,
    /// `readinessindicatorfile`: the cluster network is ready once it exists.
    pub readiness_indicator: Option<PathBuf>,
    /// `auxiliaryCNIChainName`: plugins that run for every pod as a chain of their own, read from
    /// the sub-directory of this name.
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
    /// `invalidAnnotation`: `true` for `fail`.
    pub fail_invalid_annotation: bool,
    /// `verify`: what was requested, and the device.
    pub verify: Strictness,
    /// `verifyCluster`: what the cluster network's plugins merely answered.
    pub verify_cluster: Strictness,
    /// `delegateCheck`: `true` for `strict`.
    pub strict_delegate_check: bool,
    /// `undeclared`.
    pub undeclared: Undeclared,
    /// `npwgVersion`.
    pub dialect: Dialect,
    /// `statusAddresses`.
    pub status_addresses: StatusAddresses,
    /// `statusNeedsAgent`: the node is not ready a minute after the agent went away.
    pub status_needs_agent: bool,
    /// `deadlines`.
    pub deadlines: Deadlines,
    /// `policy`.
    pub policy: Policy,
    /// `logFile`, `logLevel`, `logToStderr`, `logOptions`.
    pub log: Log,
    /// What was ignored, a line each.
    pub warnings: Vec<String>,
}

/// What the pod's first interface is attached to.
#[derive(Debug, Clone)]
pub enum ClusterNetwork {
    /// `clusterNetwork`: a definition, the name of a file's configuration, a directory, a file.
    Named(String),
    /// The first of `delegates`: the configuration itself.
    Inline(Box<RawValue>),
}

impl ClusterNetwork {
    /// What messages call it before it is found.
    pub fn label(&self) -> &str {
        match self {
            ClusterNetwork::Named(name) => name,
            ClusterNetwork::Inline(_) => "delegates",
        }
    }
}

/// Where pods and definitions are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// `manifestDir`: a folder is the cluster.
    Folder(PathBuf),
    /// `agentSocket`, and `kubeconfig` where no agent is there.
    Cluster {
        /// The agent's socket.
        agent_socket: PathBuf,
        /// The API server without an agent.
        kubeconfig: Option<PathBuf>,
    },
}

/// What a finding of the verification does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// It fails and unwinds the ADD.
    Strict,
    /// It becomes an event.
    Warn,
    /// Nothing is verified.
    Off,
}

/// What becomes of `ips` and `mac` that no plugin declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undeclared {
    /// The attachment fails (NPWG 1.3 §4.1.2.1.3.2).
    Fail,
    /// They go in CNI_ARGS, beside a capability too; verification decides.
    Args,
}

impl NodeConfig {
    /// Reads the configuration.
    ///
    /// # Errors
    /// Codes 1, 6 and 7 of CNI 1.1.0 §5 Error; each error names key, value and remedy.
    pub fn parse(conf: &RawObject) -> Result<NodeConfig, NodeConfigError> {
        let version = version(conf)?;
        let keys = Keys { conf };
        let name: String = keys.required(
            "name",
            "name the network as the file in the CNI directory does",
        )?;
        let name = name.parse().map_err(|cause| wrong("name", &name, &cause))?;
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
            namespace_isolation: keys.flag("namespaceIsolation")?.unwrap_or(true),
            global_namespaces: keys.global_namespaces()?,
            readiness_indicator: keys.optional_path("readinessindicatorfile")?,
            auxiliary_chain: keys.auxiliary_chain()?,
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
            fail_invalid_annotation: keys
                .choice("invalidAnnotation", &[("ignore", false), ("fail", true)])?
                .unwrap_or(false),
            verify: keys
                .choice("verify", &STRICTNESS)?
                .unwrap_or(Strictness::Strict),
            verify_cluster: keys
                .choice("verifyCluster", &STRICTNESS)?
                .unwrap_or(Strictness::Warn),
            strict_delegate_check: keys
                .choice("delegateCheck", &[("warn", false), ("strict", true)])?
                .unwrap_or(false),
            undeclared: keys
                .choice(
                    "undeclared",
                    &[("fail", Undeclared::Fail), ("args", Undeclared::Args)],
                )?
                .unwrap_or(Undeclared::Fail),
            dialect: keys
                .choice(
                    "npwgVersion",
                    &[("1.0", Dialect::V1_0), ("1.3", Dialect::V1_3)],
                )?
                .unwrap_or(Dialect::V1_3),
            status_addresses: keys
                .choice(
                    "statusAddresses",
                    &[
                        ("address", StatusAddresses::Address),
                        ("prefix", StatusAddresses::Prefix),
                    ],
                )?
                .unwrap_or(StatusAddresses::Address),
            status_needs_agent: keys.flag("statusNeedsAgent")?.unwrap_or(false),
            deadlines: keys.deadlines()?,
            policy: keys.policy()?,
            log: keys.log()?,
            warnings: keys.warnings(),
        })
    }
}

const STRICTNESS: [(&str, Strictness); 3] = [
    ("strict", Strictness::Strict),
    ("warn", Strictness::Warn),
    ("off", Strictness::Off),
];

/// The version that the runtime and we speak: results are in the one that it supplied (CNI 1.1.0 §5).
/// `cniVersions` of a configuration is the runtime's to choose from; where it has not, the highest.
///
/// # Errors
/// Code 6 when it is no string, 7 when `cniVersions` is no list of strings, 1 when no version is
/// ours.
pub fn version(conf: &RawObject) -> Result<Version, NodeConfigError> {
    let (supplied, highest) = versions(conf)?;
    Ok(supplied.unwrap_or(highest))
}

/// The highest version that the configuration may be spoken in.
///
/// # Errors
/// As [`version`].
pub(super) fn highest_version(conf: &RawObject) -> Result<Version, NodeConfigError> {
    Ok(versions(conf)?.1)
}

fn versions(conf: &RawObject) -> Result<(Option<Version>, Version), NodeConfigError> {
    let not_text = |error: cni::JsonError| NodeConfigError::VersionType(error.to_string());
    let version: Option<String> = conf.read("cniVersion").map_err(not_text)?;
    let versions: Option<Vec<String>> = conf
        .read("cniVersions")
        .map_err(|error| NodeConfigError::VersionList(error.to_string()))?;
    let supplied = version.as_deref().and_then(|version| version.parse().ok());
    let highest = Version::negotiate(version.as_deref(), &versions.unwrap_or_default());
    Ok((supplied, highest.map_err(NodeConfigError::Version)?))
}
