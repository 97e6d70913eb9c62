//! After the calls of a simulation, checks that nothing is left on the node or in the journal.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::simulated::Simulation;
use crate::journal::record;

/// The names of the files in a folder of the journal.
fn files(sim: &Simulation, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(sim.place.journal().join(folder));
    let names = entries.into_iter().flatten().flatten();
    let names = names.map(|it| it.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Like [`files`], but omits the leftovers of faults, which may remain because they do no harm. A
/// file is a leftover if its sandbox has no usable record and one of these faults has happened:
/// - A power loss changed the file, or the disk failed to remove it. The file is then in
///   `changed_files`.
/// - A power loss removed the record of the container. The container is then in `forgotten`.
fn usable_files(sim: &Simulation, folder: &str) -> Vec<String> {
    let mut names = files(sim, folder);
    let world = sim.world();
    names.retain(|name| {
        let record = name.trim_start_matches('.');
        let container = record.split('@').next().unwrap_or_default();
        let is_changed = world.changed_files.contains(&format!("{folder}/{name}"))
            || world.forgotten.contains(container);
        !is_changed || is_record(&sim.place.journal().join("sandboxes").join(record))
    });
    names
}

/// The markers (the files in `owed/` and `changes/`) that must not remain after the last GC. Omits
/// the markers of a record whose header is incomplete, because only a DEL removes such a record and
/// its markers.
fn stray_markers(sim: &Simulation, folder: &str) -> Vec<String> {
    let records = sim.place.journal().join("sandboxes");
    let mut markers = files(sim, folder);
    markers.retain(|name| {
        let record = records.join(name.trim_start_matches('.'));
        !record.exists() || is_record(&record)
    });
    markers
}

/// Whether a file begins with a complete header.
fn is_record(path: &Path) -> bool {
    let bytes = fs::read(path).unwrap_or_default();
    record::next_line(&mut &bytes[..]).is_some()
}

/// The markers of owed detachments. Omits temporary files, and markers that a power loss has
/// damaged. No retry reads a damaged marker, so only a DEL or a GC detaches the sandbox.
fn owed(sim: &Simulation) -> Vec<String> {
    let mut markers = usable_files(sim, "owed");
    let world = sim.world();
    markers.retain(|name| {
        let bytes = fs::read(sim.place.journal().join("owed").join(name));
        let is_damaged = serde_json::from_slice::<Value>(&bytes.unwrap_or_default()).is_err();
        let is_changed = world.changed_files.contains(&format!("owed/{name}"));
        !(name.starts_with('.') || is_changed && is_damaged)
    });
    markers
}

/// Whether no detachment is owed.
pub(super) fn is_settled(sim: &Simulation) -> bool {
    owed(sim).is_empty()
}

/// After all retries, checks that no detachment is owed. In a simulation without kills, power
/// losses and disk faults, also checks that no sandbox is on record.
pub(super) fn after_retries(sim: &Simulation) {
    let owed = owed(sim);
    if !owed.is_empty() {
        sim.world()
            .breaks(format!("detachments are still owed: {owed:?}"));
    }
    let conditions = &sim.conditions;
    let is_disk_good = conditions.disk_faults == 0 && !conditions.has_full_disk;
    if is_disk_good && conditions.kills == 0 && conditions.power_loss.is_none() {
        let records = usable_files(sim, "sandboxes");
        if !records.is_empty() {
            sim.world()
                .breaks(format!("no retry has detached {records:?}"));
        }
    }
}

/// After the last GC, checks that nothing is left.
pub(super) fn at_the_end(sim: &Simulation) {
    let mut wrong = Vec::new();
    for folder in ["sandboxes", "owed", "changes", "adopted", "unrestored"] {
        let files = match folder {
            "owed" | "changes" => stray_markers(sim, folder),
            _ => usable_files(sim, folder),
        };
        if !files.is_empty() {
            wrong.push(format!("{folder}/ still has {files:?}"));
        }
    }
    let mut world = sim.world();
    let world = &mut *world;
    for (network, container, ifname) in world.leases.keys() {
        // If the record is lost (`forgotten`), a DEL need only detach the cluster network. Leases
        // on the pod's other networks may remain. If the record is damaged, a DEL also asks the
        // cluster which networks the pod selects now, and detaches them. The DEL may miss networks
        // if the cluster has faults, or if the pod's annotation has changed since the ADD.
        let is_unclear = sim.conditions.cluster_faults > 0 || world.reselected.contains(container);
        let is_lost =
            world.forgotten.contains(container) || world.damaged.contains(container) && is_unclear;
        let is_lost = is_lost && network != "cluster";
        if !is_lost && !world.given_up.contains(container) {
            wrong.push(format!(
                "{container} {ifname} still has a lease on {network}"
            ));
        }
    }
    for function in &world.functions {
        if let Some(difference) = function.difference() {
            wrong.push(format!("{}: {difference}", function.address));
        }
    }
    for (name, netns) in &world.netns {
        for link in &netns.links {
            wrong.push(format!("{name} still has the link {}", link.link.name));
        }
    }
    if !world.orphans.is_empty() || !world.processes.is_empty() {
        let running = world.orphans.len() + world.processes.len();
        // The last GC has ended, so it is not one of these processes.
        wrong.push(format!("{running} processes still run"));
    }
    world.wrong.extend(wrong);
}
