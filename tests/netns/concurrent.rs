//! Several calls at once: one sandbox at a time, several sandboxes side by side.

use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::lab::{Lab, Netns};

/// A lab whose network `demo/slow` takes a second to attach.
fn slow() -> Lab {
    let lab = Lab::new();
    lab.recorder("slow", "ptp", "[ $CNI_COMMAND = ADD ] && sleep 1");
    let mut config = lab.ptp("10.30.0.0/24");
    config["type"] = json!("slow");
    lab.definition("demo/slow", &config);
    lab.selects("slow");
    lab
}

/// Waits until the slow network is being attached.
fn until_it_runs(lab: &Lab) {
    while lab.log("calls").is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn whoever_waits_for_the_sandbox_too_long_is_told_to_try_again() {
    let mut lab = slow();
    let patient = lab.plugin("ADD");
    lab.configure("deadlines", json!({ "add": "300ms" }));
    thread::scope(|scope| {
        let add = scope.spawn(|| patient.run());
        until_it_runs(&lab);
        lab.call("ADD").fails(11, &[&lab.container()]);
        assert_eq!(add.join().unwrap().exit, 0);
    });
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn pods_are_attached_side_by_side() {
    let lab = slow();
    // The bridge stands by then: where several make it at once, the reference plugin may tell its
    // hardware address before it is settled, and its own CHECK fails.
    lab.add();
    lab.del();
    let pods: Vec<(String, Netns)> = (0..4)
        .map(|number| {
            let name = format!("{}-{number}", lab.container());
            let netns = Netns::new(&name);
            (name, netns)
        })
        .collect();
    let call = |verb: &str, (container, netns): &(String, Netns)| {
        let call = lab.plugin(verb).env("CNI_CONTAINERID", container);
        call.env("CNI_NETNS", &netns.path().display().to_string())
            .run()
    };
    let started = std::time::Instant::now();
    thread::scope(|scope| {
        for pod in &pods {
            scope.spawn(|| call("ADD", pod).success());
        }
    });
    // One after the other they would sleep four seconds, and then some.
    assert!(
        started.elapsed() < Duration::from_millis(3_900),
        "{:?}",
        started.elapsed()
    );
    let mut addresses: Vec<String> = pods
        .iter()
        .flat_map(|(_, netns)| netns.addresses("net1"))
        .collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), 4);
    for pod in &pods {
        for verb in ["CHECK", "DEL"] {
            let run = call(verb, pod);
            assert_eq!(run.exit, 0, "{verb}: {run}");
        }
        assert!(pod.1.links().is_empty());
    }
    lab.assert_nothing_left();
}
