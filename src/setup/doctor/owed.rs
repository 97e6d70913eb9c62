//! Reports owed detachments, and publications that the API server has not received.

use std::time::Duration;

use super::Findings;
use crate::cluster::{Census, OwedWrites};
use crate::operation::Context;

/// The age at which a publication is late. The agent normally sends each publication immediately.
const LATE: Duration = Duration::from_secs(60);

/// Reports every owed detachment and every late publication. While the API server does not answer,
/// every publication counts as late.
pub(super) fn look(context: &Context<'_>, census: Option<&Census>, mut findings: Findings<'_>) {
    for owed in context.host.journal.all_owed() {
        let key = owed.key;
        let about = format!("container {}:{}", key.container, key.ifname);
        let (attempts, cause) = (owed.attempts, owed.cause);
        let problem = format!("it could not be detached in {attempts} attempts: {cause}");
        let remedy = "correct the cause; DEL and STATUS calls on this node retry the detachment";
        findings.add(about, problem, remedy);
    }
    let is_unreachable = census.is_some_and(|census| census.unreachable.is_some());
    let late = if is_unreachable { Duration::ZERO } else { LATE };
    writes(context, late, &mut findings);
    findings.fine("no detachment is owed, and no status or event is late");
}

fn writes(context: &Context<'_>, late: Duration, findings: &mut Findings<'_>) {
    let writes = OwedWrites::new(&context.request.config.journal_dir);
    let dir = writes.dir().display().to_string();
    let mut survey = match writes.survey() {
        Ok(survey) => survey,
        Err(cause) => {
            let problem = format!("it cannot be read: {cause}");
            return findings.add(dir, problem, "make it readable for root");
        }
    };
    survey.waiting.retain(|(_, age)| *age >= late);
    let count = survey.waiting.len();
    if let Some((oldest, age)) = survey.waiting.into_iter().max_by_key(|(_, age)| *age) {
        let remedy = "start the agent, or find in its log why the API server refuses the writes";
        let problem = format!(
            "files with a status or events that the API server has not received: {count}; the \
             oldest, of pod {oldest}, is {} s old",
            age.as_secs()
        );
        findings.add(dir, problem, remedy);
    }
    for file in survey.broken {
        findings.add(
            file.display(),
            "this file, which should contain the unpublished status of a pod, cannot be read",
            "recreate the pods of this node that have no network-status, then remove the file",
        );
    }
}
