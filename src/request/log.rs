//! Where a call writes what it did (keys `logFile`, `logLevel`, `logToStderr`, `logOptions`; as
//! Multus has them).

use std::path::PathBuf;

use crate::cni::{JsonError, RawObject};

/// The log besides the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// `logFile`: lines are appended to it.
    pub file: Option<PathBuf>,
    /// `logLevel`: what the file gets.
    pub level: Level,
    /// `logToStderr`: whether warnings go to stderr, where the runtime keeps or drops them.
    pub to_stderr: bool,
    /// `logOptions`: when a new file is begun.
    pub rotation: Rotation,
}

/// What is worth a line; each level has what those before it have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Defects of ours.
    Panic,
    /// Calls that failed, and what was ignored.
    Error,
    /// Every call.
    Verbose,
    /// Every attachment of a call.
    Debug,
}

impl Level {
    /// The levels by the names that `logLevel` has for them.
    pub const NAMES: [(&str, Level); 4] = [
        ("panic", Level::Panic),
        ("error", Level::Error),
        ("verbose", Level::Verbose),
        ("debug", Level::Debug),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let mut names = Level::NAMES.iter();
        names
            .find(|(_, level)| *level == self)
            .map_or("", |(name, _)| name)
    }
}

/// When a new log file is begun, and how long old ones are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// `maxSize`: megabytes.
    pub max_size: u64,
    /// `maxAge`: days that old files are kept; 0 is for ever.
    pub max_age: u64,
    /// `maxBackups`: how many old files are kept; 0 is all.
    pub max_backups: u64,
}

impl Default for Rotation {
    fn default() -> Self {
        Rotation {
            max_size: 100,
            max_age: 5,
            max_backups: 5,
        }
    }
}

/// The keys of `logOptions`; `compress` is Multus' and has no effect here.
pub(super) const OPTIONS: [&str; 4] = ["maxSize", "maxAge", "maxBackups", "compress"];

impl TryFrom<&RawObject> for Rotation {
    type Error = JsonError;

    fn try_from(wire: &RawObject) -> Result<Self, Self::Error> {
        let default = Rotation::default();
        let read = |key, default| Ok::<_, JsonError>(wire.read::<u64>(key)?.unwrap_or(default));
        Ok(Rotation {
            // As for Multus, 0 is no size.
            max_size: match read("maxSize", default.max_size)? {
                0 => default.max_size,
                size => size,
            },
            max_age: read("maxAge", default.max_age)?,
            max_backups: read("maxBackups", default.max_backups)?,
        })
    }
}
