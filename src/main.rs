//! `jackfield`: with `CNI_COMMAND` in the environment the plugin, else the command line.

use std::process::ExitCode;

/// Few pages are ever given back within one short call; musl's own allocator asks the kernel
/// anew for each, which costs an ADD half a millisecond.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    if std::env::var_os("CNI_COMMAND").is_some() {
        jackfield::plugin::main()
    } else {
        jackfield::cli::main()
    }
}
