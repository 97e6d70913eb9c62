//! The node configuration: the CNI conf that the runtime hands over on stdin (SURFACES §1).
//!
//! It is lenient where Multus is, since Multus' configurations move over by a change of `type`:
//! keys in any case, `null` for absent, unknown keys warned about and ignored. A wrong value is
//! an error that names key, value and remedy.

use std::fmt;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::deadlines::{self, DeadlineError, Deadlines};
use super::policy::{self, Policy};
use crate::cni::{self, NetworkConfig, NetworkName, RawObject, Version};
use crate::npwg::{Dialect, StatusAddresses};

/// The most `defaultNetworks` that a configuration may name.
const MAX_DEFAULT_NETWORKS: usize = 32;

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
    /// `undeclared`.
    pub undeclared: Undeclared,
    /// `npwgVersion`.
    pub dialect: Dialect,
    /// `statusAddresses`.
    pub status_addresses: StatusAddresses,
    /// `deadlines`.
    pub deadlines: Deadlines,
    /// `policy`.
    pub policy: Policy,
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
    /// They go as `args.cni` and CNI_ARGS; verification decides.
    Args,
}

/// Keys of the CNI protocol and of Multus that are taken without a word.
pub const ACCEPTED: [&str; 12] = [
    "cniVersion",
    "cniVersions",
    "name",
    "type",
    "capabilities",
    "runtimeConfig",
    "prevResult",
    "disableCheck",
    "disableGC",
    "args",
    "dns",
    "ipam",
];
/// Keys that Multus has for its own process; they have no effect here.
pub const MULTUS_ONLY: [&str; 6] = [
    "logFile",
    "logLevel",
    "logToStderr",
    "logOptions",
    "retryDeleteOnError",
    "socketDir",
];

impl NodeConfig {
    /// Reads the configuration.
    ///
    /// # Errors
    /// Codes 1, 6 and 7 of CNI 1.1.0 §5 Error; each error names key, value and remedy.
    pub fn parse(conf: &RawObject) -> Result<NodeConfig, ConfigError> {
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
            system_namespaces: keys
                .list("systemNamespaces")?
                .unwrap_or_else(|| vec!["kube-system".into()]),
            source: keys.source()?,
            conf_dir: keys.path("confDir", "/etc/cni/multus/net.d")?,
            bin_dir: keys.path("binDir", "/opt/cni/bin")?,
            cni_dir: keys.path("cniDir", "/var/lib/cni/multus")?,
            multus_namespace: keys
                .text("multusNamespace")?
                .unwrap_or_else(|| "kube-system".into()),
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
            deadlines: keys.deadlines()?,
            policy: keys
                .object::<policy::Wire>("policy")?
                .unwrap_or_default()
                .into(),
            warnings: keys.warnings(),
        })
    }
}

const STRICTNESS: [(&str, Strictness); 3] = [
    ("strict", Strictness::Strict),
    ("warn", Strictness::Warn),
    ("off", Strictness::Off),
];

/// The version that the runtime and we speak.
///
/// # Errors
/// Code 6 when it is no string, code 1 when no version is ours.
pub fn version(conf: &RawObject) -> Result<Version, ConfigError> {
    let not_text = |error: cni::JsonError| ConfigError::VersionType(error.to_string());
    let version: Option<String> = conf.read("cniVersion").map_err(not_text)?;
    let versions: Option<Vec<String>> = conf.read("cniVersions").map_err(not_text)?;
    Version::negotiate(version.as_deref(), &versions.unwrap_or_default())
        .map_err(ConfigError::Version)
}

/// The keys with their values still as they are written.
struct Keys<'a> {
    conf: &'a RawObject,
}

impl Keys<'_> {
    fn read<T: DeserializeOwned>(&self, key: &'static str) -> Result<Option<T>, ConfigError> {
        self.conf.read(key).map_err(|cause| {
            let value = self
                .conf
                .get(key)
                .map_or_else(String::new, |raw| excerpt(raw.get()));
            ConfigError::Value {
                key,
                value,
                cause: format!("{cause}; correct its type"),
            }
        })
    }

    /// An object: what derives its reading takes a list for one, too.
    fn object<T: DeserializeOwned>(&self, key: &'static str) -> Result<Option<T>, ConfigError> {
        match self.conf.get(key).map(RawValue::get) {
            Some(other) if !other.starts_with('{') => {
                Err(wrong(key, other, &"expected an object; correct its type"))
            }
            _ => self.read(key),
        }
    }

    /// A string; an empty one is as good as none, as Go has it.
    fn text(&self, key: &'static str) -> Result<Option<String>, ConfigError> {
        Ok(self.read::<String>(key)?.filter(|text| !text.is_empty()))
    }

    fn required(&self, key: &'static str, remedy: &'static str) -> Result<String, ConfigError> {
        self.text(key)?.ok_or(ConfigError::Missing { key, remedy })
    }

    fn flag(&self, key: &'static str) -> Result<Option<bool>, ConfigError> {
        self.read(key)
    }

    fn list(&self, key: &'static str) -> Result<Option<Vec<String>>, ConfigError> {
        self.read(key)
    }

    fn optional_path(&self, key: &'static str) -> Result<Option<PathBuf>, ConfigError> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        if !text.starts_with('/') || text.contains('\0') {
            return Err(wrong(key, &text, &"write an absolute path"));
        }
        Ok(Some(PathBuf::from(text)))
    }

    fn path(&self, key: &'static str, default: &str) -> Result<PathBuf, ConfigError> {
        Ok(self
            .optional_path(key)?
            .unwrap_or_else(|| PathBuf::from(default)))
    }

    fn choice<T: Copy>(
        &self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, ConfigError> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        match choices.iter().find(|(name, _)| *name == text) {
            Some((_, choice)) => Ok(Some(*choice)),
            None => {
                let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
                Err(wrong(
                    key,
                    &text,
                    &format_args!("use one of {}", names.join(", ")),
                ))
            }
        }
    }

    /// The cluster network, and what `delegates` has besides it.
    fn cluster_network(&self) -> Result<(ClusterNetwork, Vec<Box<RawValue>>), ConfigError> {
        let named = self.text("clusterNetwork")?;
        let delegates: Option<Vec<Box<RawValue>>> = self.read("delegates")?;
        let mut delegates = delegates.unwrap_or_default();
        for (index, delegate) in delegates.iter().enumerate() {
            NetworkConfig::parse(delegate.get().as_bytes()).map_err(|cause| {
                let cause = format!("delegates[{index}]: {cause}; correct it");
                wrong("delegates", delegate.get(), &cause)
            })?;
        }
        match named {
            Some(name) if delegates.is_empty() => Ok((ClusterNetwork::Named(name), delegates)),
            Some(name) => Err(wrong(
                "clusterNetwork",
                &name,
                &"delegates is there as well; keep one of the two",
            )),
            None if delegates.is_empty() => Err(ConfigError::Missing {
                key: "clusterNetwork",
                remedy: "name the cluster network's configuration, or put it first in delegates",
            }),
            None => {
                let first = delegates.remove(0);
                Ok((ClusterNetwork::Inline(first), delegates))
            }
        }
    }

    fn auxiliary_chain(&self) -> Result<Option<NetworkName>, ConfigError> {
        const KEY: &str = "auxiliaryCNIChainName";
        let name = self.text(KEY)?;
        name.map(|name| name.parse().map_err(|cause| wrong(KEY, &name, &cause)))
            .transpose()
    }

    fn default_networks(&self) -> Result<Vec<String>, ConfigError> {
        let networks = self.list("defaultNetworks")?.unwrap_or_default();
        if networks.len() > MAX_DEFAULT_NETWORKS {
            let count = networks.len().to_string();
            return Err(wrong(
                "defaultNetworks",
                &count,
                &format_args!("name at most {MAX_DEFAULT_NETWORKS}"),
            ));
        }
        Ok(networks)
    }

    fn global_namespaces(&self) -> Result<Vec<String>, ConfigError> {
        let text = self
            .text("globalNamespaces")?
            .unwrap_or_else(|| "default".into());
        Ok(text
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect())
    }

    fn source(&self) -> Result<Source, ConfigError> {
        let folder = self.optional_path("manifestDir")?;
        let socket = self.optional_path("agentSocket")?;
        let kubeconfig = self.optional_path("kubeconfig")?;
        match folder {
            None => Ok(Source::Cluster {
                agent_socket: socket.unwrap_or_else(|| PathBuf::from("/run/jackfield/agent.sock")),
                kubeconfig,
            }),
            Some(folder) if socket.is_none() && kubeconfig.is_none() => Ok(Source::Folder(folder)),
            Some(folder) => Err(wrong(
                "manifestDir",
                &folder.display().to_string(),
                &"agentSocket or kubeconfig is there as well; a folder excludes both",
            )),
        }
    }

    fn deadlines(&self) -> Result<Deadlines, ConfigError> {
        let wire = self
            .object::<deadlines::Wire>("deadlines")?
            .unwrap_or_default();
        Deadlines::try_from(wire).map_err(ConfigError::Deadline)
    }

    fn warnings(&self) -> Vec<String> {
        self.conf
            .iter()
            .filter(|(key, _)| !is_known(key))
            .map(|(key, _)| {
                if MULTUS_ONLY
                    .iter()
                    .any(|known| known.eq_ignore_ascii_case(key))
                {
                    format!("key {key:?} of the node configuration has no effect here")
                } else {
                    format!("unknown key {key:?} in the node configuration; it is ignored")
                }
            })
            .collect()
    }
}

/// The keys that [`NodeConfig::parse`] reads, for the documentation and for the warning.
pub const KEYS: [&str; 31] = [
    "clusterNetwork",
    "delegates",
    "defaultNetworks",
    "systemNamespaces",
    "agentSocket",
    "kubeconfig",
    "manifestDir",
    "confDir",
    "binDir",
    "cniDir",
    "multusNamespace",
    "namespaceIsolation",
    "globalNamespaces",
    "readinessindicatorfile",
    "auxiliaryCNIChainName",
    "journalDir",
    "devInfoDir",
    "sysfsRoot",
    "podResourcesSocket",
    "kubeletCheckpoint",
    "invalidAnnotation",
    "verify",
    "verifyCluster",
    "undeclared",
    "npwgVersion",
    "statusAddresses",
    "deadlines",
    "policy",
    "cniVersion",
    "cniVersions",
    "name",
];

fn is_known(key: &str) -> bool {
    key.starts_with("cni.dev/")
        || KEYS
            .iter()
            .chain(&ACCEPTED)
            .any(|known| known.eq_ignore_ascii_case(key))
}

fn wrong(key: &'static str, value: &str, cause: &dyn fmt::Display) -> ConfigError {
    ConfigError::Value {
        key,
        value: excerpt(value),
        cause: cause.to_string(),
    }
}

/// A value short enough for one line.
fn excerpt(value: &str) -> String {
    let mut short: String = value.chars().filter(|c| !c.is_control()).take(80).collect();
    if short.len() < value.len() {
        short.push('…');
    }
    short
}

/// What is wrong with the node configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// No version that we speak.
    #[error(transparent)]
    Version(cni::VersionError),
    /// `cniVersion` or `cniVersions` is no text.
    #[error("{0}; write versions as strings")]
    VersionType(String),
    /// A key is missing.
    #[error("key {key} is missing in the node configuration; {remedy}")]
    Missing {
        /// The key.
        key: &'static str,
        /// What to write.
        remedy: &'static str,
    },
    /// A key has a wrong value.
    #[error("key {key} of the node configuration is {value}: {cause}")]
    Value {
        /// The key.
        key: &'static str,
        /// Its value, shortened.
        value: String,
        /// What is wrong, and the remedy.
        cause: String,
    },
    /// A deadline is no duration.
    #[error("key deadlines of the node configuration: {0}")]
    Deadline(#[source] DeadlineError),
}

impl ConfigError {
    /// The CNI code.
    pub fn code(&self) -> u32 {
        match self {
            ConfigError::Version(_) => cni::code::INCOMPATIBLE_VERSION,
            ConfigError::VersionType(_) => cni::code::DECODING_FAILURE,
            _ => cni::code::INVALID_NETWORK_CONFIG,
        }
    }
}
