//! Runs the plugin if `CNI_COMMAND` is in the environment, otherwise the command line.

use std::process::ExitCode;

/// During a short call, dlmalloc returns hardly any pages to the kernel. musl's allocator
/// repeatedly returns pages and requests new pages, which costs an ADD half a millisecond.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    if std::env::var_os("CNI_COMMAND").is_some() {
        jackfield::plugin::main()
    } else {
        jackfield::cli::main()
    }
}
