//! Converts Multus' configuration into ours: keys with the same meaning stay, keys of Multus' own
//! processes go, and Multus' defaults are written out where ours differ.

use std::path::Path;

use serde_json::value::{RawValue, to_raw_value};

use super::super::conf::put;
use super::super::directory::{Candidate, Directory, MULTUS};
use super::super::{HostPaths, NAME};
use crate::cni::RawObject;
use crate::request::log::Level;
use crate::request::node_config::{ACCEPTED, KEYS};
use crate::setup::error::MultusConfError;
use crate::setup::notice::TakeoverRemark;

/// Keys of Multus' own processes.
const OF_MULTUS: [&str; 14] = [
    "retryDeleteOnError",
    "socketDir",
    "daemonSocketDir",
    "chrootDir",
    "cniConfigDir",
    "multusAutoconfigDir",
    "multusConfigFile",
    "multusMasterCNI",
    "forceCNIVersion",
    "overrideNetworkName",
    "metricsPort",
    "perNodeCertificate",
    "plugins",
    "type",
];
/// Keys whose values are paths. A daemon in a container has other names for them.
const PATHS: [&str; 7] = [
    "clusterNetwork",
    "readinessindicatorfile",
    "confDir",
    "binDir",
    "cniDir",
    "kubeconfig",
    "logFile",
];
/// The mount points of the host's directories in the daemon's manifests.
const HOST: [&str; 2] = ["/host", "/hostroot"];

/// Our configuration from Multus' and its daemon's, with remarks.
///
/// # Errors
/// [`MultusConfError::Json`] and [`MultusConfError::NotFirstPlugin`].
pub(super) fn convert(
    paths: &HostPaths,
    runtime: &Directory,
    conf: &RawObject,
    daemon: Option<&RawObject>,
) -> Result<(RawObject, Vec<TakeoverRemark>), MultusConfError> {
    let (list, plugin, followers) = parts(conf)?;
    let mut ours = RawObject::new();
    let mut remarks = Vec::new();
    put(&mut ours, "type", &NAME);
    for object in [Some(&list), Some(&plugin), daemon].into_iter().flatten() {
        for (key, value) in object.iter() {
            if is(key, &OF_MULTUS) {
                continue;
            }
            if is(key, &KEYS) || is(key, &ACCEPTED) {
                if !ours.contains(key) {
                    ours.set(key, value.to_owned());
                }
            } else {
                remarks.push(TakeoverRemark::UnknownKey(key.to_owned()));
            }
        }
    }
    let chroot = daemon.and_then(|daemon| daemon.read::<String>("chrootDir").ok().flatten());
    for key in PATHS {
        on_host(paths, &mut ours, key, chroot.as_deref());
    }
    log_level(&mut ours, &mut remarks);
    default(&mut ours, "namespaceIsolation", &false);
    default(&mut ours, "undeclared", &"args");
    default(&mut ours, "invalidAnnotation", &"fail");
    cluster_network(&mut ours, &mut remarks);
    follow(&mut ours, runtime, paths);
    if !followers.is_empty() {
        ours = listed(ours, followers);
    }
    Ok((ours, remarks))
}

/// The keys of the list, those of Multus in it, and the plugins after it.
fn parts(conf: &RawObject) -> Result<(RawObject, RawObject, Vec<RawObject>), MultusConfError> {
    let plugins: Option<Vec<RawObject>> = conf.read("plugins")?;
    let Some(plugins) = plugins else {
        return Ok((RawObject::new(), conf.clone(), Vec::new()));
    };
    let mut plugins = plugins.into_iter();
    let first = plugins.next().unwrap_or_default();
    let name = first.read::<String>("type").ok().flatten();
    if !name.as_deref().is_some_and(|name| MULTUS.contains(&name)) {
        return Err(MultusConfError::NotFirstPlugin);
    }
    Ok((conf.clone(), first, plugins.collect()))
}

/// A list of our plugin and those that other programs appended to Multus.
fn listed(mut ours: RawObject, followers: Vec<RawObject>) -> RawObject {
    let mut list = RawObject::new();
    for key in [
        "cniVersion",
        "cniVersions",
        "name",
        "disableCheck",
        "disableGC",
    ] {
        if let Some(value) = ours.get(key).map(RawValue::to_owned) {
            ours.remove(key);
            list.set(key, value);
        }
    }
    let plugins: Vec<RawObject> = std::iter::once(ours).chain(followers).collect();
    if let Ok(plugins) = to_raw_value(&plugins) {
        list.set("plugins", plugins);
    }
    list
}

fn is(key: &str, known: &[&str]) -> bool {
    known.iter().any(|known| known.eq_ignore_ascii_case(key))
}

fn default<T: serde::Serialize>(object: &mut RawObject, key: &str, value: &T) {
    if !object.contains(key) {
        put(object, key, value);
    }
}

/// Drops a log level that Multus does not have either: Multus only logs a complaint about it.
fn log_level(ours: &mut RawObject, remarks: &mut Vec<TakeoverRemark>) {
    let Some(level) = ours.read::<String>("logLevel").ok().flatten() else {
        return;
    };
    if Level::NAMES
        .iter()
        .all(|(name, _)| !name.eq_ignore_ascii_case(&level))
    {
        ours.remove("logLevel");
        remarks.push(TakeoverRemark::UnknownLogLevel(level));
    }
}

/// Writes a path as the host names it. A path that exists on the host is the host's already.
fn on_host(paths: &HostPaths, ours: &mut RawObject, key: &str, chroot: Option<&str>) {
    let Some(path) = ours.read::<String>(key).ok().flatten() else {
        return;
    };
    if paths.here(Path::new(&path)).exists() {
        return;
    }
    let roots = chroot.into_iter().chain(HOST);
    let stripped = roots
        .filter_map(|root| Path::new(&path).strip_prefix(root).ok())
        .find(|rest| !rest.as_os_str().is_empty());
    if let Some(rest) = stripped {
        let path = Path::new("/").join(rest);
        ours.remove(key);
        put(ours, key, &path);
    }
}

/// Keeps one of `clusterNetwork` and `delegates`: Multus prefers the first, and Jackfield accepts
/// only one.
fn cluster_network(ours: &mut RawObject, remarks: &mut Vec<TakeoverRemark>) {
    if !ours.contains("delegates") {
        return;
    }
    if named(ours).is_none() {
        ours.remove("clusterNetwork");
    } else {
        ours.remove("delegates");
        remarks.push(TakeoverRemark::IgnoredDelegates);
    }
}

fn named(ours: &RawObject) -> Option<String> {
    let named = ours.read::<String>("clusterNetwork").ok().flatten();
    named.filter(|name| !name.is_empty())
}

/// Follows the first network of the directory if Multus does so.
fn follow(ours: &mut RawObject, runtime: &Directory, paths: &HostPaths) {
    let named = named(ours);
    let Candidate::Network(first, _) = runtime.cluster_network() else {
        return;
    };
    if !paths.is_apart() && named.is_some_and(|named| runtime.file(first) == Path::new(&named)) {
        ours.remove("clusterNetwork");
    }
}

#[cfg(test)]
mod tests;
