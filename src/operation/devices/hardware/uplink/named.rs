//! Lists the host interfaces that the plugins of an attachment could move into the pod.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::cni::json::{Key, each_key, same_key};
use crate::operation::devices::problem::{DeviceProblem, NamedInterface};
use crate::plan::{Attachment, Reason};

/// Keys that name a host interface for `host-device`, `sriov` and similar plugins.
const KEYS: [&str; 5] = ["device", "hwaddr", "pciBusID", "kernelpath", "deviceID"];
/// The maximum number of interfaces that one network may name. Each interface costs sysfs reads and
/// a request to the kernel.
const MOST: usize = 256;

/// Returns the host interfaces that the plugins of an attachment could move into the pod, without
/// duplicates. Searches all levels of the configuration, of the pod's `cni-args`, of the capability
/// arguments, and of the keys that Jackfield injects into the configuration.
///
/// # Errors
/// If the attachment names more than [`MOST`] interfaces.
pub(super) fn named(attachment: &Attachment) -> Result<Vec<NamedInterface>, Reason> {
    let mut found = Found::default();
    found.read(attachment.config.raw());
    if let Some(args) = &attachment.cni_args {
        found.read(&args.to_string());
    }
    let given = attachment.capability_args.iter();
    let inject = attachment.inject.iter().map(|(key, raw)| (&**key, &**raw));
    let device = attachment.device.as_ref();
    // Skip the PCI device that kubelet allocated, because `Hardware::can_be_given` checks it.
    let function = device.filter(|device| device.pci().is_some());
    for (key, raw) in given.chain(inject) {
        let text = format!("{{{}:{}}}", serde_json::json!(key), raw.get());
        each_key(&text, |key| {
            let value = by_key(key).filter(|value| function.is_none_or(|it| it.id != *value));
            found.take(key.name, value);
        });
    }
    if found.is_too_many {
        return Err(DeviceProblem::TooManyInterfaces(MOST).into());
    }
    Ok(found.named)
}

fn by_key(key: &Key<'_, '_>) -> Option<String> {
    let is_wanted = KEYS.iter().any(|meant| same_key(key.name, meant));
    let value = is_wanted.then(|| key.text()).flatten();
    value.filter(|value| !value.is_empty())
}

#[derive(Default)]
struct Found {
    named: Vec<NamedInterface>,
    values: HashSet<String>,
    is_too_many: bool,
}

impl Found {
    fn take(&mut self, key: &str, value: Option<String>) {
        let Some(value) = value.filter(|value| !self.values.contains(value)) else {
            return;
        };
        if self.named.len() == MOST {
            self.is_too_many = true;
            return;
        }
        self.values.insert(value.clone());
        let key = key.to_owned();
        self.named.push(NamedInterface { key, value });
    }

    fn read(&mut self, text: &str) {
        let mut otherwise = Otherwise::default();
        each_key(text, |key| {
            self.take(key.name, by_key(key));
            otherwise.read(key);
        });
        for (key, value) in otherwise.taken() {
            self.take(key, Some(value));
        }
    }
}

/// Finds the host interfaces that a plugin takes although no key in [`KEYS`] names them:
///
/// - The plugin `bond` moves the interfaces in `links` into the pod. With `linksInContainer`, these
///   interfaces are in the pod already.
/// - The plugin `macvlan` in mode `passthru` takes over its `master`. With `linkInContainer`, the
///   master is in the pod already. If the configuration names no master, the plugin uses the
///   interface of the default route. [`Otherwise::taken`] then returns an empty string instead of
///   the master's name.
#[derive(Default)]
struct Otherwise {
    /// The names in `links`, each with the number of the JSON object that contains the list.
    links: BTreeSet<(usize, String)>,
    links_in_container: HashSet<usize>,
    passthru: BTreeSet<usize>,
    masters: HashMap<usize, String>,
    link_in_container: HashSet<usize>,
}

impl Otherwise {
    fn read(&mut self, key: &Key<'_, '_>) {
        let is = |meant: &str| same_key(key.name, meant);
        if is("name") {
            let name = || key.text().filter(|name| !name.is_empty());
            let link = key.above_list("links").and_then(|of| Some((of, name()?)));
            self.links.extend(link);
        } else if is("linksInContainer") && key.is_true() {
            self.links_in_container.insert(key.object);
        } else if is("linkInContainer") && key.is_true() {
            self.link_in_container.insert(key.object);
        } else if is("mode") && key.text().as_deref() == Some("passthru") {
            self.passthru.insert(key.object);
        } else if is("master") {
            let master = key.text().map(|master| (key.object, master));
            self.masters.extend(master);
        }
    }

    fn taken(mut self) -> impl Iterator<Item = (&'static str, String)> {
        let links = self.links.into_iter();
        let links = links.filter(move |(of, _)| !self.links_in_container.contains(of));
        let passthru = self.passthru.into_iter();
        let passthru = passthru.filter(move |of| !self.link_in_container.contains(of));
        let masters = passthru.map(move |of| self.masters.remove(&of).unwrap_or_default());
        let links = links.map(|(_, name)| ("links.name", name));
        links.chain(masters.map(|master| ("master", master)))
    }
}
