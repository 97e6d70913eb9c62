//! What a delegate sees of us, and what others see of our files.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::lab::{Lab, real_plugins};

/// A lab whose network `demo/curious` notes its environment and its open files on ADD.
fn curious() -> Lab {
    let lab = Lab::new();
    lab.recorder(
        "curious",
        "ptp",
        "[ $CNI_COMMAND = ADD ] && { env -0 | tr '\\n\\0' ' \\n' >$LAB/log/env; ls -l /proc/self/fd >$LAB/log/fds; }",
    );
    let mut config = lab.ptp("10.30.0.0/24");
    config["type"] = json!("curious");
    lab.definition("demo/curious", &config);
    lab.selects("curious");
    lab
}

// clause: CNI-1.1.0 §2 parameters: what a plugin is told in its environment
// clause: CNI-1.1.0 §3 attachment parameters
// clause: CNI-1.1.0 §4 environment: written from scratch
#[test]
fn a_delegate_gets_the_parameters_of_its_call_and_nobodys_secrets() {
    let lab = curious();
    let call = lab.plugin("ADD").env("AWS_SECRET_ACCESS_KEY", "s3cr3t");
    let call = call
        .env("LD_LIBRARY_PATH", "/nonexistent")
        .env("NOTIFY_SOCKET", "/x");
    call.run().success();
    let seen = lab.log("env");
    let value = |name: &str| {
        let found = seen
            .iter()
            .find_map(|line| line.strip_prefix(&format!("{name}=")));
        found
            .unwrap_or_else(|| panic!("no {name} in {seen:?}"))
            .to_owned()
    };
    assert_eq!(value("CNI_COMMAND"), "ADD");
    assert_eq!(value("CNI_CONTAINERID"), lab.container());
    assert_eq!(value("CNI_NETNS"), lab.pod.path().display().to_string());
    assert_eq!(value("CNI_IFNAME"), "net1");
    assert!(value("CNI_ARGS").contains("K8S_POD_NAME=web"));
    let path = value("CNI_PATH");
    assert!(
        path.contains(&lab.path("bin").display().to_string()),
        "{path}"
    );
    assert!(
        path.contains(&real_plugins().display().to_string()),
        "{path}"
    );
    for name in ["AWS_SECRET_ACCESS_KEY", "LD_LIBRARY_PATH", "NOTIFY_SOCKET"] {
        assert!(
            !seen.iter().any(|line| line.starts_with(name)),
            "{name} in {seen:?}"
        );
    }
    lab.del();
    lab.assert_nothing_left();
}

/// The lock is inherited on purpose; nothing else is.
#[test]
fn a_delegate_inherits_no_open_file_but_the_lock() {
    let lab = curious();
    // Whatever the test runner inherited is not ours to judge.
    let close = r#"for fd in /proc/$$/fd/*; do n=${fd##*/}; [ $n -gt 2 ] && eval "exec $n>&-"; done; exec "$@""#;
    let call = lab.plugin("ADD").under(&["bash", "-c", close, "-"]);
    call.run().success();
    let open = lab.log("fds");
    let open: Vec<&str> = open
        .iter()
        .filter_map(|line| line.split_once(" -> "))
        .map(|(_, to)| to)
        .collect();
    assert!(open.iter().any(|to| to.ends_with(".lock")), "{open:?}");
    for to in &open {
        let expected = to.ends_with(".lock")
            || to.starts_with("pipe:")
            || to.starts_with("/proc/")
            || to.ends_with("/log/fds");
        assert!(expected, "{to} in {open:?}");
    }
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn the_journal_is_for_root_alone() {
    let lab = Lab::new();
    lab.add();
    let mode = |path: &str| fs::metadata(lab.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("journal"), 0o700);
    assert_eq!(mode("journal/sandboxes"), 0o700);
    let record = format!("journal/sandboxes/{}@eth0", lab.container());
    assert_eq!(mode(&record), 0o600);
    lab.del();
}
