//! CNI_NETNS may name anything.

use serde_json::json;

use crate::lab::Lab;

// clause: CNI-1.1.0 §5 Error: code 4 for an invalid environment variable
#[test]
fn what_is_no_network_namespace_is_refused() {
    let lab = Lab::new();
    let file = lab.write("plain", "").display().to_string();
    let folder = lab.path("log").display().to_string();
    let cases: [(&str, &[&str]); 8] = [
        (
            "/run/netns/no-such-netns",
            &["/run/netns/no-such-netns", "does not exist", "CNI_NETNS"],
        ),
        (
            "/proc/4194305/ns/net",
            &["/proc/4194305/ns/net", "does not exist"],
        ),
        (&file, &[&file, "not a network namespace"]),
        (&folder, &[&folder, "not a network namespace"]),
        (
            "/proc/self/ns/mnt",
            &["/proc/self/ns/mnt", "not a network namespace"],
        ),
        ("/dev/null", &["/dev/null", "not a network namespace"]),
        ("relative/path", &["relative/path"]),
        ("/", &["not a network namespace"]),
    ];
    for verb in ["ADD", "CHECK"] {
        for (netns, words) in cases {
            let line = lab
                .plugin(verb)
                .env("CNI_NETNS", netns)
                .run()
                .fails(4, words);
            assert!(!line.contains("cannot enter it"), "{line}");
            lab.assert_nothing_left();
        }
    }
}

#[test]
fn a_pipe_in_its_place_does_not_hang() {
    let lab = Lab::new();
    let pipe = lab.path("pipe").display().to_string();
    crate::lab::run("mkfifo", &[&pipe]);
    let outcome = lab.plugin("ADD").env("CNI_NETNS", &pipe).run();
    outcome.fails(4, &[&pipe, "not a network namespace"]);
    assert!(outcome.took.as_secs() < 10);
}

// clause: CNI-1.1.0 §5 Error: code 8 for a netns that is ours, unless CNI_NETNS_OVERRIDE
#[test]
fn our_own_is_refused_unless_the_runtime_insists() {
    let lab = Lab::new();
    for netns in [
        lab.node.path().display().to_string(),
        "/proc/self/ns/net".to_owned(),
    ] {
        let call = lab.plugin("ADD").env("CNI_NETNS", &netns);
        call.run().fails(
            8,
            &[&netns, "pass the pod's namespace", "CNI_NETNS_OVERRIDE=1"],
        );
        lab.assert_nothing_left();
    }
}

/// DEL bears all of them: the sandbox is gone, whatever its path now is.
#[test]
fn a_del_bears_whatever_the_netns_is() {
    for netns in ["/run/netns/no-such-netns", "/dev/null", "/proc/self/ns/mnt"] {
        let lab = Lab::new();
        lab.add();
        lab.pod.delete();
        let outcome = lab.plugin("DEL").env("CNI_NETNS", netns).run();
        if outcome.exit != 0 {
            // A path that is no netns may be the plugin's to refuse: then it is owed, and the
            // next DEL without a netns settles it.
            outcome.failure(106);
            let again = lab.plugin("DEL").without("CNI_NETNS").run();
            assert_eq!(again.exit, 0, "{again}");
        }
        lab.assert_none_left(&["file", "veth"]);
    }
}

/// Injects a fault: the kernel refuses the return from the pod's namespace, and Jackfield panics.
#[test]
fn a_defect_is_logged_at_every_level() {
    let mut lab = Lab::new();
    let log = lab.path("log/jackfield");
    lab.configure("logFile", json!(log));
    lab.configure("logLevel", json!("panic"));
    let fault = "inject=setns:error=EPERM:when=2";
    let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", fault];
    let call = lab.plugin("ADD").under(&strace);
    call.run().fails(999, &["defect in jackfield", "send DEL"]);
    let text = std::fs::read_to_string(log).unwrap();
    assert!(text.contains("[panic] ADD pod demo/web"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    lab.del();
    lab.assert_nothing_left();
}
