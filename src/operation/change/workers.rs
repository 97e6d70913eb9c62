//! Starts the processes that change the networks of running pods. The runtime calls STATUS every
//! few seconds. With `dynamicAttachment`, STATUS asks the agent which sandboxes belong to pods with
//! a changed annotation.

use crate::cluster::{Answer, Question};
use crate::journal::{Key, Lock};
use crate::operation::{Context, Note, Work};

/// The maximum number of processes that one STATUS starts. The next STATUS starts further
/// processes.
const MOST: usize = 8;

/// Starts a process for each sandbox that the agent names in `answer`, up to [`MOST`]. Skips a
/// sandbox if another process is working on it, or if its last change failed and the retry is not
/// due yet ([`Journal::may_change`](crate::journal::Journal::may_change)). If the agent does not
/// know the attached sandboxes, sends the agent their list and asks again.
pub(in crate::operation) fn begin(context: &Context<'_>, answer: &Answer) {
    let host = context.host;
    let listed = answer.wants_sandboxes.then(|| list(context)).flatten();
    let differing = &listed.as_ref().unwrap_or(answer).differing;
    let mut differing: Vec<_> = differing.iter().collect();
    // The agent names the sandboxes in the same order each time. Shuffle them. Otherwise pods whose
    // annotations change all the time could take all `MOST` processes of every STATUS.
    fastrand::shuffle(&mut differing);
    let due = differing.into_iter().filter_map(|sandbox| {
        let key = Key {
            container: sandbox.container.clone(),
            ifname: sandbox.ifname.clone(),
        };
        // If another process of Jackfield holds the container's lock, skip the sandbox. But if only
        // hanging delegates of a killed process hold the lock, start a process. The new process
        // kills these delegates.
        let (locks, container) = (&host.lock_dir, &key.container);
        let is_free = || {
            Lock::take_if_free(locks, container).is_some()
                || Lock::is_orphaned(locks, container, context.request.config.deadlines.delegate)
        };
        (host.journal.may_change(&key, &sandbox.networks) && is_free()).then_some(key)
    });
    for key in due.take(MOST) {
        if let Err(cause) = (host.start_worker)(context, Work::Change, &key) {
            context.note(Note::NoWorker(key.container, cause));
        }
    }
}

/// Sends the agent the list of the attached sandboxes and asks again. Returns the new answer;
/// `None` if the agent does not answer, or if the journal cannot be read.
fn list(context: &Context<'_>) -> Option<Answer> {
    let (cluster, until) = (context.host.cluster, context.deadline);
    cluster.hand_over(context.host.journal.networks().ok()?, until);
    let question = Question {
        differing: true,
        ..Question::default()
    };
    cluster.ask(&question, until).ok()
}
