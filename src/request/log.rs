//! The log of a call: the keys `logFile`, `logLevel`, `logToStderr` and `logOptions`, as in Multus.

use std::path::PathBuf;

use crate::cni::{JsonError, RawObject};

/// The log of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// `logFile`: the file to append to.
    pub file: Option<PathBuf>,
    /// `logLevel`: the level of the file.
    pub level: Level,
    /// `logToStderr`: whether warnings go to stderr, which the runtime may drop.
    pub to_stderr: bool,
    /// `logOptions`: when to begin a new file.
    pub rotation: Rotation,
}

/// What the log contains; each level includes the previous ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Defects of Jackfield.
    Panic,
    /// Failed calls, and ignored keys.
    Error,
    /// Every call.
    Verbose,
    /// Every attachment of a call.
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

    /// The name in `logLevel`.
    pub fn name(self) -> &'static str {
        let mut names = Level::NAMES.iter();
        names
            .find(|(_, level)| *level == self)
            .map_or("", |(name, _)| name)
    }
}

/// When to begin a new log file, and how long to keep old ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// `maxSize`: the largest file, in megabytes.
    pub max_size: u64,
    /// `maxAge`: how many days to keep old files; 0 keeps them for ever.
    pub max_age: u64,
    /// `maxBackups`: how many old files to keep; 0 keeps all.
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
            // As in Multus, 0 means the default.
            max_size: match read("maxSize", default.max_size)? {
                0 => default.max_size,
                size => size,
            },
            max_age: read("maxAge", default.max_age)?,
            max_backups: read("maxBackups", default.max_backups)?,
        })
    }
}
