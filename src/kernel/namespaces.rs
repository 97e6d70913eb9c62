//! Finds the network namespaces of pods, and the devices that have an interface in any network
//! namespace of the node.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::libc::ESRCH;

use super::{KernelError, Netlink, NetnsError, NetnsId, PodLinks, PodNetns};

/// The network namespace of this process.
const OURS: &str = "/proc/self/ns/net";
/// The directories in which `ip netns`, Docker and some container runtimes keep named namespaces.
const NAMED_NETNS_DIRS: [&str; 3] = ["/run/netns", "/run/docker/netns", "/run/cni/netns"];

/// The directory where containerd and CRI-O keep the network namespaces of pods.
const RUNTIME_NETNS_DIR: &str = "/run/netns";
/// containerd names a namespace with this prefix and a UUID. CRI-O uses only a UUID.
const CONTAINERD_PREFIX: &str = "cni-";

/// A network namespace that a container runtime created for a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerNetns {
    /// The name of the namespace's file in `/run/netns`.
    pub name: String,
    /// The namespace's identity.
    pub id: NetnsId,
    /// The time at which the runtime created the namespace, in seconds since the epoch.
    pub made: i64,
    /// The names of the interfaces that are up, except for `lo`.
    pub interfaces: Vec<String>,
}

/// Returns the network namespaces of pods, sorted by name. Skips unreadable namespaces.
pub fn container_namespaces() -> Vec<ContainerNetns> {
    let found = entries(RUNTIME_NETNS_DIR).into_iter();
    let found = found.filter_map(|path| container_netns(&path));
    let mut found: Vec<ContainerNetns> = found.collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

fn container_netns(path: &Path) -> Option<ContainerNetns> {
    let name = path.file_name()?.to_str()?;
    if !is_runtime_name(name) {
        return None;
    }
    let netns = PodNetns::open(path).ok()?;
    let made = fs::metadata(path).ok()?.mtime();
    let links = Netlink::in_netns(&netns).ok()?.links().ok()?.into_iter();
    let interfaces = links.filter(|link| link.up && link.name != "lo");
    Some(ContainerNetns {
        name: name.to_owned(),
        id: netns.id(),
        made,
        interfaces: interfaces.map(|link| link.name).collect(),
    })
}

fn is_runtime_name(name: &str) -> bool {
    let id = name.strip_prefix(CONTAINERD_PREFIX).unwrap_or(name);
    let lengths: Vec<usize> = id.split('-').map(str::len).collect();
    let is_hexadecimal = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    lengths == [8, 4, 4, 4, 12] && id.bytes().all(is_hexadecimal)
}

/// A device that has an interface in a network namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlacedDevice {
    /// The device's name on its bus.
    pub device: String,
    /// The interface's name.
    pub interface: String,
    /// A path to the namespace.
    pub netns: PathBuf,
}

/// Returns all devices that have an interface in any network namespace. Searches the namespaces of
/// all processes, and the named namespaces.
///
/// This function makes several system calls for each process on the node. Use it to inspect a node
/// or to find a missing device, but not in every ADD or DEL.
///
/// # Errors
/// [`KernelError`] if a namespace cannot be read, for example because the process lacks privileges.
/// The function does not skip such a namespace, because the namespace may contain devices.
pub fn placed_devices() -> Result<Vec<PlacedDevice>, KernelError> {
    #[cfg(test)]
    if crate::machine::current().is_some() {
        return Ok(Vec::new());
    }
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
            // The process ended, or the file is left over from an unmounted namespace.
            Err(NetnsError::Missing(_) | NetnsError::NotNetns(..)) => continue,
            // The process ended, but its `/proc` directory still exists for a moment.
            Err(NetnsError::Unreadable(_, cause)) if cause.raw_os_error() == Some(ESRCH) => {
                continue;
            }
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

/// Returns the names of all devices that have an interface in any network namespace.
///
/// # Errors
/// The errors of [`placed_devices`].
pub fn devices_in_all_namespaces() -> Result<BTreeSet<String>, KernelError> {
    let placed = placed_devices()?.into_iter();
    Ok(placed.map(|placed| placed.device).collect())
}

/// Returns the paths of the entries of a directory; none if the directory cannot be read.
fn entries(dir: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn paths() -> Vec<PathBuf> {
    let is_process = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let processes = entries("/proc").into_iter().filter(is_process);
    let process_netns = processes.map(|process| process.join("ns/net"));
    let by_name = NAMED_NETNS_DIRS.into_iter().flat_map(entries);
    let all = by_name.chain(process_netns);
    all.filter(|path| !is_our_own(path)).collect()
}

/// Returns whether the path is a link to this process's namespace. Compares the texts of the links,
/// because opening the namespace of every process would take longer.
fn is_our_own(path: &Path) -> bool {
    let own = fs::read_link(OURS);
    let theirs = fs::read_link(path);
    matches!((own, theirs), (Ok(own), Ok(theirs)) if own == theirs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_namespace_of_a_container_runtime_is_recognized() {
        for name in [
            "cni-6f9619ff-8b86-d011-b42d-00cf4fc964ff",
            "6f9619ff-8b86-d011-b42d-00cf4fc964ff",
        ] {
            assert!(is_runtime_name(name), "{name}");
        }
        for name in [
            "cni-1",
            "qrouter-6f9619ff-8b86-d011-b42d-00cf4fc964ff",
            "blue",
            "",
        ] {
            assert!(!is_runtime_name(name), "{name}");
        }
    }
}
