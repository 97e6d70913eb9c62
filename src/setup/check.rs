//! The checks that the installer makes before it changes the node.

use super::install::Options;
use super::manifest::Manifest;
use super::plan::InstallPlan;
use super::{HostPaths, SetupError};
use crate::cni::RawObject;
use crate::journal::Journal;
use crate::request::NodeConfig;

/// Checks every key of the configuration to install.
pub(super) fn conf(plan: &InstallPlan) -> Result<(), SetupError> {
    plan.conf.node_config().map_err(Box::new)?;
    Ok(())
}

/// Refuses to change `journalDir` while the previous directory has records of sandboxes.
pub(super) fn journal(paths: &HostPaths, plan: &InstallPlan) -> Result<(), SetupError> {
    let dir = |stdin: &RawObject| NodeConfig::parse(stdin).ok().map(|conf| conf.journal_dir);
    let before = Manifest::conf(paths)?.and_then(|stdin| dir(&stdin));
    let (Some(from), Some(to)) = (before, dir(&plan.conf.on_stdin())) else {
        return Ok(());
    };
    if from == to {
        return Ok(());
    }
    let survey = Journal::new(&paths.here(&from)).survey()?;
    match survey.records.len() + survey.unknown().len() {
        0 => Ok(()),
        count => Err(SetupError::JournalMoved { from, to, count }),
    }
}

/// Refuses to replace a newer release of Jackfield if `options` do not allow a downgrade. An older
/// release may be unable to read the records of a newer release.
pub(super) fn version(options: &Options, before: Option<&Manifest>) -> Result<(), SetupError> {
    match before {
        Some(before) if before.version > super::version() && !options.allow_downgrade => {
            Err(SetupError::Downgrade {
                path: options.paths.here(&before.binary),
                installed: Box::new(before.version.clone()),
            })
        }
        _ => Ok(()),
    }
}
