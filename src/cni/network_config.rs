//! The configuration of a network, with the chain of plugins that attach a pod to the network.

use serde_json::value::RawValue;
use thiserror::Error;

use super::json::{JsonError, RawObject};
use super::names::{NameError, NetworkName};
use super::plugin_config::{PluginConfig, PluginConfigError};
use super::version::{Version, VersionError};

/// How many plugins a chain may have.
///
/// Real chains have fewer than ten. The limit bounds the number of processes of one call.
pub const MAX_PLUGINS: usize = 64;

/// How large a configuration may be, in bytes. The configuration in a definition is smaller,
/// because etcd by default stores at most 1.5 MiB per object.
pub const MAX_BYTES: usize = 2 * 1024 * 1024;

/// A network configuration: a list of plugins (CNI 1.1.0 §1 "Configuration format"), or a single
/// plugin. CNI 1.0.0 removed the single plugin, but definitions still use it (NPWG 1.3 §3.2.1).
///
/// A `NetworkConfig` keeps its original text. To detach a pod, Jackfield uses the configuration
/// that attached the pod, even if the definition has changed since (CNI 1.1.0 §3 "should not change
/// between add and delete").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkConfig {
    name: Option<NetworkName>,
    version: Version,
    disable_check: bool,
    disable_gc: bool,
    is_single: bool,
    plugins: Vec<PluginConfig>,
    raw: Box<str>,
}

impl NetworkConfig {
    /// Reads a list of plugins or a single plugin. As in Multus, a configuration with `type` is a
    /// single plugin, even if it also has `plugins`. If `type` is missing or empty, `plugins` is
    /// the list of plugins.
    ///
    /// The case of keys does not matter, and `null` means absent, as in Go's `encoding/json`.
    /// As in the reference library:
    /// - `cniVersions` may add versions to `cniVersion`.
    /// - `disableCheck` and `disableGC` may be strings.
    ///
    /// Unlike the reference library, this method refuses a key that occurs twice.
    ///
    /// # Errors
    ///
    /// [`NetworkConfigError`] if the configuration is invalid or exceeds a limit.
    pub fn parse(text: &[u8]) -> Result<Self, NetworkConfigError> {
        let raw = text_of(text)?;
        super::json::unambiguous(raw, &[])?;
        Self::read(raw)
    }

    /// Reads a configuration from the journal. A key may occur twice, because earlier releases of
    /// Jackfield attached pods with such configurations.
    ///
    /// # Errors
    ///
    /// As [`Self::parse`], except that a key which occurs twice is no error.
    pub fn recorded(text: &[u8]) -> Result<Self, NetworkConfigError> {
        Self::read(text_of(text)?)
    }

    fn read(raw: &str) -> Result<Self, NetworkConfigError> {
        let object: RawObject = serde_json::from_str(raw).map_err(JsonError::from)?;
        let name = object.read_text("name")?.map(|text| text.parse());
        let is_single = object.get("type").is_some_and(|name| name.get() != "\"\"");
        Ok(Self {
            name: name.transpose().map_err(NetworkConfigError::Name)?,
            version: version(&object)?,
            disable_check: flag(&object, "disableCheck")?,
            disable_gc: flag(&object, "disableGC")?,
            is_single,
            plugins: plugins(object, is_single)?,
            raw: raw.into(),
        })
    }

    /// The key `name`; `None` when it is missing or empty.
    pub fn name(&self) -> Option<&NetworkName> {
        self.name.as_ref()
    }

    /// The protocol version for the plugins: see [`Version::negotiate`].
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether the configuration disables CHECK.
    pub fn disable_check(&self) -> bool {
        self.disable_check
    }

    /// Whether the configuration disables GC.
    pub fn disable_gc(&self) -> bool {
        self.disable_gc
    }

    /// Whether the configuration is a single plugin instead of a list.
    pub fn is_single(&self) -> bool {
        self.is_single
    }

    /// The plugins in the order of ADD, at least one.
    pub fn plugins(&self) -> &[PluginConfig] {
        &self.plugins
    }

    /// Whether any plugin of the chain declares a capability. NPWG 1.3 §4.1.2.1.3.2 and similar
    /// clauses require such a plugin if the pod requests the capability.
    pub fn declares(&self, capability: &str) -> bool {
        let mut plugins = self.plugins.iter();
        plugins.any(|plugin| plugin.declares(capability))
    }

    /// The original text of the configuration.
    pub fn raw(&self) -> &str {
        &self.raw
    }
}

fn text_of(text: &[u8]) -> Result<&str, NetworkConfigError> {
    if text.len() > MAX_BYTES {
        return Err(NetworkConfigError::TooLarge(text.len()));
    }
    Ok(super::json::check(text)?)
}

fn version(object: &RawObject) -> Result<Version, NetworkConfigError> {
    let wrong_type = NetworkConfigError::VersionType;
    let version: Option<String> = object.read("cniVersion").map_err(wrong_type)?;
    let versions: Option<Vec<Option<String>>> = object.read("cniVersions").map_err(wrong_type)?;
    let versions: Vec<String> = versions.into_iter().flatten().flatten().collect();
    Ok(Version::negotiate(version.as_deref(), &versions)?)
}

fn flag(object: &RawObject, key: &str) -> Result<bool, JsonError> {
    let written = object.get(key).map_or("false", RawValue::get);
    let text = written.trim_matches('"').to_ascii_lowercase();
    let invalid = |_| JsonError::key(key, written, "expected true or false");
    text.parse().map_err(invalid)
}

fn plugins(object: RawObject, is_single: bool) -> Result<Vec<PluginConfig>, NetworkConfigError> {
    let list = match is_single {
        true => vec![object],
        false => object.read("plugins")?.unwrap_or_default(),
    };
    match list.len() {
        0 => return Err(NetworkConfigError::NoPlugins),
        count if count > MAX_PLUGINS => return Err(NetworkConfigError::TooManyPlugins(count)),
        _ => {}
    }
    let plugins = list.into_iter().zip(1..).map(|(body, position)| {
        let blame = |source| NetworkConfigError::Plugin { position, source };
        PluginConfig::new(body).map_err(blame)
    });
    plugins.collect()
}

/// Why a network configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetworkConfigError {
    /// The text is not JSON, a key occurs twice, or a value is invalid.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// `cniVersion` or `cniVersions` has the wrong type.
    #[error(transparent)]
    VersionType(JsonError),
    /// Jackfield supports none of the versions.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// The text is larger than [`MAX_BYTES`].
    #[error("the configuration has {0} bytes; {MAX_BYTES} are allowed")]
    TooLarge(usize),
    /// `name` is not a valid network name.
    #[error("key \"name\": {0}")]
    Name(#[source] NameError),
    /// The configuration names no plugin.
    #[error("no plugin is given; name one with the key \"type\", or several in \"plugins\"")]
    NoPlugins,
    /// The chain is longer than [`MAX_PLUGINS`].
    #[error("key \"plugins\" lists {0} plugins; {MAX_PLUGINS} are allowed")]
    TooManyPlugins(usize),
    /// The configuration of one plugin is invalid.
    #[error("plugin {position} of the chain: {source}")]
    Plugin {
        /// The plugin's position in the chain, from 1.
        position: usize,
        /// What is wrong.
        #[source]
        source: PluginConfigError,
    },
}

#[cfg(test)]
mod tests;
