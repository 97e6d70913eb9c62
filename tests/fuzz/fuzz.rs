//! libFuzzer on one target: the one that `JACKFIELD_FUZZ` names. Without it, lists them all.
#![no_main]

use std::sync::OnceLock;

use jackfield::fuzzing::{TARGETS, Target};
use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<&Target> = OnceLock::new();

fuzz_target!(
    init: {
        let name = std::env::var("JACKFIELD_FUZZ").unwrap_or_default();
        let Some(target) = TARGETS.iter().find(|target| target.name == name) else {
            for target in TARGETS {
                println!("{} {}", target.name, target.longest);
            }
            std::process::exit(if name.is_empty() { 0 } else { 2 });
        };
        let _ = TARGET.set(target);
    },
    |bytes: &[u8]| {
        if let Some(target) = TARGET.get() {
            (target.run)(bytes);
        }
    }
);
