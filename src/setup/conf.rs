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
        let conf = OurConf::parts(object);
        let name: Option<String> = conf.ours.read("type").ok().flatten();
        (name.as_deref() == Some(NAME)).then_some(conf)
    }

    /// The parts of a list, of a single plugin, or of keys without a type.
    fn parts(object: &RawObject) -> OurConf {
        let plugins: Option<Vec<RawObject>> = object.read("plugins").ok().flatten();
        let mut plugins = plugins.unwrap_or_default().into_iter();
        let (list, single) = split(object);
        OurConf {
            list,
            ours: plugins.next().unwrap_or(single),
            followers: plugins.collect(),
        }
    }

    /// A configuration with the keys of `template` and the defaults of an installation.
    pub fn from_template(template: &RawObject) -> OurConf {
        OurConf::parts(template).completed()
    }

    /// A configuration with the keys of `base`, replaced by those of `template`. A `null` removes the
    /// base's key. The base's name stays, since the runtime records attachments by it.
    pub fn over(template: &RawObject, base: &RawObject) -> OurConf {
        let (given, mut conf) = (OurConf::parts(template), OurConf::parts(base));
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

    /// The same with the defaults of an installation, `type` first.
    fn completed(mut self) -> OurConf {
        put_missing(&mut self.list, "cniVersion", &VERSION);
        put_missing(&mut self.list, "cniVersions", &VERSIONS);
        put_missing(&mut self.list, "name", &NAME);
        self.ours.remove("type");
        let mut ours = RawObject::new();
        put(&mut ours, "type", &NAME);
        ours.overlay(&self.ours);
        let capabilities: Option<RawObject> = ours.read("capabilities").ok().flatten();
        let mut capabilities = capabilities.unwrap_or_default();
        for capability in CAPABILITIES {
            put_missing(&mut capabilities, capability, &true);
        }
        put(&mut ours, "capabilities", &capabilities);
        OurConf { ours, ..self }
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
        let named = self.cluster_network();
        if named.is_none_or(|named| Path::new(&named) != file) {
            put(&mut self.ours, "clusterNetwork", &file);
        }
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
        let plugins = std::iter::once(&self.ours).chain(&self.followers);
        let plugins = plugins.map(|plugin| lines(plugin, "      ", "    "));
        let plugins: Vec<String> = plugins.collect();
        let list = lines(&self.list, "  ", "");
        let list = list.strip_suffix("\n}").unwrap_or(&list);
        format!(
            "{list},\n  \"plugins\": [\n    {}\n  ]\n}}\n",
            plugins.join(",\n    ")
        )
    }
}

/// Sets the value of a key, at the end, in place of the key in any spelling.
pub(super) fn put<T: Serialize>(object: &mut RawObject, key: &str, value: &T) {
    if let Ok(value) = to_raw_value(value) {
        object.remove(key);
        object.set(key, value);
    }
}

/// Sets the value of a key that the object does not have.
pub(super) fn put_missing<T: Serialize>(object: &mut RawObject, key: &str, value: &T) {
    if !object.contains(key) {
        put(object, key, value);
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
pub(super) fn split(object: &RawObject) -> (RawObject, RawObject) {
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
