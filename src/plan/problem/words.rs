//! What is wrong with a plan, in words, and what to do.

use std::fmt;

use super::{ConfigurationProblem, NamedIn, Reason, Restriction};
use crate::diagnostic::Problem;
use crate::npwg::NETWORKS_ANNOTATION;
use crate::npwg::selection::MAX_IPS;
use crate::plan::restrictions::{LEVELS, LISTS};
use crate::plan::{MAX_CAPABILITIES, MAX_CONFIGURATIONS, PlanRemark, PlanWarning};
use crate::request::RuleName;

impl Problem for Reason {
    fn words(&self) -> String {
        match self {
            Self::Annotation { key, error } => format!("annotation {key}: {error}"),
            Self::InterfaceUsed { ifname, network } => {
                format!("interface name {ifname} is already used by network {network}")
            }
            Self::InterfaceExists(ifname) => {
                format!("interface name {ifname} already exists in the pod's network namespace")
            }
            Self::TwoAddressSources(claim) => {
                format!("ips and ipam-claim-reference {claim} exclude each other")
            }
            Self::HardwareAddressUsed { ifname } => {
                format!("{ifname} requests the same MAC or GUID on this network")
            }
            Self::Configuration(problem) => problem.words(),
            Self::Undeclared {
                key,
                capability,
                plugins,
            } => {
                let plugins: Vec<&str> = plugins.iter().map(|plugin| plugin.as_str()).collect();
                format!(
                    "{key} was requested and no plugin of {} declares the capability {capability}",
                    plugins.join(", ")
                )
            }
            Self::NoTime => "the plan is not ready by the deadline".to_owned(),
            Self::Device(error) => error.words(),
            Self::DeviceInfoName(error)
            | Self::Network(error)
            | Self::DeviceInfo(error)
            | Self::UnusableDevice(error)
            | Self::AddressUsed(error) => error.to_string(),
            Self::DeviceInfoDir(dir) => format!("devInfoDir {} is not UTF-8", dir.display()),
            Self::Restricted(restriction) => restriction.words(),
        }
    }

    fn remedy(&self) -> Option<String> {
        Some(match self {
            Self::InterfaceUsed { .. } | Self::InterfaceExists(_) => {
                "choose another in the pod's annotation".to_owned()
            }
            Self::TwoAddressSources(_) => "keep one".to_owned(),
            Self::HardwareAddressUsed { .. } => "request another".to_owned(),
            Self::Configuration(problem) => return problem.remedy(),
            Self::Undeclared { capability, .. } => format!(
                "add \"capabilities\": {{\"{capability}\": true}} to the definition or drop the \
                 request"
            ),
            Self::NoTime => "select fewer or smaller networks, or raise deadlines.add".to_owned(),
            Self::Device(error) => return error.remedy(),
            Self::DeviceInfoDir(_) => "choose another".to_owned(),
            Self::Restricted(restriction) => return restriction.remedy(),
            Self::Annotation { .. }
            | Self::DeviceInfoName(_)
            | Self::Network(_)
            | Self::DeviceInfo(_)
            | Self::UnusableDevice(_)
            | Self::AddressUsed(_) => return None,
        })
    }
}

impl Problem for ConfigurationProblem {
    fn words(&self) -> String {
        match self {
            Self::NotFound { report, .. } | Self::ClaimNotFound { report } => report.clone(),
            Self::TooLarge { origin, bytes } => format!(
                "{origin}: with it the configurations of the pod's networks have {bytes} bytes; \
                 {MAX_CONFIGURATIONS} are allowed"
            ),
            Self::TooManyCapabilities {
                origin,
                plugin,
                count,
            } => format!(
                "{origin}: plugin {plugin}: key \"capabilities\" declares {count}; \
                 {MAX_CAPABILITIES} are allowed"
            ),
            Self::Invalid { origin, error } => format!("{origin}: {error}"),
            Self::Name { origin, error } => format!("{origin}: {error}"),
            Self::NoName { origin } => format!("{origin} has no name"),
            Self::CapabilityArgs(error) => error.to_string(),
            Self::ClaimTooLarge { claim, count } => format!(
                "IPAMClaim {claim}: status.ips has {count} addresses; {MAX_IPS} are allowed"
            ),
            Self::ClaimNotLookedUp(claim) => format!("IPAMClaim {claim} was not looked up"),
            Self::Args { plugin, error } => format!("plugin {plugin}: args: {error}"),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::NotFound { named_in, .. } => match named_in {
                NamedIn::ClusterNetwork => "correct clusterNetwork of the node configuration",
                NamedIn::DefaultNetworks => "correct defaultNetworks of the node configuration",
                NamedIn::Annotation => "create it or correct the annotation",
                NamedIn::AuxiliaryChain => return None,
            },
            Self::TooLarge { .. } => "make them smaller or select fewer",
            Self::TooManyCapabilities { .. } => "remove those that no pod requests",
            Self::Invalid { .. } => "correct the configuration there",
            Self::NoName { .. } => "add the key name",
            Self::ClaimNotFound { .. } => "create it or correct the annotation",
            Self::Args { .. } => "make args.cni an object, to which the pod adds",
            Self::Name { .. }
            | Self::CapabilityArgs(_)
            | Self::ClaimTooLarge { .. }
            | Self::ClaimNotLookedUp(_) => return None,
        };
        Some(remedy.to_owned())
    }
}

impl Problem for Restriction {
    fn words(&self) -> String {
        match self {
            Self::Isolated {
                namespace,
                definition,
                ..
            } => format!(
                "namespaceIsolation keeps pods of namespace {namespace} from definitions of \
                 namespace {definition}"
            ),
            Self::Network { namespace } => {
                format!("the policy of namespace {namespace} does not list it under networks")
            }
            Self::PodArgs { key, namespace } => format!(
                "the pod's annotation sets {key}, which the policy of namespace {namespace} denies"
            ),
            Self::ClusterName(name) => {
                format!("its name {name} is the cluster network's, whose addresses it would use up")
            }
            Self::ListKey { key, rule } => format!(
                "its list of plugins has the key {key}, which {} denies",
                InPolicy(rule)
            ),
            Self::PluginKey { plugin, key, rule } => format!(
                "plugin {plugin} has the key {key}, which {} denies",
                InPolicy(rule)
            ),
            Self::PluginType { name, rule } => {
                format!("{} does not list plugin {name} under types", InPolicy(rule))
            }
            Self::UnreadableType { plugin, error } => format!("plugin {plugin}: {error}"),
            Self::TooDeep { plugin, rule } => format!(
                "plugin {plugin} nests more plugins, or deeper ones, than {} can check \
                 ({LEVELS} levels, {LISTS} nested lists)",
                InPolicy(rule)
            ),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Isolated {
                namespace, global, ..
            } => {
                return Some(format!(
                    "define it in {namespace} or in one of globalNamespaces {}",
                    global.join(", ")
                ));
            }
            Self::Network { .. } => "add it there or select another",
            Self::PodArgs { .. } => "remove it there",
            Self::ClusterName(_) => "give it a name of its own",
            Self::ListKey { .. } | Self::PluginKey { .. } => "remove it",
            Self::PluginType { .. } => "add it there",
            Self::TooDeep { .. } => "flatten it",
            Self::UnreadableType { .. } => return None,
        };
        Some(remedy.to_owned())
    }
}

impl Problem for PlanWarning {
    fn words(&self) -> String {
        match self {
            Self::IgnoredAnnotation { key, error } => {
                format!("annotation {key} is ignored: {error}")
            }
            Self::UnknownKeys {
                network,
                keys,
                others,
            } => {
                let named: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
                let named = named.join(", ");
                let list = match (keys.len(), others) {
                    (1, 0) => format!("key {named} is"),
                    (_, 0) => format!("keys {named} are"),
                    (_, others) => format!("keys {named} and {others} more are"),
                };
                format!(
                    "annotation {NETWORKS_ANNOTATION}: network {network}: {list} unknown and ignored"
                )
            }
        }
    }

    fn remedy(&self) -> Option<String> {
        None
    }
}

impl Problem for PlanRemark {
    fn words(&self) -> String {
        match self {
            Self::Replaced { network, cluster } => {
                format!("{network} is attached instead of clusterNetwork {cluster}")
            }
            Self::MultusNamespace(network) => format!(
                "{} has no namespace, so it is looked up in multusNamespace {}, not in the pod's",
                network.name(),
                network.namespace()
            ),
            Self::InterfaceIgnored { interface, ifname } => format!(
                "interface {interface} is ignored, since the runtime names this one: {ifname}"
            ),
        }
    }

    fn remedy(&self) -> Option<String> {
        None
    }
}

/// A rule, as messages about a network name it.
struct InPolicy<'a>(&'a RuleName);

impl fmt::Display for InPolicy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            RuleName::Namespace(namespace) => write!(f, "the policy of namespace {namespace}"),
            RuleName::Node => f.write_str("policy.node"),
        }
    }
}

#[cfg(test)]
mod tests;
