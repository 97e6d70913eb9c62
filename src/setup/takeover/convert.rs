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
    let Candidate::Found(first, _) = runtime.cluster_network() else {
        return;
    };
    if !paths.is_apart() && named.is_some_and(|named| runtime.file(first) == Path::new(&named)) {
        ours.remove("clusterNetwork");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The configuration from Multus', in a runtime's directory with one network.
    fn converted(
        conf: &str,
        daemon: Option<&str>,
    ) -> Result<(serde_json::Value, Vec<TakeoverRemark>), MultusConfError> {
        let root = tempfile::tempdir().unwrap();
        let paths = HostPaths {
            host_root: root.path().into(),
            conf_dir: "/etc/cni/net.d".into(),
            cluster_conf_dir: "/etc/cni/net.d".into(),
            bin_dir: "/opt/cni/bin".into(),
        };
        std::fs::create_dir_all(paths.here(&paths.conf_dir)).unwrap();
        std::fs::write(
            paths.here(&paths.conf_dir).join("10-a.conflist"),
            r#"{"name":"a","plugins":[{"type":"bridge"}]}"#,
        )
        .unwrap();
        let runtime = Directory::read(&paths, &paths.conf_dir).unwrap();
        let object = |text: &str| RawObject::parse(text.as_bytes()).unwrap();
        let daemon = daemon.map(object);
        let (ours, remarks) = convert(&paths, &runtime, &object(conf), daemon.as_ref())?;
        Ok((serde_json::from_str(&ours.to_string()).unwrap(), remarks))
    }

    #[test]
    fn a_thin_configuration_keeps_its_words_and_multus_defaults() {
        let conf = r#"{"cniVersion":"0.3.1","name":"multus-cni-network","type":"multus",
            "clusterNetwork":"cluster-x","kubeconfig":"/etc/cni/net.d/multus.d/multus.kubeconfig",
            "retryDeleteOnError":true,"isGateway":true,"GlobalNamespaces":"a,b","logLevel":"debug"}"#;
        let (ours, remarks) = converted(conf, None).unwrap();
        assert_eq!(ours["name"], "multus-cni-network");
        assert_eq!(ours["type"], "jackfield");
        assert_eq!(ours["clusterNetwork"], "cluster-x");
        assert_eq!(ours["GlobalNamespaces"], "a,b");
        assert_eq!(ours["namespaceIsolation"], false);
        assert_eq!(ours["undeclared"], "args");
        assert_eq!(ours["invalidAnnotation"], "fail");
        assert!(ours.get("retryDeleteOnError").is_none());
        let unknown_key = TakeoverRemark::UnknownKey("isGateway".to_owned());
        assert_eq!(remarks, [unknown_key]);
        let (warning, remarks) = converted(&conf.replace("debug", "warning"), None).unwrap();
        assert!(warning.get("logLevel").is_none());
        let unknown_level = TakeoverRemark::UnknownLogLevel("warning".to_owned());
        assert_eq!(remarks[1], unknown_level);
        let isolated = conf.replace("\"isGateway\"", "\"namespaceIsolation\"");
        assert_eq!(
            converted(&isolated, None).unwrap().0["namespaceIsolation"],
            true
        );
    }

    #[test]
    fn a_thick_configuration_loses_the_daemons_root_and_takes_its_keys() {
        let shim = r#"{"cniVersion":"0.3.1","name":"multus-cni-network","type":"multus-shim",
            "clusterNetwork":"/host/etc/cni/net.d/10-a.conflist","daemonSocketDir":"/run/multus",
            "capabilities":{"portMappings":true},"logToStderr":true}"#;
        let daemon = r#"{"chrootDir":"/hostroot","cniVersion":"0.4.0","cniConfigDir":"/host/etc/cni/net.d",
            "readinessindicatorfile":"/host/run/ready","cniDir":"/var/lib/cni/multus","metricsPort":9091,
            "namespaceIsolation":true,"multusNamespace":"multus","confDir":"/hostroot/etc/cni/multus"}"#;
        let (ours, remarks) = converted(shim, Some(daemon)).unwrap();
        assert!(
            ours.get("clusterNetwork").is_none(),
            "the first is followed: {ours}"
        );
        assert_eq!(ours["cniVersion"], "0.3.1");
        assert_eq!(ours["readinessindicatorfile"], "/run/ready");
        assert_eq!(ours["confDir"], "/etc/cni/multus");
        assert_eq!(ours["namespaceIsolation"], true);
        assert_eq!(ours["multusNamespace"], "multus");
        assert_eq!(ours["capabilities"]["portMappings"], true);
        assert!(remarks.is_empty(), "{remarks:?}");
        let other = shim.replace("10-a", "20-b");
        let (ours, _) = converted(&other, None).unwrap();
        assert_eq!(ours["clusterNetwork"], "/etc/cni/net.d/20-b.conflist");
    }

    #[test]
    fn the_cluster_network_goes_before_delegates() {
        for conf in [
            r#"{"name":"m","type":"multus","delegates":[{"type":"bridge"}],"clusterNetwork":"x"}"#,
            r#"{"name":"m","plugins":[{"type":"multus","clusterNetwork":"x","Delegates":[{"type":"bridge"}]}]}"#,
        ] {
            let (ours, remarks) = converted(conf, None).unwrap();
            assert_eq!(ours["clusterNetwork"], "x", "{ours}");
            let mut keys = ours.as_object().unwrap().keys();
            assert!(
                !keys.any(|key| key.eq_ignore_ascii_case("delegates")),
                "{ours}"
            );
            assert_eq!(remarks[0], TakeoverRemark::IgnoredDelegates);
        }
        let empty = r#"{"name":"m","type":"multus","delegates":[],"clusterNetwork":"x"}"#;
        assert_eq!(converted(empty, None).unwrap().0["clusterNetwork"], "x");
    }

    #[test]
    fn delegates_stay_as_they_are_written_and_followers_behind_us() {
        for nothing in ["", r#","clusterNetwork":"""#, r#","ClusterNetwork":null"#] {
            let conf = format!(
                r#"{{"name":"m","type":"multus","delegates":[{{"type":"bridge","n":1.10}}]{nothing}}}"#
            );
            let (ours, _) = converted(&conf, None).unwrap();
            assert_eq!(ours["delegates"][0]["type"], "bridge");
            assert!(ours.get("clusterNetwork").is_none());
        }
        let list = r#"{"cniVersion":"1.0.0","name":"m","plugins":[{"type":"multus","clusterNetwork":"x"},{"type":"istio-cni"}]}"#;
        let (ours, remarks) = converted(list, None).unwrap();
        assert_eq!(ours["name"], "m");
        assert_eq!(ours["plugins"][0]["type"], "jackfield");
        assert_eq!(ours["plugins"][0]["clusterNetwork"], "x");
        assert_eq!(ours["plugins"][1]["type"], "istio-cni");
        assert!(remarks.is_empty(), "{remarks:?}");
        let behind = r#"{"name":"m","plugins":[{"type":"bridge"},{"type":"multus"}]}"#;
        assert!(matches!(
            converted(behind, None),
            Err(MultusConfError::NotFirstPlugin)
        ));
    }
}
