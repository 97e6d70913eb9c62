//! The host's half: a virtual machine with devices that a stock Debian kernel drives.
//!
//! QEMU emulates in software. A host that is a virtual machine itself may offer `/dev/kvm` that
//! opens and yet does not run a kernel, so it is never used.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

pub(crate) use boot::Boot;
pub(crate) use mount::Mount;

use crate::case::Case;
use crate::report::Report;
use machine::{Machine, MachineError};
use runner::RunnerError;
use setup::SetupError;

mod boot;
mod machine;
mod mount;
mod qemu;
mod runner;
mod setup;
mod tail;

/// Cases to be run in the virtual machine.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) cases: &'a [Case],
    /// The binary that attaches pods.
    pub(crate) jackfield: Option<&'a Path>,
    /// The folder with the CNI reference plugins.
    pub(crate) cni_bin: Option<&'a Path>,
    /// Folders brought in besides the suite's own.
    pub(crate) mounts: &'a [Mount],
    /// The longest that one boot may take.
    pub(crate) timeout: Duration,
    /// Ask the mirror for a newer kernel first.
    pub(crate) refresh: bool,
    pub(crate) dry_run: bool,
}

impl Job<'_> {
    /// Boots the machine as often as the cases need it, and adds what comes of them to the report.
    /// False if nothing was to be run.
    pub(crate) fn run(&self, report: &mut Report) -> Result<bool, LabError> {
        if self.dry_run {
            self.describe()?;
            return Ok(false);
        }
        let images = setup::prepare(self.refresh)?;
        let runner = runner::binary()?;
        for (boot, cases) in self.boots() {
            Machine {
                images: &images,
                runner: &runner,
                boot,
                cases: &cases,
                jackfield: self.jackfield,
                cni_bin: self.cni_bin,
                mounts: self.mounts,
                timeout: self.timeout,
            }
            .run(report)?;
        }
        Ok(true)
    }

    /// The cases of each boot that has any.
    fn boots(&self) -> Vec<(Boot, Vec<Case>)> {
        Boot::ALL
            .into_iter()
            .map(|boot| {
                let cases = self.cases.iter().copied();
                (boot, cases.filter(|case| Boot::of(case) == boot).collect())
            })
            .filter(|(_, cases): &(_, Vec<_>)| !cases.is_empty())
            .collect()
    }

    fn describe(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(
            out,
            "would prepare {} and change nothing else on this machine, but for QEMU and its tools if they are missing",
            setup::folder().display()
        )?;
        for (boot, cases) in self.boots() {
            writeln!(
                out,
                "would boot a virtual machine ({boot}) for {} cases:",
                cases.len()
            )?;
            for case in cases {
                writeln!(out, "  {}", case.name)?;
            }
        }
        Ok(())
    }
}

/// The virtual machine cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LabError {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Runner(#[from] RunnerError),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Out(#[from] io::Error),
}
