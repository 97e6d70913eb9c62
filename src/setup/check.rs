//! What is looked at before anything is put in place.

use super::install::Options;
use super::manifest::Manifest;
use super::plan::Plan;
use super::{NodeError, Place};
use crate::cni::RawObject;
use crate::journal::Journal;
use crate::request::NodeConfig;

/// Every key of what is to be installed has a value that can be.
pub(super) fn conf(plan: &Plan) -> Result<(), NodeError> {
    let checked = plan.conf.node_config();
    checked.map(drop).map_err(|cause| NodeError::Conf {
        file: "the configuration to install".to_owned(),
        cause: cause.to_string(),
    })
}

/// What is on record is looked for where the configuration says.
pub(super) fn journal(place: &Place, plan: &Plan) -> Result<(), NodeError> {
    let dir = |stdin: &RawObject| NodeConfig::parse(stdin).ok().map(|conf| conf.journal_dir);
    let before = Manifest::conf(place)?.and_then(|stdin| dir(&stdin));
    let (Some(from), Some(to)) = (before, dir(&plan.conf.on_stdin())) else {
        return Ok(());
    };
    if from == to {
        return Ok(());
    }
    let survey = Journal::new(&place.here(&from)).survey();
    let survey = survey.map_err(|cause| NodeError::NotYet(cause.to_string()))?;
    match survey.records.len() + survey.unknown().len() {
        0 => Ok(()),
        count => Err(NodeError::JournalMoved { from, to, count }),
    }
}

/// An older binary may not read what a newer one wrote.
pub(super) fn version(options: &Options, before: Option<&Manifest>) -> Result<(), NodeError> {
    let Some(before) = before else { return Ok(()) };
    let ours = super::version();
    if before.version > ours && !options.allow_downgrade {
        return Err(NodeError::Downgrade {
            path: options.place.here(&before.binary),
            installed: before.version.clone(),
            ours,
        });
    }
    Ok(())
}
