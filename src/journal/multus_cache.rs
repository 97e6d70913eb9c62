//! The cache of the attachments that Multus made. The directory of the cache is the value of the
//! key `cniDir` in Multus' configuration. Jackfield only reads the cache, with one exception: the
//! uninstallation removes the files of pods that Jackfield has detached.
//!
//! ```text
//! <cniDir>/<container>                                the delegates, in order of attachment
//! <cniDir>/results/<network>-<container>-<interface>  configuration, arguments, result (libcni)
//! ```
//!
//! Neither file is complete: the first contains the order and what the pod requested, the second
//! contains the arguments and the result. If one file is missing or damaged, Jackfield uses the
//! other file alone to detach the network, because otherwise the attachment would leak.

mod damage;
mod delegate;
mod result_file;

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::Key;
use crate::cni::{CniResult, ContainerId, InterfaceName, NetworkConfig, json};
use crate::plan::Attachment;
use crate::regular_file;
use damage::CacheError;
use delegate::Delegate;
use result_file::ResultFile;

pub use damage::CacheDamage;

/// The size limit of a file, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// The cache of Multus in one directory.
#[derive(Debug)]
pub struct MultusCache<'a> {
    dir: &'a Path,
}

/// One sandbox in the cache.
#[derive(Debug, Default)]
pub struct CachedSandbox {
    /// The attachments, in the order of attaching.
    pub attachments: Vec<CachedAttachment>,
    /// The path of the network namespace.
    pub netns: Option<String>,
    /// The parts of the cache that could not be read.
    pub damage: Vec<CacheDamage>,
}

/// One attachment that Multus made.
#[derive(Debug)]
pub struct CachedAttachment {
    /// The plugins' configurations and what the pod requested.
    pub attachment: Attachment,
    /// The `CNI_ARGS` of the plugins; empty if they are unknown.
    pub args: String,
    /// The result of the plugins.
    pub result: Option<CniResult>,
}

impl CachedSandbox {
    /// Whether the cache contains the sandbox, even if no part of it can be read.
    pub fn is_known(&self) -> bool {
        !self.attachments.is_empty() || !self.damage.is_empty()
    }
}

impl<'a> MultusCache<'a> {
    /// Returns the cache in `dir` without reading anything.
    pub fn new(dir: &'a Path) -> MultusCache<'a> {
        MultusCache { dir }
    }

    /// Reads one sandbox. The result is empty if the cache does not contain the sandbox.
    pub fn read(&self, key: &Key) -> CachedSandbox {
        let mut sandbox = CachedSandbox::default();
        let mut results = Vec::new();
        for (result, path) in self.results(&key.container) {
            match result {
                Ok(result) => results.push((path, result)),
                Err(cause) => sandbox.damage.push(CacheDamage { path, cause }),
            }
        }
        let file = self.dir.join(key.container.as_str());
        let delegates = delegates(&file).unwrap_or_else(|cause| {
            let path = file.clone();
            sandbox.damage.push(CacheDamage { path, cause });
            Vec::new()
        });
        for (position, raw) in delegates.into_iter().enumerate() {
            let delegate = Delegate::parse(raw);
            match delegate.and_then(|delegate| delegate.attachment(position, key)) {
                Ok(mut cached) => {
                    let ifname = &cached.attachment.ifname;
                    let known = results.iter().position(|(_, result)| result.is_of(ifname));
                    if let Some(known) = known {
                        let (_, result) = results.swap_remove(known);
                        sandbox.netns = sandbox.netns.or_else(|| result.netns());
                        result.complete(&mut cached);
                    }
                    sandbox.attachments.push(cached);
                }
                Err(cause) => sandbox.damage.push(CacheDamage {
                    path: file.clone(),
                    cause: CacheError::Delegate(position + 1, Box::new(cause)),
                }),
            }
        }
        // Add the attachments that have only a result: first the cluster network, then the others
        // in the order of their interface names.
        results.sort_by_key(|(_, result)| (!result.is_of(&key.ifname), result.sort_key()));
        for (path, result) in results {
            sandbox.netns = sandbox.netns.or_else(|| result.netns());
            match result.attachment(key) {
                Ok(cached) => sandbox.attachments.push(cached),
                Err(cause) => sandbox.damage.push(CacheDamage { path, cause }),
            }
        }
        sandbox
    }

    /// Returns the ID of every container in the cache, sorted.
    pub fn containers(&self) -> Vec<ContainerId> {
        let sandboxes = files(self.dir).filter_map(|path| name_of(&path).parse().ok());
        let results = files(&self.dir.join("results"));
        let results = results.filter_map(|path| {
            let result: ResultFile = read_json(&path).ok()?;
            result.container_id?.parse().ok()
        });
        let mut containers: Vec<ContainerId> = sandboxes.chain(results).collect();
        containers.sort();
        containers.dedup();
        containers
    }

    /// Whether the cache still contains a file of the container.
    pub fn has(&self, container: &ContainerId) -> bool {
        let part = format!("-{container}-");
        self.dir.join(container.as_str()).is_file()
            || files(&self.dir.join("results")).any(|path| name_of(&path).contains(&part))
    }

    /// Removes the files of a detached container, because Multus will get no DEL for the container.
    /// Keeps unreadable result files, because they may belong to a different container.
    pub fn forget(&self, container: &ContainerId) {
        let sandbox = self.dir.join(container.as_str());
        if sandbox.is_file() {
            let _ = fs::remove_file(sandbox);
        }
        for (result, path) in self.results(container) {
            if result.is_ok() {
                let _ = fs::remove_file(&path);
            }
        }
    }

    /// Reads the results of a container. The list has an error for each unreadable file whose name
    /// contains the container ID.
    fn results(&self, container: &ContainerId) -> Vec<(Result<ResultFile, CacheError>, PathBuf)> {
        let part = format!("-{container}-");
        let is_its =
            |result: &ResultFile| result.container_id.as_deref() == Some(container.as_str());
        files(&self.dir.join("results"))
            .filter(|path| name_of(path).contains(&part))
            .map(|path| (read_json(&path), path))
            .filter(|(read, _)| read.as_ref().map_or(true, is_its))
            .collect()
    }
}

/// Reads the delegates from the file of a sandbox.
fn delegates(file: &Path) -> Result<Vec<Option<Box<RawValue>>>, CacheError> {
    // For a container with the ID `results`, `file` is the directory of the result files. So this
    // container has no file.
    match file.is_file() {
        true => read_json(file),
        false => Ok(Vec::new()),
    }
}

impl CachedAttachment {
    /// Returns an attachment without arguments and without a result. If the configuration has no
    /// name, the network's name is the part of `label` (`namespace/definition`) after the slash.
    fn bare(
        mut label: String,
        is_cluster: bool,
        ifname: InterfaceName,
        config: NetworkConfig,
    ) -> Result<CachedAttachment, CacheError> {
        let network = match config.name() {
            Some(name) => name.clone(),
            None => label.rsplit('/').next().unwrap_or_default().parse()?,
        };
        if label.is_empty() {
            label = network.to_string();
        }
        let attachment = Attachment {
            is_cluster,
            ..Attachment::bare(label, ifname, network, config)
        };
        Ok(CachedAttachment {
            attachment,
            args: String::new(),
            result: None,
        })
    }
}

fn config(base64: Option<&str>) -> Result<NetworkConfig, CacheError> {
    Ok(NetworkConfig::parse(&decoded(base64)?)?)
}

fn decoded(base64: Option<&str>) -> Result<Vec<u8>, CacheError> {
    Ok(BASE64.decode(base64.ok_or(CacheError::NoConfig)?)?)
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, CacheError> {
    let bytes = regular_file::read(path, MAX_FILE)?;
    Ok(serde_json::from_str(json::check(&bytes)?)?)
}

fn files(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.is_file())
}

fn name_of(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

#[cfg(test)]
mod tests;
