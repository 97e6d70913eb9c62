//! The network namespaces of pods, and what they contain.

use std::fmt::Write as _;
use std::process::Command;

use crate::Outcome;
use crate::call::run;

/// The namespace that has the other ends of all interfaces.
const PEERS: &str = "peers";

/// Creates namespaces with those names. Each has the interfaces `ready-eth0`, `ready-net1` and so
/// on, which the delegate `rename` renames: one more than `networks`.
///
/// # Errors
/// If `ip` fails.
pub(crate) fn create(names: &[String], networks: usize) -> Outcome<()> {
    let mut text = String::new();
    if !std::path::Path::new("/run/netns").join(PEERS).exists() {
        let _ = writeln!(text, "netns add {PEERS}");
    }
    for name in names {
        let _ = writeln!(text, "netns add {name}");
    }
    ip(None, &text)?;
    text.clear();
    for name in names {
        for interface in std::iter::once("eth0".to_owned()).chain((1..=networks).map(network)) {
            let _ = writeln!(
                text,
                "link add type veth peer name ready-{interface} netns {name}"
            );
        }
    }
    ip(Some(PEERS), &text)?;
    for name in names {
        text.clear();
        for interface in std::iter::once("eth0".to_owned()).chain((1..=networks).map(network)) {
            let _ = writeln!(text, "link set ready-{interface} up");
        }
        ip(Some(name), &text)?;
    }
    Ok(())
}

/// The interface of a further network: `net1` for the first.
fn network(number: usize) -> String {
    format!("net{number}")
}

/// Adds an interface with `count` addresses and `count` routes to a namespace.
///
/// # Errors
/// If `ip` fails.
pub(crate) fn add_routes(namespace: &str, count: usize) -> Outcome<()> {
    let mut text = String::from("link add other0 type veth peer name other1\nlink set other0 up\n");
    for number in 0..count {
        let (high, low) = (number / 250, number % 250 + 1);
        let _ = writeln!(text, "address add 10.20.{high}.{low}/32 dev other0");
        let _ = writeln!(text, "route add 10.30.{high}.{low}/32 dev other0");
    }
    ip(Some(namespace), &text)
}

/// Runs a batch of `ip` in a namespace, or on the node itself.
fn ip(namespace: Option<&str>, batch: &str) -> Outcome<()> {
    let mut command = Command::new("ip");
    if let Some(namespace) = namespace {
        command.args(["-n", namespace]);
    }
    run(command.args(["-batch", "-"]), batch.as_bytes(), &[0])?;
    Ok(())
}
