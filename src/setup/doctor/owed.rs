//! Checks what is owed: detachments, and writes of status and events to the API server.

use std::io;
use std::time::Duration;

use super::{Check, Diagnosis};
use crate::cluster::{Census, OwedWrites, PodName};
use crate::diagnostic::Problem;
use crate::operation::Context;

/// The age at which a write is late: the agent makes writes at once.
const LATE: Duration = Duration::from_secs(60);

/// What is owed.
#[derive(Debug)]
enum OwedProblem {
    /// A sandbox could not be detached.
    Detachment {
        /// How often Jackfield tried.
        attempts: u32,
        /// The last failure, as the journal has it.
        cause: String,
    },
    /// The owed writes cannot be read.
    Unreadable(io::Error),
    /// Writes wait for the API server.
    Writes {
        /// How many.
        count: usize,
        /// The pod of the oldest.
        oldest: PodName,
        /// The age of the oldest.
        age: Duration,
    },
    /// The file of a write cannot be read.
    BrokenWrite,
}

impl Problem for OwedProblem {
    fn words(&self) -> String {
        match self {
            OwedProblem::Detachment { attempts, cause } => {
                format!("it could not be detached, {attempts} times so far: {cause}")
            }
            OwedProblem::Unreadable(cause) => format!("it cannot be read: {cause}"),
            OwedProblem::Writes { count, oldest, age } => format!(
                "{count} writes to the API server wait, that of pod {oldest} for {} s",
                age.as_secs()
            ),
            OwedProblem::BrokenWrite => "an owed write of a status cannot be read".to_owned(),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            OwedProblem::Detachment { .. } => {
                "correct the cause; each DEL and STATUS on this node retries it"
            }
            OwedProblem::Unreadable(_) => "make it readable for root",
            OwedProblem::Writes { .. } => {
                "start the agent, or see in its log why the API server refuses them"
            }
            OwedProblem::BrokenWrite => {
                "recreate its pod if its network-status is missing, then remove the file"
            }
        };
        Some(remedy.to_owned())
    }
}

/// Checks both. While the API server does not answer, every write is late.
pub(super) fn look(context: &Context<'_>, census: Option<&Census>, diagnosis: &mut Diagnosis) {
    for owed in context.host.journal.all_owed() {
        let key = owed.key();
        let about = format!("container {}:{}", key.container, key.ifname);
        let problem = OwedProblem::Detachment {
            attempts: owed.attempts,
            cause: owed.cause,
        };
        diagnosis.find(Check::Owed, about, problem);
    }
    let is_unreachable = census.is_some_and(|census| census.unreachable.is_some());
    let late = if is_unreachable { Duration::ZERO } else { LATE };
    writes(context, late, diagnosis);
    if diagnosis.is_fine(Check::Owed) {
        diagnosis.fine(Check::Owed, "nothing is owed");
    }
}

fn writes(context: &Context<'_>, late: Duration, diagnosis: &mut Diagnosis) {
    let writes = OwedWrites::new(&context.request.config.journal_dir);
    let dir = writes.dir().display().to_string();
    let survey = match writes.survey() {
        Ok(survey) => survey,
        Err(cause) => {
            diagnosis.find(Check::Owed, dir, OwedProblem::Unreadable(cause));
            return;
        }
    };
    let late: Vec<_> = survey
        .waiting
        .iter()
        .filter(|(_, age)| *age >= late)
        .collect();
    if let Some((oldest, age)) = late.iter().max_by_key(|(_, age)| *age) {
        let problem = OwedProblem::Writes {
            count: late.len(),
            oldest: oldest.clone(),
            age: *age,
        };
        diagnosis.find(Check::Owed, &dir, problem);
    }
    for file in survey.broken {
        diagnosis.find(Check::Owed, file.display(), OwedProblem::BrokenWrite);
    }
}
