//! A network's configuration and its name.

use super::error::Reason;
use super::restrictions;
use crate::cluster::Network;
use crate::cni::{NetworkConfig, NetworkName};
use crate::npwg::ObjectRef;
use crate::request::NodeConfig;

/// A network's name and its configuration.
///
/// # Errors
/// [`Reason::Network`] when the configuration is invalid, or has no name and no definition that
/// lends it one.
pub fn read(network: &Network) -> Result<(NetworkName, NetworkConfig), Reason> {
    let config = parse(network)?;
    let name = name(network, &config)?;
    Ok((name, config))
}

/// As [`read`], for a network that the node configuration names: `policy.node` says what it may be.
///
/// # Errors
/// As [`read`], and [`Reason::Restricted`].
pub fn read_administrators(
    config: &NodeConfig,
    network: &Network,
) -> Result<(NetworkName, NetworkConfig), Reason> {
    let (name, read) = read(network)?;
    restrictions::check_node(config, &read)?;
    Ok((name, read))
}

/// As [`read`], for a network that the pods of `namespace` select: the policy says what it may be.
///
/// # Errors
/// As [`read`], and [`Reason::Restricted`].
pub fn read_selected(
    config: &NodeConfig,
    namespace: &str,
    object: &ObjectRef,
    network: &Network,
) -> Result<(NetworkName, NetworkConfig), Reason> {
    let (name, read) = read(network)?;
    restrictions::check(config, namespace, object, &read, None)?;
    Ok((name, read))
}

fn parse(network: &Network) -> Result<NetworkConfig, Reason> {
    NetworkConfig::parse(network.text.as_bytes()).map_err(|cause| {
        let remedy = "; correct the configuration there";
        Reason::Network(format!("{}: {cause}{remedy}", network.origin))
    })
}

/// The configuration's own name, else the definition's (NPWG 1.3 §3.4.2, §3.4.3).
fn name(network: &Network, config: &NetworkConfig) -> Result<NetworkName, Reason> {
    match (config.name(), &network.object) {
        (Some(name), _) => Ok(name.clone()),
        (None, Some(object)) => object
            .name()
            .parse()
            .map_err(|cause| Reason::Network(format!("{}: {cause}", network.origin))),
        (None, None) => Err(Reason::Network(format!(
            "{} has no name; add the key name",
            network.origin
        ))),
    }
}
