//! Tests of DEL. In these tests no ADD has failed, so a DEL with a usable record never asks the
//! cluster. A DEL does not remove the status of ResourceClaims itself: it stores the removal for
//! the agent.

use std::cell::{Cell, RefCell};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::*;
use crate::allocation::{AllocatedDevice, Origin};
use crate::cluster::{
    Agent, Answer, Census, ClaimedDevice, Cluster, ClusterError, Folder, PodName, Publication,
    Question,
};
use crate::cni::RawObject;
use crate::delegate::{DelegateCall, DelegateError, DelegateExec, Ours};
use crate::journal::{Header, Journal, Step};
use crate::operation::{Host, Stopwatch};
use crate::plan::Attachment;
use crate::request::{Call, Request};

/// A cluster that panics on every question. Stores what a DEL withdraws.
#[derive(Default)]
struct Unasked {
    withdrawn: RefCell<Vec<Publication>>,
}

impl Cluster for Unasked {
    fn ask(&self, _: &Question, _: Instant) -> Result<Answer, ClusterError> {
        panic!("a DEL with a record asked the cluster");
    }

    fn announce(&self, _: &Question) {
        panic!("a DEL with a record announced a question");
    }

    fn ready(&self, _: &Question, _: Instant) -> Result<Answer, ClusterError> {
        panic!("a DEL with a record asked whether the cluster answers");
    }

    fn census(&self, _: &str, _: bool) -> Result<Census, ClusterError> {
        panic!("a DEL with a record asked for all pods");
    }

    fn publish(&self, _: &Publication, _: Instant) -> Result<(), ClusterError> {
        panic!("a DEL with a record published something");
    }

    fn withdraw(&self, removal: &Publication) {
        self.withdrawn.borrow_mut().push(removal.clone());
    }
}

/// Delegates that all succeed or all fail. Counts their calls.
struct Delegates {
    succeed: bool,
    ran: Cell<usize>,
}

impl DelegateExec for Delegates {
    fn exec(&self, _: &DelegateCall<'_>) -> Result<Vec<u8>, DelegateError> {
        self.ran.set(self.ran.get() + 1);
        match self.succeed {
            true => Ok(Vec::new()),
            false => Err(DelegateError::Refused(crate::cni::Error::new(
                7,
                "no".to_owned(),
            ))),
        }
    }
}

fn header() -> Header {
    let network = |ifname: &str| Attachment {
        ifname: ifname.parse().unwrap(),
        ..Attachment::for_tests(r#"{"cniVersion":"1.0.0","name":"n","type":"bridge"}"#)
    };
    let key = Key {
        container: "c1".parse().unwrap(),
        ifname: "eth0".parse().unwrap(),
    };
    let pod = PodName {
        namespace: "demo".to_owned(),
        name: "web".to_owned(),
        uid: Some("u".to_owned()),
    };
    let claim = ClaimedDevice {
        claim: "nic".to_owned(),
        driver: "d".to_owned(),
        pool: "p".to_owned(),
        device: "vf1".to_owned(),
    };
    let device = AllocatedDevice {
        id: "claimed-1".to_owned(),
        resource: "example.com/vf".to_owned(),
        driver: None,
        origin: Some(Origin::Dra),
        claim: Some(claim),
    };
    let of_claim = Attachment {
        device: Some(device),
        ..network("net1")
    };
    let attachments = vec![network("eth0"), of_claim];
    Header {
        netns: "/gone".to_owned(),
        pod: Some(pod),
        ..Header::new(&key, attachments)
    }
}

/// Puts a program `bridge` into `dir`. No test runs this program, because [`Delegates`] answers
/// instead.
fn install_bridge(dir: &Path) {
    let program = dir.join("bridge");
    fs::write(&program, "").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs a DEL of a sandbox with two networks. If `has_other`, the journal also has a record of
/// another sandbox of the pod. Returns the outcome, the number of delegate calls, whether the
/// detachment is owed, and the claims whose status the DEL withdraws.
fn del_of_two_networks(
    succeed: bool,
    has_other: bool,
) -> (Result<(), Failure>, usize, bool, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    install_bridge(dir.path());
    let journal = Journal::new(&dir.path().join("journal"));
    let header = header();
    let mut entry = journal.begin(&header).unwrap();
    entry
        .write(&[Step::Started(0), Step::Started(1), Step::Complete])
        .unwrap();
    if has_other {
        let mut other = header.clone();
        other.container = "c2".parse().unwrap();
        drop(journal.begin(&other).unwrap());
    }
    let delegates = Delegates {
        succeed,
        ran: Cell::default(),
    };
    let cluster = Unasked::default();
    let outcome = on_host(dir.path(), &cluster, &delegates, del);
    let is_owed = journal.owed(&header.key()).is_some();
    let withdrawn = cluster.withdrawn.borrow();
    let claims = withdrawn.iter().flat_map(Publication::claims);
    let claims = claims.filter(|claim| claim.devices.is_empty());
    let left = claims.map(|claim| claim.claim.clone()).collect();
    (outcome, delegates.ran.get(), is_owed, left)
}

/// Runs `act` for a DEL of container `c1`, with the journal in `dir`.
fn on_host<T>(
    dir: &Path,
    cluster: &dyn Cluster,
    delegates: &Delegates,
    act: impl FnOnce(&Context<'_>) -> T,
) -> T {
    let host = Host {
        cluster,
        exec: delegates,
        links: &|_| unreachable!("the pod's network namespace is gone"),
        devices: &|_| unreachable!("there is no device"),
        start_worker: &|_, _, _| unreachable!("nothing else is owed"),
        journal: Journal::new(&dir.join("journal")),
        lock_dir: dir.join("locks"),
        ours: Ours::this_process().unwrap(),
        stopwatch: &Stopwatch::default(),
    };
    let conf = serde_json::json!({
        "cniVersion": "1.0.0", "name": "jackfield", "type": "jackfield", "manifestDir": "/m",
        "clusterNetwork": "cluster", "binDir": dir, "confDir": dir,
    });
    let call = Call::read(|name| match name {
        "CNI_COMMAND" => Some("DEL".to_owned()),
        "CNI_CONTAINERID" => Some("c1".to_owned()),
        "CNI_IFNAME" => Some("eth0".to_owned()),
        "CNI_PATH" => Some("/nowhere".to_owned()),
        "CNI_ARGS" => Some("K8S_POD_NAMESPACE=demo;K8S_POD_NAME=web".to_owned()),
        _ => None,
    });
    let conf = RawObject::parse(conf.to_string().as_bytes()).unwrap();
    let request = Request::new(call.unwrap(), conf).unwrap();
    act(&Context::new(&host, &request, Duration::from_secs(10)))
}

#[test]
fn a_retry_keeps_a_destroyed_record_for_the_next_del() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(&dir.path().join("journal"));
    let key = header().key();
    journal.begin(&header()).unwrap();
    journal.owe(&key, "a delegate failed").unwrap();
    let path = dir.path().join("journal/sandboxes/c1@eth0");
    fs::write(&path, "0000").unwrap();
    let delegates = Delegates {
        succeed: true,
        ran: Cell::default(),
    };
    on_host(dir.path(), &Unasked::default(), &delegates, |context| {
        recovery::retry::retry(context, &key);
    });
    assert!(path.exists() && journal.owed(&key).is_none());
}

#[test]
fn a_del_with_a_record_never_asks_the_cluster() {
    let (outcome, ran, is_owed, left) = del_of_two_networks(true, false);
    assert!(outcome.is_ok() && !is_owed, "{outcome:?}");
    assert_eq!(ran, 2);
    assert_eq!(left, ["nic"], "the agent removes the device's status");
}

#[test]
fn a_del_with_a_refused_detachment_never_asks_the_cluster() {
    let (outcome, ran, is_owed, left) = del_of_two_networks(false, false);
    assert!(matches!(outcome, Err(Failure::Owed(debts)) if debts.len() == 2));
    assert!(ran == 2 && is_owed && left.is_empty());
}

#[test]
fn a_del_keeps_the_claim_status_of_another_sandbox_of_the_pod() {
    let (outcome, ran, _, left) = del_of_two_networks(true, true);
    assert!(outcome.is_ok() && ran == 2, "{outcome:?}");
    assert_eq!(left, [""; 0]);
}

/// Puts a damaged record of container `c1` into the journal in `dir`, and the configuration of the
/// cluster network into `dir`. Returns a function that appends a name to the path of the journal.
fn damaged_record(dir: &Path) -> impl Fn(&str) -> PathBuf + use<> {
    let journal = dir.join("journal");
    install_bridge(dir);
    drop(Journal::new(&journal).begin(&header()).unwrap());
    let record = journal.join("sandboxes/c1@eth0");
    let mut damaged = fs::read(&record).unwrap();
    damaged[30] ^= 1;
    fs::write(record, damaged).unwrap();
    let conflist = r#"{"cniVersion":"1.0.0","name":"cluster","plugins":[{"type":"bridge"}]}"#;
    fs::write(dir.join("cluster.conflist"), conflist).unwrap();
    move |name| journal.join(name)
}

/// Runs a DEL of container `c1` that succeeds. Returns the number of delegate calls and the notes.
fn successful_del(dir: &Path, cluster: &dyn Cluster) -> (usize, Vec<Note>) {
    let delegates = Delegates {
        succeed: true,
        ran: Cell::default(),
    };
    let notes = on_host(dir, cluster, &delegates, |context| {
        del(context).unwrap();
        context.notes()
    });
    (delegates.ran.get(), notes)
}

#[test]
fn a_del_without_a_usable_record_detaches_although_the_journal_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = damaged_record(dir.path());
    // Jackfield can neither move the damaged record nor write another record.
    fs::write(path("quarantine"), "").unwrap();
    fs::remove_dir_all(path("changes")).unwrap();
    fs::write(path("changes"), "").unwrap();
    let (ran, notes) = successful_del(dir.path(), &Folder::new(dir.path().into()));
    assert_eq!(ran, 1, "{notes:?}");
    assert!(!path("sandboxes/c1@eth0").exists());
    let [Note::DelOfDamagedRecord(..), Note::Tolerated(cause)] = &notes[..] else {
        panic!("{notes:?}");
    };
    assert_eq!(cause.code(), 109);
}

#[test]
fn the_del_of_an_adopted_sandbox_detaches_it_although_its_record_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let path = damaged_record(dir.path());
    Journal::new(&path(""))
        .mark_adopted(&header().key())
        .unwrap();
    let cluster = Folder::new(dir.path().into());
    assert_eq!(successful_del(dir.path(), &cluster).0, 1);
    // The next DEL finds the marker of the adopted sandbox and detaches nothing.
    assert_eq!(successful_del(dir.path(), &cluster).0, 0);
}

#[test]
fn a_del_without_a_record_removes_what_a_killed_plugin_left_in_publish() {
    let dir = tempfile::tempdir().unwrap();
    let path = damaged_record(dir.path());
    fs::remove_file(path("sandboxes/c1@eth0")).unwrap();
    let mut dead = std::process::Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let left = format!("publish/.0000000001.000000002-{}-0000000a.json", dead.id());
    fs::create_dir(path("publish")).unwrap();
    fs::write(path(&left), "{").unwrap();
    let agent = Agent::new(&dir.path().join("no-agent"), None, &path(""));
    successful_del(dir.path(), &agent);
    assert!(!path(&left).exists());
}
