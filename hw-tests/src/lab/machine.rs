//! One boot of the virtual machine.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::case::Case;
use crate::guest;
use crate::lab::boot::Boot;
use crate::lab::mount::Mount;
use crate::lab::qemu;
use crate::lab::setup::Images;
use crate::lab::tail::Tail;
use crate::node::Node;
use crate::report::{CaseResult, Event, Report, Verdict};

/// The output of the suite, written by the guest's init.
const LOG: &str = "log.txt";
/// The output of the guest's kernel and init.
pub(super) const CONSOLE: &str = "console.txt";
/// The output of QEMU.
const EMULATOR: &str = "qemu.txt";

/// The name of the binary under test, beside the suite's own.
const JACKFIELD: &str = "jackfield";
/// The tag of the reference plugins' folder.
const CNI_BIN: &str = "cni";
/// The tag of the folder with `dpdk-testpmd`, which is in the guest's PATH.
const DPDK: &str = "dpdk";

/// The time in which the guest must start its first case. QEMU's software emulation sometimes loses
/// the timer of a processor, and the guest's kernel then hangs while it boots.
const BOOTING: Duration = Duration::from_secs(120);

/// A virtual machine and the cases to run in it.
#[derive(Debug)]
pub(super) struct Machine<'a> {
    pub(super) images: &'a Images,
    pub(super) runner: &'a Path,
    pub(super) boot: Boot,
    pub(super) cases: &'a [Case],
    pub(super) jackfield: Option<&'a Path>,
    pub(super) cni_bin: Option<&'a Path>,
    pub(super) mounts: &'a [Mount],
    pub(super) timeout: Duration,
}

impl Machine<'_> {
    /// Boots the machine, reports results as they arrive, and reports a failure for each case
    /// without one. If the guest starts no case within [`BOOTING`], boots it once more.
    pub(super) fn run(&self, report: &mut Report) -> Result<(), MachineError> {
        let folder = tempfile::Builder::new().prefix("hw-tests-").tempdir()?;
        let (runner, out) = (folder.path().join("runner"), folder.path().join("out"));
        fs::create_dir(&runner)?;
        fs::create_dir(&out)?;
        fs::copy(self.runner, runner.join("hw-tests"))?;
        if let Some(jackfield) = self.jackfield {
            fs::copy(jackfield, runner.join(JACKFIELD))?;
        }
        let mut mounts = self.mounts.to_vec();
        mounts.extend(self.cni_bin.map(|folder| Mount::of(CNI_BIN, folder)));
        mounts.push(Mount::of(DPDK, &self.images.dpdk));
        fs::write(out.join(guest::JOB), self.job()?)?;
        writeln!(
            io::stderr(),
            "lab: booting ({}), {} cases",
            self.boot,
            self.cases.len()
        )?;
        let boot = || {
            Qemu::start(
                qemu::command(self.images, self.boot, &runner, &out, &mounts)
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(fs::File::create(out.join(EMULATOR))?),
            )
        };
        let mut started = Instant::now();
        let mut process = boot()?;
        let mut may_reboot = true;
        let mut tail = Tail::of(out.join(guest::REPORT));
        let mut running = None;
        let ended = loop {
            let ended = process.ended()?;
            for event in tail.events()? {
                may_reboot = false;
                running = self.take(event, report)?;
            }
            if ended || started.elapsed() >= self.timeout {
                break ended;
            }
            if may_reboot && started.elapsed() >= BOOTING {
                writeln!(
                    io::stderr(),
                    "lab: the guest does not boot; booting it once more"
                )?;
                drop(process);
                started = Instant::now();
                process = boot()?;
                may_reboot = false;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        drop(process);
        let why = MissingResult {
            ended,
            timeout: self.timeout,
            running,
            out: &out,
        };
        let missing = self.fail_the_rest(&why, report)?;
        writeln!(
            io::stderr(),
            "lab: the machine ended after {:.1}s",
            started.elapsed().as_secs_f32()
        )?;
        if missing {
            fs::remove_dir_all(&runner)?;
            let kept = folder.keep();
            writeln!(io::stderr(), "lab: its logs are in {}", kept.display())?;
        }
        Ok(())
    }

    fn job(&self) -> Result<Vec<u8>, MachineError> {
        let job = guest::Job {
            boot: self.boot,
            node: Node {
                jackfield: self
                    .jackfield
                    .map(|_| Path::new("/mnt/runner").join(JACKFIELD)),
                cni_bin: self.cni_bin.map(|_| Path::new("/mnt").join(CNI_BIN)),
                ..qemu::node()
            },
            cases: self.cases.iter().map(|case| case.name.to_owned()).collect(),
        };
        serde_json::to_vec(&job).map_err(|error| MachineError::Io(io::Error::other(error)))
    }

    /// Handles an event. Returns the running case.
    fn take(&self, event: Event, report: &mut Report) -> Result<Option<String>, MachineError> {
        match event {
            Event::Started { case } => Ok(Some(case)),
            Event::Finished(finished) => {
                let case = self.cases.iter().find(|case| case.name == finished.case);
                let case = case.ok_or_else(|| MachineError::Unknown(finished.case.clone()))?;
                report.add(case, finished)?;
                Ok(None)
            }
        }
    }

    /// Reports a failure for each case without a result. Returns whether there was any.
    fn fail_the_rest(
        &self,
        why: &MissingResult,
        report: &mut Report,
    ) -> Result<bool, MachineError> {
        let mut any = false;
        for case in self.cases {
            if report.has(case.name) {
                continue;
            }
            any = true;
            let verdict = Verdict::Failed {
                reason: why.reason(case.name),
            };
            report.add(
                case,
                CaseResult {
                    case: case.name.to_owned(),
                    verdict,
                    millis: 0,
                    notes: Vec::new(),
                },
            )?;
        }
        Ok(any)
    }
}

/// Why a result is missing.
struct MissingResult<'a> {
    ended: bool,
    timeout: Duration,
    running: Option<String>,
    out: &'a Path,
}

impl MissingResult<'_> {
    fn reason(&self, case: &str) -> String {
        let what = if self.ended {
            "the virtual machine switched off".to_owned()
        } else {
            format!(
                "the virtual machine was killed after {}s",
                self.timeout.as_secs()
            )
        };
        match &self.running {
            Some(running) if running == case => {
                format!("{what} while it ran: {}", self.last_words())
            }
            Some(running) => format!("not run: {what} during {running}"),
            None => format!("not run: {what}: {}", self.last_words()),
        }
    }

    /// Returns the end of the guest's log or console, up to the kernel's panic.
    fn last_words(&self) -> String {
        let last = |name: &str| {
            let text = fs::read(self.out.join(name)).ok()?;
            let text = String::from_utf8_lossy(&text).into_owned();
            let mut lines: Vec<&str> = text.lines().map(str::trim).collect();
            lines.retain(|line| !line.is_empty());
            if let Some(panic) = lines.iter().position(|line| line.contains("Kernel panic")) {
                lines.truncate(panic + 1);
            }
            let words: Vec<&str> = lines.iter().rev().take(3).rev().copied().collect();
            (!words.is_empty()).then(|| words.join("; "))
        };
        last(LOG)
            .or_else(|| last(CONSOLE))
            .or_else(|| last(EMULATOR))
            .unwrap_or_else(|| "its console is empty".to_owned())
    }
}

/// A running QEMU process, killed when dropped.
struct Qemu(Child);

impl Qemu {
    fn start(command: &mut std::process::Command) -> Result<Self, MachineError> {
        command.spawn().map(Self).map_err(MachineError::Start)
    }

    fn ended(&mut self) -> io::Result<bool> {
        Ok(self.0.try_wait()?.is_some())
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        // Both fail only if the process has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Why the virtual machine could not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MachineError {
    #[error("setpriv, which starts QEMU: {0}; install it with apt-get install util-linux")]
    Start(io::Error),
    #[error(
        "the guest reports '{0}', which the host did not ask for; build host and guest from one checkout"
    )]
    Unknown(String),
    #[error("a folder for the virtual machine in {folder}: {0}", folder = std::env::temp_dir().display())]
    Io(#[from] io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn a_missing_result_quotes_the_guests_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let out: PathBuf = folder.path().to_owned();
        let why = |ended, running: Option<&str>| {
            let running = running.map(str::to_owned);
            MissingResult {
                ended,
                timeout: Duration::from_secs(9),
                running,
                out: &out,
            }
            .reason("a/b")
        };
        assert_eq!(
            why(false, None),
            "not run: the virtual machine was killed after 9s: its console is empty"
        );
        fs::write(out.join(CONSOLE), "one\n\nKernel panic\r\nregisters\n").unwrap();
        assert_eq!(
            why(true, Some("a/b")),
            "the virtual machine switched off while it ran: one; Kernel panic"
        );
        assert_eq!(
            why(true, Some("a/a")),
            "not run: the virtual machine switched off during a/a"
        );
    }
}
