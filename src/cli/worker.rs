//! The commands `retry` and `change`, which work on one sandbox. The plugin starts them during a
//! call of the runtime, and does not wait for them.

use std::io;

use super::CommandError;
use super::reconcile;
use crate::cni::{ContainerId, InterfaceName, RawObject};
use crate::journal::{Journal, Key};
use crate::operation::{self, Context, recovery};
use crate::plugin::with_host;
use crate::request::{Call, NodeConfig, Request, RequestError, read_stdin};

/// The sandbox that a worker works on.
#[derive(Debug, clap::Args)]
pub(super) struct WorkerArgs {
    /// The runtime's ID of the sandbox
    container: ContainerId,
    /// The cluster network's interface in the pod
    ifname: InterfaceName,
}

impl WorkerArgs {
    fn key(&self) -> Key {
        Key {
            container: self.container.clone(),
            ifname: self.ifname.clone(),
        }
    }
}

pub(super) fn retry(args: &WorkerArgs) -> Result<(), CommandError> {
    let key = args.key();
    let request = request(&key, read_conf()?)?;
    let (container, ifname) = (&key.container, &key.ifname);
    let place = format!("retry of container {container}, interface {ifname}");
    let warn = |line: &str| request.config.log.warn(&place, line);
    let outcome = with_host(&request.config, |host| {
        let context = Context::new(host, &request, request.config.deadlines.del);
        recovery::retry::retry(&context, &key);
        context.notes().iter().for_each(|it| warn(&it.to_string()));
        Ok(())
    });
    // No process reads the exit code or stderr of this process, so also log the failure.
    Ok(outcome.inspect_err(|failure| warn(&failure.to_string()))?)
}

pub(super) fn change(args: &WorkerArgs) -> Result<(), CommandError> {
    let conf = read_conf()?;
    let config = NodeConfig::parse(&conf).map_err(RequestError::from)?;
    let journal = Journal::new(&config.journal_dir);
    let path = std::env::var("CNI_PATH").unwrap_or_default();
    let WorkerArgs { container, ifname } = args;
    let place = format!("change of container {container}, interface {ifname}");
    let warn = |line: &str| config.log.warn(&place, line);
    let act = operation::change::change;
    let changed = reconcile::run(&journal, &args.key(), &path, conf, act, &warn);
    // No process reads the exit code or stderr of this process, so also log the failure.
    changed.inspect_err(|failure| warn(&failure.to_string()))?;
    Ok(())
}

/// Moves this process into a new session, so that signals to the runtime's process group do not end
/// this process. Then reads the node configuration from stdin.
fn read_conf() -> Result<RawObject, RequestError> {
    // `setsid` fails only for the leader of a process group. The plugin does not start this process
    // as a leader.
    let _ = rustix::process::setsid();
    let stdin = read_stdin(io::stdin().lock())?;
    RawObject::parse_stdin(&stdin).map_err(RequestError::of_stdin)
}

fn request(key: &Key, conf: RawObject) -> Result<Request, RequestError> {
    let call = Call::of(&[
        ("CNI_COMMAND", "DEL"),
        ("CNI_CONTAINERID", key.container.as_str()),
        ("CNI_IFNAME", key.ifname.as_str()),
        ("CNI_PATH", &std::env::var("CNI_PATH").unwrap_or_default()),
    ])?;
    Request::for_people(call, conf)
}
