//! Network configurations on disk: in `confDir` (NPWG 1.3 §3.4.1), and at the paths that
//! `clusterNetwork` and `defaultNetworks` name.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::cni::{JsonError, NetworkName, PluginConfig, PluginConfigError, RawObject, Version};
use crate::diagnostic::{self, Problem};
use crate::regular_file::{self, found};

/// The file name endings of configurations.
const ENDINGS: [&str; 5] = ["conflist", "configlist", "conf", "config", "json"];
/// The file name endings of configuration lists.
const LISTS: [&str; 2] = ["conflist", "configlist"];
/// The largest configuration that is read, in bytes.
const MAX_FILE: u64 = 2 << 20;

/// A configuration found on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnDisk {
    /// The file.
    pub path: PathBuf,
    /// The text of the file.
    pub text: String,
}

/// Finds the configuration with the given `name`. Searches first the lists and then the single
/// configurations, each in the order of their file names. Skips files that cannot be read or are
/// not JSON.
///
/// # Errors
/// When the directory exists and cannot be read.
pub fn by_name(dir: &Path, name: &str) -> Result<Option<OnDisk>, ConfDirError> {
    let mut files = files_if_any(dir, &ENDINGS)?;
    // Lists come first (NPWG 1.3 §3.4.1).
    files.sort_by_key(|path| !has_ending(path, &LISTS));
    for path in files {
        let Ok(found) = read(&path) else { continue };
        let object = RawObject::parse(found.text.as_bytes()).unwrap_or_default();
        if object.value_as::<String>("name").as_deref() == Some(name) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Reads the first configuration of a directory, in the order of the file names.
///
/// # Errors
/// When the directory cannot be read or has no configuration, or when the first configuration
/// cannot be read.
pub fn first(dir: &Path) -> Result<OnDisk, ConfDirError> {
    let files = files_ending(dir, &ENDINGS).map_err(|error| ConfDirError::of(dir, error))?;
    let first = files.first();
    read(first.ok_or_else(|| ConfDirError::Empty(dir.to_owned()))?)
}

/// Reads one file.
///
/// # Errors
/// When the file cannot be read or is larger than 2 MiB.
pub fn read(path: &Path) -> Result<OnDisk, ConfDirError> {
    let text =
        regular_file::read_text(path, MAX_FILE).map_err(|error| ConfDirError::of(path, error))?;
    Ok(OnDisk {
        path: path.to_owned(),
        text,
    })
}

/// Appends the plugins of a list's sibling folder to the list, unless the list sets
/// `loadOnlyInlinedPlugins` to true (CNI 1.1.0 §1). The folder is in the same directory as the list
/// and has the network's name. Each `.conf` file in the folder contains a plugin.
///
/// A configuration is a list or a single plugin:
/// - A configuration without `type` is a list.
/// - A configuration with both `type` and `plugins` is a list if its file has the ending of a list.
///   This function then removes `type`.
/// - Any other configuration with `type` is a single plugin and stays unchanged.
///
/// A list without a valid `name` or with an invalid `plugins` stays unchanged too.
///
/// # Errors
/// When the folder exists but cannot be read. Also when one of its `.conf` files cannot be read or
/// is not a plugin's configuration. This function does not skip such a file, because the network
/// would behave differently without the plugin.
pub fn with_sibling_plugins(found: OnDisk) -> Result<OnDisk, ConfDirError> {
    // The caller parses a broken list again and reports the error.
    let Ok(mut list) = RawObject::parse_configuration(found.text.as_bytes()) else {
        return Ok(found);
    };
    let name = list.value_as::<NetworkName>("name");
    let only_inlined = list.value_as("loadOnlyInlinedPlugins");
    let (Some(name), Some(dir)) = (name, found.path.parent()) else {
        return Ok(found);
    };
    let is_list = has_ending(&found.path, &LISTS) && list.contains("plugins");
    let is_typed = list.contains("type");
    if is_typed && !is_list {
        return Ok(found);
    }
    list.remove("type");
    let further = match only_inlined {
        Some(true) => Vec::new(),
        _ => plugins(&dir.join(name.as_str()))?,
    };
    if further.is_empty() && !is_typed {
        return Ok(found);
    }
    let Ok(own) = list.read::<Vec<Box<RawValue>>>("plugins") else {
        return Ok(found);
    };
    let all: Vec<Box<RawValue>> = own.into_iter().flatten().chain(further).collect();
    list.remove("plugins");
    if let Ok(all) = to_raw_value(&all) {
        list.set("plugins", all);
    }
    Ok(OnDisk {
        text: list.to_string(),
        ..found
    })
}

/// Reads the auxiliary chain `name` (key `auxiliaryCNIChainName`) from the folder `dir/name`. The
/// plugins of this chain run for every pod. Returns them as one list with `cniVersion` set to
/// `version`; `None` when the folder is missing or has no plugins.
///
/// # Errors
/// As [`with_sibling_plugins`].
pub fn auxiliary_chain(
    dir: &Path,
    name: &NetworkName,
    version: Version,
) -> Result<Option<OnDisk>, ConfDirError> {
    let path = dir.join(name.as_str());
    let plugins = plugins(&path)?;
    if plugins.is_empty() {
        return Ok(None);
    }
    let list = PluginList {
        version: version.as_str(),
        name,
        plugins,
    };
    // The list always serializes, because the text of each plugin is valid JSON.
    let text = serde_json::to_string(&list).unwrap_or_default();
    Ok(Some(OnDisk { path, text }))
}

/// A network configuration list.
#[derive(Serialize)]
struct PluginList<'a> {
    #[serde(rename = "cniVersion")]
    version: &'a str,
    name: &'a NetworkName,
    plugins: Vec<Box<RawValue>>,
}

/// Reads the `.conf` files of a folder in the order of their names. Each file contains one plugin.
/// The plugin's text stays unchanged.
fn plugins(dir: &Path) -> Result<Vec<Box<RawValue>>, ConfDirError> {
    let read_plugin = |path: &PathBuf| {
        plugin(&read(path)?.text).map_err(|error| ConfDirError::Plugin(path.clone(), error))
    };
    let files = files_if_any(dir, &["conf"])?;
    files.iter().map(read_plugin).collect()
}

/// Checks one plugin's configuration and returns its text.
fn plugin(text: &str) -> Result<Box<RawValue>, PluginConfigError> {
    let body = RawObject::parse_configuration(text.as_bytes())?;
    PluginConfig::new(body)?;
    Ok(serde_json::from_str(text).map_err(JsonError::from)?)
}

fn files_if_any(dir: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, ConfDirError> {
    let files = found(files_ending(dir, endings));
    let files = files.map_err(|error| ConfDirError::of(dir, error))?;
    Ok(files.unwrap_or_default())
}

/// Returns the files of a directory that have one of these `endings`, in the order of their names.
pub(super) fn files_ending(dir: &Path, endings: &[&str]) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if has_ending(&path, endings) && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    path.extension()
        .and_then(|end| end.to_str())
        .is_some_and(|end| endings.contains(&end))
}

/// Why a configuration on disk cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", diagnostic::line(self))]
pub enum ConfDirError {
    /// The file or directory does not exist.
    Missing(PathBuf),
    /// The directory has no configuration.
    Empty(PathBuf),
    /// This file is not a valid configuration of a single plugin.
    Plugin(PathBuf, #[source] PluginConfigError),
    /// This file or directory cannot be read.
    Unreadable(PathBuf, #[source] Arc<io::Error>),
}

impl Problem for ConfDirError {
    fn words(&self) -> String {
        match self {
            ConfDirError::Missing(path) => format!("{} does not exist", path.display()),
            ConfDirError::Empty(path) => format!(
                "{} has no .conflist, .configlist, .conf, .config or .json file",
                path.display()
            ),
            ConfDirError::Plugin(path, cause) => format!("{}: {cause}", path.display()),
            ConfDirError::Unreadable(path, cause) => format!("{}: {cause}", path.display()),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            ConfDirError::Missing(_) => "correct the path or wait for the network to be installed",
            ConfDirError::Empty(_) => "put a configuration there",
            ConfDirError::Plugin(..) => "correct the file, or remove it if it configures no plugin",
            ConfDirError::Unreadable(..) => "correct the file or directory, or its path",
        };
        Some(remedy.to_owned())
    }
}

impl ConfDirError {
    fn of(path: &Path, error: io::Error) -> ConfDirError {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound => ConfDirError::Missing(path),
            _ => ConfDirError::Unreadable(path, Arc::new(error)),
        }
    }
}

#[cfg(test)]
mod tests;
