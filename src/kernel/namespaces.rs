//! Network namespaces of the node: those of containers, and the devices whose interfaces are in any.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{KernelError, Netlink, NetnsError, NetnsId, PodLinks, PodNetns};

/// The namespace of this process.
const OURS: &str = "/proc/self/ns/net";
/// Where programs keep namespaces by name: `ip netns`, container runtimes, Docker.
const BY_NAME: [&str; 3] = ["/run/netns", "/run/docker/netns", "/run/cni/netns"];

/// Where containerd and CRI-O keep the network namespaces of pods.
const OF_RUNTIMES: &str = "/run/netns";
/// How containerd's names begin; the rest is a UUID, as are CRI-O's whole names.
const OF_CONTAINERD: &str = "cni-";

/// A network namespace that a container runtime made for a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerNetns {
    /// Its name below `/run/netns`.
    pub name: String,
    /// Which one it is.
    pub id: NetnsId,
    /// When it was made, in seconds since the epoch.
    pub made: i64,
    /// The interfaces in it that are up, without `lo`.
    pub interfaces: Vec<String>,
}

/// The network namespaces of pods, by their names. One that cannot be looked into is left out.
pub fn container_namespaces() -> Vec<ContainerNetns> {
    let entries = fs::read_dir(OF_RUNTIMES).into_iter().flatten().flatten();
    let mut found: Vec<ContainerNetns> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            is_of_a_runtime(&name).then(|| container_netns(name, &entry.path()))?
        })
        .collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

fn container_netns(name: String, path: &Path) -> Option<ContainerNetns> {
    let netns = PodNetns::open(path).ok()?;
    let made = fs::metadata(path).ok()?.mtime();
    let links = Netlink::in_netns(&netns).ok()?.links().ok()?.into_iter();
    let interfaces = links.filter(|link| link.up && link.name != "lo");
    Some(ContainerNetns {
        name,
        id: netns.id(),
        made,
        interfaces: interfaces.map(|link| link.name).collect(),
    })
}

fn is_of_a_runtime(name: &str) -> bool {
    let id = name.strip_prefix(OF_CONTAINERD).unwrap_or(name);
    let lengths: Vec<usize> = id.split('-').map(str::len).collect();
    let is_hexadecimal = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    lengths == [8, 4, 4, 4, 12] && id.bytes().all(is_hexadecimal)
}

/// A device that has an interface in some network namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlacedDevice {
    /// Its name on its bus.
    pub device: String,
    /// The interface.
    pub interface: String,
    /// A path that leads to the namespace.
    pub netns: PathBuf,
}

/// All devices that have an interface in some network namespace: of each process, and of each name.
///
/// It costs some system calls for every process of the node: for who looks at a node or for a
/// device that is missing, not for every pod that waits.
///
/// # Errors
/// When a namespace cannot be looked into, since a device may be in there: without privileges, for
/// one.
pub fn placed_devices() -> Result<Vec<PlacedDevice>, KernelError> {
    let mut known = Vec::new();
    let mut placed = Vec::new();
    let mut look = |links: &mut Netlink, path: &Path| -> Result<(), KernelError> {
        for link in links.links()? {
            placed.extend(link.parent_name.map(|device| PlacedDevice {
                device,
                interface: link.name,
                netns: path.to_owned(),
            }));
        }
        Ok(())
    };
    look(&mut Netlink::here()?, Path::new(OURS))?;
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
        look(&mut Netlink::in_netns(&netns)?, &path)?;
    }
    Ok(placed)
}

/// The names of all devices that have an interface in some network namespace.
///
/// # Errors
/// As [`placed_devices`].
pub fn devices_in_all_namespaces() -> Result<BTreeSet<String>, KernelError> {
    let placed = placed_devices()?.into_iter();
    Ok(placed.map(|it| it.device).collect())
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
    let own = fs::read_link(OURS);
    let theirs = fs::read_link(path);
    matches!((own, theirs), (Ok(own), Ok(theirs)) if own == theirs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_container_runtimes_are_told_from_others() {
        for name in [
            "cni-6f9619ff-8b86-d011-b42d-00cf4fc964ff",
            "6f9619ff-8b86-d011-b42d-00cf4fc964ff",
        ] {
            assert!(is_of_a_runtime(name), "{name}");
        }
        for name in [
            "cni-1",
            "qrouter-6f9619ff-8b86-d011-b42d-00cf4fc964ff",
            "blue",
            "",
        ] {
            assert!(!is_of_a_runtime(name), "{name}");
        }
    }
}
