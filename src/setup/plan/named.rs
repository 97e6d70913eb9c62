//! Reads and checks the cluster network from `clusterNetwork` or `delegates` in a configuration of
//! Jackfield.

use std::path::{Path, PathBuf};

use crate::cluster::conf_dir;
use crate::cni::{NetworkConfig, RawObject};
use crate::setup::conf::OurConf;
use crate::setup::directory::{self, NAMES};
use crate::setup::problem::NoNetwork;
use crate::setup::{HostPaths, NAME, SetupError};

/// Reads the network from the file that `clusterNetwork` names. Returns `None` if the key is absent
/// or names something other than a file, such as a directory. Also returns `None` if the
/// installer's container does not mount the file's directory.
///
/// # Errors
/// [`NoNetwork::Named`] if the file is missing or contains no usable network. Every pod would then
/// fail.
pub(super) fn network(
    conf: &OurConf,
    paths: &HostPaths,
) -> Result<Option<NetworkConfig>, NoNetwork> {
    let Some(named) = conf.cluster_network().map(PathBuf::from) else {
        return Ok(None);
    };
    let dirs = [&paths.conf_dir, &paths.cluster_conf_dir];
    let is_mounted = paths.is_host() || dirs.iter().any(|dir| named.starts_with(dir));
    let here = paths.here(&named);
    if !named.is_absolute() || !is_mounted || here.is_dir() {
        return Ok(None);
    }
    let network =
        directory::text(&here).and_then(|text| Ok(NetworkConfig::parse(text.as_bytes())?));
    network
        .map(Some)
        .map_err(|cause| NoNetwork::Named { file: named, cause })
}

/// Refuses a configuration whose cluster network is Jackfield itself, because Jackfield would then
/// call itself.
pub(super) fn not_ourselves(conf: &OurConf, paths: &HostPaths) -> Result<(), SetupError> {
    let stdin = conf.on_stdin();
    let is_ours = |object: &RawObject| {
        let plugins: Vec<RawObject> = object.value_as("plugins").unwrap_or_default();
        let mut plugins = plugins.iter().chain([object]);
        plugins.any(|plugin| plugin.value_as::<String>("type").as_deref() == Some(NAME))
    };
    let delegates: Vec<RawObject> = stdin.value_as("delegates").unwrap_or_default();
    let named = conf.cluster_network();
    let is_ourselves = match named.as_deref().map(Path::new) {
        None => delegates.iter().any(is_ours),
        Some(file) if file.is_absolute() => {
            let here = paths.here(file);
            let found = match here.is_dir() {
                true => conf_dir::first(&here),
                false => conf_dir::read(&here),
            };
            let object = found
                .ok()
                .and_then(|found| RawObject::parse(found.text.as_bytes()).ok());
            let is_our_name = NAMES.iter().any(|name| *file == paths.conf_dir.join(name));
            is_our_name || *file == paths.conf_dir || object.is_some_and(|object| is_ours(&object))
        }
        Some(name) => {
            let dir: Option<PathBuf> = stdin.value_as("confDir");
            let own: Option<String> = stdin.value_as("name");
            dir.as_ref() == Some(&paths.conf_dir) && own.as_deref().map(Path::new) == Some(name)
        }
    };
    if !is_ourselves {
        return Ok(());
    }
    let key = named.map_or_else(
        || "delegates".to_owned(),
        |network| format!("clusterNetwork {network}"),
    );
    Err(SetupError::CallsItself { key })
}
