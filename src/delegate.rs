//! Executes delegates: finds their binaries, runs them with a deadline, and reads their answers.
//!
//! ```text
//! NetworkConfig ─▶ Binaries ─▶ Chain ─▶ DelegateCall ─▶ DelegateExec ─▶ process ─▶ answer ─▶ CniResult
//! ```
//!
//! A delegate may hang, crash, write endless output, or leave children behind. Jackfield must still
//! answer in time. It kills the processes of a failed delegate. CNI 1.1.0 §2 and §3 define how to
//! call a delegate. CNI 1.1.0 §4 requires Jackfield to pass on the delegate's standard error.
//!
//! A delegate inherits Jackfield's descriptors, except those with the flag close-on-exec. One of
//! the inherited descriptors holds the container's lock, so the lock stays held while any delegate
//! runs. The delegate's standard streams are pipes, so that the delegate does not keep the streams
//! of the container runtime open.

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

/// For [`crate::fuzzing`]: returns the answer or the error of an imaginary plugin. The plugin wrote
/// the bytes `stdout` to both of its output streams, and exited with `status`.
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
