//! Our own configuration, as a file that the runtime reads: a list whose first plugin is Jackfield.
//!
//! It is a list because libcni ignores the `cniVersions` of a single plugin, and with them STATUS and
//! GC, and because other programs append themselves to the runtime's first list (Istio does).

use std::path::Path;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::NAME;
use crate::cni::RawObject;
use crate::request::{self, NodeConfig};

/// The keys of a list; all others are the plugin's.
const OF_LIST: [&str; 6] = [
    "cniVersion",
    "cniVersions",
    "name",
    "disableCheck",
    "disableGC",
    "plugins",
];
/// The CNI versions of our configuration. The first is for runtimes that ignore the others.
const VERSION: &str = "1.0.0";
const VERSIONS: [&str; 4] = ["0.3.1", "0.4.0", "1.0.0", "1.1.0"];
/// What the runtime is to pass: host ports, bandwidth limits, and the pod's annotations.
const CAPABILITIES: [&str; 3] = [
    "portMappings",
    "bandwidth",
    "io.kubernetes.cri.pod-annotations",
];

/// Pairs of keys that exclude each other: the first of a template removes the second.
const EXCLUDES: [(&str, &str); 4] = [
    ("clusterNetwork", "delegates"),
    ("delegates", "clusterNetwork"),
    ("manifestDir", "kubeconfig"),
    ("manifestDir", "agentSocket"),
];

/// A configuration whose first plugin is Jackfield.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OurConf {
    /// The list's own keys, without `plugins`.
    list: RawObject,
    /// Our plugin's part.
    ours: RawObject,
    /// The plugins that other programs appended.
    followers: Vec<RawObject>,
}

impl OurConf {
    /// Reads a list or a single plugin; `None` when its first plugin is another one.
    pub fn read(object: &RawObject) -> Option<OurConf> {
        let plugins: Vec<RawObject> = object.read("plugins").ok().flatten().unwrap_or_default();
        let mut plugins = plugins.into_iter();
        let ours = match plugins.next() {
            Some(first) => first,
            None => object.clone(),
        };
        if ours.read::<String>("type").ok().flatten().as_deref() != Some(NAME) {
            return None;
        }
        let (list, of_plugin) = split(object);
        let is_list = object.contains("plugins");
        Some(OurConf {
            list,
            ours: if is_list { ours } else { of_plugin },
            followers: plugins.collect(),
        })
    }

    /// A configuration with the keys of `template` and the defaults of an installation.
    pub fn from_template(template: &RawObject) -> OurConf {
        OurConf::written(template).completed()
    }

    /// A configuration with the keys of `base`, replaced by those of `template`. A `null` removes the
    /// base's key. The base's name stays, since the runtime records attachments by it.
    pub fn over(template: &RawObject, base: &RawObject) -> OurConf {
        let (given, mut conf) = (OurConf::written(template), OurConf::written(base));
        for (key, excluded) in EXCLUDES {
            if given.ours.get(key).is_some() {
                conf.ours.remove(excluded);
            }
        }
        for (key, value) in given.list.iter() {
            if !(key.eq_ignore_ascii_case("name") && conf.list.contains("name")) {
                replace(&mut conf.list, key, value);
            }
        }
        for (key, value) in given.ours.iter() {
            replace(&mut conf.ours, key, value);
        }
        if !given.followers.is_empty() {
            conf.followers = given.followers;
        }
        conf.completed()
    }

    /// The parts of a list, of a single plugin, or of keys without a type.
    fn written(template: &RawObject) -> OurConf {
        OurConf::read(template).unwrap_or_else(|| {
            let (list, ours) = split(template);
            OurConf {
                list,
                ours,
                followers: Vec::new(),
            }
        })
    }

    fn completed(self) -> OurConf {
        let OurConf {
            mut list,
            mut ours,
            followers,
        } = self;
        let set = |object: &mut RawObject, key: &str, value: &dyn ErasedValue| {
            if !object.contains(key)
                && let Some(value) = value.raw()
            {
                object.set(key, value);
            }
        };
        set(&mut list, "cniVersion", &VERSION);
        set(&mut list, "cniVersions", &VERSIONS);
        set(&mut list, "name", &NAME);
        ours.remove("type");
        let mut typed = RawObject::new();
        put(&mut typed, "type", &NAME);
        for (key, value) in ours.iter() {
            typed.set(key, value.to_owned());
        }
        let mut capabilities: RawObject = typed
            .read("capabilities")
            .ok()
            .flatten()
            .unwrap_or_default();
        for capability in CAPABILITIES {
            set(&mut capabilities, capability, &true);
        }
        typed.remove("capabilities");
        put(&mut typed, "capabilities", &capabilities);
        OurConf {
            list,
            ours: typed,
            followers,
        }
    }

    /// The same with the plugins that other programs appended to `other`.
    #[must_use]
    pub fn followed_as(mut self, other: &OurConf) -> OurConf {
        self.followers.clone_from(&other.followers);
        self
    }

    /// The same with this file of the host as the cluster network.
    #[must_use]
    pub fn in_front_of(mut self, file: &Path) -> OurConf {
        if self
            .cluster_network()
            .is_some_and(|named| Path::new(&named) == file)
        {
            return self;
        }
        self.ours.remove("clusterNetwork");
        put(&mut self.ours, "clusterNetwork", &file);
        self
    }

    /// Whether it names the cluster network.
    pub fn names_a_network(&self) -> bool {
        self.ours.get("clusterNetwork").is_some() || self.ours.get("delegates").is_some()
    }

    /// `clusterNetwork`, if that is a string.
    pub fn cluster_network(&self) -> Option<String> {
        self.ours.read("clusterNetwork").ok().flatten()
    }

    /// The types of the plugins that other programs appended.
    pub fn follower_types(&self) -> Vec<String> {
        let types = self.followers.iter();
        types
            .filter_map(|plugin| plugin.read("type").ok().flatten())
            .collect()
    }

    /// What the runtime passes on stdin (CNI 1.1.0 §3 "Deriving execution configuration from plugin
    /// configuration").
    pub fn on_stdin(&self) -> RawObject {
        let mut stdin = self.ours.clone();
        for key in ["cniVersion", "cniVersions", "name"] {
            if let Some(value) = self.list.get(key) {
                stdin.remove(key);
                stdin.set(key, value.to_owned());
            }
        }
        stdin
    }

    /// Our plugin's part, after a check of its version and every key.
    ///
    /// # Errors
    /// As [`request::version`] and [`NodeConfig::parse`].
    pub fn node_config(&self) -> Result<NodeConfig, request::NodeConfigError> {
        let stdin = self.on_stdin();
        request::version(&stdin)?;
        NodeConfig::parse(&stdin)
    }

    /// The file's text, one key per line. Values stay as they were written.
    pub fn text(&self) -> String {
        let mut plugins: Vec<String> = vec![lines(&self.ours, "      ", "    ")];
        plugins.extend(
            self.followers
                .iter()
                .map(|plugin| lines(plugin, "      ", "    ")),
        );
        let mut list = self.list.clone();
        list.remove("plugins");
        let list = lines(&list, "  ", "");
        let list = list.strip_suffix("\n}").unwrap_or(&list);
        format!(
            "{list},\n  \"plugins\": [\n    {}\n  ]\n}}\n",
            plugins.join(",\n    ")
        )
    }
}

/// A value that can be written into an object.
trait ErasedValue {
    fn raw(&self) -> Option<Box<RawValue>>;
}

impl<T: Serialize> ErasedValue for T {
    fn raw(&self) -> Option<Box<RawValue>> {
        to_raw_value(self).ok()
    }
}

pub(super) fn put<T: Serialize>(object: &mut RawObject, key: &str, value: &T) {
    if let Ok(value) = to_raw_value(value) {
        object.set(key, value);
    }
}

/// Replaces the value of a key in any spelling; a `null` removes it.
fn replace(object: &mut RawObject, key: &str, value: &RawValue) {
    object.remove(key);
    if value.get() != "null" {
        object.set(key, value.to_owned());
    }
}

/// The keys of a list, and all others.
fn split(object: &RawObject) -> (RawObject, RawObject) {
    let (mut list, mut plugin) = (RawObject::new(), RawObject::new());
    for (key, value) in object.iter() {
        let of_list = OF_LIST.iter().any(|known| known.eq_ignore_ascii_case(key));
        let target = if of_list { &mut list } else { &mut plugin };
        target.set(key, value.to_owned());
    }
    list.remove("plugins");
    (list, plugin)
}

fn lines(object: &RawObject, indent: &str, closing: &str) -> String {
    let keys = object.iter().map(|(key, value)| {
        let key = serde_json::Value::from(key).to_string();
        format!("{indent}{key}: {}", value.get())
    });
    let keys: Vec<String> = keys.collect();
    format!("{{\n{}\n{closing}}}", keys.join(",\n"))
}

#[cfg(test)]
mod tests;
