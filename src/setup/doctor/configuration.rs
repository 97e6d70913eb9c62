//! Checks the node configuration: its file, its keys and their values.

mod problem;

use std::path::{Path, PathBuf};

use problem::ConfigurationCheckProblem;

use super::{Check, Diagnosis, Options};
use crate::cluster::conf_dir;
use crate::cni::RawObject;
use crate::request::Request;
use crate::setup::conf::{OurConf, put};
use crate::setup::directory::Directory;
use crate::setup::manifest::Manifest;
use crate::setup::request::about_the_node;

/// Keys with paths. They are still usable if another key is wrong.
const PATH_KEYS: [&str; 10] = [
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

/// The configuration for the other checks.
pub(super) struct UsableConfiguration {
    /// Its file, for commands.
    pub(super) file: PathBuf,
    /// A call about the whole node with this configuration.
    pub(super) request: Request,
    /// Whether it has all keys of the node configuration, not only the usable ones.
    pub(super) is_whole: bool,
}

/// Reads the configuration. Falls back to the paths in it or in the installed copy if it is invalid.
pub(super) fn read(options: &Options, diagnosis: &mut Diagnosis) -> Option<UsableConfiguration> {
    let (file, conf) = find(options, diagnosis);
    if let Some(conf) = &conf {
        match about_the_node(conf.clone(), &options.cni_path) {
            Ok(request) => {
                warn(&file, &request, diagnosis);
                return Some(UsableConfiguration {
                    file,
                    request,
                    is_whole: true,
                });
            }
            Err(cause) => {
                let problem = ConfigurationCheckProblem::Invalid(Box::new(cause));
                diagnosis.find(Check::Configuration, file.display(), problem);
            }
        }
    }
    let installed = Manifest::conf(&options.paths).ok().flatten();
    let paths = [installed.as_ref(), conf.as_ref()].into_iter().flatten();
    let paths = paths.map(paths_of).chain([RawObject::new()]);
    let mut requests =
        paths.filter_map(|conf| about_the_node(completed(conf), &options.cni_path).ok());
    Some(UsableConfiguration {
        file,
        request: requests.next()?,
        is_whole: false,
    })
}

/// The file, and what Jackfield would get of it on stdin.
fn find(options: &Options, diagnosis: &mut Diagnosis) -> (PathBuf, Option<RawObject>) {
    let paths = &options.paths;
    if let Some(file) = &options.conf {
        let read = conf_dir::read(file).map_err(ConfigurationCheckProblem::Unreadable);
        let read = read.and_then(|found| {
            RawObject::parse_stdin(found.text.as_bytes()).map_err(ConfigurationCheckProblem::Json)
        });
        let conf = match read {
            Ok(object) => Some(OurConf::read(&object).map_or(object, |conf| conf.on_stdin())),
            Err(problem) => {
                diagnosis.find(Check::Configuration, file.display(), problem);
                None
            }
        };
        return (file.clone(), conf);
    }
    let default = paths.conf_dir.join("00-jackfield.conflist");
    match Directory::read(paths, &paths.conf_dir) {
        Ok(directory) => match directory.ours() {
            Some((name, conf)) => (directory.file(name), Some(conf.on_stdin())),
            None => {
                let (about, problem) = match directory.broken_ours() {
                    Some((file, cause)) => (file, ConfigurationCheckProblem::Broken(cause.clone())),
                    None => (paths.conf_dir.clone(), ConfigurationCheckProblem::Missing),
                };
                diagnosis.find(Check::Configuration, about.display(), problem);
                (default, None)
            }
        },
        Err(error) => {
            diagnosis.find(Check::Configuration, paths.conf_dir.display(), error);
            (default, None)
        }
    }
}

fn warn(file: &Path, request: &Request, diagnosis: &mut Diagnosis) {
    let config = &request.config;
    for warning in &config.warnings {
        let problem = ConfigurationCheckProblem::Warning(warning.clone());
        diagnosis.find(Check::Configuration, file.display(), problem);
    }
    if let Some(indicator) = &config.readiness_indicator
        && !indicator.exists()
    {
        let problem = ConfigurationCheckProblem::NoIndicator(indicator.clone());
        diagnosis.find(Check::Configuration, file.display(), problem);
    }
    if diagnosis.is_fine(Check::Configuration) {
        let name = config.cluster_network.label();
        diagnosis.fine(
            Check::Configuration,
            format!("{}, in front of {name}", file.display()),
        );
    }
}

/// The keys with usable paths.
fn paths_of(conf: &RawObject) -> RawObject {
    let mut paths = RawObject::new();
    for key in PATH_KEYS {
        let Some(value) = conf.get(key) else { continue };
        let is_path = conf
            .read::<String>(key)
            .is_ok_and(|text| text.is_some_and(|text| text.starts_with('/')));
        if is_path {
            paths.set(key, value.to_owned());
        }
    }
    paths
}

/// The configuration with the required keys.
fn completed(mut conf: RawObject) -> RawObject {
    put(&mut conf, "cniVersion", &"1.1.0");
    put(&mut conf, "name", &crate::setup::NAME);
    put(&mut conf, "clusterNetwork", &"/");
    conf
}
