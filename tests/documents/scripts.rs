//! What the scripts say to what they cannot use: one line and exit code 2, before they do anything.

use std::path::Path;
use std::process::Command;

#[allow(
    clippy::disallowed_methods,
    reason = "a script that refuses starts nothing"
)]
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
