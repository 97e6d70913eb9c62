//! Checks the record of a sandbox just before a process releases the container's lock. This version
//! of Jackfield and the previous version must be able to read the record. The pod's default routes
//! must match the record. If there is no record, nothing may be left of the sandbox.

use std::collections::BTreeSet;
use std::fs;
use std::sync::OnceLock;

use serde_json::Value;

use super::simulated::Simulation;
use super::world::World;
use crate::boot::boot_id;
use crate::golden;
use crate::journal::{Sandbox, record};
use crate::kernel::DefaultRoute;

/// The keys that this version of Jackfield writes, and that the previous version skips as unknown.
const NEW: [&str; 4] = [
    ".attachments[].selection",
    ".networks",
    ".change.removed[]",
    ".change.first_added",
];
/// Keys whose content Jackfield does not define.
const FOREIGN: [&str; 5] = [
    "config",
    "capability_args",
    "cni_args",
    "extra_args",
    "inject",
];

/// Checks the sandbox of `container`. The simulated process still holds the container's lock.
pub(super) fn check(sim: &Simulation, container: &str) {
    let path = sim.place.journal().join("sandboxes");
    let read = fs::read(path.join(format!("{container}@eth0")));
    let Ok(bytes) = read else {
        let mut world = sim.world();
        let left = left_of(&world, container);
        world.wrong.extend(left);
        return;
    };
    let conditions = &sim.conditions;
    let is_disk_good = conditions.disk_faults == 0 && !conditions.has_full_disk;
    let is_whole = is_disk_good && conditions.kills == 0 && conditions.power_loss.is_none();
    let wrong = match Sandbox::replay(&bytes) {
        Ok(sandbox) if sandbox.is_torn && is_whole => Some("the record is torn".to_owned()),
        Ok(sandbox) => unknown_key(&bytes).or_else(|| wrong_routes(sim, container, &sandbox)),
        Err(_) if conditions.power_loss.is_some() => None,
        Err(cause) => Some(cause.to_string()),
    };
    if let Some(wrong) = wrong {
        let mut world = sim.world();
        world.breaks(format!(
            "{container}: the record or the default routes are wrong: {wrong}"
        ));
    }
}

/// Reports what is left of a sandbox without a record. Returns `None` if nothing is left, or if
/// Jackfield cannot be expected to detach the whole sandbox, for example after a power loss.
fn left_of(world: &World, container: &str) -> Option<String> {
    let is_lost = world.forgotten.contains(container) || world.damaged.contains(container);
    let view = world.sandboxes.get(container)?;
    if is_lost || view.is_disturbed || world.given_up.contains(container) {
        return None;
    }
    let netns = world.netns.get(&view.netns)?;
    let links = netns.links.iter().map(|it| it.link.name.clone());
    let routes = netns.routes.iter().map(ToString::to_string);
    let leases = world.leases.keys().filter(|key| key.1 == container);
    let leases = leases.map(|(network, ..)| format!("lease on {network}"));
    let left: Vec<String> = links.chain(routes).chain(leases).collect();
    (!left.is_empty()).then(|| format!("{container} has no record, but has {left:?}"))
}

/// Reports a key in `bytes` that is neither in the previous version's golden record
/// (`tests/golden/previous/sandbox`) nor in [`NEW`].
fn unknown_key(bytes: &[u8]) -> Option<String> {
    static KNOWN: OnceLock<BTreeSet<String>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| {
        let mut known = keys(&golden::previous("sandbox"));
        known.extend(NEW.map(str::to_owned));
        known
    });
    let mut keys = keys(bytes).into_iter();
    let unknown = keys.find(|key| !known.contains(key))?;
    Some(format!("the previous release does not know {unknown}"))
}

/// The paths of the values in all lines of a record.
fn keys(mut bytes: &[u8]) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    while let Some(line) = record::next_line(&mut bytes) {
        let line: Value = serde_json::from_slice(line).unwrap();
        collect(&line, String::new(), &mut keys);
    }
    keys
}

fn collect(value: &Value, path: String, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                let path = format!("{path}.{key}");
                match FOREIGN.contains(&key.as_str()) {
                    true => drop(keys.insert(path)),
                    false => collect(value, path, keys),
                }
            }
        }
        Value::Array(array) => {
            for value in array {
                collect(value, format!("{path}[]"), keys);
            }
        }
        Value::String(step) if path.is_empty() => drop(keys.insert(step.clone())),
        _ => drop(keys.insert(path)),
    }
}

/// Compares the default routes of a running pod with the expected routes. An attachment that
/// requests a gateway must have one route, through the attachment's interface to that gateway. No
/// simulated attachment requests several gateways. If no attachment requests a gateway, the pod
/// must have the routes that the plugins created.
fn wrong_routes(sim: &Simulation, container: &str, sandbox: &Sandbox) -> Option<String> {
    let header = &sandbox.header;
    let owed = sim.place.journal().join("owed");
    let is_settled = sandbox.complete
        && !sandbox.is_torn
        && header.boot == boot_id()
        && header.change.is_none()
        && sandbox.progress.iter().all(|it| !it.detached)
        && !owed.join(format!("{container}@eth0")).exists();
    let world = sim.world();
    let view = world.sandboxes.get(container)?;
    let netns = world.netns.get(&view.netns)?;
    // Check only attached sandboxes and sandboxes whose ADD runs without a concurrent DEL. In any
    // other sandbox, a killed DEL may have changed the routes.
    let is_kept = view.attached_since.is_some() || view.is_adding && !view.is_raced;
    // Check only sandboxes whose interfaces exist. If Jackfield cannot remove a record, the record
    // remains although its sandbox is detached.
    let links = world.links(&view.netns);
    let pairs = || header.attachments.iter().zip(&sandbox.progress);
    let mut owed = pairs().filter(|(_, progress)| progress.may_be_attached());
    let is_attached = owed.all(|(it, _)| links.iter().any(|link| link.name == it.ifname.as_str()));
    if !is_settled || !is_kept || view.is_disturbed || !is_attached {
        return None;
    }
    let made = netns.links.iter().filter_map(|it| it.route.as_ref());
    let mut wanted = BTreeSet::new();
    for (attachment, _) in pairs().filter(|(_, progress)| progress.may_be_attached()) {
        if let Some(gateways) = &attachment.default_route {
            let ifname = attachment.ifname.to_string();
            wanted.insert((ifname, gateways.first().copied()));
        }
    }
    let way = |route: &DefaultRoute| {
        let hop = &route.next_hops[0];
        (hop.interface.clone().unwrap_or_default(), hop.gateway)
    };
    if wanted.is_empty() {
        wanted.extend(made.map(way));
    }
    let found: BTreeSet<_> = netns.routes.iter().map(way).collect();
    (wanted != found).then(|| format!("the default routes are {found:?} instead of {wanted:?}"))
}
