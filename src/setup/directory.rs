//! Reads a directory of CNI configurations as the container runtime does.
//!
//! containerd and CRI-O sort the files `*.conf`, `*.conflist` and `*.json` by the bytes of their
//! names and use the first file. If the first file is broken, containerd has no network, but CRI-O
//! uses the next file. Both runtimes ignore folders, and files with other extensions.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::conf::OurConf;
use super::problem::{ConfFileProblem, NoNetwork};
use super::{HostPaths, NAME, SetupError};
use crate::cluster::conf_dir::{self, ConfDirError};
use crate::cni::{NetworkConfig, RawObject};

/// The extensions of the files that the runtime reads.
const READ: [&str; 3] = ["conf", "conflist", "json"];
/// The names that Jackfield's file may have, in the order in which the installer tries them. Each
/// name sorts before the previous name.
pub(super) const NAMES: [&str; 2] = ["00-jackfield.conflist", "0-jackfield.conflist"];
/// The maximum number of attempts to read a directory. [`Directory::read`] makes another attempt
/// if a file was renamed or removed during the previous attempt.
const ATTEMPTS: usize = 10;
/// The plugin types of Multus: the plugin itself, and the shim that calls Multus' daemon.
pub(super) const MULTUS: [&str; 2] = ["multus", "multus-shim"];

/// One file that the runtime would read.
#[derive(Debug)]
pub struct ConfFile {
    /// The file's name in the directory.
    pub name: String,
    /// What the file configures.
    pub kind: Kind,
}

/// What a file configures.
#[derive(Debug)]
pub enum Kind {
    /// The configuration of Jackfield. Its first or only plugin is Jackfield.
    Ours(Box<OurConf>),
    /// Multus.
    Multus,
    /// The loopback network, which cannot be the cluster network.
    Loopback,
    /// A network that may be the cluster network.
    Network(Box<NetworkConfig>),
    /// The file cannot be used.
    Broken(Arc<ConfFileProblem>),
}

/// The files of a directory.
#[derive(Debug)]
pub struct Directory {
    /// The directory's path on the host.
    pub path: PathBuf,
    /// The files that the runtime reads, in the order in which it tries them.
    pub files: Vec<ConfFile>,
    /// The names of all other files, except names that are not UTF-8.
    pub aside: Vec<String>,
}

impl Directory {
    /// Reads a directory of the host. If a listed file disappears before it is read, lists the
    /// directory again, because the file may have a new name.
    ///
    /// # Errors
    /// [`SetupError::NoConfDir`] and [`SetupError::Io`].
    pub fn read(paths: &HostPaths, path: &Path) -> Result<Directory, SetupError> {
        let here = paths.here(path);
        let mut directory = Directory::read_once(&here, path)?;
        for _ in 1..ATTEMPTS {
            if !directory.files.iter().any(is_missing) {
                break;
            }
            directory = Directory::read_once(&here, path)?;
        }
        Ok(directory)
    }

    /// Reads the host's directory `path`. This process sees the directory at `here`.
    fn read_once(here: &Path, path: &Path) -> Result<Directory, SetupError> {
        let failed = |cause: io::Error| match cause.kind() {
            io::ErrorKind::NotFound => SetupError::NoConfDir(here.to_owned()),
            _ => SetupError::io(here, "read", cause),
        };
        let mut names: Vec<String> = Vec::new();
        for entry in fs::read_dir(here).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if !entry.path().is_dir()
                && let Ok(name) = entry.file_name().into_string()
            {
                names.push(name);
            }
        }
        names.sort();
        let (read, aside): (Vec<String>, Vec<String>) =
            names.into_iter().partition(|name| is_read(name));
        let files = read.into_iter().map(|name| {
            let kind = kind(&here.join(&name));
            ConfFile { name, kind }
        });
        Ok(Directory {
            path: path.to_owned(),
            files: files.collect(),
            aside,
        })
    }

    /// The file that the runtime tries first.
    pub fn first(&self) -> Option<&ConfFile> {
        self.files.first()
    }

    /// The name and content of the first file that configures Jackfield.
    pub fn ours(&self) -> Option<(&str, &OurConf)> {
        self.files.iter().find_map(|file| match &file.kind {
            Kind::Ours(conf) => Some((file.name.as_str(), &**conf)),
            _ => None,
        })
    }

    /// What the file `name` configures, if the runtime reads it.
    pub fn kind_of(&self, name: &OsStr) -> Option<&Kind> {
        let mut files = self.files.iter();
        let file = files.find(|file| OsStr::new(&file.name) == name);
        file.map(|file| &file.kind)
    }

    /// Returns the first broken file that has a name in `NAMES`, and what is wrong with it.
    pub fn broken_ours(&self) -> Option<(PathBuf, &Arc<ConfFileProblem>)> {
        self.files.iter().find_map(|file| match &file.kind {
            Kind::Broken(cause) if NAMES.contains(&file.name.as_str()) => {
                Some((self.file(&file.name), cause))
            }
            _ => None,
        })
    }

    /// The error for the file of [`Self::broken_ours`], if that file cannot be read.
    pub fn unreadable_ours(&self) -> Option<SetupError> {
        let (_, cause) = self.broken_ours()?;
        match &**cause {
            ConfFileProblem::Unreadable(ConfDirError::Unreadable(path, cause)) => {
                let cause = io::Error::new(cause.kind(), Arc::clone(cause));
                Some(SetupError::io(path, "read", cause))
            }
            _ => None,
        }
    }

    /// The path, on the host, of the first file that configures Multus.
    pub fn multus(&self) -> Option<PathBuf> {
        let mut files = self.files.iter();
        let multus = files.find(|file| matches!(file.kind, Kind::Multus))?;
        Some(self.file(&multus.name))
    }

    /// The network that the runtime would use without Jackfield and Multus: the first file of the
    /// kind [`Kind::Network`].
    ///
    /// A broken file ends the search, because containerd does not skip a broken file, and because
    /// another program may still be writing the file. One exception: the search skips a broken file
    /// with a name in `NAMES`, because this file is normally the configuration of Jackfield.
    ///
    /// # Errors
    /// [`NoNetwork::BrokenFirst`] and [`NoNetwork::Missing`].
    pub fn cluster_network(&self) -> Result<(&str, &NetworkConfig), NoNetwork> {
        for file in &self.files {
            match &file.kind {
                Kind::Network(config) => return Ok((&file.name, config)),
                Kind::Broken(cause) if !NAMES.contains(&file.name.as_str()) => {
                    return Err(NoNetwork::BrokenFirst {
                        name: file.name.clone(),
                        cause: Arc::clone(cause),
                    });
                }
                Kind::Ours(_) | Kind::Multus | Kind::Loopback | Kind::Broken(_) => {}
            }
        }
        Err(NoNetwork::Missing)
    }

    /// The path of the file `name` on the host.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// Whether the file did not exist when Jackfield tried to read it.
fn is_missing(file: &ConfFile) -> bool {
    let Kind::Broken(problem) = &file.kind else {
        return false;
    };
    matches!(
        &**problem,
        ConfFileProblem::Unreadable(ConfDirError::Missing(_))
    )
}

/// Whether the runtime reads a file with this name.
pub fn is_read(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|end| end.to_str());
    ending.is_some_and(|end| READ.contains(&end))
}

/// What a file configures.
pub fn kind(path: &Path) -> Kind {
    usable_kind(path).unwrap_or_else(|problem| Kind::Broken(Arc::new(problem)))
}

/// Reads the text of a configuration. Includes the plugins in the folder that is beside the file
/// and has the network's name (CNI 1.1.0 §1 `loadOnlyInlinedPlugins`).
pub(super) fn text(path: &Path) -> Result<String, ConfFileProblem> {
    Ok(conf_dir::with_sibling_plugins(conf_dir::read(path)?)?.text)
}

fn usable_kind(path: &Path) -> Result<Kind, ConfFileProblem> {
    let text = text(path)?;
    if let Some(conf) = OurConf::read(&RawObject::parse_stdin(text.as_bytes())?) {
        return Ok(Kind::Ours(Box::new(conf)));
    }
    let config = NetworkConfig::parse(text.as_bytes())?;
    let plugins = config.plugins().iter();
    let types: Vec<&str> = plugins.map(|it| it.plugin_type().as_str()).collect();
    if types.iter().any(|name| MULTUS.contains(name)) {
        return Ok(Kind::Multus);
    }
    if types.contains(&NAME) {
        return Err(ConfFileProblem::WithinChain);
    }
    if config.name().is_none() {
        return Err(ConfFileProblem::NoName);
    }
    if types == ["loopback"] {
        return Ok(Kind::Loopback);
    }
    Ok(Kind::Network(Box::new(config)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cni::{JsonError, NetworkConfigError};

    const BRIDGE: &str = r#"{"name":"b","type":"bridge"}"#;
    const OURS: &str = r#"{"name":"j","plugins":[{"type":"jackfield","clusterNetwork":"/a"}]}"#;

    fn directory(files: &[(&str, &str)]) -> Directory {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("multus.d")).unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        read(dir.path())
    }

    fn read(dir: &Path) -> Directory {
        let paths = HostPaths {
            host_root: dir.into(),
            conf_dir: "/".into(),
            cluster_conf_dir: "/".into(),
            bin_dir: "/".into(),
        };
        Directory::read(&paths, Path::new("/")).unwrap()
    }

    fn candidate(files: &[(&str, &str)]) -> String {
        match directory(files).cluster_network() {
            Ok((name, _)) => name.to_owned(),
            Err(reason) => reason.to_string(),
        }
    }

    // clause: NPWG-1.3 §6.1 readiness: Jackfield and Multus do not count as the cluster network
    #[test]
    fn jackfield_and_multus_do_not_count_as_the_cluster_network() {
        let files = [
            ("00-jackfield.conflist", OURS),
            ("00-multus.conf", r#"{"name":"m","type":"multus-shim"}"#),
            ("05-lo.conf", r#"{"name":"lo","type":"loopback"}"#),
            ("10-b.conf", BRIDGE),
            ("09-old.conf.bak", BRIDGE),
            ("20-c.conf", BRIDGE),
        ];
        assert_eq!(candidate(&files), "10-b.conf");
        assert_eq!(candidate(&files[..3]), "there is none");
        let read = directory(&files);
        assert_eq!(read.first().unwrap().name, "00-jackfield.conflist");
        assert_eq!(read.ours().unwrap().0, "00-jackfield.conflist");
        assert_eq!(read.aside, ["09-old.conf.bak"]);
        assert!(read.multus().is_some());
    }

    #[test]
    fn a_broken_first_file_hides_later_networks() {
        use ConfFileProblem as P;
        type IsExpected = fn(&P) -> bool;
        let is_problem: [(&str, IsExpected); 5] = [
            ("", |it| matches!(it, P::Json(JsonError::Empty))),
            ("{", |it| matches!(it, P::Json(JsonError::Syntax(_)))),
            (r#"{"name":"a","plugins":[]}"#, |it| {
                matches!(it, P::Network(NetworkConfigError::NoPlugins))
            }),
            (r#"{"type":"bridge"}"#, |it| matches!(it, P::NoName)),
            (
                r#"{"name":"a","plugins":[{"type":"bridge"},{"type":"jackfield"}]}"#,
                |it| matches!(it, P::WithinChain),
            ),
        ];
        for (text, is_expected) in is_problem {
            let read = directory(&[("09-a.conflist", text), ("10-b.conf", BRIDGE)]);
            match read.cluster_network() {
                Err(NoNetwork::BrokenFirst { name, cause })
                    if name == "09-a.conflist" && is_expected(&cause) => {}
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_file_that_is_renamed_meanwhile_is_seen_under_one_of_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let names = [NAMES[0], "00-jackfield.conflist.cilium_bak"];
        let [ours, aside] = names.map(|name| dir.path().join(name));
        fs::write(&ours, OURS).unwrap();
        std::thread::scope(|scope| {
            let renaming = scope.spawn(|| {
                for _ in 0..1_000 {
                    for (from, to) in [(&ours, &aside), (&aside, &ours)] {
                        fs::rename(from, to).unwrap();
                        std::thread::sleep(Duration::from_micros(100));
                    }
                }
            });
            while !renaming.is_finished() {
                let directory = read(dir.path());
                let is_seen = directory.ours().is_some() || directory.aside == [names[1]];
                assert!(is_seen, "{directory:?}");
            }
        });
    }

    #[test]
    fn file_names_are_compared_byte_by_byte() {
        let read = directory(&[
            ("000-x.conf", BRIDGE),
            ("00-x.conf", BRIDGE),
            ("0-x.conf", BRIDGE),
        ]);
        let names: Vec<&str> = read.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["0-x.conf", "00-x.conf", "000-x.conf"]);
    }
}
