//! The node configuration: found, understood, and every key of it known.

use std::path::{Path, PathBuf};

use super::{Check, Diagnosis, Options};
use crate::cluster::conf_dir;
use crate::cni::RawObject;
use crate::request::Request;
use crate::setup::conf::{OurConf, put};
use crate::setup::directory::Directory;
use crate::setup::manifest::Manifest;
use crate::setup::request::about_the_node;

/// Keys that say where everything is: those still hold where another one is wrong.
const PLACES: [&str; 10] = [
    "agentSocket",
    "manifestDir",
    "confDir",
    "binDir",
    "cniDir",
    "journalDir",
    "devInfoDir",
    "sysfsRoot",
    "podResourcesSocket",
    "kubeletCheckpoint",
];

/// The configuration by which the rest of the node is looked at.
pub(super) struct Found {
    /// Its file, for commands.
    pub(super) file: PathBuf,
    /// As a call about the whole node would bring it.
    pub(super) request: Request,
    /// Whether it is the node's own, not what is left of it.
    pub(super) is_whole: bool,
}

/// Finds the configuration; what cannot be used is replaced by what is left of it.
pub(super) fn read(options: &Options, diagnosis: &mut Diagnosis) -> Option<Found> {
    let (file, conf) = find(options, diagnosis);
    if let Some(conf) = &conf {
        match about_the_node(conf.clone(), &options.cni_path) {
            Ok(request) => {
                warn(&file, &request, diagnosis);
                return Some(Found {
                    file,
                    request,
                    is_whole: true,
                });
            }
            Err(cause) => diagnosis.error(Check::Configuration, file.display(), &cause),
        }
    }
    let kept = Manifest::conf(&options.paths).ok().flatten();
    let left = [kept.as_ref(), conf.as_ref()].into_iter().flatten();
    let left = left.map(places).chain([RawObject::new()]);
    let mut requests =
        left.filter_map(|conf| about_the_node(completed(conf), &options.cni_path).ok());
    Some(Found {
        file,
        request: requests.next()?,
        is_whole: false,
    })
}

/// The file, and what we would get of it on stdin.
fn find(options: &Options, diagnosis: &mut Diagnosis) -> (PathBuf, Option<RawObject>) {
    let paths = &options.paths;
    if let Some(file) = &options.conf {
        let read = conf_dir::read(file).map_err(|cause| cause.to_string());
        let read = read.and_then(|found| {
            RawObject::parse_stdin(found.text.as_bytes())
                .map_err(|cause| format!("{cause}; correct it"))
        });
        let conf = match read {
            Ok(object) => Some(OurConf::read(&object).map_or(object, |conf| conf.on_stdin())),
            Err(cause) => {
                diagnosis.error(Check::Configuration, file.display(), &cause);
                None
            }
        };
        return (file.clone(), conf);
    }
    let usual = paths.conf_dir.join("00-jackfield.conflist");
    match Directory::read(paths, &paths.conf_dir) {
        Ok(directory) => match directory.ours() {
            Some((name, conf)) => (directory.file(name), Some(conf.on_stdin())),
            None => {
                let (about, finding, remedy) = match directory.broken_ours() {
                    Some((file, cause)) => (
                        file,
                        cause,
                        "correct it, or run jackfield install, which writes it anew",
                    ),
                    None => (
                        paths.conf_dir.clone(),
                        "no configuration of jackfield is there, so the runtime does not call it",
                        "run jackfield install, or name the runtime's directory with --conf-dir",
                    ),
                };
                diagnosis.find(Check::Configuration, about.display(), finding, remedy);
                (usual, None)
            }
        },
        Err(error) => {
            diagnosis.error(
                Check::Configuration,
                paths.conf_dir.display(),
                &error.to_string(),
            );
            (usual, None)
        }
    }
}

fn warn(file: &Path, request: &Request, diagnosis: &mut Diagnosis) {
    let config = &request.config;
    for warning in &config.warnings {
        diagnosis.find(
            Check::Configuration,
            file.display(),
            warning.clone(),
            "correct the key, or take it out; docs/configuration.md has them all",
        );
    }
    if let Some(indicator) = &config.readiness_indicator
        && !indicator.exists()
    {
        diagnosis.find(
            Check::Configuration,
            file.display(),
            format!(
                "readinessindicatorfile {} does not exist, so every ADD waits",
                indicator.display()
            ),
            "look why the cluster network does not start, or correct the key",
        );
    }
    if diagnosis.is_fine(Check::Configuration) {
        let name = config.cluster_network.label();
        diagnosis.fine(
            Check::Configuration,
            format!("{}, in front of {name}", file.display()),
        );
    }
}

fn places(conf: &RawObject) -> RawObject {
    let mut left = RawObject::new();
    for key in PLACES {
        let Some(value) = conf.get(key) else { continue };
        let is_path = conf
            .read::<String>(key)
            .is_ok_and(|text| text.is_some_and(|text| text.starts_with('/')));
        if is_path {
            left.set(key, value.to_owned());
        }
    }
    left
}

/// The keys that have to be there.
fn completed(mut conf: RawObject) -> RawObject {
    put(&mut conf, "cniVersion", &"1.1.0");
    put(&mut conf, "name", &crate::setup::NAME);
    put(&mut conf, "clusterNetwork", &"/");
    conf
}
