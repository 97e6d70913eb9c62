//! What a call leaves to read: warnings on stderr, and lines in `logFile` where one is named.
//!
//! The log is for people and never stands in a call's way: what cannot be written is not.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};

use crate::console;
use crate::request::log::{Level, Log, Rotation};

const MEGABYTE: u64 = 1 << 20;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Log {
    /// A line about `call` that somebody should read: on stderr, and in the file from `error` on.
    pub(crate) fn warn(&self, call: &str, line: &str) {
        let line = format!("{call}: {line}");
        if self.to_stderr {
            console::say(&format!("jackfield: {line}"));
        }
        self.write(Level::Error, || line);
    }

    /// A line for the file alone.
    pub(super) fn write(&self, level: Level, line: impl FnOnce() -> String) {
        let Some(file) = self.file.as_deref().filter(|_| level <= self.level) else {
            return;
        };
        let now = humantime::format_rfc3339_millis(SystemTime::now());
        let line = line();
        let text = format!("{now} [{}] {}\n", level.name(), console::line(&line));
        let written = append(file, &text, self.rotation);
        // A call has several lines, and one reason why none can be written.
        if let Err(cause) = written
            && self.to_stderr
            && !MISSED.swap(true, Ordering::Relaxed)
        {
            let file = file.display();
            console::say(&format!(
                "jackfield: logFile {file}: {cause}; nothing is logged, correct the key"
            ));
        }
    }
}

/// Whether it was said that the file cannot be written.
static MISSED: AtomicBool = AtomicBool::new(false);

/// One write, so that lines of several calls do not run into each other.
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

/// Opens the log without waiting for anybody. Others may write to the directory that an administrator
/// names, so only a file of our own by that one name will do.
fn open_log(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    let opened = options.custom_flags(flags.bits()).open(path);
    let foreign = |cause| io::Error::new(io::ErrorKind::InvalidData, cause);
    let file = opened.map_err(|cause| match cause.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ELOOP) => foreign("a symbolic link"),
        // A FIFO that nobody reads.
        Some(Errno::ENXIO) => foreign("not a regular file"),
        _ => cause,
    })?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(foreign("not a regular file"));
    }
    if found.uid() != nix::unistd::geteuid().as_raw() || found.nlink() > 1 {
        return Err(foreign("a file of another user's"));
    }
    Ok(file)
}

/// Puts the file aside under the time of day, unless another call does.
fn rotate(path: &Path, file: File, rotation: Rotation) -> io::Result<()> {
    let Ok(file) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else {
        return Ok(());
    };
    let (held, there) = (file.metadata()?, fs::symlink_metadata(path)?);
    if (held.dev(), held.ino()) == (there.dev(), there.ino()) {
        let now = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        let time = now.trim_end_matches('Z').replace(':', "-");
        fs::rename(path, aside(path, &time))?;
        forget_old(path, rotation)?;
    }
    Ok(())
}

/// `jackfield-2026-11-21T08-15-00.000.log` for `jackfield.log`.
fn aside(path: &Path, time: &str) -> PathBuf {
    let mut name = stem(path);
    name.push(time);
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

fn stem(path: &Path) -> OsString {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push("-");
    name
}

fn forget_old(path: &Path, rotation: Rotation) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    let stem = stem(path);
    let is_old = |name: &Path| {
        let bytes = name.as_os_str().as_encoded_bytes();
        let rest = bytes.strip_prefix(stem.as_encoded_bytes());
        rest.is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit))
            && name.extension() == path.extension()
    };
    let mut old: Vec<PathBuf> = fs::read_dir(dir)?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| is_old(Path::new(name))))
        .collect();
    // The names are times: the newest first.
    old.sort_unstable_by(|a, b| b.cmp(a));
    let now = SystemTime::now();
    for (number, path) in (1..).zip(old) {
        let age = fs::symlink_metadata(&path)?
            .modified()
            .map(|then| now.duration_since(then));
        let days = age
            .ok()
            .and_then(Result::ok)
            .map_or(0, |age| age.as_secs() / DAY.as_secs());
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
    fn the_file_gets_what_its_level_asks_for() {
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
    fn a_full_file_is_put_aside_and_the_oldest_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path(), Level::Error);
        for other in ["jackfield-notes.log", "jackfield-1.txt"] {
            fs::write(dir.path().join(other), "").unwrap();
        }
        for _ in 0..6 {
            let file = File::create(dir.path().join("jackfield.log")).unwrap();
            file.set_len(MEGABYTE).unwrap();
            log.write(Level::Error, || "one more".into());
            std::thread::sleep(Duration::from_millis(2));
        }
        let count = fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(count, 2 + 1 + 2, "two of others, the log, two old ones");
    }

    #[test]
    fn a_line_of_others_text_stays_one_line_of_bounded_length() {
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
    fn what_others_put_under_its_name_is_neither_followed_nor_waited_for() {
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
    fn a_full_log_that_somebody_locks_is_written_all_the_same() {
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
    fn a_size_beyond_all_files_is_no_size_of_zero() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(dir.path(), Level::Error);
        log.rotation.max_size = u64::MAX / MEGABYTE + 2;
        log.write(Level::Error, || "one".into());
        log.write(Level::Error, || "two".into());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_log_that_cannot_be_written_is_nobodys_error() {
        let log = log(Path::new("/proc/self/nowhere"), Level::Debug);
        log.write(Level::Error, || "lost".into());
    }
}
