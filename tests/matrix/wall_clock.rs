//! The wall clock. No test can set the machine's, so this moves all times that a journal holds in the
//! opposite direction.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

/// Sets the wall clock of a node by `seconds`.
pub(crate) fn set(journal: &Path, seconds: i64) {
    for folder in ["owed", "changes"] {
        let files = fs::read_dir(journal.join(folder));
        for file in files.into_iter().flatten().flatten() {
            move_times(&file.path(), -seconds);
        }
    }
    for folder in ["sandboxes", "publish", "exclusive"] {
        let files = fs::read_dir(journal.join(folder));
        for file in files.into_iter().flatten().flatten() {
            let _ = fs::File::open(file.path()).map(|file| {
                let years = Duration::from_secs(seconds.unsigned_abs());
                let now = SystemTime::now();
                let then = if seconds > 0 {
                    now - years
                } else {
                    now + years
                };
                file.set_modified(then)
            });
        }
    }
}

/// Moves the times in a marker of the journal.
fn move_times(path: &Path, seconds: i64) {
    let Ok(text) = fs::read(path) else { return };
    let Ok(mut marker) = serde_json::from_slice::<Value>(&text) else {
        return;
    };
    for key in ["due", "since"] {
        if let Some(time) = marker[key].as_i64() {
            marker[key] = json!((time + seconds).max(0));
        }
    }
    fs::write(path, marker.to_string()).unwrap();
}
