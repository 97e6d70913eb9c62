//! The catalog lists every network that an ADD may need. A network's configuration comes from a
//! definition, from disk (NPWG 1.3 §3.4.1), or from `delegates` in the node configuration. For a
//! network without a usable configuration, the catalog keeps the error. The error matters only if
//! the ADD has to attach the pod to that network.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;

use super::Answer;
use super::conf_dir::{self, ConfDirError, OnDisk};
use crate::cni::Version;
use crate::diagnostic::Problem;
use crate::npwg::{Definition, ObjectRef, RESOURCE_NAME_ANNOTATION};
use crate::request::{ClusterNetwork, NodeConfig};

/// The maximum number of definitions that the catalog reads. For each definition without a
/// configuration, the catalog searches `confDir`. So the limit bounds the time of an ADD.
const MAX_DEFINITIONS: usize = 256;

/// The longest name of a resource, in bytes.
const LONGEST_RESOURCE: usize = 253;

/// A network with the configuration of its plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// The definition, if the network has one.
    pub object: Option<ObjectRef>,
    /// The resource that the network's devices belong to (`k8s.v1.cni.cncf.io/resourceName`).
    pub resource: Option<String>,
    /// The text of the configuration.
    pub text: String,
    /// Where the configuration comes from, for messages: the definition, the file, or the entry of
    /// `delegates`.
    pub origin: String,
}

impl Network {
    /// Returns the network's name for messages about a configuration that is not parsed yet.
    pub fn place(&self) -> String {
        self.object
            .as_ref()
            .map_or_else(|| self.origin.clone(), ToString::to_string)
    }
}

/// Why a network cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NetworkError {
    /// The definition is missing or cannot be used, for the reason that the [`Answer`] states.
    #[error("{0}")]
    Lookup(String),
    /// The [`Answer`] does not contain the definition.
    #[error("NetworkAttachmentDefinition {0} was not looked up")]
    NotLookedUp(ObjectRef),
    /// The name is not an absolute path, and matches neither a configuration in `confDir` nor a
    /// usable definition.
    #[error(
        "this name is not an absolute path, and matches neither a configuration in confDir {} nor \
         a usable definition",
        .0.display()
    )]
    Unknown(PathBuf),
    /// The definition's resource name is too long. The number is its length in bytes.
    #[error(
        "NetworkAttachmentDefinition {0}: its annotation {RESOURCE_NAME_ANNOTATION} has {1} bytes, \
         but the name of a resource has at most {LONGEST_RESOURCE}; correct the annotation"
    )]
    LongResource(ObjectRef, usize),
    /// Neither the definition nor `confDir` has a configuration.
    #[error(
        "NetworkAttachmentDefinition {0} has no spec.config, and confDir {dir} has no \
         configuration named {name}; write one of the two",
        dir = .1.display(),
        name = .0.name()
    )]
    NoConfig(ObjectRef, PathBuf),
    /// The configuration on disk cannot be used.
    #[error("{}", .0.words())]
    OnDisk(#[from] ConfDirError),
}

/// The networks of one ADD.
#[derive(Debug)]
pub struct Catalog {
    /// The cluster network: from `clusterNetwork`, or the first entry of `delegates`.
    pub cluster: Result<Network, NetworkError>,
    /// The entries of `delegates` after the first one.
    pub further: Vec<Network>,
    /// `defaultNetworks`, in order: the name as written, and the network.
    pub defaults: Vec<(String, Result<Network, NetworkError>)>,
    /// The plugins of `auxiliaryCNIChainName`; `None` if there are none.
    pub auxiliary: Option<Result<Network, NetworkError>>,
    selected: Vec<(ObjectRef, Result<Network, NetworkError>)>,
}

impl Catalog {
    /// Finds the configuration of every network in `answer` and of every network that `config`
    /// names.
    pub fn build(config: &NodeConfig, answer: &Answer) -> Catalog {
        let finder = Finder { config, answer };
        let cluster = match &config.cluster_network {
            ClusterNetwork::Named(name) => finder.named(name),
            ClusterNetwork::Inline(text) => Ok(inline(0, text)),
        };
        let further = config.further_delegates.iter().enumerate();
        let further = further.map(|(index, text)| inline(index + 1, text));
        let defaults = config
            .default_networks
            .iter()
            .map(|name| (name.clone(), finder.named(name)))
            .collect();
        let selected = answer
            .definitions
            .iter()
            .take(MAX_DEFINITIONS)
            .map(|(object, found)| {
                let network = match found {
                    Ok(definition) => finder.defined(object, definition),
                    Err(line) => Err(NetworkError::Lookup(line.clone())),
                };
                (object.clone(), network)
            })
            .collect();
        Catalog {
            cluster,
            further: further.collect(),
            defaults,
            auxiliary: finder.auxiliary(),
            selected,
        }
    }

    /// Returns the resources of the cluster network, the default networks and the `selected`
    /// networks, without duplicates. Ignores all other definitions in the answer.
    pub fn resources(&self, selected: &[ObjectRef]) -> Vec<&str> {
        let selected: HashSet<&ObjectRef> = selected.iter().collect();
        let defaults = self.defaults.iter().map(|(_, found)| found);
        let defined = self.selected.iter();
        let defined = defined.filter(|(object, _)| selected.contains(object));
        let found = std::iter::once(&self.cluster)
            .chain(defaults)
            .chain(defined.map(|(_, found)| found));
        let resources = found.flatten();
        let resources = resources.filter_map(|network| network.resource.as_deref());
        BTreeSet::from_iter(resources).into_iter().collect()
    }

    /// Returns the network of a definition that an annotation names.
    ///
    /// # Errors
    /// [`NetworkError`].
    pub fn selected(&self, object: &ObjectRef) -> Result<&Network, NetworkError> {
        match self.selected.iter().find(|(known, _)| known == object) {
            Some((_, found)) => found.as_ref().map_err(Clone::clone),
            None => Err(NetworkError::NotLookedUp(object.clone())),
        }
    }
}

/// Returns the definitions that `clusterNetwork` and `defaultNetworks` may refer to.
pub fn administrators_definitions(config: &NodeConfig) -> Vec<ObjectRef> {
    let cluster = match &config.cluster_network {
        ClusterNetwork::Named(name) => Some(name),
        ClusterNetwork::Inline(_) => None,
    };
    cluster
        .into_iter()
        .chain(&config.default_networks)
        .filter_map(|name| object_of(config, name))
        .collect()
}

fn object_of(config: &NodeConfig, name: &str) -> Option<ObjectRef> {
    ObjectRef::with_default_namespace(name, &config.multus_namespace).ok()
}

struct Finder<'a> {
    config: &'a NodeConfig,
    answer: &'a Answer,
}

impl Finder<'_> {
    /// Finds a network by its name in `clusterNetwork` or `defaultNetworks`. An absolute path names
    /// a file, or a directory whose first configuration is used. Any other name refers to a
    /// configuration in `confDir`, or else to a definition. Multus looks for the definition first.
    /// Jackfield looks in `confDir` first, because a definition must not replace a configuration
    /// that the administrator has put on disk.
    fn named(&self, name: &str) -> Result<Network, NetworkError> {
        let path = Path::new(name);
        if path.is_absolute() {
            return file(match path.is_dir() {
                true => conf_dir::first(path)?,
                false => conf_dir::read(path)?,
            });
        }
        let object = object_of(self.config, name);
        let defined = object.and_then(|object| {
            let found = self.answer.definition(&object)?.as_ref().ok()?;
            Some((object, found))
        });
        match (defined, self.on_disk(name)?) {
            // If there is no file, use the definition. If the definition has no configuration, use
            // both: `self.defined` takes the configuration from disk and the resource from the
            // definition.
            (Some((object, definition)), on_disk)
                if on_disk.is_none() || definition.config.is_none() =>
            {
                self.defined(&object, definition)
            }
            (_, Some(on_disk)) => file(on_disk),
            (_, None) => Err(NetworkError::Unknown(self.config.conf_dir.clone())),
        }
    }

    /// Finds the plugins of `auxiliaryCNIChainName`, which run for every pod after its networks.
    /// The key names the folder of these plugins. As in Multus, the place of the folder depends on
    /// `clusterNetwork`:
    /// - If `clusterNetwork` is the absolute path of a file, the folder is beside the file.
    /// - If `clusterNetwork` is the absolute path of a directory, the folder is in the directory.
    /// - Otherwise, the folder is in `confDir`.
    fn auxiliary(&self) -> Option<Result<Network, NetworkError>> {
        let name = self.config.auxiliary_chain.as_ref()?;
        let cluster = match &self.config.cluster_network {
            ClusterNetwork::Named(name) => Path::new(name),
            ClusterNetwork::Inline(_) => Path::new(""),
        };
        let dir = match cluster.parent() {
            Some(parent) if cluster.is_absolute() && !cluster.is_dir() => parent,
            _ if cluster.is_absolute() => cluster,
            _ => &self.config.conf_dir,
        };
        // Versions before 0.3.0 have no chains. Use at least 0.3.1, the correction of 0.3.0.
        let version = self.config.version.max(Version::V0_3_1);
        conf_dir::auxiliary_chain(dir, name, version)
            .map(|found| found.map(|OnDisk { path, text }| bare(text, path.display().to_string())))
            .map_err(NetworkError::OnDisk)
            .transpose()
    }

    /// Returns the network of a definition. The network's configuration is in the definition, or
    /// else on disk under the definition's name.
    fn defined(
        &self,
        object: &ObjectRef,
        definition: &Definition,
    ) -> Result<Network, NetworkError> {
        let length = definition.resource_name.as_deref().map_or(0, str::len);
        if length > LONGEST_RESOURCE {
            return Err(NetworkError::LongResource(object.clone(), length));
        }
        let found = match &definition.config {
            Some(config) => {
                let origin = format!("NetworkAttachmentDefinition {object}");
                bare(config.clone(), origin)
            }
            None => {
                let conf_dir = &self.config.conf_dir;
                let missing = || NetworkError::NoConfig(object.clone(), conf_dir.clone());
                file(self.on_disk(object.name())?.ok_or_else(missing)?)?
            }
        };
        Ok(Network {
            object: Some(object.clone()),
            resource: definition.resource_name.clone(),
            ..found
        })
    }

    fn on_disk(&self, name: &str) -> Result<Option<OnDisk>, ConfDirError> {
        conf_dir::by_name(&self.config.conf_dir, name)
    }
}

fn file(found: OnDisk) -> Result<Network, NetworkError> {
    let OnDisk { path, text } = conf_dir::with_sibling_plugins(found)?;
    Ok(bare(text, path.display().to_string()))
}

fn inline(index: usize, text: &RawValue) -> Network {
    bare(text.get().to_owned(), format!("delegates[{index}]"))
}

fn bare(text: String, origin: String) -> Network {
    Network {
        object: None,
        resource: None,
        text,
        origin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_says_what_failed_and_what_to_do() {
        let object = || "a/n".parse().unwrap();
        for (error, line) in [
            (NetworkError::Lookup("no a/n".into()), "no a/n"),
            (
                NetworkError::NotLookedUp(object()),
                "NetworkAttachmentDefinition a/n was not looked up",
            ),
            (
                NetworkError::Unknown("/c".into()),
                "this name is not an absolute path, and matches neither a configuration in confDir \
                 /c nor a usable definition",
            ),
            (
                NetworkError::LongResource(object(), 300),
                "NetworkAttachmentDefinition a/n: its annotation k8s.v1.cni.cncf.io/resourceName \
                 has 300 bytes, but the name of a resource has at most 253; correct the annotation",
            ),
            (
                NetworkError::NoConfig(object(), "/c".into()),
                "NetworkAttachmentDefinition a/n has no spec.config, and confDir /c has no \
                 configuration named n; write one of the two",
            ),
        ] {
            assert_eq!(error.to_string(), line);
        }
    }
}
