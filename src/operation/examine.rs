//! Examines networks without attaching a pod. Reports networks that do not exist, invalid
//! configurations, and plugins whose programs are missing or cannot be used.

use super::{Context, Failure, networks};
use crate::cluster::{Catalog, Network, NetworkError};
use crate::npwg::ObjectRef;
use crate::plan::{self, KnownNetwork};
use crate::verify::IntendedFunction;

/// The maximum number of definitions per question to the cluster. The number is small because the
/// answer contains each definition in full.
const AT_ONCE: usize = 8;

/// What Jackfield found out about one network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Examined {
    /// The name of the network in messages.
    pub label: String,
    /// Whether the node configuration names the network.
    pub is_administrators: bool,
    /// The resource name of the devices that the network uses.
    pub resource: Option<String>,
    /// The types of the network's plugins, including IPAM plugins.
    pub types: Vec<String>,
    /// The reasons why no pod can be attached to the network, one line each.
    pub problems: Vec<String>,
}

/// Examines the networks in the node configuration, and the networks of `definitions`.
///
/// # Errors
/// If the cluster does not answer. Problems of a single network cause no error. They are in
/// [`Examined::problems`].
pub fn every_network(
    context: &Context<'_>,
    definitions: &[ObjectRef],
) -> Result<Vec<Examined>, Failure> {
    let answer = networks::answer(context, context.deadline)?;
    let (cluster, others) = networks::named(context, &answer);
    let named = std::iter::once(cluster).chain(others);
    let mut examined: Vec<Examined> = named
        .map(|named| examine(context, named.label, true, named.found))
        .collect();
    for some in definitions.chunks(AT_ONCE) {
        let question = networks::definitions(context, some.to_vec());
        let answer = context.host.cluster.ask(&question, context.deadline)?;
        let catalog = Catalog::build(&context.request.config, &answer);
        for object in some {
            let found = catalog.selected(object).cloned();
            examined.push(examine(context, object.to_string(), false, found));
        }
    }
    Ok(examined)
}

fn examine(
    context: &Context<'_>,
    label: String,
    is_administrators: bool,
    found: Result<Network, NetworkError>,
) -> Examined {
    let mut examined = Examined {
        label,
        is_administrators,
        ..Examined::default()
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
        Ok(KnownNetwork { config, .. }) => {
            for plugin in config.plugins() {
                let types = std::iter::once(plugin.plugin_type()).chain(plugin.ipam_type());
                examined.types.extend(types.map(ToString::to_string));
            }
            let (_, missing) = networks::programs(context, &context.search_path(), &config);
            let missing = missing.iter().map(ToString::to_string);
            let misread = IntendedFunction::check(&config).err();
            let misread = misread.map(|error| error.to_string());
            examined.problems = missing.chain(misread).collect();
        }
        Err(cause) => examined.problems.push(cause),
    }
    examined
}
