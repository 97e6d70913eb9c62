//! Jackfield's own configuration, which the runtime reads: a configuration list whose first plugin
//! is Jackfield.
//!
//! The configuration is a list for two reasons. First, in the configuration of a single plugin,
//! libcni ignores `cniVersions` and uses only `cniVersion`. Jackfield's default `cniVersion` is
//! 1.0.0, which has no STATUS and no GC. Second, other programs, such as Istio, append their
//! plugins to the first list in the runtime's directory. If Jackfield's configuration were not a
//! list, these programs would append to a list that the runtime does not use.

use std::path::Path;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::NAME;
use crate::cni::RawObject;
use crate::request::{self, NodeConfig};

/// The keys of a list. All other keys belong to the plugin.
const OF_LIST: [&str; 6] = [
    "cniVersion",
    "cniVersions",
    "name",
    "disableCheck",
    "disableGC",
    "plugins",
];
/// The default `cniVersion` of the list, for runtimes that ignore `cniVersions`.
const VERSION: &str = "1.0.0";
/// The default `cniVersions` of the list.
const VERSIONS: [&str; 4] = ["0.3.1", "0.4.0", "1.0.0", "1.1.0"];
/// The capabilities that the runtime should pass: host ports, bandwidth limits, and the pod's
/// annotations.
const CAPABILITIES: [&str; 3] = [
    "portMappings",
    "bandwidth",
    "io.kubernetes.cri.pod-annotations",
];

/// Pairs of keys that exclude each other. [`OurConf::over`] overrides a configuration with the
/// administrator's template (the file of `--conf`). If the template sets the first key of a pair,
/// `over` removes the second key from the configuration.
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
    /// The keys of Jackfield's entry in `plugins`.
    ours: RawObject,
    /// The plugins that other programs appended.
    followers: Vec<RawObject>,
}

impl OurConf {
    /// Reads a list or a single plugin. Returns `None` if the first plugin is not Jackfield.
    pub fn read(object: &RawObject) -> Option<OurConf> {
        let conf = OurConf::parts(object);
        let name: Option<String> = conf.ours.value_as("type");
        (name.as_deref() == Some(NAME)).then_some(conf)
    }

    /// Splits a list, a single plugin, or a template without a `type` into the fields of an
    /// [`OurConf`].
    fn parts(object: &RawObject) -> OurConf {
        let plugins: Vec<RawObject> = object.value_as("plugins").unwrap_or_default();
        let mut plugins = plugins.into_iter();
        let (list, single) = split(object);
        OurConf {
            list,
            ours: plugins.next().unwrap_or(single),
            followers: plugins.collect(),
        }
    }

    /// Adds the defaults of an installation to the administrator's keys in `template`.
    pub fn from_template(template: &RawObject) -> OurConf {
        OurConf::parts(template).completed()
    }

    /// Makes a configuration from the keys of `base`, overridden by the keys of `template`. A
    /// `null` in the template removes the key. If `base` has a `name`, the configuration keeps this
    /// name, because the runtime records attachments under it.
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

    /// Adds the missing defaults of an installation, and puts `type` first.
    fn completed(mut self) -> OurConf {
        put_missing(&mut self.list, "cniVersion", &VERSION);
        put_missing(&mut self.list, "cniVersions", &VERSIONS);
        put_missing(&mut self.list, "name", &NAME);
        self.ours.remove("type");
        let mut ours = RawObject::new();
        put(&mut ours, "type", &NAME);
        ours.overlay(&self.ours);
        let mut capabilities: RawObject = ours.value_as("capabilities").unwrap_or_default();
        for capability in CAPABILITIES {
            put_missing(&mut capabilities, capability, &true);
        }
        put(&mut ours, "capabilities", &capabilities);
        OurConf { ours, ..self }
    }

    /// Returns this configuration with the `followers` of `other`.
    #[must_use]
    pub fn followed_as(mut self, other: &OurConf) -> OurConf {
        self.followers.clone_from(&other.followers);
        self
    }

    /// Returns this configuration with `file`, a path on the host, as `clusterNetwork`.
    #[must_use]
    pub fn in_front_of(mut self, file: &Path) -> OurConf {
        let named = self.cluster_network();
        if named.is_none_or(|named| Path::new(&named) != file) {
            put(&mut self.ours, "clusterNetwork", &file);
        }
        self
    }

    /// Whether the configuration names a cluster network.
    pub fn names_a_network(&self) -> bool {
        self.ours.get("clusterNetwork").is_some() || self.ours.get("delegates").is_some()
    }

    /// Returns the value of `clusterNetwork`, if it is a string.
    pub fn cluster_network(&self) -> Option<String> {
        self.ours.value_as("clusterNetwork")
    }

    /// Returns the types of the plugins that other programs appended.
    pub fn follower_types(&self) -> Vec<String> {
        let types = self.followers.iter();
        types.filter_map(|plugin| plugin.value_as("type")).collect()
    }

    /// Returns what the runtime passes to Jackfield on stdin (CNI 1.1.0 §3 "Deriving execution
    /// configuration from plugin configuration").
    pub fn on_stdin(&self) -> RawObject {
        let mut stdin = self.ours.clone();
        for key in ["cniVersion", "cniVersions", "name"] {
            if let Some(value) = self.list.get(key) {
                replace(&mut stdin, key, value);
            }
        }
        stdin
    }

    /// Parses Jackfield's part of the list. Checks the CNI version and every key.
    ///
    /// # Errors
    /// The errors of [`request::version`] and [`NodeConfig::parse`].
    pub fn node_config(&self) -> Result<NodeConfig, request::NodeConfigError> {
        let stdin = self.on_stdin();
        request::version(&stdin)?;
        NodeConfig::parse(&stdin)
    }

    /// Returns the text of the configuration file, with one key per line. Values stay as they were
    /// written.
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

/// Removes `key` in every spelling, regardless of letter case. Then adds `key` with `value` as the
/// last key of the object.
pub(super) fn put<T: Serialize>(object: &mut RawObject, key: &str, value: &T) {
    if let Ok(value) = to_raw_value(value) {
        object.remove(key);
        object.set(key, value);
    }
}

/// Sets the value of a key that is missing or `null`.
pub(super) fn put_missing<T: Serialize>(object: &mut RawObject, key: &str, value: &T) {
    if object.get(key).is_none() {
        put(object, key, value);
    }
}

/// Like [`put`]. If `value` is `null`, removes the key and adds nothing.
fn replace(object: &mut RawObject, key: &str, value: &RawValue) {
    object.remove(key);
    if value.get() != "null" {
        object.set(key, value.to_owned());
    }
}

/// Splits an object into the keys of a list and all other keys. Drops `plugins`.
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
