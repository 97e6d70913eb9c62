//! The command line: for people, and for scripts with `-o json`.

mod agent;
mod call;
mod devices;
mod doctor;
mod error;
mod explain;
mod install;
mod manual;
mod node;
mod pod;
mod reconcile;
mod table;
mod worker;

use std::fmt;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::cni::{ContainerId, InterfaceName, ValidAttachment};
use crate::console;
use crate::diagnostic::{self, Problem};
use crate::npwg::ObjectRef;
use crate::setup::NAME;
use error::{ArgumentError, CommandError};

/// Jackfield is a CNI plugin that attaches pods to several networks.
///
/// A container runtime calls jackfield with CNI_COMMAND in the environment. The commands below are
/// for people. The commands attach, detach and check make the calls ADD, DEL and CHECK for one pod.
/// The commands gc and status make the calls GC and STATUS for the node.
#[derive(Debug, Parser)]
#[command(name = "jackfield", version, about, after_help = AFTER)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The exit code of wrong usage.
const USAGE: u8 = 2;

const AFTER: &str = "Examples:\n  \
    jackfield explain --conf 00-jackfield.conflist --pod demo/web\n  \
    jackfield attach  --conf 00-jackfield.conflist --pod demo/web --netns /run/netns/web\n  \
    jackfield check   --conf 00-jackfield.conflist --pod demo/web --netns /run/netns/web -o json\n  \
    jackfield detach  --conf 00-jackfield.conflist --pod demo/web --netns /run/netns/web\n\n\
    Exit status: 0 success, 1 failure or findings, 2 wrong usage.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Attach a pod to its networks (ADD) and show the result
    Attach(SandboxArgs),
    /// Detach a pod from all its networks (DEL)
    Detach(SandboxArgs),
    /// Check that every attachment of a pod is unchanged (CHECK)
    Check(SandboxArgs),
    /// Detach every recorded sandbox except those in --keep, and let the plugins of every network clean up (GC)
    Gc {
        #[command(flatten)]
        node: NodeArgs,
        /// A sandbox to keep; gc detaches all other recorded sandboxes
        #[arg(long, value_name = "CONTAINER_ID:IFNAME", num_args = 1.., value_parser = node::kept_attachment)]
        keep: Vec<ValidAttachment>,
    },
    /// Report whether jackfield could attach a pod now (STATUS)
    Status(NodeArgs),
    /// Show what an ADD would do, and every problem that would make it fail; run no plugin
    Explain(PodArgs),
    /// Give running pods the networks that their annotations now select
    Reconcile(reconcile::ReconcileArgs),
    /// Run the node's agent: answer plugins, and write status and events to the cluster
    Agent(agent::AgentArgs),
    /// Install jackfield's binary and configuration on this node, so that the runtime calls jackfield
    Install(install::InstallArgs),
    /// Remove jackfield from this node, and restore the files that install replaced
    Uninstall(install::UninstallArgs),
    /// Check this node, and print each finding with a remedy; change nothing
    Doctor(doctor::DoctorArgs),
    /// Show this node's network hardware (PFs, VFs, representors, vDPA, RDMA) and the pods that use it
    Devices(devices::DevicesArgs),
    /// Print a redacted description of this node's network hardware, for a report or a test fixture
    Capture,
    /// Retry one failed detachment, with the node configuration on stdin
    #[command(hide = true, name = crate::plugin::worker::RETRY)]
    Retry(worker::WorkerArgs),
    /// Change the networks of one running pod, with the node configuration on stdin
    #[command(hide = true, name = crate::plugin::worker::CHANGE)]
    Change(worker::WorkerArgs),
    /// Print completions for a shell
    Completions {
        /// Shell
        shell: Shell,
    },
    /// Print the manual page
    Man,
}

/// A pod, and the configuration for attaching it.
#[derive(Debug, Args)]
struct PodArgs {
    #[command(flatten)]
    node: NodeArgs,
    /// The pod
    #[arg(long, value_name = "NS/NAME", value_parser = pod)]
    pod: ObjectRef,
    /// The cluster network's interface in the pod
    #[arg(long, value_name = "NAME", default_value = "eth0")]
    ifname: InterfaceName,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// A pod, and the network namespace of its sandbox.
#[derive(Debug, Args)]
struct SandboxArgs {
    #[command(flatten)]
    pod: PodArgs,
    /// The pod's network namespace: /run/netns/NAME or /proc/PID/ns/net
    #[arg(long, value_name = "PATH")]
    netns: PathBuf,
    /// The runtime's ID of the sandbox [default: NS-NAME]
    #[arg(long, value_name = "ID")]
    container_id: Option<ContainerId>,
}

#[derive(Debug, Args)]
struct NodeArgs {
    /// The node configuration: the CNI configuration of type jackfield that the runtime reads
    #[arg(long, value_name = "FILE")]
    conf: PathBuf,
    /// Directories to search for CNI plugins, separated by colons; the configuration's binDir is searched first
    #[arg(long, value_name = "DIRS", default_value = "/opt/cni/bin")]
    cni_path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people
    Table,
    /// For programs
    Json,
}

/// Parses the `NS/NAME` of a pod.
fn pod(text: &str) -> Result<ObjectRef, ArgumentError> {
    let (namespace, name) = text.split_once('/').ok_or(ArgumentError::PodSyntax)?;
    Ok(ObjectRef::new(namespace, name)?)
}

/// Runs the command line.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let text = error.render().to_string();
            if error.use_stderr() {
                text.lines().for_each(console::say);
                return ExitCode::from(USAGE);
            }
            let _ = print(text.lines());
            return ExitCode::SUCCESS;
        }
    };
    let outcome = match &cli.command {
        Command::Attach(args) => pod::attach(args),
        Command::Detach(args) => pod::detach(args),
        Command::Check(args) => pod::check(args),
        Command::Gc { node, keep } => node::gc(node, keep),
        Command::Status(args) => node::status(args),
        Command::Explain(args) => explain::explain(args),
        Command::Reconcile(args) => reconcile::reconcile(args),
        Command::Agent(args) => agent::agent(args),
        Command::Devices(args) => devices::devices(args),
        Command::Doctor(args) => doctor::doctor(args),
        Command::Capture => devices::capture(),
        Command::Install(args) => install::install(args),
        Command::Uninstall(args) => install::uninstall(args),
        Command::Retry(args) => worker::retry(args),
        Command::Change(args) => worker::change(args),
        Command::Completions { shell } => manual::completions(*shell, &mut Cli::command()),
        Command::Man => manual::man(Cli::command()),
    };
    let error = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(CommandError::Findings) => return ExitCode::FAILURE,
        Err(error) => error,
    };
    note(&error.to_string());
    match error {
        CommandError::NoNodeName | CommandError::NodeName(_) => ExitCode::from(USAGE),
        _ => ExitCode::FAILURE,
    }
}

/// Returns `Ok` if a command found no fault (`is_fine`). Otherwise returns
/// [`CommandError::Findings`]. `main` does not print this error, because the command has already
/// printed its findings.
fn no_findings(is_fine: bool) -> Result<(), CommandError> {
    is_fine.then_some(()).ok_or(CommandError::Findings)
}

/// Prints lines for people.
fn print<L: AsRef<str>>(lines: impl IntoIterator<Item = L>) -> Result<(), CommandError> {
    printed(console::print(lines))
}

/// Prints a JSON document for programs.
fn print_json(document: &impl fmt::Display) -> Result<(), CommandError> {
    printed(console::print_json(&document.to_string()))
}

/// Prints a document without escaping. The caller must escape text that is not Jackfield's own.
fn print_document(document: &str) -> Result<(), CommandError> {
    printed(console::write(document))
}

/// Ignores a broken pipe, because the reader of the pipe needs no more output.
fn printed(outcome: io::Result<()>) -> Result<(), CommandError> {
    match outcome {
        Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => Err(CommandError::Stdout(cause)),
        _ => Ok(()),
    }
}

/// Writes a progress line to stderr, but only if stderr is a terminal.
#[allow(
    clippy::disallowed_methods,
    reason = "it only checks whether stderr is a terminal"
)]
fn progress(line: &str) {
    if io::stderr().is_terminal() {
        console::say(line);
    }
}

/// Writes a line to stderr.
fn note(line: &str) {
    console::say(&format!("{NAME}: {line}"));
}

/// Writes a problem to stderr.
fn report(problem: &dyn Problem) {
    note(&diagnostic::line(problem));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        let mut command = Cli::command();
        let help = command.render_long_help().to_string();
        assert!(help.starts_with("Jackfield is a CNI plugin that"), "{help}");
    }
}
