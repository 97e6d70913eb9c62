//! The agent's log: lines on stderr, for people or for programs.

use tracing::Level;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// How a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts it; a second start changes nothing.
pub(super) fn start(format: LogFormat) {
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => lines.with_ansi(false).boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    // The libraries tell of every retry; what matters of it is logged here, with its object.
    let filter = Targets::new()
        .with_default(Level::ERROR)
        .with_target("jackfield", Level::INFO)
        .with_target("kube_client", tracing::level_filters::LevelFilter::OFF)
        .with_target("kube_runtime", tracing::level_filters::LevelFilter::OFF);
    let _ = tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .try_init();
}
