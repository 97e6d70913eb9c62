//! The guest's half: runs the job that the host wrote to a shared folder.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::bare_metal::Interrupt;
use crate::case::Case;
use crate::cases;
use crate::lab::Boot;
use crate::node::Node;
use crate::rig::{CommandError, command};
use crate::suite;

/// The name of the job in the shared folder.
pub(crate) const JOB: &str = "job.json";
/// The name of the report there, one line of JSON per event.
pub(crate) const REPORT: &str = "report.jsonl";

/// What the guest should run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) boot: Boot,
    pub(crate) node: Node,
    /// The cases' names, in order.
    pub(crate) cases: Vec<String>,
}

/// Runs the folder's job and writes the report beside it.
pub(crate) fn run(folder: &Path) -> Result<(), GuestError> {
    let file = |name: &str| folder.join(name);
    let text = fs::read(file(JOB)).map_err(|source| GuestError::File {
        file: file(JOB),
        source,
    })?;
    let job: Job = serde_json::from_slice(&text).map_err(GuestError::Job)?;
    let all = cases::all();
    let selected: Vec<Case> = job
        .cases
        .iter()
        .map(|name| {
            all.iter()
                .find(|case| case.name == name)
                .copied()
                .ok_or_else(|| GuestError::Unknown(name.clone()))
        })
        .collect::<Result<_, _>>()?;
    for words in job.boot.commands() {
        if let [program, arguments @ ..] = words {
            command(program, arguments)?;
        }
    }
    let broken = |source| GuestError::File {
        file: file(REPORT),
        source,
    };
    let mut report = File::create(file(REPORT)).map_err(broken)?;
    // Nothing interrupts the guest. The host kills the whole machine.
    suite::run(&selected, &job.node, &Interrupt::default(), &mut |event| {
        let mut line = serde_json::to_string(&event).map_err(io::Error::other)?;
        line.push('\n');
        report.write_all(line.as_bytes())
    })
    .map_err(broken)
}

/// Why the guest cannot run its job.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GuestError {
    #[error("{}: {source}", file.display())]
    File { file: PathBuf, source: io::Error },
    #[error("{JOB} has another format: {0}; build host and guest from one checkout")]
    Job(serde_json::Error),
    #[error(
        "{JOB} names the case '{0}', which is not in this binary; build host and guest from one checkout"
    )]
    Unknown(String),
    #[error(transparent)]
    Command(#[from] CommandError),
}
