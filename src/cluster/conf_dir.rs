//! Network configurations on disk: `confDir` (NPWG 1.3 §3.4.1) and what `clusterNetwork` names.

mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use serde_json::value::{RawValue, to_raw_value};

use crate::cni::{JsonError, NetworkName, PluginConfig, PluginConfigError, RawObject, Version};
use crate::diagnostic;
use crate::regular_file;

/// Endings in the order in which they are looked through: lists first (NPWG 1.3 §3.4.1).
const LISTS: [&str; 2] = ["conflist", "configlist"];
const SINGLES: [&str; 3] = ["conf", "config", "json"];
/// The largest configuration that is read, in bytes.
const MAX_FILE: u64 = 2 << 20;

/// A configuration found on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnDisk {
    /// The file.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

/// The configuration whose `name` is `name`: lists before single configurations, files in the
/// order of their names. Other files may be broken.
///
/// # Errors
/// When the directory exists and cannot be read.
pub fn by_name(dir: &Path, name: &str) -> Result<Option<OnDisk>, ConfDirError> {
    let files = match files(dir) {
        Ok(files) => files,
        Err(ConfDirError::Missing(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    for endings in [&LISTS[..], &SINGLES[..]] {
        for path in files.iter().filter(|path| has_ending(path, endings)) {
            let Ok(found) = read(path) else { continue };
            let named = RawObject::parse(found.text.as_bytes())
                .ok()
                .and_then(|object| object.read::<String>("name").ok().flatten());
            if named.as_deref() == Some(name) {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

/// The first configuration of a directory, in the order of the files' names.
///
/// # Errors
/// When the directory has no configuration, or the first one cannot be read.
pub fn first(dir: &Path) -> Result<OnDisk, ConfDirError> {
    let endings: Vec<&str> = LISTS.iter().chain(&SINGLES).copied().collect();
    match files(dir)?.iter().find(|path| has_ending(path, &endings)) {
        Some(path) => read(path),
        None => Err(ConfDirError::Empty(dir.to_owned())),
    }
}

/// One file.
///
/// # Errors
/// When it cannot be read or is larger than 2 MiB.
pub fn read(path: &Path) -> Result<OnDisk, ConfDirError> {
    let text =
        regular_file::read_text(path, MAX_FILE).map_err(|error| ConfDirError::of(path, error))?;
    Ok(OnDisk {
        path: path.to_owned(),
        text,
    })
}

/// A list on disk with the plugins of its sibling folder behind its own: every `.conf` in the
/// folder that has the network's name (CNI 1.1.0 §1 `loadOnlyInlinedPlugins`). A file with the ending
/// of a list is a list, whatever its `type` says.
///
/// # Errors
/// When a file in the folder is not a plugin: without it, the network would be another one.
pub fn with_sibling_plugins(found: OnDisk) -> Result<OnDisk, ConfDirError> {
    // The reader of a broken list says what is wrong.
    let Ok(mut list) = RawObject::parse_configuration(found.text.as_bytes()) else {
        return Ok(found);
    };
    let name = list.read::<NetworkName>("name").ok().flatten();
    let only_inlined = list.read("loadOnlyInlinedPlugins").ok().flatten();
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

/// The plugins of the auxiliary chain `name` below `dir`, as one list in `version`; `None` when
/// the folder is missing or has no plugins.
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
    let text = serde_json::json!({
        "cniVersion": version.as_str(),
        "name": name,
        "plugins": [],
    });
    let mut list = RawObject::parse(text.to_string().as_bytes()).unwrap_or_default();
    if let Ok(plugins) = to_raw_value(&plugins) {
        list.set("plugins", plugins);
    }
    Ok(Some(OnDisk {
        path,
        text: list.to_string(),
    }))
}

/// The `.conf` files of a folder, each one plugin as it is written, in the order of their names.
fn plugins(dir: &Path) -> Result<Vec<Box<RawValue>>, ConfDirError> {
    let files = match files(dir) {
        Ok(files) => files,
        Err(ConfDirError::Missing(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let files = files.iter().filter(|path| has_ending(path, &["conf"]));
    files
        .map(|path| {
            plugin(&read(path)?.text).map_err(|source| ConfDirError::Plugin {
                path: path.clone(),
                source,
            })
        })
        .collect()
}

/// The text of one plugin's configuration.
fn plugin(text: &str) -> Result<Box<RawValue>, PluginConfigError> {
    let body = RawObject::parse_configuration(text.as_bytes())?;
    PluginConfig::new(body)?;
    Ok(serde_json::from_str(text).map_err(JsonError::from)?)
}

fn files(dir: &Path) -> Result<Vec<PathBuf>, ConfDirError> {
    let failed = |error| ConfDirError::of(dir, error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() {
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
    /// The file is not the configuration of one plugin.
    Plugin {
        /// The file.
        path: PathBuf,
        /// Why.
        source: PluginConfigError,
    },
    /// The file or directory cannot be read.
    Unreadable {
        /// The path.
        path: PathBuf,
        /// Why.
        source: Arc<io::Error>,
    },
}

impl ConfDirError {
    fn of(path: &Path, error: io::Error) -> ConfDirError {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound => ConfDirError::Missing(path),
            _ => ConfDirError::Unreadable {
                path,
                source: Arc::new(error),
            },
        }
    }
}

#[cfg(test)]
mod tests;
