//! Network configurations on disk: `confDir` (NPWG 1.3 §3.4.1) and what `clusterNetwork` names.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::value::{RawValue, to_raw_value};

use crate::cni::{NetworkName, PluginConfig, RawObject, Version};
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
/// order of their names. A file that is broken and is not the one wanted never matters.
///
/// # Errors
/// When the directory exists and cannot be read.
pub fn by_name(dir: &Path, name: &str) -> Result<Option<OnDisk>, ConfDirError> {
    let files = match files(dir) {
        Ok(files) => files,
        Err(ConfDirError::Missing { .. }) => return Ok(None),
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
/// When there is none, or it cannot be read.
pub fn first(dir: &Path) -> Result<OnDisk, ConfDirError> {
    let endings: Vec<&str> = LISTS.iter().chain(&SINGLES).copied().collect();
    match files(dir)?.iter().find(|path| has_ending(path, &endings)) {
        Some(path) => read(path),
        None => Err(ConfDirError::Empty {
            dir: dir.display().to_string(),
        }),
    }
}

/// One file.
///
/// # Errors
/// When it cannot be read or is larger than 2 MiB.
pub fn read(path: &Path) -> Result<OnDisk, ConfDirError> {
    let unreadable = |cause: std::io::Error| match cause.kind() {
        std::io::ErrorKind::NotFound => ConfDirError::Missing {
            path: path.display().to_string(),
        },
        _ => ConfDirError::Unreadable {
            path: path.display().to_string(),
            cause: cause.to_string(),
        },
    };
    let text = regular_file::read_text(path, MAX_FILE).map_err(unreadable)?;
    Ok(OnDisk {
        path: path.to_owned(),
        text,
    })
}

/// A list on disk with the plugins of its sibling folder behind its own: every `.conf` in the
/// folder that has the network's name (CNI 1.1.0 §1 `loadOnlyInlinedPlugins`). What is named a list is
/// one, whatever its `type` says.
///
/// # Errors
/// When one of these is there and is no plugin: a network without it is not the one that was
/// meant.
pub fn with_sibling_plugins(found: OnDisk) -> Result<OnDisk, ConfDirError> {
    // A broken list is for its reader to judge.
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
/// the folder is not there or has none.
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
        "cniVersion": version,
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
        Err(ConfDirError::Missing { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let files = files.iter().filter(|path| has_ending(path, &["conf"]));
    files
        .map(|path| {
            let found = read(path)?;
            let broken = |cause: String| ConfDirError::Plugin {
                path: path.display().to_string(),
                cause,
            };
            let body = RawObject::parse_configuration(found.text.as_bytes())
                .map_err(|cause| broken(cause.to_string()))?;
            PluginConfig::new(body).map_err(|cause| broken(cause.to_string()))?;
            serde_json::from_str(&found.text).map_err(|cause| broken(cause.to_string()))
        })
        .collect()
}

fn files(dir: &Path) -> Result<Vec<PathBuf>, ConfDirError> {
    let failed = |cause: std::io::Error| match cause.kind() {
        std::io::ErrorKind::NotFound => ConfDirError::Missing {
            path: dir.display().to_string(),
        },
        _ => ConfDirError::Unreadable {
            path: dir.display().to_string(),
            cause: cause.to_string(),
        },
    };
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

/// Why a configuration on disk could not be had.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfDirError {
    /// It is not there.
    #[error("{path} does not exist; correct the path or wait for the network to be installed")]
    Missing {
        /// The path.
        path: String,
    },
    /// The directory has no configuration.
    #[error("{dir} has no .conflist, .configlist, .conf, .config or .json; put one there")]
    Empty {
        /// The directory.
        dir: String,
    },
    /// A file that is to be one plugin is none.
    #[error("{path}: {cause}; make it the configuration of one plugin, or remove it")]
    Plugin {
        /// The file.
        path: String,
        /// Why.
        cause: String,
    },
    /// It is there and cannot be read.
    #[error("{path}: {cause}; make it a readable configuration")]
    Unreadable {
        /// The path.
        path: String,
        /// Why.
        cause: String,
    },
}

#[cfg(test)]
mod tests;
