//! What is owed: detachments to plugins, and status and events to the API server.

use std::time::Duration;

use super::{Check, Diagnosis};
use crate::cluster::{Census, OwedWrites};
use crate::operation::Context;

/// How old a write may be before somebody should look: the agent makes them at once.
const LATE: Duration = Duration::from_secs(60);

/// Looks at both. Where the API server does not answer, every write waits for it, however new.
pub(super) fn look(context: &Context<'_>, census: Option<&Census>, diagnosis: &mut Diagnosis) {
    for owed in context.host.journal.all_owed() {
        let key = owed.key();
        let (cause, attempts) = (&owed.cause, owed.attempts);
        diagnosis.find(
            Check::Owed,
            format!("container {}:{}", key.container, key.ifname),
            format!("it could not be detached, {attempts} times so far: {cause}"),
            "correct the cause; each DEL and STATUS on this node has it tried again",
        );
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
            diagnosis.find(
                Check::Owed,
                dir,
                format!("it cannot be read: {cause}"),
                "make it readable for root",
            );
            return;
        }
    };
    let late: Vec<_> = survey
        .waiting
        .iter()
        .filter(|(_, age)| *age >= late)
        .collect();
    if let Some((oldest, age)) = late.iter().max_by_key(|(_, age)| *age) {
        diagnosis.find(
            Check::Owed,
            &dir,
            format!(
                "{} writes to the API server wait, that of pod {oldest} for {} s",
                late.len(),
                age.as_secs()
            ),
            "start the agent, or look into its log why the API server refuses them",
        );
    }
    for file in survey.broken {
        diagnosis.find(
            Check::Owed,
            file.display(),
            "a status that was to be written cannot be read",
            "recreate its pod if its network-status is missing, then remove the file",
        );
    }
}
