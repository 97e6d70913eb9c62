//! What is kept, in which order it is told, and what is made of files that are torn.

use super::*;
use crate::cluster::PodName;

fn publication(name: &str) -> Publication {
    Publication {
        pod: PodName {
            namespace: "default".into(),
            name: name.into(),
            uid: Some("u".into()),
        },
        status: Some(Vec::new()),
        events: Vec::new(),
    }
}

#[test]
fn what_is_kept_is_listed_in_order_until_it_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let owed = OwedWrites::new(dir.path());
    assert_eq!(owed.list().unwrap(), (Vec::new(), Vec::new()));
    for name in ["a", "b", "c"] {
        owed.keep(&publication(name)).unwrap();
    }
    let (list, broken) = owed.list().unwrap();
    let names: Vec<&str> = list
        .iter()
        .map(|owed| owed.publication.pod.name.as_str())
        .collect();
    assert_eq!((names, broken.len()), (vec!["a", "b", "c"], 0));
    for write in &list {
        owed.forget(&write.file).unwrap();
        owed.forget(&write.file).unwrap();
    }
    assert!(owed.list().unwrap().0.is_empty());
}

#[test]
fn what_an_earlier_boot_owes_comes_first_whatever_the_clock_says() {
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
    let names: Vec<String> = owed
        .list()
        .unwrap()
        .0
        .into_iter()
        .map(|owed| owed.publication.pod.name)
        .collect();
    assert_eq!(names, ["before", "now"]);
}

#[test]
fn a_torn_file_is_put_aside_and_one_of_a_newer_release_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let owed = OwedWrites::new(dir.path());
    owed.keep(&publication("a")).unwrap();
    fs::write(owed.dir().join("1.json"), "{\"form\":1,\"bo").unwrap();
    fs::write(
        owed.dir().join("2.json"),
        r#"{"form":2,"boot":"","publication":7}"#,
    )
    .unwrap();
    let (list, broken) = owed.list().unwrap();
    assert_eq!((list.len(), broken.len()), (1, 1));
    assert!(
        broken[0].contains("1.json: ") && broken[0].contains("1.json.unreadable"),
        "{broken:?}"
    );
    assert!(owed.dir().join("2.json").exists());
    assert_eq!(owed.list().unwrap().1.len(), 0);
    let survey = owed.survey().unwrap();
    assert_eq!((survey.waiting.len(), survey.broken.len()), (1, 1));
}

/// The agent may write the directory: what it puts there must not hold up or mislead root.
#[test]
fn only_regular_files_of_a_bounded_size_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let owed = OwedWrites::new(dir.path());
    owed.keep(&publication("a")).unwrap();
    let other = dir.path().join("other.json");
    let kept = owed.dir().join(&owed.list().unwrap().0[0].file);
    fs::copy(kept, &other).unwrap();
    std::os::unix::fs::symlink(&other, owed.dir().join("1.json")).unwrap();
    nix::unistd::mkfifo(&owed.dir().join("2.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::os::unix::fs::symlink("/dev/zero", owed.dir().join("3.json")).unwrap();
    fs::create_dir(owed.dir().join("4.json")).unwrap();
    let large = fs::File::create(owed.dir().join("5.json")).unwrap();
    large.set_len(LIMIT + 1).unwrap();
    let survey = owed.survey().unwrap();
    assert_eq!((survey.waiting.len(), survey.broken.len()), (1, 5));
    let (list, broken) = owed.list().unwrap();
    assert_eq!((list.len(), broken.len()), (1, 5), "{broken:?}");
}
