//! `--bare-metal` itself: what it prints, refuses and runs. The guest's second PF plays the bare
//! metal.

use std::io::{Read, Seek};
use std::process::Command;

use crate::bare_metal::Lock;
use crate::case::{Case, Outcome, Stop, holds, same};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{command, netdev, sysfs, until};

const NEEDS: &[Feature] = &[Feature::Guest, Feature::Sriov];

pub(super) const CASES: &[Case] = &[
    Case {
        name: "bare-metal/a_dry_run_says_what_it_would_touch_and_touches_nothing",
        needs: NEEDS,
        run: a_dry_run_says_what_it_would_touch_and_touches_nothing,
    },
    Case {
        name: "bare-metal/a_pf_in_use_is_refused",
        needs: NEEDS,
        run: a_pf_in_use_is_refused,
    },
    Case {
        name: "bare-metal/the_suite_runs_on_the_named_pf",
        needs: NEEDS,
        run: the_suite_runs_on_the_named_pf,
    },
    Case {
        name: "bare-metal/an_interrupt_removes_the_vfs",
        needs: NEEDS,
        run: an_interrupt_removes_the_vfs,
    },
    Case {
        name: "bare-metal/a_pf_is_used_by_one_run_at_a_time",
        needs: NEEDS,
        run: a_pf_is_used_by_one_run_at_a_time,
    },
];

const ONE_CASE: [&str; 2] = ["--only", "sriov/a_vf_knows_its_pf_and_its_number"];

fn bare_metal(arguments: &[&str]) -> Result<String, Stop> {
    let program = std::env::current_exe()?.display().to_string();
    let all = [&["--bare-metal"], arguments].concat();
    Ok(command(&program, &all)?)
}

fn refusal(arguments: &[&str]) -> Result<String, Stop> {
    match bare_metal(arguments) {
        Ok(output) => Err(Stop::failed(format!("it was not refused: {output}"))),
        Err(Stop::Failed(reason)) => Ok(reason),
        Err(other) => Err(other),
    }
}

fn a_dry_run_says_what_it_would_touch_and_touches_nothing(node: &Node) -> Outcome {
    let pf = node.spare_pf()?.to_string();
    let output = bare_metal(&["--dry-run", "--pf", &pf])?;
    let line = format!(
        "{pf} (driver igb, interfaces {}, 0 of ",
        netdev(node.spare_pf()?)?
    );
    holds(
        format!("it names the function, its driver and interface: {output}"),
        output.contains(&line),
    )?;
    holds(
        format!("it says that the first PF is in use: {output}"),
        output.contains("VFs already"),
    )?;
    let vfs = sysfs::read(sysfs::function(node.spare_pf()?).join("sriov_numvfs"))?;
    same("VFs afterwards", vfs.as_str(), "0")
}

/// An interface that is up; down again when dropped.
struct Up<'a>(&'a str);

impl<'a> Up<'a> {
    fn with_address(name: &'a str, address: &str) -> Result<Self, Stop> {
        let up = Self(name);
        command("ip", &["addr", "add", address, "dev", name])?;
        command("ip", &["link", "set", name, "up"])?;
        Ok(up)
    }
}

impl Drop for Up<'_> {
    fn drop(&mut self) {
        // A leftover address makes the next case fail.
        let _ = command("ip", &["link", "set", self.0, "down"]);
        let _ = command("ip", &["addr", "flush", "dev", self.0]);
    }
}

fn a_pf_in_use_is_refused(node: &Node) -> Outcome {
    let (pf, name) = (node.spare_pf()?.to_string(), netdev(node.spare_pf()?)?);
    let expect = |pf: &str, part: &str| {
        let output = refusal(&["--dry-run", "--pf", pf])?;
        holds(format!("'{part}' in: {output}"), output.contains(part))
    };
    expect(&node.pf()?.to_string(), "VFs already")?;
    expect(&node.vf(0)?.to_string(), "has no SR-IOV")?;
    expect("0000:77:00.0", "does not exist")?;
    let _up = Up::with_address(&name, "192.0.2.1/24")?;
    expect(&pf, "is up with address 192.0.2.1")?;
    command("ip", &["route", "add", "default", "via", "192.0.2.2"])?;
    expect(&pf, "carries a default route")
}

fn the_suite_runs_on_the_named_pf(node: &Node) -> Outcome {
    let pf = node.spare_pf()?.to_string();
    let output = bare_metal(
        &[
            &["--pf", pf.as_str(), "--require", "sriov"],
            ONE_CASE.as_slice(),
        ]
        .concat(),
    )?;
    holds(
        format!("it passed: {output}"),
        output.ends_with("1 passed, 0 failed, 0 skipped\n"),
    )
}

fn a_pf_is_used_by_one_run_at_a_time(node: &Node) -> Outcome {
    let pf = node.spare_pf()?.to_string();
    let _ours = Lock::of(node.spare_pf()?)?;
    let output = refusal(&[&["--pf", pf.as_str()], ONE_CASE.as_slice()].concat())?;
    holds(
        format!("it says that another run uses it: {output}"),
        output.contains(&format!("{pf}: another run uses it (process ")),
    )
}

/// The interrupt arrives while the cases run, as soon as the VFs exist.
fn an_interrupt_removes_the_vfs(node: &Node) -> Outcome {
    for signal in ["INT", "TERM"] {
        let pf = node.spare_pf()?;
        let vfs = || sysfs::read(sysfs::function(pf).join("sriov_numvfs"));
        let out = tempfile::tempfile()?;
        let mut suite = Command::new(std::env::current_exe()?)
            .args(["--bare-metal", "--only", "sriov/", "--pf", &pf.to_string()])
            .stdout(out.try_clone()?)
            .stderr(out.try_clone()?)
            .spawn()?;
        let made = until("VFs", || (vfs().ok()? != "0").then_some(()));
        let kill = command("kill", &["-s", signal, &suite.id().to_string()]);
        let code = suite.wait()?.code();
        made?;
        kill?;
        same("VFs afterwards", vfs()?.as_str(), "0")?;
        let mut output = String::new();
        let mut out = out;
        out.rewind()?;
        out.read_to_string(&mut output)?;
        holds(
            format!("it says that it was interrupted: {output}"),
            output.contains("interrupted; everything that the suite created is removed"),
        )?;
        same("exit status", code, Some(2))?;
    }
    Ok(())
}
