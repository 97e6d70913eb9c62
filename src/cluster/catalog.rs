//! Every network that an ADD may need, with its configuration found: in the definition, or on
//! disk (NPWG 1.3 §3.4.1). What could not be found is kept as the reason, for the attachment that
//! wants it; one that nobody wants never matters.

use std::collections::HashSet;
use std::path::Path;

use serde_json::value::RawValue;

use super::conf_dir::{self, ConfDirError, OnDisk};
use super::{Answer, Found};
use crate::cni::Version;
use crate::npwg::{Definition, ObjectRef, RESOURCE_NAME_ANNOTATION};
use crate::request::{ClusterNetwork, NodeConfig};

/// How many definitions of an answer count: more than a pod and the administrator can name, and
/// each may cost a look through `confDir`.
const MAX_DEFINITIONS: usize = 256;

/// The longest name of a resource, in bytes.
const LONGEST_RESOURCE: usize = 253;

/// A network with the configuration that its plugins are run by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// The definition, where there is one.
    pub object: Option<ObjectRef>,
    /// The resource whose devices belong to it (`k8s.v1.cni.cncf.io/resourceName`).
    pub resource: Option<String>,
    /// The configuration as it is written.
    pub text: String,
    /// Where it is written, for messages.
    pub origin: String,
}

impl Network {
    /// What people call it before its configuration is read.
    pub fn place(&self) -> String {
        self.object
            .as_ref()
            .map_or_else(|| self.origin.clone(), ToString::to_string)
    }
}

/// The networks of one ADD.
#[derive(Debug)]
pub struct Catalog {
    /// `clusterNetwork`.
    pub cluster: Found<Network>,
    /// What follows the first of `delegates`.
    pub further: Vec<Network>,
    /// `defaultNetworks`, in order: the name as written, and the network.
    pub defaults: Vec<(String, Found<Network>)>,
    /// The plugins of `auxiliaryCNIChainName`, where there are any.
    pub auxiliary: Option<Found<Network>>,
    selected: Vec<(ObjectRef, Found<Network>)>,
}

impl Catalog {
    /// Finds the configuration of every network that `answer` knows and `config` names.
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
                let definition = found.as_ref().map_err(Clone::clone);
                let network = definition.and_then(|it| finder.defined(object, it));
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

    /// The resources whose devices the administrator's networks and the `selected` ones use, each
    /// once. An answer may hold definitions that were not asked for.
    pub fn resources(&self, selected: &[ObjectRef]) -> Vec<&str> {
        let selected: HashSet<&ObjectRef> = selected.iter().collect();
        let defaults = self.defaults.iter().map(|(_, found)| found);
        let defined = self.selected.iter();
        let defined = defined.filter(|(object, _)| selected.contains(object));
        let found = std::iter::once(&self.cluster)
            .chain(defaults)
            .chain(defined.map(|(_, found)| found));
        let mut resources: Vec<&str> = found
            .flatten()
            .filter_map(|network| network.resource.as_deref())
            .collect();
        resources.sort_unstable();
        resources.dedup();
        resources
    }

    /// The network of a definition that an annotation names.
    pub fn selected(&self, object: &ObjectRef) -> Found<&Network> {
        match self.selected.iter().find(|(known, _)| known == object) {
            Some((_, found)) => found.as_ref().map_err(Clone::clone),
            None => Err(format!(
                "NetworkAttachmentDefinition {object} was not looked up"
            )),
        }
    }
}

/// The definitions that the administrator's configuration may mean, to be asked for.
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
    /// A network by the name that `clusterNetwork` and `defaultNetworks` give it: a configuration's
    /// name in `confDir`, a definition, a directory's first file, a file; in this order. Multus looks
    /// for the definition first; but whoever answers for definitions must not replace what the
    /// administrator has on disk.
    fn named(&self, name: &str) -> Found<Network> {
        let as_path = Path::new(name);
        if !as_path.is_absolute() {
            let object = object_of(self.config, name);
            let defined = object.and_then(|object| {
                let found = self.answer.definition(&object)?.as_ref().ok()?;
                Some((object, found))
            });
            match (defined, self.on_disk(name)?) {
                // A definition that leaves its configuration to the disk adds its resource.
                (Some((_, definition)), Some(on_disk)) if definition.config.is_some() => {
                    return file(on_disk);
                }
                (Some((object, definition)), _) => return self.defined(&object, definition),
                (None, Some(on_disk)) => return file(on_disk),
                (None, None) => {}
            }
            return Err(format!(
                "no definition, no configuration of this name in confDir {} and no absolute path; correct the name, or create what it names",
                self.config.conf_dir.display()
            ));
        }
        let found = if as_path.is_dir() {
            conf_dir::first(as_path)
        } else {
            conf_dir::read(as_path)
        };
        found.map_err(|error| error.to_string()).and_then(file)
    }

    /// The plugins that run for every pod besides: a sub-directory of where the cluster network's
    /// configuration is, as Multus has it, else of `confDir`.
    fn auxiliary(&self) -> Option<Found<Network>> {
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
        // Before 0.3.0 there were no chains.
        let version = self.config.version.max(Version::V0_3_1);
        conf_dir::auxiliary_chain(dir, name, version)
            .map(|found| found.map(|OnDisk { path, text }| bare(text, path.display().to_string())))
            .map_err(|error| error.to_string())
            .transpose()
    }

    /// A definition's network: its own configuration, else one on disk that has its name.
    fn defined(&self, object: &ObjectRef, definition: &Definition) -> Found<Network> {
        let origin = format!("NetworkAttachmentDefinition {object}");
        let resource = definition.resource_name.as_deref().map_or(0, str::len);
        if resource > LONGEST_RESOURCE {
            return Err(format!(
                "{origin}: its annotation {RESOURCE_NAME_ANNOTATION} has {resource} bytes; \
                 {LONGEST_RESOURCE} are allowed; write the resource's name"
            ));
        }
        let (text, origin) = match &definition.config {
            Some(config) => (config.clone(), origin),
            None => match self.on_disk(object.name())? {
                Some(on_disk) => {
                    let network = file(on_disk)?;
                    (network.text, network.origin)
                }
                None => {
                    return Err(format!(
                        "{origin} has no spec.config and confDir {} has no configuration named {}; \
                         write one of the two",
                        self.config.conf_dir.display(),
                        object.name()
                    ));
                }
            },
        };
        Ok(Network {
            object: Some(object.clone()),
            resource: definition.resource_name.clone(),
            text,
            origin,
        })
    }

    fn on_disk(&self, name: &str) -> Found<Option<OnDisk>> {
        conf_dir::by_name(&self.config.conf_dir, name)
            .map_err(|error: ConfDirError| error.to_string())
    }
}

fn file(found: OnDisk) -> Found<Network> {
    let OnDisk { path, text } =
        conf_dir::with_sibling_plugins(found).map_err(|error| error.to_string())?;
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
