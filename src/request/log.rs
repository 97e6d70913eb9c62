//! The log of a call: the keys `logFile`, `logLevel`, `logToStderr` and `logOptions`, as in Multus.

use std::path::PathBuf;

use serde::de::IgnoredAny;

use super::node_config::{Keys, NodeConfigError};

/// The log of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// `logFile`: the file to append to.
    pub file: Option<PathBuf>,
    /// `logLevel`: how much goes to the file.
    pub level: Level,
    /// `logToStderr`: whether warnings go to stderr. The runtime may discard the plugin's stderr.
    pub to_stderr: bool,
    /// `logOptions`: when to begin a new file, and how long to keep old ones.
    pub rotation: Rotation,
}

/// How much the log contains. Each level includes the levels before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The message of a panic.
    Panic,
    /// Failed calls and warnings.
    Error,
    /// Every call.
    Verbose,
    /// Every attachment of an ADD.
    Debug,
}

impl Level {
    /// The levels by their names in `logLevel`.
    pub const NAMES: [(&str, Level); 4] = [
        ("panic", Level::Panic),
        ("error", Level::Error),
        ("verbose", Level::Verbose),
        ("debug", Level::Debug),
    ];

    /// Returns the level's name in `logLevel`.
    pub fn name(self) -> &'static str {
        let mut names = Level::NAMES.iter();
        let named = names.find(|(_, level)| *level == self);
        named.map_or("", |(name, _)| name)
    }
}

/// When to begin a new log file, and how long to keep old ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// `maxSize`: the maximum size of the file, in megabytes.
    pub max_size: u64,
    /// `maxAge`: how many days to keep old files; 0 for no limit.
    pub max_age: u64,
    /// `maxBackups`: how many old files to keep; 0 keeps all.
    pub max_backups: u64,
}

impl Rotation {
    /// Reads `logOptions`; each key is optional.
    pub(super) fn read(keys: &Keys<'_>) -> Result<Rotation, NodeConfigError> {
        // Jackfield accepts this key of Multus, but ignores it.
        keys.read::<IgnoredAny>("compress")?;
        // As in Multus, 0 means the default.
        let max_size = keys.read("maxSize")?.filter(|size| *size != 0);
        Ok(Rotation {
            max_size: max_size.unwrap_or(100),
            max_age: keys.read("maxAge")?.unwrap_or(5),
            max_backups: keys.read("maxBackups")?.unwrap_or(5),
        })
    }
}
