//! The log of the agent: lines on stderr, as text or as JSON.

use std::io::{self, Write};

use device_info::printable_json;
use tracing::Level;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::console;

/// The format of the log. The doc comments of the variants appear in the agent's help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// One JSON object per line
    Json,
}

/// Starts the log. A second call changes nothing.
pub(super) fn start(format: LogFormat) {
    let lines = tracing_subscriber::fmt::layer().with_writer(move || Lines(format));
    let lines = match format {
        LogFormat::Text => lines.with_ansi(false).boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    // `kube_client` and `kube_runtime` would log every retry. The agent itself logs the retries
    // that matter.
    let filter = Targets::new()
        .with_default(Level::ERROR)
        .with_target("jackfield", Level::INFO)
        .with_target("kube_client", tracing::level_filters::LevelFilter::OFF)
        .with_target("kube_runtime", tracing::level_filters::LevelFilter::OFF);
    let _ = tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .try_init();
}

/// Writes log lines to stderr, one line per call.
struct Lines(LogFormat);

impl Write for Lines {
    #[allow(clippy::disallowed_methods, reason = "the line is escaped")]
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let escaped = escaped(self.0, &String::from_utf8_lossy(line));
        io::stderr().lock().write_all(escaped.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn escaped(format: LogFormat, line: &str) -> String {
    let line = line.trim_end_matches('\n');
    let line = match format {
        LogFormat::Text => console::line(line),
        LogFormat::Json => printable_json(line),
    };
    format!("{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_line_contains_no_control_characters() {
        let text = "INFO refused: pod \u{9b}31m\nINFO all is well\n";
        let expected = "INFO refused: pod \\u{9b}31m\\nINFO all is well\n";
        assert_eq!(escaped(LogFormat::Text, text), expected);
        let json = "{\"message\":\"\u{9b}31m\u{2028}\"}\n";
        let expected = "{\"message\":\"\\u009b31m\\u2028\"}\n";
        assert_eq!(escaped(LogFormat::Json, json), expected);
    }
}
