//! Takes over from Multus: converts Multus' configuration to Jackfield's keys, and installs the
//! result if no pod would fail or if `--force` is set.
//!
//! ```text
//! read the configuration of Multus and of its daemon
//!   ▶ convert it to Jackfield's keys
//!   ▶ rehearse: check every network, and prepare the ADD of every pod on the node
//!   ▶ if no pod would fail: install, and keep Multus' file for the way back
//! ```
//!
//! A rehearsal runs no plugin.
//!
//! The administrator need not drain the node, because Jackfield can check and detach the pods that
//! Multus attached. Jackfield reads the attachments of these pods from Multus' cache (key
//! `cniDir`).

mod convert;
mod rehearsal;

use std::path::{Path, PathBuf};

pub use rehearsal::{Rehearsal, rehearse};

use super::conf::OurConf;
use super::directory::{Directory, Kind};
use super::notice::TakeoverRemark;
use super::{HostPaths, SetupError};
use crate::cluster::conf_dir;
use crate::cni::RawObject;

/// The default path of the configuration of Multus' daemon, in the runtime's CNI directory.
const DAEMON_CONF: &str = "multus.d/daemon-config.json";

/// The options of a takeover.
#[derive(Debug, Clone, Default)]
pub struct FromMultus {
    /// Only rehearse, and change nothing.
    pub dry_run: bool,
    /// Take over even if pods would fail, or if the rehearsal is impossible.
    pub force: bool,
    /// This node's name in the cluster.
    pub node: String,
    /// Directories with CNI plugins, besides `binDir`.
    pub cni_path: String,
    /// Rehearse only the pods, and skip definitions that no pod selects.
    pub pods_alone: bool,
    /// Give the node back to Multus.
    pub back: bool,
    /// The file with the configuration of Multus' daemon. `None` for the default path in the
    /// runtime's directory.
    pub daemon_conf: Option<PathBuf>,
}

/// The configuration of Multus, converted to Jackfield's keys.
#[derive(Debug)]
pub struct Takeover {
    /// The path of Multus' configuration file on the host.
    pub file: PathBuf,
    /// The converted configuration.
    pub ours: RawObject,
    /// The keys that need attention.
    pub remarks: Vec<TakeoverRemark>,
}

/// Reads the Multus configuration that the runtime uses, and converts it to Jackfield's keys.
///
/// `template` has the administrator's keys (the file of `install --conf`). The installer later
/// overrides the returned configuration with these keys. If the resulting configuration will have a
/// `kubeconfig`, `read` adds the remark [`TakeoverRemark::KubeconfigOfMultus`].
///
/// # Errors
/// [`SetupError::NoMultus`], [`SetupError::MultusNotFirst`], [`SetupError::MultusFile`],
/// [`SetupError::MultusConf`], and the errors of [`Directory::read`].
pub fn read(
    paths: &HostPaths,
    from: &FromMultus,
    template: Option<&RawObject>,
) -> Result<Takeover, SetupError> {
    let runtime = Directory::read(paths, &paths.conf_dir)?;
    let Some(file) = runtime.multus() else {
        return Err(SetupError::NoMultus(paths.here(&paths.conf_dir)));
    };
    let mut files = runtime.files.iter();
    let first = files.find(|file| !matches!(file.kind, Kind::Loopback));
    if let Some(first) = first.map(|first| runtime.file(&first.name))
        && first != file
    {
        let multus = file;
        return Err(SetupError::MultusNotFirst { first, multus });
    }
    let here = paths.here(&file);
    let conf = object(&here)?;
    let daemon = from.daemon_conf.clone().or_else(|| {
        let usual = paths.here(&paths.conf_dir).join(DAEMON_CONF);
        usual.exists().then_some(usual)
    });
    let daemon = daemon.as_deref().map(object).transpose()?;
    let converted = convert::convert(paths, &runtime, &conf, daemon.as_ref());
    let (ours, mut remarks) = converted.map_err(|cause| SetupError::multus(&here, cause))?;
    let installed = OurConf::over(template.unwrap_or(&RawObject::new()), &ours).on_stdin();
    let kubeconfig = installed.value_as("kubeconfig");
    remarks.extend(kubeconfig.map(TakeoverRemark::KubeconfigOfMultus));
    Ok(Takeover {
        file,
        ours,
        remarks,
    })
}

/// Reads the JSON object in a file.
fn object(path: &Path) -> Result<RawObject, SetupError> {
    let found = conf_dir::read(path).map_err(SetupError::MultusFile)?;
    RawObject::parse(found.text.as_bytes()).map_err(|cause| SetupError::multus(path, cause))
}
