//! Converts Multus' configuration to a configuration of Jackfield. Keeps keys that mean the same to
//! Multus and Jackfield. Drops keys that only Multus' own processes use. Drops each unknown key
//! with a remark. If the default of a missing key differs between Multus and Jackfield, adds the
//! key with Multus' default.

use std::path::Path;

use super::super::conf::{put, put_missing, split};
use super::super::directory::{Directory, MULTUS};
use super::super::{HostPaths, NAME};
use crate::cni::RawObject;
use crate::request::log::Level;
use crate::request::node_config::{self, ACCEPTED};
use crate::setup::error::MultusConfError;
use crate::setup::notice::TakeoverRemark;

/// Keys that [`convert`] does not copy. [`convert`] sets `plugins` and `type` itself. Only Multus'
/// own processes use the other keys.
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
/// Keys with paths as values. A path may be valid only in the container of Multus' daemon, so
/// [`on_host`] converts it to a path of the host.
const PATHS: [&str; 7] = [
    "clusterNetwork",
    "readinessindicatorfile",
    "confDir",
    "binDir",
    "cniDir",
    "kubeconfig",
    "logFile",
];
/// Multus' DaemonSet mounts directories of the host below these paths of its container.
const HOST: [&str; 2] = ["/host", "/hostroot"];

/// Makes Jackfield's configuration from the configuration of Multus and the configuration of
/// Multus' daemon. Also returns remarks about the conversion.
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
    let known = node_config::keys();
    let mut ours = RawObject::new();
    let mut remarks = Vec::new();
    put(&mut ours, "type", &NAME);
    for object in [Some(&list), Some(&plugin), daemon].into_iter().flatten() {
        for (key, value) in object.iter() {
            if is(key, &OF_MULTUS) {
                continue;
            }
            if !is(key, &known) && !is(key, &ACCEPTED) {
                remarks.push(TakeoverRemark::UnknownKey(key.to_owned()));
            } else if !ours.contains(key) {
                ours.set(key, value.to_owned());
            }
        }
    }
    let chroot = daemon.and_then(|daemon| daemon.value_as::<String>("chrootDir"));
    for key in PATHS {
        on_host(paths, &mut ours, key, chroot.as_deref());
    }
    log_level(&mut ours, &mut remarks);
    put_missing(&mut ours, "namespaceIsolation", &false);
    put_missing(&mut ours, "undeclared", &"args");
    put_missing(&mut ours, "invalidAnnotation", &"fail");
    cluster_network(&mut ours, &mut remarks);
    follow(&mut ours, runtime, paths);
    if followers.is_empty() {
        return Ok((ours, remarks));
    }
    let (mut list, ours) = split(&ours);
    let plugins: Vec<RawObject> = std::iter::once(ours).chain(followers).collect();
    put(&mut list, "plugins", &plugins);
    Ok((list, remarks))
}

/// Splits a list of plugins into the keys of the list, the keys of the plugin Multus, and the
/// plugins after Multus. A configuration without a list has only the keys of Multus.
fn parts(conf: &RawObject) -> Result<(RawObject, RawObject, Vec<RawObject>), MultusConfError> {
    let plugins: Option<Vec<RawObject>> = conf.read("plugins")?;
    let Some(plugins) = plugins else {
        return Ok((RawObject::new(), conf.clone(), Vec::new()));
    };
    let mut plugins = plugins.into_iter();
    let first = plugins.next().unwrap_or_default();
    let name = first.value_as::<String>("type");
    if !name.as_deref().is_some_and(|name| MULTUS.contains(&name)) {
        return Err(MultusConfError::NotFirstPlugin);
    }
    Ok((conf.clone(), first, plugins.collect()))
}

fn is(key: &str, known: &[impl AsRef<str>]) -> bool {
    let mut known = known.iter();
    known.any(|known| known.as_ref().eq_ignore_ascii_case(key))
}

/// Drops an unknown log level, because Jackfield would refuse it. Multus accepts such a level and
/// only logs a line about it.
fn log_level(ours: &mut RawObject, remarks: &mut Vec<TakeoverRemark>) {
    let Some(level) = ours.value_as::<String>("logLevel") else {
        return;
    };
    if !is(&level, &Level::NAMES.map(|(name, _)| name)) {
        ours.remove("logLevel");
        remarks.push(TakeoverRemark::UnknownLogLevel(level));
    }
}

/// Converts the path at `key` to a path of the host. A path that exists on the host stays as it is.
fn on_host(paths: &HostPaths, ours: &mut RawObject, key: &str, chroot: Option<&str>) {
    let Some(path) = ours.value_as::<String>(key) else {
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
        put(ours, key, &Path::new("/").join(rest));
    }
}

/// Keeps only one of `clusterNetwork` and `delegates`, because Jackfield does not accept both.
/// Prefers `clusterNetwork`, like Multus.
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
    let named = ours.value_as::<String>("clusterNetwork");
    named.filter(|name| !name.is_empty())
}

/// Removes `clusterNetwork` if it names the first network of the runtime's directory. The installer
/// then sets the key to the first network of that directory, and updates the key when another
/// network becomes the first.
///
/// If the cluster network has a separate directory ([`HostPaths::is_apart`]), keeps the key.
/// Without the key, the installer would use the first network of the separate directory.
fn follow(ours: &mut RawObject, runtime: &Directory, paths: &HostPaths) {
    let named = named(ours);
    let Ok((first, _)) = runtime.cluster_network() else {
        return;
    };
    if !paths.is_apart() && named.is_some_and(|named| runtime.file(first) == Path::new(&named)) {
        ours.remove("clusterNetwork");
    }
}

#[cfg(test)]
mod tests;
