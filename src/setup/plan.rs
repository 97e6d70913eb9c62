//! Plans the new content of the runtime's directory from the current content of the node's
//! directories.

mod difference;
mod named;

use std::path::{Path, PathBuf};

use super::binary::Content;
use super::conf::OurConf;
use super::directory::{ConfFile, Directory, Kind, NAMES};
use super::manifest::Manifest;
use super::problem::{Drift, NoNetwork};
use super::{HostPaths, SetupError};
use crate::cni::{NetworkConfig, RawObject};

/// The node's directories, as they are now.
pub(super) struct NodeDirectories {
    paths: HostPaths,
    /// The directory that the runtime reads.
    pub(super) runtime: Directory,
    /// The directory with the cluster network's configuration; `None` if this is the runtime's
    /// directory.
    pub(super) apart: Option<Directory>,
    /// Multus' configuration converted to Jackfield's keys, if this run of the installer takes over
    /// from Multus.
    pub(super) takes_over: Option<RawObject>,
    /// The new name and the content of Jackfield's file, if another program has renamed the file to
    /// a name that the runtime does not read.
    pub(super) renamed: Option<(String, OurConf)>,
    /// The configuration that was installed last.
    pub(super) previous: Option<OurConf>,
}

impl NodeDirectories {
    pub(super) fn look(
        paths: &HostPaths,
        manifest: Option<&Manifest>,
    ) -> Result<NodeDirectories, SetupError> {
        let runtime = Directory::read(paths, &paths.conf_dir)?;
        let apart = paths.is_apart().then_some(&paths.cluster_conf_dir);
        let apart = apart.map(|dir| Directory::read(paths, dir)).transpose()?;
        let name = manifest.and_then(|manifest| manifest.conf.file_name()?.to_str());
        let renamed = name.and_then(|name| {
            runtime.aside.iter().find_map(|aside| {
                let file = paths.here(&runtime.file(aside));
                match super::directory::kind(&file) {
                    Kind::Ours(conf) if aside.starts_with(name) => Some((aside.clone(), *conf)),
                    _ => None,
                }
            })
        });
        let previous = manifest.map(|_| Manifest::conf(paths)).transpose()?;
        Ok(NodeDirectories {
            paths: paths.clone(),
            runtime,
            apart,
            takes_over: None,
            renamed,
            previous: previous.flatten().as_ref().and_then(OurConf::read),
        })
    }
}

/// What the installer should put in place.
#[derive(Debug)]
pub(super) struct InstallPlan {
    /// Jackfield's configuration.
    pub(super) conf: OurConf,
    /// The name of the file for Jackfield's configuration.
    pub(super) name: String,
    /// If true, the cluster network is the first network in [`HostPaths::cluster_conf_dir`], and
    /// the installer changes Jackfield's configuration when another network becomes the first. If
    /// false, Jackfield's configuration keeps the cluster network that it names.
    pub(super) follows: bool,
    /// Multus' configuration, converted to Jackfield's keys, if this or an earlier installation
    /// replaces Multus.
    pub(super) taken_over: Option<RawObject>,
    /// The names of the files to remove from the runtime's directory.
    pub(super) remove: Vec<String>,
    /// The cluster network, if its file can be read.
    pub(super) network: Option<NetworkConfig>,
    /// The first difference between the runtime's directory and the plan; `None` if there is none.
    pub(super) drift: Option<Drift>,
}

impl InstallPlan {
    /// Returns the size and checksum of the cluster network's file, if `follows` is set and the
    /// file can be read.
    pub(super) fn followed(&self, paths: &HostPaths) -> Option<Content> {
        let file = self.conf.cluster_network().filter(|_| self.follows)?;
        Content::of(&paths.here(Path::new(&file))).ok()
    }

    /// Whether the plan only adopts the new name of the cluster network's file. `before` is the
    /// content of that file before the rename.
    pub(super) fn is_rename(
        &self,
        directories: &NodeDirectories,
        before: Option<&Content>,
    ) -> bool {
        let network = self.conf.cluster_network();
        let (Some((name, current)), Some(network), Some(before)) =
            (directories.runtime.ours(), network, before)
        else {
            return false;
        };
        let is_followed = current.clone().in_front_of(Path::new(&network)) == self.conf;
        name == self.name
            && is_followed
            && self.remove.is_empty()
            && self.followed(&directories.paths).as_ref() == Some(before)
    }
}

/// The outcome of planning.
#[derive(Debug)]
pub(super) enum Outlook {
    /// There is a plan.
    Ready(Box<InstallPlan>),
    /// There is no cluster network yet.
    Waiting(NoNetwork),
}

/// Plans the installation. Without `template`, the plan contains the configuration from the first of
/// these sources that exists: Multus, if this run takes over; the installed configuration; the
/// defaults.
pub(super) fn plan(
    template: Option<&RawObject>,
    manifest: Option<&Manifest>,
    directories: &NodeDirectories,
) -> Result<Outlook, SetupError> {
    let runtime = &directories.runtime;
    let current = runtime.ours();
    let is_installed = manifest.is_some_and(|manifest| !manifest.is_leaving);
    if current.is_none()
        && !is_installed
        && directories.takes_over.is_none()
        && let Some(multus) = runtime.multus()
    {
        return Err(SetupError::Multus(multus));
    }
    let existing = current
        .map(|(_, conf)| conf)
        .or(directories.renamed.as_ref().map(|(_, conf)| conf))
        .or(directories.previous.as_ref());
    let before = manifest.and_then(|manifest| manifest.taken_over.as_ref());
    let taken_over = directories.takes_over.as_ref().or(before);
    let wanted = wanted(template, taken_over, directories);
    let follows = wanted.is_none() && manifest.is_some_and(|manifest| manifest.follows);
    let base = match (wanted, existing) {
        // Keep the plugins that other programs appended to the existing configuration. A takeover
        // does not need them: `wanted` already has the plugins that follow `multus` in its list.
        (Some(wanted), Some(existing)) if directories.takes_over.is_none() => {
            wanted.followed_as(existing)
        }
        (Some(wanted), _) => wanted,
        (None, Some(existing)) => existing.clone(),
        (None, None) => OurConf::from_template(taken_over.unwrap_or(&RawObject::new())),
    };
    let pinned = base.names_a_network() && !follows;
    let (conf, network) = if pinned {
        named::not_ourselves(&base, &directories.paths)?;
        match named::network(&base, &directories.paths) {
            Ok(network) => (base, network),
            Err(reason) => return Ok(Outlook::Waiting(reason)),
        }
    } else {
        let cluster = directories.apart.as_ref().unwrap_or(runtime);
        let named = existing.and_then(|existing| still_there(existing, cluster));
        match (cluster.cluster_network(), named) {
            (Ok((name, network)), _) => {
                (base.in_front_of(&cluster.file(name)), Some(network.clone()))
            }
            (Err(_), Some(file)) => (base.in_front_of(&file), None),
            (Err(reason), None) => return Ok(Outlook::Waiting(reason)),
        }
    };
    let takes_over = directories.takes_over.is_some();
    let name = match current {
        Some((name, current))
            if runtime.first().is_some_and(|first| first.name == name)
                && (*current == conf || name.ends_with(".conflist")) =>
        {
            name.to_owned()
        }
        _ => first_name(runtime, takes_over)?,
    };
    let superseded = runtime.files.iter();
    let superseded = superseded.filter(|file| file.name != name && gives_way(file, takes_over));
    let renamed = directories.renamed.iter().map(|(name, _)| name);
    let remove = superseded.map(|file| &file.name).chain(renamed);
    let remove = remove.cloned().collect();
    let drift = difference::find(manifest, directories, &conf, &name);
    Ok(Outlook::Ready(Box::new(InstallPlan {
        conf,
        name,
        follows: !pinned,
        taken_over: taken_over.cloned(),
        remove,
        network,
        drift,
    })))
}

/// Makes Jackfield's configuration from the template and the converted configuration of Multus.
/// Returns `None` if there is no template and this run does not take over from Multus.
fn wanted(
    template: Option<&RawObject>,
    taken_over: Option<&RawObject>,
    directories: &NodeDirectories,
) -> Option<OurConf> {
    match (template, taken_over) {
        (Some(template), Some(multus)) => Some(OurConf::over(template, multus)),
        (Some(template), None) => Some(OurConf::from_template(template)),
        (None, _) => directories.takes_over.as_ref().map(OurConf::from_template),
    }
}

/// Whether Jackfield's new configuration supersedes this file of the runtime's directory. The new
/// configuration supersedes these files:
/// - A file that configures Jackfield.
/// - A file that configures Multus, if Jackfield takes over from Multus.
/// - A broken file with a name in `NAMES`, which is normally Jackfield's own file.
///
/// If a superseded file has the name of the new configuration's file, the installer replaces the
/// superseded file. Otherwise the installer removes it.
fn gives_way(file: &ConfFile, takes_over: bool) -> bool {
    match file.kind {
        Kind::Ours(_) => true,
        Kind::Multus => takes_over,
        Kind::Broken(_) => NAMES.contains(&file.name.as_str()),
        _ => false,
    }
}

/// Returns a file name for Jackfield's configuration. The name sorts before the file of every
/// network, even a file with a name in `NAMES`, and before all other files that the configuration
/// does not supersede.
fn first_name(runtime: &Directory, takes_over: bool) -> Result<String, SetupError> {
    let mut files = runtime.files.iter();
    let Some(first) = files.find(|file| !gives_way(file, takes_over)) else {
        return Ok(NAMES[0].to_owned());
    };
    let free = NAMES.iter().find(|name| **name < first.name.as_str());
    free.map(|name| (*name).to_owned())
        .ok_or_else(|| SetupError::NotFirst(runtime.file(&first.name)))
}

/// Returns the file that `existing` names as the cluster network, if this file still configures a
/// network.
fn still_there(existing: &OurConf, cluster: &Directory) -> Option<PathBuf> {
    let named = PathBuf::from(existing.cluster_network()?);
    let name = named.strip_prefix(&cluster.path).ok()?.to_str()?;
    let mut files = cluster.files.iter();
    let is_network = files.any(|file| file.name == name && matches!(file.kind, Kind::Network(_)));
    is_network.then_some(named)
}

#[cfg(test)]
mod tests;
