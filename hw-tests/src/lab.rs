//! The host's half: a virtual machine with devices that a stock Debian kernel drives.
//!
//! QEMU emulates in software. It never uses `/dev/kvm`, because a host that is itself a virtual
//! machine may offer a `/dev/kvm` that opens but cannot run a kernel.

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

/// Cases to run in the virtual machine.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) cases: &'a [Case],
    /// The binary under test.
    pub(crate) jackfield: Option<&'a Path>,
    /// The folder with the CNI reference plugins.
    pub(crate) cni_bin: Option<&'a Path>,
    /// Extra folders of the host.
    pub(crate) mounts: &'a [Mount],
    /// The time limit of one boot.
    pub(crate) timeout: Duration,
    /// Whether to ask the mirror for a newer kernel first.
    pub(crate) refresh: bool,
    pub(crate) dry_run: bool,
}

impl Job<'_> {
    /// Boots the machine as often as the cases need, and adds their results to the report. Returns
    /// false if there was nothing to run.
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

    /// Returns each boot that has cases, with its cases.
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

/// Why there is no virtual machine.
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
