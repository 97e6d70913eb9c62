//! Every network namespace that can be found, and the devices whose interfaces are in them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{KernelError, Netlink, NetnsError, PodLinks, PodNetns};

/// Where programs keep namespaces by name: `ip netns`, container runtimes, Docker.
const BY_NAME: [&str; 3] = ["/run/netns", "/run/docker/netns", "/run/cni/netns"];

/// The names of all devices that have an interface in some network namespace: of each process, and
/// of each name.
///
/// It costs some system calls for every process of the node: for who looks at a node, not for a
/// pod that waits.
///
/// # Errors
/// When a namespace cannot be looked into, since a device may be in there: without privileges, for
/// one.
pub fn devices_in_all_namespaces() -> Result<BTreeSet<String>, KernelError> {
    let mut known = Vec::new();
    let mut devices = BTreeSet::new();
    let mut look = |links: &mut Netlink| -> Result<(), KernelError> {
        let links = links.links()?.into_iter();
        devices.extend(links.filter_map(|link| link.parent_name));
        Ok(())
    };
    look(&mut Netlink::here()?)?;
    for path in paths() {
        let netns = match PodNetns::open(&path) {
            Ok(netns) => netns,
            // A process that ended, a file that was left when its namespace was unmounted.
            Err(NetnsError::Missing { .. } | NetnsError::NotNetns { .. }) => continue,
            Err(NetnsError::Unreadable { source, .. }) if is_of_ended_process(&source) => continue,
            Err(error) => return Err(error.into()),
        };
        if netns.is_ours()? || known.contains(&netns.id()) {
            continue;
        }
        known.push(netns.id());
        look(&mut Netlink::in_netns(&netns)?)?;
    }
    Ok(devices)
}

/// `ESRCH`: its `/proc` directory outlives a process for a moment.
fn is_of_ended_process(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(nix::libc::ESRCH)
}

fn paths() -> Vec<PathBuf> {
    let names = |dir: &str| {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let is_process = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let processes = names("/proc").into_iter().filter(is_process);
    let of_processes = processes.map(|process| process.join("ns/net"));
    let by_name = BY_NAME.into_iter().flat_map(names);
    by_name
        .chain(of_processes)
        .filter(|path| !is_our_own(path))
        .collect()
}

/// Most processes of a node are in our own namespace: those are passed over without opening it.
fn is_our_own(path: &Path) -> bool {
    let own = fs::read_link("/proc/self/ns/net");
    let theirs = fs::read_link(path);
    matches!((own, theirs), (Ok(own), Ok(theirs)) if own == theirs)
}
