use super::*;
use crate::cluster::publication::MAX_EVENTS;
use crate::cluster::{ClaimStatus, ClaimedDevice, Event, NetworkData};
use crate::cni::Dns;
use crate::golden;
use crate::npwg::StatusEntry;

fn publication(name: &str) -> Publication {
    let pod = PodName {
        namespace: "default".into(),
        name: name.into(),
        uid: Some("u".into()),
    };
    Publication::new(pod, Some(Vec::new()), Vec::new())
}

/// Returns all writes in the order in which they were kept.
fn list(owed: &OwedWrites) -> Vec<OwedWrite> {
    let names = owed.names().unwrap();
    let read = names.iter().filter_map(|name| owed.read(name).ok()?);
    let mut list: Vec<OwedWrite> = read.collect();
    list.sort_by(OwedWrite::by_age);
    list
}

fn pods(owed: &OwedWrites) -> Vec<String> {
    let list = list(owed).into_iter();
    list.map(|write| write.publication.pod().name.clone())
        .collect()
}

#[test]
fn owed_writes_are_listed_oldest_first() {
    let dir = tempfile::tempdir().unwrap();
    let owed = OwedWrites::new(dir.path());
    assert_eq!(owed.names().unwrap(), Vec::<String>::new());
    for name in ["a", "b", "c"] {
        owed.keep(&publication(name)).unwrap();
    }
    assert_eq!(pods(&owed), ["a", "b", "c"]);
    for write in list(&owed) {
        owed.forget(&write.file).unwrap();
        owed.forget(&write.file).unwrap();
    }
    assert!(pods(&owed).is_empty());
}

#[test]
fn a_sweep_removes_only_unfinished_files_of_dead_writers() {
    let dir = tempfile::tempdir().unwrap();
    let owed = OwedWrites::new(dir.path());
    owed.sweep();
    owed.keep(&publication("web")).unwrap();
    let mut dead = std::process::Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    for writer in [dead.id(), 1] {
        let name = format!(".0000000001.000000002-{writer}-0000000a.json");
        fs::write(owed.dir().join(name), "{").unwrap();
    }
    owed.sweep();
    let entries = owed.entries().unwrap().flatten();
    let unfinished = entries.filter(|entry| !is_write(entry.file_name().to_str().unwrap()));
    let unfinished: Vec<_> = unfinished.map(|entry| entry.file_name()).collect();
    assert_eq!(unfinished, [".0000000001.000000002-1-0000000a.json"]);
    assert_eq!(pods(&owed), ["web"]);
}

#[test]
fn retries_of_an_add_leave_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let owed = OwedWrites::new(dir.path());
    let pod = publication("web").pod().clone();
    owed.keep(&publication("web")).unwrap();
    owed.keep(&publication("other")).unwrap();
    for number in 0..50 {
        let event = Event::warning("R", format!("attempt {number}"));
        let failed = Publication::new(pod.clone(), None, vec![event]);
        owed.keep(&failed).unwrap();
    }
    assert_eq!(pods(&owed), ["other", "web"]);
    let kept = &list(&owed)[1].publication;
    assert_eq!(
        kept.status(),
        Some([].as_slice()),
        "the status of the earlier ADD"
    );
    let last = kept.events().last().unwrap();
    assert_eq!(last.message, "attempt 49");
    assert!(kept.events().len() <= MAX_EVENTS);
}

#[test]
fn owed_writes_from_an_earlier_boot_come_first() {
    let dir = tempfile::tempdir().unwrap();
    let owed = OwedWrites::new(dir.path());
    owed.keep(&publication("now")).unwrap();
    let earlier = File {
        form: FORM,
        boot: "earlier".into(),
        publication: publication("before"),
    };
    fs::write(
        owed.dir().join("9999999999.0-1.json"),
        serde_json::to_vec(&earlier).unwrap(),
    )
    .unwrap();
    assert_eq!(pods(&owed), ["before", "now"]);
    let [before, now] = list(&owed).try_into().unwrap();
    assert_eq!(before.period(), "earlier 16666666");
    assert_eq!(now.period(), period_now());
}

#[test]
fn an_incomplete_file_is_an_error_but_a_newer_format_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let owed = OwedWrites::new(dir.path());
    owed.keep(&publication("a")).unwrap();
    fs::write(owed.dir().join("1.json"), "{\"form\":1,\"bo").unwrap();
    fs::write(
        owed.dir().join("2.json"),
        r#"{"form":2,"boot":"","publication":7}"#,
    )
    .unwrap();
    assert_eq!(pods(&owed), ["a"]);
    assert_eq!(owed.read("2.json").unwrap(), None);
    let error = owed.read("1.json").unwrap_err();
    let cause = error.get_ref().unwrap();
    assert!(cause.is::<serde_json::Error>(), "{error}");
    let aside = owed.put_aside("1.json").unwrap();
    assert!(aside.ends_with("1.json.unreadable"), "{aside:?}");
    let survey = owed.survey().unwrap();
    assert_eq!((survey.waiting.len(), survey.broken.len()), (1, 1));
}

/// The agent can write to the directory of owed writes. A file that the agent puts into the
/// directory must not block or mislead the plugin, which has more privileges than the agent.
#[test]
fn only_regular_files_of_a_bounded_size_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let owed = OwedWrites::new(dir.path());
    owed.keep(&publication("a")).unwrap();
    let other = dir.path().join("other.json");
    let kept = owed.dir().join(&list(&owed)[0].file);
    fs::copy(kept, &other).unwrap();
    std::os::unix::fs::symlink(&other, owed.dir().join("1.json")).unwrap();
    nix::unistd::mkfifo(&owed.dir().join("2.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::os::unix::fs::symlink("/dev/zero", owed.dir().join("3.json")).unwrap();
    fs::create_dir(owed.dir().join("4.json")).unwrap();
    let large = fs::File::create(owed.dir().join("5.json")).unwrap();
    large.set_len(MAX_FILE + 1).unwrap();
    let survey = owed.survey().unwrap();
    assert_eq!((survey.waiting.len(), survey.broken.len()), (1, 5));
    // `keep` also searches the directory, for earlier writes of the pod.
    owed.keep(&publication("a")).unwrap();
    assert_eq!(pods(&owed), ["a"]);
}

/// A publication with every field.
pub(in crate::cluster) fn example() -> Publication {
    let device = ClaimedDevice {
        claim: "nic".to_owned(),
        driver: "vf.example.com".to_owned(),
        pool: "pool-a".to_owned(),
        device: "vf1".to_owned(),
    };
    let data = NetworkData::new(
        Some("net1".to_owned()),
        vec!["10.1.0.7/24".to_owned()],
        Some("02:00:00:00:00:01".to_owned()),
    );
    example_without_claims().with_claims(ClaimStatus::group([(device, Some(data))]))
}

/// Returns the publication of [`example`] without its claims. The golden file of the previous
/// release contains this publication.
pub(in crate::cluster) fn example_without_claims() -> Publication {
    let entry = StatusEntry {
        name: "demo/n".to_owned(),
        interface: Some("net1".to_owned()),
        ips: vec!["10.1.0.7".to_owned()],
        mac: Some("02:00:00:00:00:01".to_owned()),
        mtu: Some(1500),
        default: true,
        dns: Some(Dns {
            nameservers: vec!["10.1.0.1".to_owned()],
            domain: Some("d".to_owned()),
            search: vec!["s".to_owned()],
            options: Vec::new(),
        }),
        default_route: Some(vec!["10.1.0.1".to_owned()]),
        device_info: Some(serde_json::json!({"type": "pci", "version": "1.1.0"})),
        attached: vec!["demo/n@net2".to_owned()],
    };
    let events = vec![
        Event::warning("IgnoredAnnotation", "w"),
        Event::normal("AddedInterface", "n"),
    ];
    let pod = publication("web").pod().clone();
    Publication::new(pod, Some(vec![entry]), events)
}

#[test]
fn golden_publication() {
    let dir = tempfile::tempdir().unwrap();
    let owed = OwedWrites::new(dir.path());
    owed.keep(&example()).unwrap();
    let kept = fs::read_to_string(owed.dir().join(&owed.names().unwrap()[0])).unwrap();
    let of_any_boot = kept.replace(&boot_id(), "boot");
    golden::assert_current("publication.json", of_any_boot.as_bytes());
}

#[test]
fn golden_publication_of_the_previous_release() {
    let dir = tempfile::tempdir().unwrap();
    let owed = OwedWrites::new(dir.path());
    owed.create_dir().unwrap();
    let text = golden::previous("publication.json");
    fs::write(owed.dir().join("1.json"), text).unwrap();
    let read = owed.read("1.json").unwrap().unwrap();
    let expected = (example_without_claims(), false);
    assert_eq!((read.publication.clone(), read.is_of_this_boot()), expected);
}
