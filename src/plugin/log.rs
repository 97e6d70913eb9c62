//! The log of a call. All lines go to `logFile`. Warnings also go to stderr, unless `logToStderr`
//! is false.
//!
//! If the log cannot be written, the call continues without it.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use nix::fcntl::{Flock, FlockArg, OFlag};

use crate::console;
use crate::regular_file;
use crate::request::log::{Level, Log, Rotation};

const MEGABYTE: u64 = 1 << 20;
/// A day, in seconds.
const DAY: u64 = 24 * 60 * 60;

impl Log {
    /// Logs `line`, a warning about `call`. There is no level for warnings, so the line gets the
    /// level `error`. If `to_stderr` is set, also writes the line to stderr.
    pub(crate) fn warn(&self, call: &str, line: &str) {
        let line = format!("{call}: {line}");
        if self.to_stderr {
            console::say(&format!("jackfield: {line}"));
        }
        self.write(Level::Error, || line);
    }

    /// Logs a line to the file only.
    pub(super) fn write(&self, level: Level, line: impl FnOnce() -> String) {
        let Some(file) = self.file.as_deref().filter(|_| level <= self.level) else {
            return;
        };
        let now = humantime::format_rfc3339_millis(SystemTime::now());
        let line = line();
        let text = format!("{now} [{}] {}\n", level.name(), console::line(&line));
        let appended = append(file, &text, self.rotation);
        // One warning is enough for all lines of a call.
        if let Err(cause) = appended
            && self.to_stderr
            && !HAS_WARNED.swap(true, Ordering::Relaxed)
        {
            let file = file.display();
            console::say(&format!(
                "jackfield: logFile {file}: {cause}; nothing is logged there; correct the key or the file"
            ));
        }
    }
}

/// Whether this call has warned that the file cannot be written.
static HAS_WARNED: AtomicBool = AtomicBool::new(false);

/// Why Jackfield does not use a file as the log: another user may be able to write to the file.
#[derive(Debug, thiserror::Error)]
#[error("it belongs to another user or has a second hard link")]
struct ForeignFile;

/// Appends a line with one write, so that the lines of several calls do not mix. Starts a new file
/// if the line would exceed the size limit.
fn append(path: &Path, text: &str, rotation: Rotation) -> io::Result<()> {
    let open = || open_log(path);
    let mut file = open().or_else(|cause| match (cause.kind(), path.parent()) {
        (io::ErrorKind::NotFound, Some(dir)) => {
            fs::create_dir_all(dir)?;
            open()
        }
        _ => Err(cause),
    })?;
    if file.metadata()?.len() + text.len() as u64 > rotation.max_size.saturating_mul(MEGABYTE) {
        rotate(path, file, rotation)?;
        file = open()?;
    }
    file.write_all(text.as_bytes())
}

/// Opens the log without blocking. Other users may be able to write to the directory of the log. So
/// the log must be a regular file that belongs to the user of this process and has a single hard
/// link.
fn open_log(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    let file = regular_file::open_with(&mut options, path, OFlag::O_NOFOLLOW)?;
    let metadata = file.metadata()?;
    if metadata.uid() != nix::unistd::geteuid().as_raw() || metadata.nlink() > 1 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, ForeignFile));
    }
    Ok(file)
}

/// Renames a full file, adding the current time to its name, and removes old files. Does nothing if
/// another call is renaming or has renamed the file.
fn rotate(path: &Path, file: File, rotation: Rotation) -> io::Result<()> {
    let Ok(file) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else {
        return Ok(());
    };
    let (locked, current) = (file.metadata()?, fs::symlink_metadata(path)?);
    if (locked.dev(), locked.ino()) == (current.dev(), current.ino()) {
        let now = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        let time = now.trim_end_matches('Z').replace(':', "-");
        let (before, after) = around_time(path);
        fs::rename(path, path.with_file_name(format!("{before}{time}{after}")))?;
        remove_old(path, rotation)?;
    }
    Ok(())
}

/// Returns the two parts of an old file's name that enclose the time. For `jackfield.log`, these
/// are `jackfield-` and `.log`.
fn around_time(path: &Path) -> (String, String) {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(OsStr::to_string_lossy);
    let after = extension.map(|extension| format!(".{extension}"));
    (format!("{stem}-"), after.unwrap_or_default())
}

/// Removes the renamed files that exceed the limits of `rotation`.
fn remove_old(path: &Path, rotation: Rotation) -> io::Result<()> {
    let (before, after) = around_time(path);
    let is_old = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str);
        let name = name.and_then(|name| name.strip_prefix(&before)?.strip_suffix(&after));
        name.is_some_and(|time| time.starts_with(|first: char| first.is_ascii_digit()))
    };
    let entries = fs::read_dir(path.parent().unwrap_or(Path::new("/")))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut old: Vec<PathBuf> = paths.filter(is_old).collect();
    // The names contain the time, so this sorts the files by age.
    old.sort_unstable();
    for (number, path) in (1..).zip(old.iter().rev()) {
        let changed = fs::symlink_metadata(path)?.modified()?;
        let days = changed.elapsed().unwrap_or_default().as_secs() / DAY;
        let is_too_many = rotation.max_backups != 0 && number > rotation.max_backups;
        let is_too_old = rotation.max_age != 0 && days >= rotation.max_age;
        if is_too_many || is_too_old {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(dir: &Path, level: Level) -> Log {
        Log {
            file: Some(dir.join("jackfield.log")),
            level,
            to_stderr: false,
            rotation: Rotation {
                max_size: 1,
                max_age: 0,
                max_backups: 2,
            },
        }
    }

    #[test]
    fn debug_lines_are_omitted_at_level_verbose() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path(), Level::Verbose);
        log.write(Level::Debug, || "too much".into());
        log.write(Level::Verbose, || "ADD".into());
        log.warn("ADD", "unknown key");
        let text = fs::read_to_string(dir.path().join("jackfield.log")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].ends_with("Z [verbose] ADD"), "{text}");
        assert!(lines[1].ends_with("Z [error] ADD: unknown key"), "{text}");
    }

    #[test]
    fn a_full_file_is_renamed_and_the_oldest_files_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path(), Level::Error);
        for other in ["jackfield-notes.log", "jackfield-1.txt"] {
            fs::write(dir.path().join(other), "").unwrap();
        }
        for _ in 0..6 {
            let file = File::create(dir.path().join("jackfield.log")).unwrap();
            file.set_len(MEGABYTE).unwrap();
            log.write(Level::Error, || "one more".into());
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let count = fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(count, 2 + 1 + 2, "two other files, the log, two old logs");
    }

    #[test]
    fn untrusted_text_stays_one_line_of_bounded_length() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path(), Level::Error);
        log.warn(
            "DEL",
            "a\n2026-01-01T00:00:00Z [error] forged \u{9b}31m\u{202e}",
        );
        log.write(Level::Error, || "x".repeat(1 << 20));
        let text = fs::read_to_string(dir.path().join("jackfield.log")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(
            lines[0].ends_with(
                r"[error] DEL: a\n2026-01-01T00:00:00Z [error] forged \u{9b}31m\u{202e}"
            )
        );
        assert!(lines[1].len() < 20 << 10);
    }

    #[test]
    fn a_link_or_fifo_is_not_used_as_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path(), Level::Error);
        let path = dir.path().join("jackfield.log");
        let precious = dir.path().join("precious");
        fs::write(&precious, "precious").unwrap();
        std::os::unix::fs::symlink(&precious, &path).unwrap();
        log.write(Level::Error, || "lost".into());
        fs::remove_file(&path).unwrap();
        fs::hard_link(&precious, &path).unwrap();
        log.write(Level::Error, || "lost".into());
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        fs::remove_file(&path).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        log.write(Level::Error, || "lost".into());
    }

    #[test]
    fn a_full_log_that_another_process_locks_is_still_written() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path(), Level::Error);
        let path = dir.path().join("jackfield.log");
        let file = File::create(&path).unwrap();
        file.set_len(MEGABYTE).unwrap();
        let _held = Flock::lock(file, FlockArg::LockExclusive).unwrap();
        log.write(Level::Error, || "one more".into());
        assert!(fs::metadata(&path).unwrap().len() > MEGABYTE);
    }

    #[test]
    fn a_very_large_size_limit_does_not_overflow() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(dir.path(), Level::Error);
        log.rotation.max_size = u64::MAX / MEGABYTE + 2;
        log.write(Level::Error, || "one".into());
        log.write(Level::Error, || "two".into());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_log_that_cannot_be_written_is_not_an_error() {
        let log = log(Path::new("/proc/self/nowhere"), Level::Debug);
        log.write(Level::Error, || "lost".into());
    }
}
