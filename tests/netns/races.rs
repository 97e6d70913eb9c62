//! Two calls for one sandbox at once: one after the other, whoever comes first.

use serde_json::json;

use crate::lab::{Lab, Netns, Outcome};

/// A node whose plugins take their time.
fn slow_lab() -> Lab {
    let lab = Lab::new();
    lab.recorder("bridge-rec", "bridge", "sleep 0.1");
    lab.recorder("ptp-rec", "ptp", "sleep 0.1");
    let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
    bridge["type"] = json!("bridge-rec");
    lab.cluster_network("1.0.0", &[bridge]);
    let mut ptp = lab.ptp("10.20.0.0/24");
    ptp["type"] = json!("ptp-rec");
    lab.definition("demo/a", &ptp);
    lab.selects("a");
    lab
}

/// Both verbs at once.
fn at_once(lab: &Lab, one: &str, other: &str) -> (Outcome, Outcome) {
    let (one, other) = (lab.plugin(one), lab.plugin(other));
    std::thread::scope(|scope| {
        let one = scope.spawn(move || one.run());
        let other = other.run();
        (one.join().unwrap(), other)
    })
}

// clause: CNI-1.1.0 §3 serial
// clause: NPWG-1.3 §7.3
// clause: CNI-1.1.0 §2 ADD twice: is refused
#[test]
fn of_two_adds_one_attaches_and_the_other_is_refused() {
    let lab = slow_lab();
    let (one, other) = at_once(&lab, "ADD", "ADD");
    let (won, lost) = if one.exit == 0 {
        (one, other)
    } else {
        (other, one)
    };
    won.success();
    lost.failure(101);
    let adds = lab.log("calls");
    let adds: Vec<_> = adds.iter().filter(|call| call.starts_with("ADD")).collect();
    assert_eq!(adds.len(), 2, "each network once: {adds:?}");
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn an_add_and_a_del_leave_all_or_nothing() {
    for _ in 0..3 {
        let lab = slow_lab();
        let (add, del) = at_once(&lab, "ADD", "DEL");
        assert_eq!(del.exit, 0, "{del}");
        add.success();
        if lab.pod.links().is_empty() {
            lab.assert_nothing_left();
        } else {
            lab.check();
            lab.del();
        }
        lab.assert_nothing_left();
    }
}

// clause: CNI-1.1.0 §2 DEL again: at once
#[test]
fn two_dels_both_succeed_and_detach_once() {
    let lab = slow_lab();
    lab.add();
    let (one, other) = at_once(&lab, "DEL", "DEL");
    assert_eq!((one.exit, other.exit), (0, 0), "{one} {other}");
    lab.assert_nothing_left();
    let secondary = lab.recorded("ptp-rec", "DEL");
    assert_eq!(secondary.len(), 1);
}

// clause: CNI-1.1.0 §3 gc alone
// clause: CNI-1.1.0 §3 serial: GC beside ADD
#[test]
fn a_gc_leaves_a_sandbox_alone_that_somebody_works_on() {
    let mut lab = slow_lab();
    lab.recorder("ptp-rec", "ptp", "[ $CNI_COMMAND = ADD ] && sleep 2.5");
    lab.configure("cniVersion", json!("1.1.0"));
    let add = lab.plugin("ADD");
    lab.configure("cni.dev/valid-attachments", json!([]));
    let gc = lab.plugin("GC");
    std::thread::scope(|scope| {
        let add = scope.spawn(move || add.run());
        while lab.log("calls").len() < 2 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        gc.run().failure(11);
        add.join().unwrap().success();
    });
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §3 concurrent
#[test]
fn sandboxes_of_different_containers_do_not_wait_for_each_other() {
    let lab = slow_lab();
    lab.recorder("bridge-rec", "bridge", "[ $CNI_COMMAND = ADD ] && sleep 1");
    let other = format!("{}-other", lab.container());
    let (add, del) = (
        lab.plugin("ADD"),
        lab.plugin("DEL").env("CNI_CONTAINERID", &other),
    );
    std::thread::scope(|scope| {
        let add = scope.spawn(move || add.run());
        let del = scope.spawn(move || del.run());
        let took = [add.join().unwrap().took, del.join().unwrap().took];
        assert!(took[1] < took[0], "{took:?}");
    });
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn an_add_of_a_sandbox_that_lives_elsewhere_is_refused() {
    let lab = Lab::new();
    lab.add();
    let elsewhere = Netns::new(&format!("{}-2", lab.container()));
    let path = elsewhere.path().display().to_string();
    let add = || lab.plugin("ADD").env("CNI_NETNS", &path).run();
    add().fails(101, &["attached already", "DEL first"]);
    assert!(elsewhere.links().is_empty());
    lab.check();
    // Its netns is gone, so it is a leftover.
    lab.pod.delete();
    add().success();
    lab.plugin("DEL").env("CNI_NETNS", &path).run();
    lab.assert_none_left(&["file", "veth", "ipam"]);
}
