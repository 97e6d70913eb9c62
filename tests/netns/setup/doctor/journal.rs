//! Findings about what is on record and what is owed.

use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use super::super::refusal::Mount;
use super::{Setup, age, well};
use crate::lab::{POD, real_plugins};

/// A node with its pod attached.
fn attached() -> Setup {
    let setup = well();
    setup.runs("add");
    setup.is_well();
    setup
}

impl Setup {
    /// The only file of a folder of the journal.
    fn only(&self, folder: &str) -> PathBuf {
        let mut files = fs::read_dir(self.lab.path("journal").join(folder)).unwrap();
        files.next().unwrap().unwrap().path()
    }
}

#[test]
fn a_sandbox_whose_netns_is_gone_and_the_remedy_helps() {
    let setup = attached();
    setup.lab.pod.delete();
    let found = setup.finds_only("journal", &[POD, "is gone", "2 attachments"]);
    // The command is as it is to be typed.
    let remedy = found["remedy"].as_str().unwrap();
    let (_, command) = remedy.split_once("run `jackfield ").unwrap();
    let (command, _) = command.split_once('`').unwrap();
    let words: Vec<&str> = command.split_whitespace().collect();
    let outcome = setup.lab.cli(&words).run();
    assert_eq!(outcome.exit, 0, "{outcome}");
    setup.is_well();
    assert!(setup.lab.leftovers().with("ipam").is_empty());
}

#[test]
fn an_interface_that_is_gone() {
    let setup = attached();
    setup.lab.pod.ip("link del net1");
    setup.finds_only(
        "journal",
        &[POD, "interface net1 of network demo/a", "recreate"],
    );
    setup.runs("del");
}

#[test]
fn an_add_that_was_ended_half_way() {
    let setup = attached();
    let record = setup.only("sandboxes");
    let text = fs::read_to_string(&record).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let (last, rest) = lines.split_last().unwrap();
    assert!(last.contains("complete"), "{last}");
    fs::write(&record, rest.join("\n") + "\n").unwrap();
    setup.is_well();
    age(&record);
    setup.finds_only("journal", &[POD, "ADD was interrupted", "jackfield detach"]);
    fs::write(&record, &text[..text.len() - 3]).unwrap();
    age(&record);
    setup.finds("journal", &["damaged line", "free some space"]);
    setup.runs("del");
}

#[test]
fn records_that_are_none_of_another_release_or_put_aside() {
    let setup = attached();
    let record = setup.only("sandboxes");
    let text = fs::read_to_string(&record).unwrap();
    let (header, _) = text.split_once('\n').unwrap();
    let newer = |header: &str| header.replacen("\"format\":1", "\"format\":9", 1);
    fs::write(&record, with_header(&format!("{header}\n"), newer)).unwrap();
    setup.finds_only("journal", &["format 9"]);
    fs::write(&record, "0000").unwrap();
    setup.finds_only("journal", &["never finished"]);
    fs::write(&record, "no record").unwrap();
    setup.finds_only("journal", &["DEL of its pod"]);
    setup.lab.write("journal/quarantine/x@eth0.1", "");
    setup.finds(
        "journal",
        &["x@eth0.1", "may still be attached", "delete its pod"],
    );
    setup.lab.write("journal/quarantine/y@eth0.1.detached", "");
    setup.finds(
        "journal",
        &["y@eth0.1.detached", "is detached", "remove the file"],
    );
}

/// A record with another header, whole.
fn with_header(record: &str, change: impl Fn(&str) -> String) -> String {
    let (first, rest) = record.split_once('\n').unwrap();
    let header = change(first.splitn(3, ' ').nth(2).unwrap());
    let sum = crc32(header.as_bytes());
    format!("{:08x} {sum:08x} {header}\n{rest}", header.len())
}

/// CRC-32, as the journal has it.
fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0xedb8_8320 & (0_u32.wrapping_sub(sum & 1)));
        }
    }
    !sum
}

#[test]
fn sandboxes_from_before_a_reboot_are_one_finding() {
    let setup = attached();
    let record = setup.only("sandboxes");
    let text = fs::read_to_string(&record).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let name = record.file_name().unwrap().to_str().unwrap();
    let container = name.strip_suffix("@eth0").unwrap().to_owned();
    for number in 0..20 {
        let earlier = with_header(&text, |header| {
            let name = format!("{container}-{number}");
            let header = header.replace(boot.trim(), "another boot");
            header.replace(&container, &name)
        });
        let file = record.with_file_name(format!("{container}-{number}@eth0"));
        fs::write(file, earlier).unwrap();
    }
    let found = setup.finds_only("journal", &["20 sandboxes", "last boot", "15 more", POD]);
    let remedy = found["remedy"].as_str().unwrap();
    assert!(remedy.contains("jackfield detach --conf"), "{found}");
}

/// The doctor finds one network namespace at `name` below `/run/netns`: this pod's.
fn with_netns_at(setup: &Setup, name: &str) -> String {
    let other = setup.lab.write("netns", "");
    let script = format!(
        "mount --bind {pod} {other} && mount -t tmpfs none /run/netns && touch /run/netns/{name} \
         && mount --bind {other} /run/netns/{name} && exec \"$@\"",
        pod = setup.lab.pod.path().display(),
        other = other.display(),
    );
    let plugins = real_plugins().display().to_string();
    let call = setup.command("doctor", &["--cni-path", &plugins, "--node", "here"]);
    let outcome = call
        .under(&["unshare", "--mount", "sh", "-c", &script, "sh"])
        .run();
    outcome.stdout
}

#[test]
fn namespaces_of_pods_with_interfaces_and_no_record() {
    const NAME: &str = "cni-6f9619ff-8b86-d011-b42d-00cf4fc964ff";
    let mut setup = attached();
    // One that was there before the installation is another program's.
    assert!(!with_netns_at(&setup, NAME).contains("no record"));
    setup.runs("del");
    sleep(Duration::from_secs(1));
    setup.lab.renew_pod();
    setup.runs("add");
    let on_record = with_netns_at(&setup, NAME);
    assert!(!on_record.contains("no record"), "{on_record}");
    fs::remove_dir_all(setup.lab.path("journal")).unwrap();
    let found = with_netns_at(&setup, NAME);
    for words in [
        "1 network namespaces of pods",
        NAME,
        "eth0, net1",
        "recreate",
    ] {
        assert!(found.contains(words), "{words}: {found}");
    }
    let somebodys = with_netns_at(&setup, "blue");
    assert!(!somebodys.contains("no record"), "{somebodys}");
}

#[test]
fn a_journal_that_cannot_be_written() {
    let setup = well();
    fs::create_dir(setup.lab.path("journal")).unwrap();
    let _mounted = Mount::tmpfs(&setup.lab.path("journal"), "size=64k,mode=0700");
    let _ = fs::write(setup.lab.path("journal/filler"), vec![0; 1 << 20]);
    setup.finds_only("journal", &["is full", "free some space"]);
}

#[test]
fn what_is_owed_to_plugins_and_to_the_cluster() {
    let setup = well();
    let mut ptp = setup.ptp();
    ptp["type"] = json!("ptp-rec");
    setup.lab.definition("demo/a", &ptp);
    let fail = "[ $CNI_COMMAND = DEL ] && { echo '{\"code\":99,\"msg\":\"not now\"}'; exit 1; }";
    let put = |script: &str| {
        setup.lab.recorder("ptp-rec", "ptp", script);
        fs::rename(
            setup.lab.path("bin/ptp-rec"),
            setup.lab.path("cni-bin/ptp-rec"),
        )
        .unwrap();
    };
    put(fail);
    setup.runs("add");
    assert!(!setup.runtime("del").status.success());
    setup.finds_only("owed", &["not now", "1 attempts", "DEL and STATUS"]);
    put("");
    setup.runs("del");
    setup.is_well();
    // A write that nobody has made, and one that nobody can read.
    let write = json!({ "form": 1, "boot": "b", "publication": {
        "pod": { "namespace": "demo", "name": "web", "uid": null }, "status": [], "events": [] } });
    let waiting = setup
        .lab
        .write("journal/publish/0000000001.0-1.json", &write.to_string());
    setup.is_well();
    age(&waiting);
    setup.finds_only("owed", &["has not received: 1;", POD, "start the agent"]);
    fs::remove_file(waiting).unwrap();
    setup.lab.write("journal/publish/2.json.unreadable", "");
    setup.finds_only("owed", &["2.json.unreadable", "recreate the pods"]);
}

#[test]
fn a_cache_of_multus_that_is_damaged() {
    let setup = well();
    let file = setup.lab.write("multus/0123abcd", "[");
    setup.finds_only("multus", &["0123abcd", "delete the pod"]);
    fs::remove_file(file).unwrap();
    setup.is_well();
}
