//! What the scripts say to what they cannot use: one line and exit code 2, before they do anything.
#![allow(
    clippy::disallowed_methods,
    reason = "what these scripts start ends before them"
)]

use std::path::Path;
use std::process::Command;

fn refused(script: &str, arguments: &[&str]) -> String {
    let output = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join(script))
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), output.stdout.is_empty()),
        (Some(2), true),
        "{script} {arguments:?}: {said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

#[test]
fn a_script_that_is_called_wrongly_says_how_it_is_called() {
    for (script, arguments) in [
        ("scripts/test", &["--only"][..]),
        ("scripts/test", &["unit"]),
        ("scripts/build", &["--arch"]),
        ("scripts/build", &["--release"]),
        ("scripts/image", &["--name"]),
        ("scripts/image", &["riscv64=x"]),
        ("scripts/bench", &["--peer"]),
        ("scripts/growth", &["--picture"]),
        ("scripts/growth", &["--binary", "missing"]),
        ("scripts/fuzz", &["--seconds"]),
        ("scripts/soak", &["--pods", "many"]),
        ("scripts/soak", &["--cluster", "node"]),
        ("scripts/scale", &["--nodes", "many"]),
        ("scripts/scale", &["--nodes", "5"]),
        ("scripts/scale", &["--idle", "3600"]),
    ] {
        let said = refused(script, arguments);
        assert!(said.starts_with(&format!("usage: {script} ")), "{said}");
    }
    let said = refused("scripts/test", &["--only", "unit,nets"]);
    assert!(said.contains("no such stage: nets;"), "{said}");
    let said = refused("scripts/build", &["--arch", "riscv64"]);
    assert!(said.contains("riscv64; use x86_64 or aarch64"), "{said}");
}

#[test]
fn a_binary_of_another_architecture_gets_into_no_image() {
    let program = env!("CARGO_BIN_EXE_jackfield");
    let other = match std::env::consts::ARCH {
        "x86_64" => "arm64",
        _ => "amd64",
    };
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image.tar");
    let said = refused(
        "scripts/image",
        &[
            "--output",
            image.to_str().unwrap(),
            &format!("{other}={program}"),
        ],
    );
    assert_eq!(
        said.trim_end(),
        format!(
            "{program}: not a program for {other}; give the binary of scripts/build --arch for it"
        )
    );
    assert!(!image.exists());
}

/// What another checkout built knows that one's path, and cargo would take it for this one's.
#[test]
fn what_cargo_makes_serves_one_checkout_at_a_time_and_what_is_a_checkouts_own_no_other() {
    let root = tempfile::tempdir().unwrap();
    let kept = root.path().join("rust");
    let fingerprints = kept.join("any/fast/.fingerprint");
    let (ours, theirs) = (
        fingerprints.join("jackfield-0a"),
        fingerprints.join("serde-0b"),
    );
    let build_in = |checkout: &str, before: &str| -> String {
        let checkout = root.path().join(checkout);
        std::fs::create_dir_all(&checkout).unwrap();
        let mut bash = Command::new("bash");
        let said = bash
            .arg("-c")
            .arg(format!(
                r#". "$0"; {before} keep_rust "$1"; printf %s "${{CARGO_BUILD_BUILD_DIR:-its own}}""#
            ))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/lib/setup.sh"))
            .arg(&kept)
            .env_remove("CARGO_BUILD_BUILD_DIR")
            .env_remove("CARGO_TARGET_DIR")
            .current_dir(checkout)
            .output()
            .unwrap();
        assert!(said.status.success(), "{said:?}");
        std::fs::create_dir_all(&ours).unwrap();
        std::fs::create_dir_all(&theirs).unwrap();
        String::from_utf8(said.stdout).unwrap()
    };
    let here = kept.display().to_string();
    assert_eq!(build_in("a", ""), here);
    std::fs::write(ours.join("program"), "").unwrap();
    assert_eq!(build_in("a", ""), here);
    assert!(ours.join("program").exists(), "it is a's again");
    std::fs::write(theirs.join("library"), "").unwrap();
    assert_eq!(build_in("b", ""), here);
    assert!(!ours.join("program").exists(), "it was a's");
    assert!(theirs.join("library").exists(), "it is anybody's");
    // Somebody builds there just now.
    let in_use = "exec 9>\"$1/.in-use\"; flock 9;";
    assert_eq!(build_in("a", in_use), "its own");
}
