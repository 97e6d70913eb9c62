//! `jackfield`: the plugin if `CNI_COMMAND` is in the environment, otherwise the command line.

use std::process::ExitCode;

/// dlmalloc, because a short call hardly ever returns pages. musl's own allocator asks the kernel
/// for each page again, which costs an ADD half a millisecond.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    if std::env::var_os("CNI_COMMAND").is_some() {
        jackfield::plugin::main()
    } else {
        jackfield::cli::main()
    }
}
