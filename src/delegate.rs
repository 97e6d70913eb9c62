//! Executes delegates: finds their binaries, runs them with a deadline, and reads their answers.
//!
//! ```text
//! NetworkConfig ─▶ Binaries ─▶ Chain ─▶ DelegateCall ─▶ DelegateExec ─▶ process ─▶ answer ─▶ CniResult
//! ```
//!
//! A delegate may hang, crash, write without end, or leave children behind. None of that stops
//! Jackfield, and no process of a failed delegate keeps running. CNI 1.1.0 §2 and §3 define how a
//! delegate is called, §4 that its standard error goes to ours.
//!
//! A delegate deliberately inherits every descriptor that is not close-on-exec. One of them is the
//! lock of its sandbox, which is therefore held as long as any delegate runs. The standard streams
//! are pipes, so that no delegate holds those of the container runtime.

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
pub use call::{DelegateCall, DelegateExec, Parameters};
pub use chain::{Chain, ChainError, ChainErrors, Ran, Time};
pub use depth::{DEPTH_VARIABLE, Depth, DepthError, MAX_DEPTH};
pub use error::{DelegateError, LastLine};
pub use processes::Processes;
pub use search::{Binary, FindError, Ours, find};

/// The answer of a plugin with an exit status and an output, for [`crate::fuzzing`].
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn judged(status: i32, stdout: &[u8]) -> Result<Vec<u8>, DelegateError> {
    let output = process::ProcessOutput {
        ending: process::Ending::Exited(status),
        stdout: stdout.to_vec(),
        stderr: stdout.to_vec(),
        stderr_cut: false,
    };
    answer::complete(crate::cni::Verb::Add, output.ending, stdout);
    answer::judge(crate::cni::Verb::Add, std::time::Duration::ZERO, output)
}
