//! Executes the delegates: finds their binaries, runs them with a deadline, and reads what they
//! answer.
//!
//! ```text
//! NetworkConfig ─▶ Binaries ─▶ Chain ─▶ DelegateCall ─▶ DelegateExec ─▶ process ─▶ answer ─▶ CniResult
//! ```
//!
//! A delegate may be anything: it may hang, crash, flood, or leave children behind. None of that
//! stops Jackfield, and nothing of a delegate that failed is left running (CNI 1.1.0 §2 and §3 say
//! how it is called, §4 that its standard error goes to ours).
//!
//! A delegate inherits every descriptor that is not close-on-exec, on purpose: the lock of its
//! sandbox is among them and so lives as long as any delegate does. Its standard streams are
//! pipes, so nobody holds those of the container runtime.

mod answer;
mod binaries;
mod call;
mod chain;
mod depth;
mod environment;
mod error;
mod family;
mod pipe;
mod process;
mod processes;
mod remedy;
mod search;

pub use binaries::Binaries;
pub use call::{DelegateCall, DelegateExec};
pub use chain::{Chain, ChainError, ChainErrors, Parameters, Ran, Time};
pub use depth::{DEPTH_VARIABLE, Depth, DepthError, MAX_DEPTH};
pub use error::{DelegateError, LastLine};
pub use processes::Processes;
pub use search::{Binary, FindError, Ours, find};

/// What is made of a plugin's exit status and standard output, for [`crate::fuzzing`].
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn judged(status: i32, stdout: &[u8]) -> Result<Vec<u8>, DelegateError> {
    let ended = process::ProcessOutput {
        ending: process::Ending::Exited(status),
        stdout: stdout.to_vec(),
        stderr: stdout.to_vec(),
        stderr_cut: false,
    };
    answer::complete(crate::cni::Verb::Add, ended.ending, stdout);
    answer::judge(crate::cni::Verb::Add, std::time::Duration::ZERO, ended)
}
