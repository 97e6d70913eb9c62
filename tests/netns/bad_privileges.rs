//! Without the privileges it needs, it says which one is missing and does nothing.

use crate::lab::Lab;

#[test]
fn a_missing_capability_is_named() {
    for (capability, name) in [
        ("net_admin", "CAP_NET_ADMIN"),
        ("sys_admin", "CAP_SYS_ADMIN"),
    ] {
        let lab = Lab::new();
        let drop = format!("-{capability}");
        let without = ["setpriv", "--bounding-set", &drop, "--inh-caps", &drop];
        let outcome = lab.plugin("ADD").under(&without).run();
        outcome.fails(5, &["lacks", name, "root"]);
        lab.assert_nothing_left();
        let explained = lab.command("explain", &[]).under(&without).run();
        assert_eq!(explained.exit, 1, "{explained}");
        assert!(explained.stdout.contains(name), "{explained}");
    }
}

#[test]
fn both_are_named_at_once() {
    let lab = Lab::new();
    let nobody = [
        "setpriv",
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
    ];
    let outcome = lab.plugin("ADD").under(&nobody).run();
    outcome.fails(5, &["CAP_NET_ADMIN and CAP_SYS_ADMIN"]);
    lab.assert_nothing_left();
}
