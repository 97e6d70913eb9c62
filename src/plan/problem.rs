//! Everything that can be wrong with a plan, as data.

mod words;

use std::fmt;
use std::path::PathBuf;

use crate::allocation::AssignError;
use crate::cni::{
    InterfaceName, JsonError, NameError, NetworkConfigError, NetworkName, PluginType, code,
};
use crate::diagnostic::{self, SharedError};
use crate::npwg::{ObjectRef, SelectionError};
use crate::request::RuleName;

/// A reason to attach nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The annotation is invalid.
    Annotation {
        /// The annotation's name.
        key: &'static str,
        /// What is wrong with it.
        #[source]
        error: SelectionError,
    },
    /// Another network of the pod has the interface name.
    InterfaceUsed {
        /// The interface name.
        ifname: InterfaceName,
        /// The label of the other network.
        network: String,
    },
    /// The pod's network namespace already has the interface.
    InterfaceExists(InterfaceName),
    /// `ips` and the `ipam-claim-reference` of this value are both set on one network.
    TwoAddressSources(String),
    /// Another attachment of the network requests the same MAC or GUID.
    HardwareAddressUsed {
        /// The interface of the other attachment.
        ifname: InterfaceName,
    },
    /// The network's configuration cannot be used.
    Configuration(ConfigurationProblem),
    /// No plugin of the chain declares the capability for a request.
    Undeclared {
        /// The annotation's key.
        key: &'static str,
        /// The capability.
        capability: &'static str,
        /// The types of the chain's plugins.
        plugins: Vec<PluginType>,
    },
    /// The call's deadline passed while planning.
    NoTime,
    /// The network gets no device.
    Device(#[source] AssignError),
    /// No device-info file can have the attachment's name.
    DeviceInfoName(#[source] SharedError),
    /// `devInfoDir` is not UTF-8.
    DeviceInfoDir(PathBuf),
    /// Isolation or a policy refuses the network.
    Restricted(Restriction),
    /// A later check found a program missing or the configuration invalid.
    Network(#[source] SharedError),
    /// A later check found that a device cannot be used.
    UnusableDevice(#[source] SharedError),
    /// Device-info contradicts the device or cannot be trusted.
    DeviceInfo(#[source] SharedError),
    /// Another sandbox has the same MAC or GUID.
    AddressUsed(#[source] SharedError),
}

/// What is wrong with the configuration of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigurationProblem {
    /// The cluster has no usable configuration of that name.
    NotFound {
        /// What the cluster reports.
        report: String,
        /// Where the network is named.
        named_in: NamedIn,
    },
    /// The configurations of all networks of the pod exceed
    /// [`MAX_CONFIGURATIONS`](super::MAX_CONFIGURATIONS).
    TooLarge {
        /// Where the configuration is that exceeds the limit.
        origin: String,
        /// The bytes of all configurations up to this one.
        bytes: usize,
    },
    /// A plugin declares more than [`MAX_CAPABILITIES`](super::MAX_CAPABILITIES).
    TooManyCapabilities {
        /// Where the configuration is.
        origin: String,
        /// The plugin.
        plugin: PluginType,
        /// How many capabilities it declares.
        count: usize,
    },
    /// The configuration is invalid.
    Invalid {
        /// Where the configuration is.
        origin: String,
        /// What is wrong with it.
        error: NetworkConfigError,
    },
    /// The definition's name cannot be the name of a network.
    Name {
        /// Where the configuration is.
        origin: String,
        /// What is wrong with the name.
        error: NameError,
    },
    /// The configuration has no name, and no definition that lends it one.
    NoName {
        /// Where the configuration is.
        origin: String,
    },
    /// The requests cannot be written as capability arguments.
    CapabilityArgs(JsonError),
    /// The IPAMClaim has more addresses than a pod may request.
    ClaimTooLarge {
        /// The claim.
        claim: ObjectRef,
        /// How many addresses it has.
        count: usize,
    },
    /// The cluster has no usable IPAMClaim of that name.
    ClaimNotFound {
        /// What the cluster reports.
        report: String,
    },
    /// The IPAMClaim of this name was not looked up.
    ClaimNotLookedUp(String),
    /// A plugin's own `args` leave no room for the pod's.
    Args {
        /// The plugin.
        plugin: PluginType,
        /// What is wrong with its `args`.
        error: JsonError,
    },
}

/// Where a network is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedIn {
    /// In `clusterNetwork` of the node configuration.
    ClusterNetwork,
    /// In `defaultNetworks` of the node configuration.
    DefaultNetworks,
    /// In `auxiliaryCNIChainName` of the node configuration.
    AuxiliaryChain,
    /// In the pod's annotation.
    Annotation,
}

/// Why isolation or a policy refuses a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restriction {
    /// `namespaceIsolation` keeps the pod from the definition.
    Isolated {
        /// The pod's namespace.
        namespace: String,
        /// The definition's namespace.
        definition: String,
        /// `globalNamespaces`.
        global: Vec<String>,
    },
    /// The policy lists networks, and this one is not among them.
    Network {
        /// The pod's namespace.
        namespace: String,
    },
    /// The pod's `cni-args` set a denied key.
    PodArgs {
        /// The key, as the policy writes it.
        key: String,
        /// The pod's namespace.
        namespace: String,
    },
    /// The network has the cluster network's name and another configuration.
    ClusterName(NetworkName),
    /// The list of plugins has a denied key.
    ListKey {
        /// The key, as the policy writes it.
        key: String,
        /// The rule that denies it.
        rule: RuleName,
    },
    /// A plugin's configuration has a denied key.
    PluginKey {
        /// The plugin of the chain.
        plugin: PluginType,
        /// The key, as the policy writes it.
        key: String,
        /// The rule that denies it.
        rule: RuleName,
    },
    /// A rule lists plugins, and this one is not among them.
    PluginType {
        /// The type of the plugin.
        name: String,
        /// The rule.
        rule: RuleName,
    },
    /// Below a plugin of the chain stands a `type` that only some parsers can read.
    UnreadableType {
        /// The plugin of the chain.
        plugin: PluginType,
        /// What is wrong with the `type`.
        error: JsonError,
    },
    /// A plugin's configuration nests further ones beyond what the policy checks.
    TooDeep {
        /// The plugin of the chain.
        plugin: PluginType,
        /// The rule.
        rule: RuleName,
    },
}

impl Reason {
    /// The CNI code (`docs/errors.md`).
    pub fn code(&self) -> u32 {
        match self {
            Reason::Annotation { .. }
            | Reason::InterfaceUsed { .. }
            | Reason::InterfaceExists(_)
            | Reason::TwoAddressSources(_)
            | Reason::HardwareAddressUsed { .. }
            | Reason::AddressUsed(_) => code::SELECTION,
            Reason::NoTime => code::TRY_AGAIN_LATER,
            Reason::DeviceInfo(_) => code::VERIFICATION,
            Reason::Configuration(_) | Reason::Network(_) => code::NETWORK,
            Reason::Undeclared { .. } => code::CAPABILITY,
            Reason::Device(_)
            | Reason::DeviceInfoName(_)
            | Reason::DeviceInfoDir(_)
            | Reason::UnusableDevice(_) => code::DEVICES,
            Reason::Restricted(_) => code::RESTRICTED,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&diagnostic::line(self))
    }
}

impl From<ConfigurationProblem> for Reason {
    fn from(problem: ConfigurationProblem) -> Reason {
        Reason::Configuration(problem)
    }
}

impl From<Restriction> for Reason {
    fn from(restriction: Restriction) -> Reason {
        Reason::Restricted(restriction)
    }
}
