//! Examines networks without a pod: what is wrong with their configurations and programs.

use super::{Context, Failure, inquiry, networks};
use crate::cluster::{Catalog, Network, NetworkError, Question, administrators_definitions};
use crate::npwg::ObjectRef;
use crate::plan;
use crate::verify::IntendedFunction;

/// How many definitions one question names, since its answer holds them whole.
const AT_ONCE: usize = 8;

/// A network that a pod may be attached to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// The name of the network for people.
    pub label: String,
    /// Whether the node configuration names it.
    pub is_administrators: bool,
    /// The resource of the devices that it uses.
    pub resource: Option<String>,
    /// The types of its plugins, including IPAM plugins.
    pub types: Vec<String>,
    /// The reasons why no pod can be attached to it, one line each.
    pub problems: Vec<String>,
}

/// Examines the administrator's networks and `definitions`.
///
/// # Errors
/// If the cluster does not answer. A fault of a network is not an error but one of its problems.
pub fn every_network(
    context: &Context<'_>,
    definitions: &[ObjectRef],
) -> Result<Vec<Examined>, Failure> {
    let mut examined = administrators(context)?;
    for some in definitions.chunks(AT_ONCE) {
        let answer = context
            .host
            .cluster
            .ask(&question(context, some.to_vec()), context.deadline)?;
        let catalog = Catalog::build(&context.request.config, &answer);
        for object in some {
            let found = catalog.selected(object).cloned();
            examined.push(examine(context, &object.to_string(), false, found));
        }
    }
    Ok(examined)
}

/// The networks that the node configuration names. Asks the cluster only if it has to.
fn administrators(context: &Context<'_>) -> Result<Vec<Examined>, Failure> {
    let config = &context.request.config;
    let named = administrators_definitions(config);
    let answer =
        if inquiry::is_on_disk(&config.cluster_network) && config.default_networks.is_empty() {
            crate::cluster::Answer::default()
        } else {
            context
                .host
                .cluster
                .ask(&question(context, named), context.deadline)?
        };
    let catalog = Catalog::build(config, &answer);
    let label = config.cluster_network.label();
    let mut examined = vec![examine(context, label, true, catalog.cluster)];
    for network in catalog.further {
        examined.push(examine(context, &network.place(), true, Ok(network)));
    }
    for (name, found) in catalog.defaults {
        examined.push(examine(context, &name, true, found));
    }
    if let Some(found) = catalog.auxiliary {
        examined.push(examine(context, "auxiliaryCNIChainName", true, found));
    }
    Ok(examined)
}

fn question(context: &Context<'_>, networks: Vec<ObjectRef>) -> Question {
    let config = &context.request.config;
    Question {
        networks,
        multus_namespace: config.multus_namespace.clone(),
        dialect: config.dialect,
        ..Question::default()
    }
}

fn examine(
    context: &Context<'_>,
    label: &str,
    is_administrators: bool,
    found: Result<Network, NetworkError>,
) -> Examined {
    let mut examined = Examined {
        label: label.to_owned(),
        is_administrators,
        resource: None,
        types: Vec::new(),
        problems: Vec::new(),
    };
    let read = found
        .map_err(|error| error.to_string())
        .and_then(|network| {
            examined.resource.clone_from(&network.resource);
            let read = if is_administrators {
                plan::read_administrators(&context.request.config, &network)
            } else {
                plan::read(&network)
            };
            read.map_err(|reason| reason.to_string())
        });
    match read {
        Ok((_, config)) => {
            for plugin in config.plugins() {
                let types = std::iter::once(plugin.plugin_type()).chain(plugin.ipam_type());
                examined.types.extend(types.map(ToString::to_string));
            }
            let missing = networks::missing_programs(context, &config);
            examined.problems = missing.iter().map(ToString::to_string).collect();
            let misread = IntendedFunction::check(&config).err();
            examined
                .problems
                .extend(misread.map(|error| error.to_string()));
        }
        Err(cause) => examined.problems.push(cause),
    }
    examined
}
