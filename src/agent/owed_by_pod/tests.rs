//! Tests many files of one pod, files that no plugin wrote, publications in memory, and
//! publications that arrive while the agent publishes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::*;
use crate::cluster::Event;
use crate::cluster::publication::{MAX_EVENTS, MAX_STATUS};
use crate::npwg::StatusEntry;

fn pod(name: &str) -> PodName {
    PodName {
        namespace: "default".into(),
        name: name.into(),
        uid: Some("u".into()),
    }
}

fn status(text: &str) -> Vec<StatusEntry> {
    vec![StatusEntry {
        name: text.into(),
        ..StatusEntry::default()
    }]
}

/// Writes a file as earlier releases did: one file for each publication, of any size.
fn write(dir: &Path, file: &str, status: Option<&str>, events: usize) {
    let event = |number| serde_json::json!({"type": "Warning", "reason": "R", "message": format!("{file} {number}")});
    let publication = serde_json::json!({
        "pod": pod("web"),
        "status": status.map(self::status),
        "events": (0..events).map(event).collect::<Vec<_>>(),
    });
    let boot = crate::boot::boot_id();
    let text = serde_json::json!({"form": 1, "boot": boot, "publication": publication});
    fs::create_dir_all(dir.join("publish")).unwrap();
    fs::write(dir.join("publish").join(file), text.to_string()).unwrap();
}

fn on_runtime<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

#[test]
fn thousands_of_files_of_one_pod_become_one_publication() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..2000 {
        let told = (number == 1500).then_some("newest");
        let told = told.or((number < 1500).then_some("older"));
        write(dir.path(), &format!("{number:010}.0-1.json"), told, 40);
    }
    let waiting = OwedByPod::new(OwedWrites::new(dir.path()));
    on_runtime(async {
        waiting.look().await.unwrap();
        assert_eq!((waiting.len(), waiting.pods().len()), (2000, 1));
        let due = waiting.of(&pod("web")).await.unwrap();
        let newest = status("newest");
        assert_eq!(due.publication.status(), Some(newest.as_slice()));
        assert_eq!(due.publication.events().len(), MAX_EVENTS);
        let last = due.publication.events().last().unwrap();
        assert!(last.message.starts_with("0000001999"), "{last:?}");
        waiting.made(&due);
        assert_eq!(waiting.len(), 0);
        assert_eq!(fs::read_dir(dir.path().join("publish")).unwrap().count(), 0);
        assert_eq!(waiting.of(&pod("web")).await, None);
    });
}

#[test]
fn a_file_that_became_unreadable_is_renamed_and_not_removed() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "1.json", Some("older"), 0);
    write(dir.path(), "2.json", Some("newest"), 0);
    let waiting = OwedByPod::new(OwedWrites::new(dir.path()));
    let publish = dir.path().join("publish");
    on_runtime(async {
        waiting.look().await.unwrap();
        fs::write(publish.join("1.json"), "{").unwrap();
        let due = waiting.of(&pod("web")).await.unwrap();
        waiting.made(&due);
    });
    assert_eq!(waiting.len(), 0);
    let left = fs::read_dir(&publish).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["1.json.unreadable"]);
}

#[test]
fn a_file_that_no_plugin_wrote_is_renamed_and_skipped() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "1.json", Some("n"), 0);
    let publish = dir.path().join("publish");
    mkfifo(&publish.join("fifo.json"), Mode::S_IRWXU).unwrap();
    symlink("/dev/zero", publish.join("device.json")).unwrap();
    fs::copy(publish.join("1.json"), dir.path().join("elsewhere")).unwrap();
    symlink(dir.path().join("elsewhere"), publish.join("link.json")).unwrap();
    fs::create_dir(publish.join("directory.json")).unwrap();
    let giant = fs::File::create(publish.join("giant.json")).unwrap();
    giant.set_len(1 << 40).unwrap();
    write(dir.path(), "flood.json", Some("n"), 30_000);
    let waiting = OwedByPod::new(OwedWrites::new(dir.path()));
    on_runtime(waiting.look()).unwrap();
    assert_eq!(waiting.len(), 1);
    for name in ["fifo", "device", "link", "directory", "giant", "flood"] {
        let aside = publish.join(format!("{name}.json.unreadable"));
        assert!(fs::symlink_metadata(aside).is_ok(), "{name}");
    }
    on_runtime(waiting.look()).unwrap();
    assert_eq!(waiting.len(), 1);
    let survey = OwedWrites::new(dir.path()).survey().unwrap();
    assert_eq!((survey.waiting.len(), survey.broken.len()), (1, 6));
}

#[test]
fn memory_holds_one_publication_for_each_pod_up_to_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let waiting = OwedByPod::new(OwedWrites::new(dir.path()));
    let large = || Some(status(&"x".repeat(MAX_STATUS - 100)));
    for _ in 0..100 {
        waiting
            .keep(Publication::new(pod("web"), large(), Vec::new()))
            .unwrap();
    }
    let kept = (0..100).filter(|number| {
        let pod = pod(&format!("web{number}"));
        waiting
            .keep(Publication::new(pod, large(), Vec::new()))
            .is_ok()
    });
    let kept = kept.count();
    assert!((8..MAX_IN_MEMORY / MAX_STATUS).contains(&kept), "{kept}");
    let refused = waiting.keep(Publication::new(pod("more"), large(), Vec::new()));
    let full = refused.unwrap_err();
    assert_eq!(full.dir, dir.path().join("publish"));
    assert!(full.bytes <= MAX_IN_MEMORY, "{full}");
}

#[test]
fn the_newest_status_wins_whether_in_a_file_or_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let owed = OwedWrites::new(dir.path());
    let waiting = OwedByPod::new(owed.clone());
    let told = |text: &str| {
        let event = Event::warning("R", text);
        Publication::new(pod("web"), Some(status(text)), vec![event])
    };
    for (memory, file, newest) in [("a", "b", "b"), ("d", "c", "d")] {
        let is_first = memory < file;
        if is_first {
            waiting.keep(told(memory)).unwrap();
        }
        owed.keep(&told(file)).unwrap();
        if !is_first {
            waiting.keep(told(memory)).unwrap();
        }
        on_runtime(async {
            waiting.look().await.unwrap();
            let due = waiting.of(&pod("web")).await.unwrap();
            assert_eq!(due.publication.status(), Some(status(newest).as_slice()));
            let messages = due.publication.events().iter().map(|it| it.message.clone());
            let mut oldest_first = vec![memory, file];
            oldest_first.sort_unstable();
            assert_eq!(messages.collect::<Vec<_>>(), oldest_first);
            waiting.made(&due);
            assert_eq!(waiting.len(), 0);
        });
    }
}

#[test]
fn a_publication_that_arrives_while_an_older_one_is_published_stays_owed() {
    let dir = tempfile::tempdir().unwrap();
    let owed = OwedWrites::new(dir.path());
    let keep = |text| {
        let event = Event::warning("R", text);
        owed.keep(&Publication::new(pod("web"), None, vec![event]))
            .unwrap();
    };
    keep("first");
    let waiting = OwedByPod::new(owed.clone());
    on_runtime(async {
        waiting.look().await.unwrap();
        let due = waiting.of(&pod("web")).await.unwrap();
        keep("second");
        waiting.made(&due);
        waiting.look().await.unwrap();
        assert_eq!(waiting.len(), 1);
        let due = waiting.of(&pod("web")).await.unwrap();
        assert_eq!(due.publication.events().last().unwrap().message, "second");
    });
}
