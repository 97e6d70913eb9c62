//! The cache in which Multus keeps the pods that it attached (key `cniDir`). Jackfield only reads
//! it, except that it removes the pods that it detached when the node goes back to Multus.
//!
//! ```text
//! <cniDir>/<container>                                the delegates, in order of attachment
//! <cniDir>/results/<network>-<container>-<interface>  libcni's: config, arguments, result
//! ```
//!
//! Neither file is complete: the first has the order and the requests, the second the arguments and
//! the result. If one is missing or damaged, the other one is used alone, since whatever is not
//! detached leaks.

mod delegate;
mod result_file;

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::value::RawValue;

use super::Key;
use crate::cni::{CniResult, ContainerId, InterfaceName, NetworkConfig, NetworkName};
use crate::plan::Attachment;
use delegate::Delegate;
use result_file::ResultFile;

/// The size limit of a file, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// A directory in which Multus keeps its cache.
#[derive(Debug)]
pub struct MultusCache<'a> {
    dir: &'a Path,
}

/// What the cache has about one sandbox.
#[derive(Debug, Default)]
pub struct CachedSandbox {
    /// Its attachments in their order.
    pub attachments: Vec<CachedAttachment>,
    /// The path of its network namespace.
    pub netns: Option<String>,
    /// The parts that could not be read, one line each.
    pub damage: Vec<String>,
}

/// One attachment that Multus made.
#[derive(Debug)]
pub struct CachedAttachment {
    /// Its plugins and their arguments.
    pub attachment: Attachment,
    /// The CNI_ARGS that the plugins got; empty if they are not known.
    pub args: String,
    /// The result of the plugins.
    pub result: Option<CniResult>,
}

impl CachedSandbox {
    /// Whether Multus knew the sandbox, even if nothing about it can be read.
    pub fn is_known(&self) -> bool {
        !self.attachments.is_empty() || !self.damage.is_empty()
    }
}

impl<'a> MultusCache<'a> {
    /// The cache in `dir`. Reads nothing yet.
    pub fn new(dir: &'a Path) -> MultusCache<'a> {
        MultusCache { dir }
    }

    /// Everything about one sandbox; empty if Multus never attached it.
    pub fn read(&self, key: &Key) -> CachedSandbox {
        let mut sandbox = CachedSandbox::default();
        let mut results = self.results(&key.container, &mut sandbox.damage);
        for (position, delegate) in self.delegates(key, &mut sandbox.damage) {
            match delegate.attachment(position, key) {
                Ok(mut cached) => {
                    let ifname = &cached.attachment.ifname;
                    let known = results.iter().position(|result| result.is_of(ifname));
                    if let Some(known) = known {
                        let result = results.swap_remove(known);
                        sandbox.netns = sandbox.netns.or_else(|| result.netns());
                        result.complete(&mut cached);
                    }
                    sandbox.attachments.push(cached);
                }
                Err(cause) => sandbox.damage.push(format!(
                    "{}: delegate {}: {cause}",
                    self.dir.join(key.container.as_str()).display(),
                    position + 1
                )),
            }
        }
        // Attachments that only the results have: the cluster network first, the others by their
        // names.
        results.sort_by_key(|result| (!result.is_of(&key.ifname), result.sort_key()));
        for result in results {
            sandbox.netns = sandbox.netns.or_else(|| result.netns());
            match result.attachment(key) {
                Ok(cached) => sandbox.attachments.push(cached),
                Err(cause) => sandbox.damage.push(cause),
            }
        }
        sandbox
    }

    /// Every container in the cache.
    pub fn containers(&self) -> Vec<ContainerId> {
        let sandboxes = files(self.dir).filter_map(|path| name_of(&path).parse().ok());
        let results = files(&self.dir.join("results"));
        let results =
            results.filter_map(|path| ResultFile::read(&path).ok()?.container_id?.parse().ok());
        let mut containers: Vec<ContainerId> = sandboxes.chain(results).collect();
        containers.sort();
        containers.dedup();
        containers
    }

    /// Whether the cache still has anything about a container.
    pub fn has(&self, container: &ContainerId) -> bool {
        let part = format!("-{container}-");
        self.dir.join(container.as_str()).is_file()
            || files(&self.dir.join("results")).any(|path| name_of(&path).contains(&part))
    }

    /// Removes everything about a detached container, since Multus will get no DEL for it.
    pub fn forget(&self, container: &ContainerId) {
        let sandbox = self.dir.join(container.as_str());
        if sandbox.is_file() {
            let _ = fs::remove_file(sandbox);
        }
        let part = format!("-{container}-");
        for path in files(&self.dir.join("results")) {
            let is_its = || {
                let read = ResultFile::read(&path);
                read.is_ok_and(|result| result.container_id.as_deref() == Some(container.as_str()))
            };
            if name_of(&path).contains(&part) && is_its() {
                let _ = fs::remove_file(&path);
            }
        }
    }

    fn delegates(&self, key: &Key, damage: &mut Vec<String>) -> Vec<(usize, Delegate)> {
        let path = self.dir.join(key.container.as_str());
        // Only a regular file belongs to a sandbox; a container may have the ID `results`.
        if !path.is_file() {
            return Vec::new();
        }
        let list: Result<Vec<Option<Box<RawValue>>>, String> = read_json(&path);
        let list = match list {
            Ok(list) => list,
            Err(cause) => {
                damage.push(cause);
                return Vec::new();
            }
        };
        let mut delegates = Vec::with_capacity(list.len());
        for (position, raw) in list.into_iter().enumerate() {
            let delegate = raw.ok_or_else(|| "it is null".to_owned()).and_then(|raw| {
                serde_json::from_str::<Delegate>(raw.get()).map_err(|cause| cause.to_string())
            });
            match delegate {
                Ok(delegate) => delegates.push((position, delegate)),
                Err(cause) => damage.push(format!(
                    "{}: delegate {}: {cause}",
                    path.display(),
                    position + 1
                )),
            }
        }
        delegates
    }

    fn results(&self, container: &ContainerId, damage: &mut Vec<String>) -> Vec<ResultFile> {
        let part = format!("-{container}-");
        let mut results = Vec::new();
        for path in files(&self.dir.join("results")) {
            if !name_of(&path).contains(&part) {
                continue;
            }
            match ResultFile::read(&path) {
                Ok(result) if result.container_id.as_deref() == Some(container.as_str()) => {
                    results.push(result);
                }
                Ok(_) => {}
                Err(cause) => damage.push(cause),
            }
        }
        results
    }
}

fn bare(
    label: String,
    is_cluster: bool,
    ifname: InterfaceName,
    network: NetworkName,
    config: NetworkConfig,
) -> Attachment {
    let label = if label.is_empty() {
        network.to_string()
    } else {
        label
    };
    Attachment {
        is_cluster,
        ..Attachment::bare(label, ifname, network, config)
    }
}

fn config(base64: Option<&str>) -> Result<NetworkConfig, String> {
    NetworkConfig::parse(&decoded(base64)?).map_err(|cause| cause.to_string())
}

fn decoded(base64: Option<&str>) -> Result<Vec<u8>, String> {
    let text = base64.ok_or("it has no configuration")?;
    BASE64.decode(text).map_err(|cause| cause.to_string())
}

fn network_name(config: &NetworkConfig, other: &str) -> Result<NetworkName, String> {
    match config.name() {
        Some(name) => Ok(name.clone()),
        None => other.parse().map_err(|cause| format!("{cause}")),
    }
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, String> {
    let blame = |cause: &dyn std::fmt::Display| format!("{}: {cause}", path.display());
    let size = fs::metadata(path).map_err(|cause| blame(&cause))?.len();
    if size > MAX_FILE {
        return Err(blame(&format_args!(
            "it has {size} bytes, more than {MAX_FILE}"
        )));
    }
    let bytes = fs::read(path).map_err(|cause| blame(&cause))?;
    let text = crate::cni::json::check(&bytes).map_err(|cause| blame(&cause))?;
    serde_json::from_str(text).map_err(|cause| blame(&cause))
}

fn files(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
}

fn name_of(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

#[cfg(test)]
mod tests;
