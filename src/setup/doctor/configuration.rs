//! Checks the node configuration: its file, its keys and their values.

use std::path::{Path, PathBuf};

use super::{Findings, Options};
use crate::cluster::conf_dir;
use crate::cni::RawObject;
use crate::request::{NodeConfigError, Request, RequestError};
use crate::setup::about_the_node;
use crate::setup::conf::{OurConf, put};
use crate::setup::directory::{Directory, NAMES};
use crate::setup::manifest::Manifest;

/// Keys whose values are paths that other checks use. The checks use these paths even if a
/// different key is invalid.
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
    /// The path of the configuration. The commands in remedies contain it.
    pub(super) file: PathBuf,
    /// A request that has this configuration and names no pod.
    pub(super) request: Request,
    /// Whether `request` has all keys of the node configuration. If false, every key outside
    /// [`PATH_KEYS`] is missing or has a placeholder as its value.
    pub(super) is_whole: bool,
}

/// Reads the configuration. If the configuration is missing or invalid, reports the problem and
/// returns a request that has only paths. To find these paths, tries the following sources in
/// order, until one of them gives a valid request:
/// 1. The copy of the installed configuration, `conf.json` beside the manifest.
/// 2. The invalid configuration, if it can be parsed.
/// 3. The default paths.
pub(super) fn read(options: &Options, mut findings: Findings<'_>) -> Option<UsableConfiguration> {
    let (file, conf) = find(options, &mut findings);
    if let Some(conf) = &conf {
        match about_the_node(conf.clone(), &options.cni_path) {
            Ok(request) => {
                warn(&file, &request, &mut findings);
                return Some(UsableConfiguration {
                    file,
                    request,
                    is_whole: true,
                });
            }
            Err(cause) => invalid(&file, cause, &mut findings),
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

/// Reports an invalid configuration. For an invalid value, uses the text of `cause` as the remedy,
/// because this text says what to do, such as `use one of strict, off`.
fn invalid(file: &Path, error: RequestError, findings: &mut Findings<'_>) {
    match error {
        RequestError::Config(NodeConfigError::Value { key, value, cause }) => {
            let problem =
                format!("key {key} of the node configuration has an invalid value: {value}");
            findings.add(file.display(), problem, cause);
        }
        error => findings.add(file.display(), error, "correct it"),
    }
}

/// Returns the path of the configuration file, and the configuration as Jackfield gets it on stdin.
/// If the configuration is missing, or cannot be read or parsed, reports the problem and returns
/// only the path.
fn find(options: &Options, findings: &mut Findings<'_>) -> (PathBuf, Option<RawObject>) {
    let paths = &options.paths;
    if let Some(file) = &options.conf {
        let read = conf_dir::read(file).map(|it| RawObject::parse_stdin(it.text.as_bytes()));
        match read {
            Ok(Ok(object)) => {
                let ours = OurConf::read(&object);
                return (file.clone(), Some(ours.map_or(object, |it| it.on_stdin())));
            }
            Ok(Err(cause)) => findings.add(file.display(), cause, "correct it"),
            Err(cause) => findings.add_problem(file.display(), &cause),
        }
        return (file.clone(), None);
    }
    let default = paths.conf_dir.join(NAMES[0]);
    let directory = match Directory::read(paths, &paths.conf_dir) {
        Ok(directory) => directory,
        Err(error) => {
            findings.add_problem(paths.conf_dir.display(), &error);
            return (default, None);
        }
    };
    if let Some((name, conf)) = directory.ours() {
        return (directory.file(name), Some(conf.on_stdin()));
    }
    if let Some((file, cause)) = directory.broken_ours() {
        let remedy = "correct it, or run `jackfield install`, which writes it again";
        findings.add(file.display(), cause, remedy);
    } else {
        findings.add(
            paths.conf_dir.display(),
            "there is no configuration of jackfield, so the runtime does not call jackfield",
            "run `jackfield install`, or name the runtime's directory with --conf-dir",
        );
    }
    (default, None)
}

fn warn(file: &Path, request: &Request, findings: &mut Findings<'_>) {
    let config = &request.config;
    for warning in &config.warnings {
        let remedy = "correct the key, or remove it; docs/configuration.md lists all keys";
        findings.add(file.display(), warning, remedy);
    }
    if let Some(indicator) = &config.readiness_indicator
        && !indicator.exists()
    {
        let path = indicator.display();
        findings.add(
            file.display(),
            format!("readinessindicatorfile {path} does not exist, so every ADD waits"),
            "find out why the cluster network does not start, or correct the key",
        );
    }
    let name = config.cluster_network.label();
    findings.fine(format!("{}; cluster network: {name}", file.display()));
}

/// Copies the keys in [`PATH_KEYS`] whose values are absolute paths.
fn paths_of(conf: &RawObject) -> RawObject {
    let mut paths = RawObject::new();
    for key in PATH_KEYS {
        let path: Option<String> = conf.value_as(key);
        if let Some(path) = path.filter(|path| path.starts_with('/')) {
            put(&mut paths, key, &path);
        }
    }
    paths
}

/// Sets the keys that every configuration needs, with placeholders for their values.
fn completed(mut conf: RawObject) -> RawObject {
    put(&mut conf, "cniVersion", &"1.1.0");
    put(&mut conf, "name", &crate::setup::NAME);
    put(&mut conf, "clusterNetwork", &"/");
    conf
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::ValueError;
    use crate::setup::doctor::{Check, Diagnosis};

    #[test]
    fn finding_and_remedy_of_an_invalid_value_are_separate() {
        let value = NodeConfigError::Value {
            key: "verify".to_owned(),
            value: "7".to_owned(),
            cause: Box::new(ValueError::Choice(vec!["strict", "off"])),
        };
        let mut diagnosis = Diagnosis::new("n");
        let mut findings = diagnosis.of(Check::Configuration);
        invalid(Path::new("/conf"), value.into(), &mut findings);
        let found = &diagnosis.findings[0];
        assert_eq!(
            found.finding,
            "key verify of the node configuration has an invalid value: 7"
        );
        assert_eq!(found.remedy, "use one of strict, off");
    }
}
