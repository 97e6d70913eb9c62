//! Everything that can be wrong with a plan, as data.

use std::path::PathBuf;

use super::restrictions::{LEVELS, LISTS};
use super::{MAX_CAPABILITIES, MAX_CONFIGURATIONS};
use crate::allocation::AssignError;
use crate::cluster::NetworkError;
use crate::cni::{InterfaceName, JsonError, NetworkConfigError, NetworkName, PluginType, code};
use crate::diagnostic::SharedError;
use crate::npwg::selection::MAX_IPS;
use crate::npwg::{ObjectRef, SelectionError};
use crate::request::RuleName;

/// A reason to attach nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The annotation is invalid.
    #[error("annotation {key}: {error}")]
    Annotation {
        /// The annotation's name.
        key: &'static str,
        /// What is wrong with it.
        #[source]
        error: SelectionError,
    },
    /// Two networks of the pod have the same interface name.
    #[error(
        "interface name {ifname} is already used by network {network}; choose another in the pod's annotation"
    )]
    InterfaceUsed {
        /// The interface name.
        ifname: InterfaceName,
        /// The label of the first network with this name.
        network: String,
    },
    /// The network's interface name already exists in the pod's network namespace.
    #[error(
        "interface name {0} already exists in the pod's network namespace; choose another in the pod's annotation"
    )]
    InterfaceExists(InterfaceName),
    /// One network has both `ips` and `ipam-claim-reference`. Contains the name of the claim.
    #[error("ips and ipam-claim-reference {0} exclude each other; keep one")]
    TwoAddressSources(String),
    /// Two interfaces of the pod request the same MAC or GUID on one layer-2 network. Contains the
    /// name of the first interface.
    #[error(
        "the MAC or GUID is already used by interface {0} of the pod on this layer-2 network; \
         request another"
    )]
    HardwareAddressUsed(InterfaceName),
    /// The network's configuration cannot be used.
    #[error(transparent)]
    Configuration(#[from] ConfigurationProblem),
    /// The pod requests something that needs a capability, for example an IP address. No plugin of
    /// the chain declares this capability.
    #[error(
        "the pod requests {}, but no plugin of the chain ({}) declares the capability \
         {capability}; add \"capabilities\": {{\"{capability}\": true}} to the definition or \
         drop the request",
        annotation_key(capability), .plugins.iter().map(PluginType::as_str).collect::<Vec<_>>().join(", ")
    )]
    Undeclared {
        /// The capability.
        capability: String,
        /// The types of the chain's plugins.
        plugins: Vec<PluginType>,
    },
    /// The call's deadline passed before the plan was complete and checked.
    #[error(
        "the plan is not ready by the deadline; select fewer networks, make their definitions shorter, or raise deadlines.add"
    )]
    NoTime,
    /// Jackfield could not assign a device to the network.
    #[error(transparent)]
    Device(#[from] AssignError),
    /// `devInfoDir` is not UTF-8.
    #[error("devInfoDir {} is not UTF-8; choose another", .0.display())]
    DeviceInfoDir(PathBuf),
    /// `namespaceIsolation` or a policy refuses the network.
    #[error(transparent)]
    Restricted(#[from] Restriction),
    /// A check after planning found a missing program or an invalid configuration.
    #[error(transparent)]
    Network(SharedError),
    /// A device or an interface of the host cannot be used, or the name of a device-info file would
    /// be invalid.
    #[error(transparent)]
    UnusableDevice(SharedError),
    /// The device-info file contradicts the device or cannot be trusted.
    #[error(transparent)]
    DeviceInfo(SharedError),
    /// Another sandbox on the layer-2 network has the MAC or GUID that the pod requests.
    #[error(transparent)]
    AddressUsed(SharedError),
}

/// Returns the key with which the pod's annotation requests this capability.
fn annotation_key(capability: &str) -> &str {
    match capability {
        "infinibandGUID" => "infiniband-guid",
        key => key,
    }
}

/// What is wrong with the configuration of a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationProblem {
    /// The network was not found or cannot be used. `named_in` says what to correct.
    #[error("{report}; {named_in}")]
    NotFound {
        /// What the cluster reports.
        report: SharedError,
        /// Where the network is named.
        named_in: NamedIn,
    },
    /// The definition exists but has an error. The report contains the remedy.
    #[error("{0}")]
    Unusable(SharedError),
    /// The configurations of the pod's networks have more than
    /// [`MAX_CONFIGURATIONS`](super::MAX_CONFIGURATIONS) bytes together.
    #[error(
        "{origin}: with this network, the configurations of the pod's networks have {bytes} bytes; \
         {MAX_CONFIGURATIONS} are allowed; shorten the configurations or select fewer networks"
    )]
    TooLarge {
        /// The source of the configuration that exceeds the limit.
        origin: String,
        /// The total size of the configurations up to and including this one.
        bytes: usize,
    },
    /// A plugin declares more than [`MAX_CAPABILITIES`](super::MAX_CAPABILITIES) capabilities.
    #[error(
        "{origin}: plugin {plugin} declares {count} capabilities; {MAX_CAPABILITIES} are allowed; \
         remove the capabilities that no pod requests"
    )]
    TooManyCapabilities {
        /// Where the configuration is.
        origin: String,
        /// The plugin.
        plugin: PluginType,
        /// How many capabilities the plugin declares.
        count: usize,
    },
    /// The configuration is invalid, or it has no name and the definition's name is not a valid CNI
    /// network name.
    #[error("{origin}: {error}; correct the configuration there")]
    Invalid {
        /// Where the configuration is.
        origin: String,
        /// What is wrong with it.
        error: NetworkConfigError,
    },
    /// The configuration from this source has no name, and there is no definition to take a name
    /// from.
    #[error("{0} has no name; add the key \"name\"")]
    NoName(String),
    /// The IPAMClaim has more addresses than a pod may request.
    #[error(
        "IPAMClaim {claim}: status.ips has {count} addresses; {MAX_IPS} are allowed; choose a \
         claim with fewer addresses"
    )]
    ClaimTooLarge {
        /// The claim.
        claim: ObjectRef,
        /// How many addresses the claim has.
        count: usize,
    },
    /// The IPAMClaim does not exist or cannot be used. The text is the reason.
    #[error("{0}; create it or correct the annotation")]
    ClaimNotFound(String),
    /// Jackfield did not look up the IPAMClaim of this name.
    #[error("IPAMClaim {0} was not looked up")]
    ClaimNotLookedUp(String),
    /// The pod's `cni-args` cannot be merged into the plugin's own `args`.
    #[error("plugin {plugin}: args: {error}; make args.cni an object, so that pods can add keys")]
    Args {
        /// The plugin.
        plugin: PluginType,
        /// What is wrong with the plugin's `args`.
        error: JsonError,
    },
}

/// Where a network is named. Its `Display` is the remedy for a network that is not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NamedIn {
    /// In `clusterNetwork` of the node configuration.
    #[error("correct clusterNetwork of the node configuration")]
    ClusterNetwork,
    /// In `defaultNetworks` of the node configuration.
    #[error("correct defaultNetworks of the node configuration")]
    DefaultNetworks,
    /// In `auxiliaryCNIChainName` of the node configuration.
    #[error("correct auxiliaryCNIChainName of the node configuration")]
    AuxiliaryChain,
    /// In the pod's annotation.
    #[error("create it or correct the annotation")]
    Annotation,
}

/// Why `namespaceIsolation` or a policy refuses a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Restriction {
    /// `namespaceIsolation` does not let the pod use the definition.
    #[error(
        "namespaceIsolation does not let pods of namespace {namespace} use definitions of \
         namespace {definition}; define the network in namespace {namespace}, or in one that \
         globalNamespaces lists: {}",
        .global.join(", ")
    )]
    Isolated {
        /// The pod's namespace.
        namespace: String,
        /// The definition's namespace.
        definition: String,
        /// `globalNamespaces`.
        global: Vec<String>,
    },
    /// The policy of this namespace lists networks, but not the selected network.
    #[error(
        "the policy of namespace {0} does not list the network under \"networks\"; add the network \
         there or select another"
    )]
    Network(String),
    /// The pod's `cni-args` contain a denied key.
    #[error(
        "the pod's annotation sets {key}, which the policy of namespace {namespace} denies; \
         remove the key from the annotation"
    )]
    PodArgs {
        /// The key, as the policy writes it.
        key: String,
        /// The pod's namespace.
        namespace: String,
    },
    /// The network has the cluster network's name but a different configuration.
    #[error(
        "the network has the same name as the cluster network, {0}, so both would take their \
         addresses from the same pool; choose another name"
    )]
    ClusterName(NetworkName),
    /// The network's configuration has a denied key outside its plugins.
    #[error("the network's configuration has the key {key}, which {rule} denies; remove the key")]
    ListKey {
        /// The key, as the policy writes it.
        key: String,
        /// The rule that denies it.
        rule: RuleName,
    },
    /// A plugin's configuration has a denied key.
    #[error("plugin {plugin} has the key {key}, which {rule} denies; remove the key")]
    PluginKey {
        /// The plugin of the chain.
        plugin: PluginType,
        /// The key, as the policy writes it.
        key: String,
        /// The rule that denies it.
        rule: RuleName,
    },
    /// A rule lists plugin types, but not the type of this plugin.
    #[error("{rule} does not list plugin {name} under \"types\"; add it there")]
    PluginType {
        /// The type of the plugin.
        name: String,
        /// The rule.
        rule: RuleName,
    },
    /// A plugin's configuration contains another configuration whose `type` Jackfield cannot read.
    /// The plugin's own JSON parser may be able to read this `type`, so the policy refuses the
    /// network.
    #[error("plugin {plugin}: {error}")]
    UnreadableType {
        /// The plugin of the chain.
        plugin: PluginType,
        /// What is wrong with the `type`.
        error: JsonError,
    },
    /// The policy cannot check a plugin's configuration, because the configuration nests plugins
    /// too deeply, nests arrays too deeply, or contains too many plugins.
    #[error(
        "{rule} cannot check plugin {plugin}, because its configuration nests plugins more than \
         {LEVELS} levels deep, nests arrays more than {LISTS} levels deep, or contains too many \
         plugins; flatten it"
    )]
    TooDeep {
        /// The plugin of the chain.
        plugin: PluginType,
        /// The rule.
        rule: RuleName,
    },
}

impl Reason {
    /// Returns the reason to refuse a network that was not found or cannot be used.
    pub fn not_found(error: &NetworkError, named_in: NamedIn) -> Reason {
        let report = SharedError::new(error.clone());
        let problem = match error {
            NetworkError::LongResource(..) | NetworkError::NoConfig(..) => {
                ConfigurationProblem::Unusable(report)
            }
            _ => ConfigurationProblem::NotFound { report, named_in },
        };
        problem.into()
    }

    /// Returns the code of the CNI error (`docs/errors.md`).
    pub fn code(&self) -> u32 {
        match self {
            Reason::Annotation { .. }
            | Reason::InterfaceUsed { .. }
            | Reason::InterfaceExists(_)
            | Reason::TwoAddressSources(_)
            | Reason::HardwareAddressUsed(_)
            | Reason::AddressUsed(_) => code::SELECTION,
            Reason::NoTime => code::TRY_AGAIN_LATER,
            Reason::DeviceInfo(_) => code::VERIFICATION,
            Reason::Configuration(_) | Reason::Network(_) => code::NETWORK,
            Reason::Undeclared { .. } => code::CAPABILITY,
            Reason::Device(_) | Reason::DeviceInfoDir(_) | Reason::UnusableDevice(_) => {
                code::DEVICES
            }
            Reason::Restricted(_) => code::RESTRICTED,
        }
    }
}

#[cfg(test)]
mod tests;
