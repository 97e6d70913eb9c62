//! The simulated node: its network namespaces, IPAM leases, virtual functions and processes, and
//! the pods that kubelet and the API server know.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::time::Duration;

use super::place::Place;
use super::scheduler::TaskId;
use super::virtual_function::VirtualFunction;
use crate::kernel::{Address, DefaultRoute, Link};

/// The first inode number of a network namespace.
const FIRST_NETNS: u64 = 4_026_532_000;

/// A lease of the simulated IPAM plugin: network, container, interface.
pub(super) type LeaseKey = (String, String, String);

#[derive(Default)]
pub(super) struct World {
    pub(super) netns: BTreeMap<String, Netns>,
    /// Each lease with its number. The simulated plugins derive the IP address and the default MAC
    /// of the link from this number.
    pub(super) leases: BTreeMap<LeaseKey, u32>,
    pub(super) functions: Vec<VirtualFunction>,
    pub(super) pods: BTreeMap<String, SimulatedPod>,
    /// The sandboxes that the runtime knows, by container ID.
    pub(super) sandboxes: BTreeMap<String, SandboxView>,
    /// The running processes of Jackfield, with their tasks.
    pub(super) processes: BTreeMap<i32, TaskId>,
    pub(super) orphans: BTreeMap<i32, Orphan>,
    /// The containers for which a delegate runs. The value is the ID of the process that started
    /// the delegate or, if that process was killed, the ID of the orphan.
    pub(super) delegates: BTreeMap<String, i32>,
    /// For each container, the time at which the last successful DEL took the container's lock.
    pub(super) deleted: BTreeMap<String, Duration>,
    /// The containers whose record a power loss has removed.
    pub(super) forgotten: BTreeSet<String>,
    /// The containers whose record a power loss has damaged.
    pub(super) damaged: BTreeSet<String>,
    /// The containers whose pod's annotation has changed since the ADD.
    pub(super) reselected: BTreeSet<String>,
    /// The files of the journal (`folder/name`) that a power loss has changed, or whose removal
    /// failed.
    pub(super) changed_files: BTreeSet<String>,
    /// The containers with an attachment that Jackfield no longer tries to detach.
    pub(super) given_up: BTreeSet<String>,
    pub(super) boot: u32,
    /// The seconds by which the administrator has changed the time of day.
    pub(super) clock_change: i64,
    /// Whether a GC has received its list of valid attachments, but has not read the journal yet.
    pub(super) is_listing: bool,
    /// Whether the disk refuses all changes now.
    pub(super) disk_refuses: bool,
    /// Whether the simulation has stopped injecting faults. The simulation may still kill a process
    /// that started earlier.
    pub(super) is_calm: bool,
    pub(super) lives: usize,
    pub(super) next_number: u32,
    pub(super) figures: Figures,
    /// The rules that were broken.
    pub(super) wrong: Vec<String>,
}

/// A network namespace.
#[derive(Default)]
pub(super) struct Netns {
    pub(super) inode: u64,
    pub(super) container: String,
    pub(super) links: Vec<PodLink>,
    pub(super) routes: Vec<DefaultRoute>,
}

/// A link that a plugin created in a pod.
#[derive(Clone)]
pub(super) struct PodLink {
    pub(super) link: Link,
    pub(super) addresses: Vec<Address>,
    /// The bridge on the node.
    pub(super) bridge: String,
    /// The default route that the plugin created.
    pub(super) route: Option<DefaultRoute>,
}

impl Netns {
    /// Removes the links for which `keeps` returns false. Like the kernel, also removes the routes
    /// through these links.
    pub(super) fn retain_links(&mut self, keeps: impl Fn(&PodLink) -> bool) {
        self.links.retain(keeps);
        let links = &self.links;
        let exists = |name: &str| links.iter().any(|it| it.link.name == name);
        self.routes.retain(|route| route.interfaces().all(exists));
    }
}

/// A pod as kubelet and the API server know it.
#[derive(Clone, Default)]
pub(super) struct SimulatedPod {
    pub(super) networks: String,
    /// The previous annotation. A stale cache still has it.
    pub(super) stale: String,
    pub(super) wants_device: bool,
}

/// A sandbox as the runtime knows it.
#[derive(Clone, Default)]
pub(super) struct SandboxView {
    pub(super) uid: String,
    pub(super) netns: String,
    /// The time at which the ADD succeeded. A DEL and a power loss reset this time to `None`. So
    /// does a change of the pod's network by something other than Jackfield.
    pub(super) attached_since: Option<Duration>,
    pub(super) is_adding: bool,
    /// Whether the runtime called DEL during the ADD.
    pub(super) is_raced: bool,
    /// Whether something other than Jackfield has changed the pod's network.
    pub(super) is_disturbed: bool,
}

/// A delegate that still runs, although its Jackfield process was killed.
pub(super) struct Orphan {
    /// The inode number of the container's lock file; 0 if the delegate did not inherit the lock.
    pub(super) lock: u64,
    /// The open lock file, which keeps the inherited lock.
    pub(super) _file: Option<File>,
}

/// What has happened in a simulation.
#[derive(Default, Clone, Copy)]
pub(super) struct Figures {
    pub(super) pods: u64,
    pub(super) worlds: u64,
    pub(super) calls: u64,
    pub(super) kills: u64,
    pub(super) orphans: u64,
    pub(super) power_losses: u64,
    pub(super) disk_faults: u64,
    pub(super) delegate_faults: u64,
    pub(super) steps: u64,
}

impl Figures {
    pub(super) fn add(&mut self, other: &Figures) {
        let pairs = [
            (&mut self.pods, other.pods),
            (&mut self.worlds, other.worlds),
            (&mut self.calls, other.calls),
            (&mut self.kills, other.kills),
            (&mut self.orphans, other.orphans),
            (&mut self.power_losses, other.power_losses),
            (&mut self.disk_faults, other.disk_faults),
            (&mut self.delegate_faults, other.delegate_faults),
            (&mut self.steps, other.steps),
        ];
        for (sum, more) in pairs {
            *sum += more;
        }
    }
}

impl World {
    pub(super) fn new(place: &Place) -> World {
        World {
            functions: VirtualFunction::all(place),
            next_number: 1,
            ..World::default()
        }
    }

    pub(super) fn number(&mut self) -> u32 {
        self.next_number += 1;
        self.next_number
    }

    /// Records that a rule was broken.
    pub(super) fn breaks(&mut self, rule: String) {
        self.wrong.push(rule);
    }

    /// Creates a network namespace. Like the kernel, reuses the lowest free inode number.
    pub(super) fn create_netns(&mut self, place: &Place, container: &str) -> String {
        let name = format!("cni-{container}");
        let is_free = |inode: &u64| self.netns.values().all(|netns| netns.inode != *inode);
        let inode = (FIRST_NETNS..).find(is_free).unwrap();
        std::fs::write(place.netns(&name), "").unwrap();
        let netns = Netns {
            inode,
            container: container.to_owned(),
            ..Netns::default()
        };
        self.netns.insert(name.clone(), netns);
        name
    }

    /// Removes a network namespace with its links. Like the kernel, moves the interfaces of virtual
    /// functions back to the host.
    pub(super) fn remove_netns(&mut self, place: &Place, name: &str) {
        if self.netns.remove(name).is_none() {
            return;
        }
        let _ = std::fs::remove_file(place.netns(name));
        for index in 0..self.functions.len() {
            if self.functions[index].place.as_deref() == Some(name) {
                let wanted = self.functions[index].link.name.clone();
                let _ = self.send_home(index, &wanted) || self.send_home(index, "dev%d");
            }
        }
    }

    /// Moves the interface of a virtual function to the host and gives it the name `wanted`.
    /// Returns false if another interface has that name. If `wanted` is `dev%d`, chooses a free
    /// name.
    pub(super) fn send_home(&mut self, index: usize, wanted: &str) -> bool {
        let is_taken = |name: &str| self.host_links().iter().any(|link| link.name == name);
        let name = match wanted {
            "dev%d" => {
                let mut names = (0..).map(|number| format!("dev{number}"));
                names.find(|name| !is_taken(name)).unwrap()
            }
            _ if is_taken(wanted) => return false,
            _ => wanted.to_owned(),
        };
        self.functions[index].come_home(&name);
        true
    }

    /// Returns the links of the host's network namespace.
    pub(super) fn host_links(&self) -> Vec<Link> {
        let home = self.functions.iter().filter(|it| it.place.is_none());
        let own = home.map(|it| it.link.clone());
        std::iter::once(super::virtual_function::physical_link())
            .chain(own)
            .collect()
    }

    /// Returns the links of a network namespace, including `lo`.
    pub(super) fn links(&self, netns: &str) -> Vec<Link> {
        let lo = Link {
            index: 1,
            name: "lo".to_owned(),
            mtu: 65536,
            up: true,
            carrier: true,
            arp_type: 772,
            ..Link::default()
        };
        let soft = self.netns.get(netns).into_iter().flat_map(|it| &it.links);
        let hard = self.functions.iter();
        let hard = hard.filter(|it| it.place.as_deref() == Some(netns));
        std::iter::once(lo)
            .chain(soft.map(|it| it.link.clone()))
            .chain(hard.map(|it| it.link.clone()))
            .collect()
    }

    /// Simulates a power loss for everything but the disk.
    pub(super) fn lose_power(&mut self, place: &Place) {
        let names: Vec<String> = self.netns.keys().cloned().collect();
        for name in names {
            self.remove_netns(place, &name);
        }
        for function in &mut self.functions {
            function.reset();
        }
        self.orphans.clear();
        self.delegates.clear();
        self.boot += 1;
        self.figures.power_losses += 1;
    }
}
