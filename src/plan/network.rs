//! Reads a network's name and configuration.

use super::problem::ConfigurationProblem;
use super::{Reason, restrictions};
use crate::cluster::Network;
use crate::cni::{NetworkConfig, NetworkConfigError, NetworkName};
use crate::npwg::ObjectRef;
use crate::request::NodeConfig;

/// A network with its plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownNetwork {
    /// The network's name in messages: `namespace/definition`, or the CNI name of a network without
    /// a definition.
    pub label: String,
    /// The CNI name, which Jackfield passes to the plugins.
    pub name: NetworkName,
    /// The configuration, with the plugins.
    pub config: NetworkConfig,
}

/// Reads a network's name and configuration.
///
/// # Errors
/// [`Reason::Configuration`] if the configuration is invalid, or if neither the configuration nor a
/// definition has a name for the network.
pub fn read(network: &Network) -> Result<KnownNetwork, Reason> {
    let invalid = |error| ConfigurationProblem::Invalid {
        origin: network.origin.clone(),
        error,
    };
    let config = NetworkConfig::parse(network.text.as_bytes()).map_err(invalid)?;
    // The definition's name is used only if the configuration has no name (NPWG 1.3 §3.4.2,
    // §3.4.3).
    let name = match (config.name(), &network.object) {
        (Some(name), _) => name.clone(),
        (None, Some(object)) => {
            let name = object.name().parse();
            name.map_err(|error| invalid(NetworkConfigError::Name(error)))?
        }
        (None, None) => return Err(ConfigurationProblem::NoName(network.origin.clone()).into()),
    };
    let object = network.object.as_ref();
    Ok(KnownNetwork {
        label: object.map_or_else(|| name.to_string(), ToString::to_string),
        name,
        config,
    })
}

/// Reads a network that the node configuration names, and checks it against `policy.node`.
///
/// # Errors
/// The errors of [`read`], and [`Reason::Restricted`] if the policy refuses the network.
pub fn read_administrators(config: &NodeConfig, network: &Network) -> Result<KnownNetwork, Reason> {
    let known = read(network)?;
    restrictions::check_node(config, &known.config)?;
    Ok(known)
}

/// Reads a network that pods of `namespace` select, and checks it against the policy of
/// `namespace`.
///
/// # Errors
/// The errors of [`read`], and [`Reason::Restricted`] if the policy refuses the network.
pub fn read_selected(
    config: &NodeConfig,
    namespace: &str,
    object: &ObjectRef,
    network: &Network,
) -> Result<KnownNetwork, Reason> {
    let known = read(network)?;
    restrictions::check(config, namespace, object, &known.config, None)?;
    Ok(known)
}
