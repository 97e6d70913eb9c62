//! The command line.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use device_info::PciAddress;

use crate::case::Case;
use crate::feature::{Feature, Requirement};
use crate::lab::Mount;
use crate::node::Node;
use crate::report::Report;
use crate::{bare_metal, cases, guest, lab};

/// Checks Jackfield's hardware layer against real kernel devices.
///
/// Without --bare-metal the suite runs in a virtual machine; the first run prepares it, which
/// needs root on Debian 12 and about a minute.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    select: Select,
    #[command(flatten)]
    bare_metal: BareMetal,
    /// The binary under test, which must be static for the virtual machine [default on bare metal:
    /// /opt/cni/bin/jackfield]
    #[arg(long, value_name = "FILE")]
    jackfield: Option<PathBuf>,
    /// The folder with the CNI reference plugins [default on bare metal: /opt/cni/bin]
    #[arg(long, value_name = "DIR")]
    cni_bin: Option<PathBuf>,
    /// Print what would run and what it would touch, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// List the cases and what each of them needs
    #[arg(long)]
    list: bool,
    /// Write the results to FILE as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Mount one more folder in the virtual machine, read-only, at /mnt/TAG
    #[arg(long, value_name = "TAG=DIR", conflicts_with = "bare_metal")]
    mount: Vec<Mount>,
    /// Kill a virtual machine that has not ended after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
    /// Ask the mirror for the latest kernel of Debian's backports
    #[arg(long, conflicts_with = "bare_metal")]
    refresh: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs the job that the host wrote to DIR; the guest's init starts this
    #[command(hide = true)]
    Guest { dir: PathBuf },
}

#[derive(Debug, Args)]
struct Select {
    /// Only cases whose name contains one of these texts
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    only: Vec<String>,
    /// Fail instead of skip if one of these features is missing
    #[arg(long, value_name = "FEATURE", value_delimiter = ',')]
    require: Vec<Requirement>,
}

impl Select {
    fn cases(&self) -> Vec<Case> {
        cases::all()
            .into_iter()
            .filter(|case| {
                self.only.is_empty() || self.only.iter().any(|part| case.name.contains(part))
            })
            .collect()
    }

    fn required(&self) -> Vec<Feature> {
        self.require
            .iter()
            .flat_map(|requirement| requirement.features().iter().copied())
            .collect()
    }
}

#[derive(Debug, Args)]
struct BareMetal {
    /// Run on this machine's own hardware
    #[arg(long)]
    bare_metal: bool,
    /// A physical function that the suite may use; it creates and removes VFs on it
    #[arg(long, value_name = "BDF", requires = "bare_metal")]
    pf: Vec<PciAddress>,
    /// A virtio network function that the suite may take from its driver
    #[arg(long, value_name = "BDF", requires = "bare_metal")]
    virtio: Vec<PciAddress>,
}

/// Runs the command line. Exits with 0 if all cases passed, 1 if some failed, 2 if the suite could
/// not run.
pub(crate) fn run() -> ExitCode {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) => {
            let wrong_usage = error.use_stderr();
            return match error.print() {
                Ok(()) if !wrong_usage => ExitCode::SUCCESS,
                _ => ExitCode::from(2),
            };
        }
    };
    match options.perform() {
        Ok(code) => code,
        Err(error) => {
            // If stderr is closed, there is no other place for the error.
            let _ = writeln!(io::stderr(), "hw-tests: {error}");
            ExitCode::from(2)
        }
    }
}

impl Options {
    fn perform(self) -> Result<ExitCode, Box<dyn std::error::Error>> {
        if let Some(Command::Guest { dir }) = self.command {
            guest::run(&dir)?;
            return Ok(ExitCode::SUCCESS);
        }
        let cases = self.select.cases();
        if cases.is_empty() {
            return Err(format!(
                "no case matches --only {}; list the cases with --list",
                self.select.only.join(",")
            )
            .into());
        }
        if self.list {
            list(&cases)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut report = Report::new(self.select.required());
        let ran = if self.bare_metal.bare_metal {
            let installed = Path::new("/opt/cni/bin");
            let jackfield = self.jackfield;
            let node = Node {
                pfs: self.bare_metal.pf,
                virtio: self.bare_metal.virtio,
                jackfield: jackfield.or_else(|| Some(installed.join("jackfield"))),
                cni_bin: self.cni_bin.or_else(|| Some(installed.to_owned())),
                ..Node::default()
            };
            bare_metal::run(&node, &cases, self.dry_run, &mut report)?
        } else {
            lab::Job {
                cases: &cases,
                jackfield: self.jackfield.as_deref(),
                cni_bin: self.cni_bin.as_deref(),
                mounts: &self.mount,
                timeout: Duration::from_secs(self.timeout),
                refresh: self.refresh,
                dry_run: self.dry_run,
            }
            .run(&mut report)?
        };
        if !ran {
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(file) = &self.junit {
            report.write_junit(file)?;
        }
        let green = report.close()?;
        Ok(if green {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

fn list(cases: &[Case]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for case in cases {
        let needs: Vec<String> = case.needs.iter().map(Feature::to_string).collect();
        writeln!(out, "{}  [{}]", case.name, needs.join(", "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_valid() {
        Options::command().debug_assert();
    }

    #[test]
    fn a_pf_is_accepted_only_with_bare_metal() {
        assert!(Options::try_parse_from(["hw-tests", "--pf", "0000:01:00.0"]).is_err());
        let options = Options::try_parse_from([
            "hw-tests",
            "--bare-metal",
            "--pf",
            "0000:01:00.0",
            "--pf",
            "0000:02:00.0",
        ])
        .unwrap();
        assert_eq!(options.bare_metal.pf.len(), 2);
    }

    #[test]
    fn only_matches_parts_of_names() {
        let options =
            Options::try_parse_from(["hw-tests", "--only", "vduse/,no-such-case"]).unwrap();
        let cases = options.select.cases();
        assert!(!cases.is_empty());
        assert!(cases.iter().all(|case| case.name.starts_with("vduse/")));
    }
}
