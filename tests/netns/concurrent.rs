//! Several calls at once: one sandbox at a time, several sandboxes side by side.

use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::lab::{Lab, Netns};

/// A lab whose network `demo/slow` first runs `wait`, a line of shell, on ADD.
fn slow(wait: &str) -> Lab {
    let lab = Lab::new();
    let on_add = format!("if [ $CNI_COMMAND = ADD ]; then {wait}; fi");
    lab.recorder("slow", "ptp", &on_add);
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
fn an_add_that_waits_too_long_for_the_sandbox_may_be_retried() {
    let mut lab = slow("while [ ! -e $LAB/go ]; do sleep 0.02; done");
    let patient = lab.plugin("ADD");
    lab.configure("deadlines", json!({ "add": "1s" }));
    thread::scope(|scope| {
        let add = scope.spawn(|| patient.run());
        until_it_runs(&lab);
        lab.call("ADD").fails(11, &[&lab.container()]);
        lab.write("go", "");
        assert_eq!(add.join().unwrap().exit, 0);
    });
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn pods_are_attached_side_by_side() {
    // Each ADD waits until all four have begun.
    let lab = slow(
        "echo >>$LAB/begun; \
         while [ -e $LAB/four ] && [ $(wc -l <$LAB/begun) -lt 4 ]; do sleep 0.02; done",
    );
    // This creates the bridge. If several calls create it at once, the reference plugin may report a
    // hardware address that changes afterwards, and its own CHECK fails.
    lab.add();
    lab.del();
    lab.write("begun", "");
    lab.write("four", "");
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
    thread::scope(|scope| {
        for pod in &pods {
            scope.spawn(|| call("ADD", pod).success());
        }
    });
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
