//! Taking over from Multus: its configuration becomes ours, once it is known whom that hurts.
//!
//! ```text
//! Multus' conf (+ its daemon's) ▶ ours ▶ every pod and definition of the node, rehearsed
//!   ▶ who would fail, and why? nobody: install, Multus' file kept for the way back
//! ```
//!
//! Nothing is drained: what Multus attached is checked and detached by its own cache (key
//! `cniDir`).

mod convert;
mod rehearsal;

use std::path::{Path, PathBuf};

pub use rehearsal::{Rehearsal, rehearse};

use super::conf::OurConf;
use super::directory::{Directory, Kind};
use super::{HostPaths, SetupError};
use crate::cluster::conf_dir;
use crate::cni::RawObject;

/// Where Multus' daemon has its own configuration, below the runtime's directory.
const DAEMON_CONF: &str = "multus.d/daemon-config.json";

/// How to take over.
#[derive(Debug, Clone)]
pub struct FromMultus {
    /// Look, and change nothing.
    pub dry_run: bool,
    /// Take over although pods would fail, or although that cannot be known.
    pub force: bool,
    /// What the cluster calls this node.
    pub node: String,
    /// Directories with CNI plugins, besides `binDir`.
    pub cni_path: String,
    /// Rehearse pods alone, and not the definitions that none of them selects.
    pub pods_alone: bool,
    /// Give the node back to Multus.
    pub back: bool,
    /// The configuration of Multus' daemon, where it is not beside the runtime's.
    pub daemon_conf: Option<PathBuf>,
}

/// What Multus was configured to do.
#[derive(Debug)]
pub struct Takeover {
    /// Its file, as the host names it.
    pub file: PathBuf,
    /// The same in our words.
    pub ours: RawObject,
    /// What is not taken along, and what should be known, a line each.
    pub remarks: Vec<String>,
}

/// Reads the configuration of Multus that the runtime uses; `template` is what is laid over it.
///
/// # Errors
/// [`SetupError::NoMultus`], [`SetupError::MultusNotFirst`], [`SetupError::MultusConf`].
pub fn read(
    paths: &HostPaths,
    from: &FromMultus,
    template: Option<&RawObject>,
) -> Result<Takeover, SetupError> {
    let runtime = Directory::read(paths, &paths.conf_dir)?;
    let Some(multus) = runtime.multus() else {
        return Err(SetupError::NoMultus {
            dir: paths.here(&paths.conf_dir),
        });
    };
    let file = runtime.file(&multus.name);
    let first = runtime
        .files
        .iter()
        .find(|file| !matches!(file.kind, Kind::Loopback));
    if let Some(first) = first.filter(|first| first.name != multus.name) {
        return Err(SetupError::MultusNotFirst {
            first: runtime.file(&first.name),
            multus: file,
        });
    }
    let here = paths.here(&file);
    let conf = object(&here)?;
    let daemon = match &from.daemon_conf {
        Some(file) => Some(object(file)?),
        None => {
            let usual = paths.here(&paths.conf_dir).join(DAEMON_CONF);
            match usual.exists() {
                true => Some(object(&usual)?),
                false => None,
            }
        }
    };
    let converted = convert::convert(paths, &runtime, &conf, daemon.as_ref());
    let (ours, mut remarks) =
        converted.map_err(|cause| SetupError::MultusConf { file: here, cause })?;
    let installed = OurConf::over(template.unwrap_or(&RawObject::new()), &ours).on_stdin();
    if let Some(kubeconfig) = installed.read::<String>("kubeconfig").ok().flatten() {
        remarks.push(format!(
            "{kubeconfig} is kept up by Multus' DaemonSet; before that goes run jackfield agent and give kubeconfig the value null in --conf"
        ));
    }
    Ok(Takeover {
        file,
        ours,
        remarks,
    })
}

/// The object in a file.
fn object(path: &Path) -> Result<RawObject, SetupError> {
    let failed = |cause: &dyn std::fmt::Display| SetupError::MultusConf {
        file: path.to_owned(),
        cause: cause.to_string(),
    };
    let found = conf_dir::read(path).map_err(|cause| failed(&cause))?;
    RawObject::parse(found.text.as_bytes()).map_err(|cause| failed(&cause))
}
