//! What is looked at before anything is put in place.

use super::install::Options;
use super::manifest::Manifest;
use super::plan::InstallPlan;
use super::{HostPaths, SetupError};
use crate::cni::RawObject;
use crate::journal::Journal;
use crate::request::NodeConfig;

/// Every key of what is to be installed has a value that can be.
pub(super) fn conf(plan: &InstallPlan) -> Result<(), SetupError> {
    let checked = plan.conf.node_config();
    checked.map(drop).map_err(|cause| SetupError::Conf {
        file: "the configuration to install".to_owned(),
        cause: cause.to_string(),
    })
}

/// What is on record is looked for where the configuration says.
pub(super) fn journal(paths: &HostPaths, plan: &InstallPlan) -> Result<(), SetupError> {
    let dir = |stdin: &RawObject| NodeConfig::parse(stdin).ok().map(|conf| conf.journal_dir);
    let before = Manifest::conf(paths)?.and_then(|stdin| dir(&stdin));
    let (Some(from), Some(to)) = (before, dir(&plan.conf.on_stdin())) else {
        return Ok(());
    };
    if from == to {
        return Ok(());
    }
    let survey = Journal::new(&paths.here(&from)).survey();
    let survey = survey.map_err(|cause| SetupError::NotYet(cause.to_string()))?;
    match survey.records.len() + survey.unknown().len() {
        0 => Ok(()),
        count => Err(SetupError::JournalMoved { from, to, count }),
    }
}

/// An older binary may not read what a newer one wrote.
pub(super) fn version(options: &Options, before: Option<&Manifest>) -> Result<(), SetupError> {
    let Some(before) = before else { return Ok(()) };
    let ours = super::version();
    if before.version > ours && !options.allow_downgrade {
        return Err(SetupError::Downgrade {
            path: options.paths.here(&before.binary),
            installed: before.version.clone(),
            ours,
        });
    }
    Ok(())
}
