//! The settings of one world (one run of the simulated machine). All settings follow from the seed
//! of the world.

use std::time::Duration;

/// The settings of one world.
#[derive(Debug, Clone)]
pub(super) struct Conditions {
    pub(super) pods: u32,
    /// The maximum number of pods that exist at a time.
    pub(super) at_once: u32,
    /// The chance, in percent, that the running process continues after a step. A step is one
    /// operation of a process, for example on the disk or on a lock. If the process does not
    /// continue, the scheduler draws the next process at random.
    pub(super) steadiness: u32,
    /// The virtual time that one step takes. With longer steps, calls last longer, and more of them
    /// overlap.
    pub(super) step: Duration,
    /// The chance, in percent, that a GC follows a STATUS.
    pub(super) collections: u32,
    /// The chance, in percent, that a call is killed.
    pub(super) kills: u32,
    /// The chance, per thousand, that an operation on the disk fails.
    pub(super) disk_faults: u32,
    /// Whether the disk refuses all changes for a while.
    pub(super) has_full_disk: bool,
    /// The chance, per thousand, that a delegate fails.
    pub(super) delegate_faults: u32,
    /// The chance, in percent, that the cluster fails, is slow or answers from a stale cache.
    pub(super) cluster_faults: u32,
    pub(super) power_loss: Option<Duration>,
    /// The chance, in percent, that something other than Jackfield changes a pod's network.
    pub(super) disturbances: u32,
    /// Whether the runtime stops repeating a DEL that fails. If it stops, a GC or a retry by
    /// Jackfield must detach the sandbox.
    pub(super) runtime_gives_up: bool,
    pub(super) has_devices: bool,
    /// Whether most networks request the same MAC.
    pub(super) has_one_mac: bool,
    pub(super) clock_jumps: bool,
}

impl Conditions {
    pub(super) fn of(rng: &mut fastrand::Rng) -> Conditions {
        let mut chance = |percent: u32| rng.u32(0..100) < percent;
        let small = chance(50);
        let (kills, faults, plugins, cluster, power, disturbed) = (
            chance(60),
            chance(30),
            chance(50),
            chance(40),
            chance(25),
            chance(40),
        );
        let (full, gives_up, devices, jumps) = (chance(15), chance(25), chance(60), chance(40));
        let one_mac = chance(10);
        let pods = if small {
            rng.u32(1..=6)
        } else {
            rng.u32(6..=40)
        };
        Conditions {
            pods,
            at_once: rng.u32(1..=30),
            steadiness: [0, 50, 80, 95][rng.usize(0..4)],
            step: Duration::from_micros([3, 3, 50, 1000][rng.usize(0..4)]),
            collections: [5, 15, 15, 60][rng.usize(0..4)],
            kills: if kills { rng.u32(1..=40) } else { 0 },
            disk_faults: if faults { rng.u32(1..=30) } else { 0 },
            has_full_disk: full,
            delegate_faults: if plugins { rng.u32(1..=200) } else { 0 },
            cluster_faults: if cluster { rng.u32(1..=40) } else { 0 },
            power_loss: power.then(|| Duration::from_millis(rng.u64(50..20_000))),
            disturbances: if disturbed { rng.u32(1..=40) } else { 0 },
            runtime_gives_up: gives_up,
            has_devices: devices,
            has_one_mac: one_mac,
            clock_jumps: jumps,
        }
    }
}

impl Conditions {
    /// Whether this world has no faults. `clock_jumps` and `runtime_gives_up` do not count as
    /// faults.
    pub(super) fn are_clean(&self) -> bool {
        let chances = [
            self.kills,
            self.disk_faults,
            self.delegate_faults,
            self.cluster_faults,
            self.disturbances,
        ];
        chances.iter().all(|chance| *chance == 0)
            && !self.has_full_disk
            && self.power_loss.is_none()
    }
}
