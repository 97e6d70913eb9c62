//! Drives one API server with the requests of the agents of thousands of nodes. `scripts/scale` prepares
//! the node and the API server and calls it.
//!
//! The first nodes have real agents. The agents of the other nodes are replayed: this program sends an
//! agent's requests with an agent's client over a connection for each node. The run fails if they differ
//! from the requests of the real agents in the audit log.

mod adds;
mod audit;
mod board;
mod call;
mod crowd;
mod fleet;
mod meter;
mod multus;
mod population;
mod processes;
mod replayed;
mod report;
mod settings;
mod starts;
mod story;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use tokio::task::LocalSet;

use settings::Settings;

/// Why the run cannot go on.
pub(crate) type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let settings = Settings::parse();
    let told = run(&settings);
    match told {
        Ok(is_kept) => ExitCode::from(u8::from(!is_kept)),
        Err(cause) => {
            say(&format!("scale: {cause}"));
            ExitCode::FAILURE
        }
    }
}

fn run(settings: &Settings) -> Result<bool, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let measured = LocalSet::new().block_on(&runtime, story::tell(settings))?;
    let requests = audit::read(&settings.folder.join("api/audit.log"))?;
    let (text, is_kept) = report::of(settings, &measured, &requests);
    #[allow(clippy::disallowed_methods, reason = "a report of its own")]
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(is_kept)
}

/// Says to standard error what happens.
pub(crate) fn say(text: &str) {
    #[allow(clippy::disallowed_methods, reason = "a report of its own")]
    let _ = writeln!(std::io::stderr(), "== {text}");
}
