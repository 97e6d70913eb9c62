//! Before Jackfield, and after it: pods of another plugin, and a node that it is taken off again.

use std::fs;

use serde_json::json;

use crate::lab::{Lab, Pod, eventually};

#[test]
fn pods_that_another_plugin_attached_go_without_a_trace_once_jackfield_is_there() {
    let lab = Lab::new();
    lab.run(&Pod::new(&lab, "before"));
    lab.deploy();
    lab.definition("storage", "10.2.0.0/24", &json!({}));
    lab.run(&Pod::new(&lab, "after").networks("storage"));
    lab.delete(&["before"]);
    lab.delete(&["after"]);
    lab.assert_nothing_left(&["after"], 3);
}

#[test]
fn uninstalled_the_node_works_with_what_it_had() {
    let lab = Lab::with_jackfield();
    lab.definition("storage", "10.2.0.0/24", &json!({}));
    lab.run(&Pod::new(&lab, "before").networks("storage"));
    lab.remove_daemon_set();
    let uninstall = ["/opt/cni/bin/jackfield", "uninstall"];

    // Binary and journal stay for the pod that still runs.
    let (done, said) = lab.machine.try_run(&uninstall);
    assert!(
        !done && said.contains(&format!("{}/before", lab.namespace)),
        "{said}"
    );
    let files = || -> Vec<String> {
        let entries = fs::read_dir(lab.machine.path("disk/etc/cni/net.d")).unwrap();
        let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.starts_with('.')).collect()
    };
    assert_eq!(files(), ["10-cluster.conflist"]);
    lab.wait_for_network("cluster");
    lab.run(&Pod::new(&lab, "after").networks("storage"));
    assert_eq!(lab.calls("ADD", "after"), 0);

    lab.delete(&["before"]);
    eventually("all that jackfield attached is detached", || {
        lab.machine.try_run(&uninstall).0
    });
    for gone in [
        "disk/opt/cni/bin/jackfield",
        "disk/var/lib/jackfield",
        "disk/etc/cni/net.d/.jackfield",
    ] {
        assert!(!lab.machine.path(gone).exists(), "{gone}");
    }
    lab.delete(&["after"]);
    lab.wait_until_clean();
}
