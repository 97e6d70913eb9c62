//! The journal may be unwritable, full or torn. Without it nothing is attached.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::lab::{Lab, run};

/// A mount that ends with its test.
struct Mount(PathBuf);

impl Mount {
    fn tmpfs(path: &Path, options: &str) -> Mount {
        fs::create_dir_all(path).unwrap();
        run(
            "mount",
            &[
                "-t",
                "tmpfs",
                "-o",
                &format!("mode=700,{options}"),
                "tmpfs",
                path.to_str().unwrap(),
            ],
        );
        Mount(path.to_owned())
    }

    fn remount(&self, option: &str) {
        let options = format!("remount,{option}");
        run("mount", &["-o", &options, self.0.to_str().unwrap()]);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        run("umount", &["--lazy", self.0.to_str().unwrap()]);
    }
}

fn journal(lab: &Lab) -> String {
    lab.path("journal").display().to_string()
}

#[test]
fn a_journal_that_cannot_be_a_directory_keeps_everything_from_running() {
    let mut lab = Lab::new();
    lab.recorder("seen", "bridge", "");
    let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
    bridge["type"] = json!("seen");
    lab.cluster_network("1.0.0", &[bridge]);
    // Injects a fault: a file in the directory's place.
    lab.write("journal", "");
    lab.set_out();
    lab.call("ADD")
        .fails(109, &[&journal(&lab), "make it a directory owned by root"]);
    assert!(lab.log("calls").is_empty(), "nothing ran");
    lab.assert_nothing_left();
}

#[test]
fn a_read_only_journal_keeps_everything_from_running() {
    let lab = Lab::new();
    lab.recorder("seen", "bridge", "");
    let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
    bridge["type"] = json!("seen");
    lab.cluster_network("1.0.0", &[bridge]);
    let mount = Mount::tmpfs(&lab.path("journal"), "ro");
    lab.call("ADD").fails(
        109,
        &[
            &journal(&lab),
            "Read-only",
            "make journalDir a writable directory",
        ],
    );
    assert!(lab.log("calls").is_empty(), "nothing ran");
    lab.assert_nothing_left();
    drop(mount);
}

#[test]
fn a_journal_that_became_read_only_is_said_on_del_and_settled_later() {
    let lab = Lab::new();
    let mount = Mount::tmpfs(&lab.path("journal"), "size=1m");
    lab.add();
    mount.remount("ro");
    lab.call("DEL").fails(
        109,
        &[&journal(&lab), "make journalDir a writable directory"],
    );
    lab.check_is_gone();
    mount.remount("rw");
    lab.del();
    lab.assert_nothing_left();
}

/// Fills a file system but for `pages`.
fn fill(mount: &Mount, pages: usize) -> PathBuf {
    let path = mount.0.join("filler");
    let mut file = File::create(&path).unwrap();
    let page = [0; 4096];
    let mut written: u64 = 0;
    while file.write_all(&page).is_ok() {
        written += 4096;
    }
    drop(file);
    let keep = written - 4096 * pages as u64;
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(keep)
        .unwrap();
    path
}

/// However little room there is, in whatever step it ends: either all is attached, or nothing.
#[test]
fn a_full_journal_attaches_nothing_at_whatever_step_it_is_full() {
    let mut failed = 0;
    for padding in (0..4_400).step_by(400) {
        for pages in 0..3 {
            let lab = Lab::new();
            let mut config = lab.macvlan();
            config["padding"] = json!("x".repeat(padding));
            lab.definition("demo/storage", &config);
            lab.selects_json(&json!([{ "name": "storage", "ips": ["10.20.0.5/24"] }]));
            let mount = Mount::tmpfs(&lab.path("journal"), "size=64k");
            let filler = fill(&mount, pages);
            let outcome = lab.call("ADD");
            if outcome.exit == 0 {
                lab.check();
                lab.del();
            } else {
                failed += 1;
                outcome.fails(109, &["journal", "space"]);
            }
            fs::remove_file(filler).unwrap();
            lab.assert_nothing_left();
        }
    }
    assert!(failed > 12, "room was short in {failed} runs only");
}

#[test]
fn a_del_needs_no_room() {
    let lab = Lab::new();
    let mount = Mount::tmpfs(&lab.path("journal"), "size=64k");
    lab.add();
    let filler = fill(&mount, 0);
    lab.del();
    fs::remove_file(filler).unwrap();
    lab.assert_nothing_left();
}

/// The record of the lab's attached pod.
fn record(lab: &Lab) -> PathBuf {
    let name = format!("{}@eth0", lab.container());
    lab.path("journal/sandboxes").join(name)
}

/// A record that is torn anywhere behind its header still tells what may have been done.
#[test]
fn a_record_torn_in_its_steps_still_leads_to_nothing_left() {
    let attached = || {
        let lab = Lab::new();
        lab.definition("demo/management", &lab.ptp("10.30.0.0/24"));
        lab.selects("management");
        lab.add();
        lab
    };
    for step in 0.. {
        let lab = attached();
        let whole = fs::read(record(&lab)).unwrap();
        let ends = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let (end, _) = ends.clone().nth(step).unwrap();
        if end + 1 == whole.len() {
            lab.del();
            return assert!(step > 4, "{step} steps");
        }
        // Behind a whole step, the beginning of the next one.
        fs::write(record(&lab), &whole[..end + 6]).unwrap();
        lab.del();
        lab.assert_nothing_left();
    }
}

#[test]
fn a_record_that_cannot_be_read_is_set_aside_and_named_nowhere_as_attached() {
    for damage in ["", "garbage", "00000005 deadbeef {...}\n"] {
        let lab = Lab::new();
        fs::create_dir_all(lab.path("journal/sandboxes")).unwrap();
        fs::write(record(&lab), damage).unwrap();
        lab.call("CHECK").fails(109, &["damaged"]);
        // A new ADD is not kept from its work.
        fs::write(record(&lab), damage).unwrap();
        lab.add();
        lab.check();
        lab.del();
        let left = lab.leftovers();
        let left: Vec<&str> = left
            .with("file")
            .into_iter()
            .filter(|line| !line.contains("/quarantine/"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
        assert!(lab.pod.links().is_empty());
    }
}

/// The record is lost and the pod is attached: DEL does what the cluster's word allows.
#[test]
fn a_del_whose_record_is_torn_detaches_by_the_clusters_word() {
    for (damage, is_checked) in [
        ("garbage", false),
        ("00000005 deadbeef {...}\n", false),
        ("", false),
        // A look at it changes nothing.
        ("", true),
        ("0000", true),
        ("garbage", true),
    ] {
        let lab = Lab::new();
        lab.definition("demo/management", &lab.ptp("10.30.0.0/24"));
        lab.selects("management");
        lab.add();
        fs::write(record(&lab), damage).unwrap();
        if is_checked {
            lab.call("CHECK").fails(109, &["damaged"]);
        }
        lab.del();
        assert_eq!(lab.pod.links(), [""; 0]);
        let left = lab.leftovers();
        assert!(left.with("/ipam/").is_empty(), "{left:?}");
        assert!(!record(&lab).exists());
    }
}
