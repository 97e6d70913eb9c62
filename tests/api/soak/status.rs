//! network-status, compared with what it is about.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::pod::Pod;

/// An entry of network-status that is about another pod than the one with this number. The small plugin
/// puts the number into the addresses, and so does a request.
pub(super) fn foreign(status: &Value, number: u32) -> Option<&Value> {
    let mut entries = status.as_array().unwrap().iter();
    entries.find(|entry| !is_bridged(entry) && !is_of(entry, number))
}

fn is_bridged(entry: &Value) -> bool {
    entry["name"]
        .as_str()
        .is_some_and(|it| it.ends_with("/bridged"))
}

fn is_of(entry: &Value, number: u32) -> bool {
    let [_, high, middle, low] = number.to_be_bytes();
    let own = [
        format!("10.{high}.{middle}.{low}"),
        format!("100.{}.{middle}.{low}", 64 + u32::from(high)),
    ];
    let addresses = entry["ips"].as_array();
    addresses.is_some_and(|it| it.iter().all(|it| own.iter().any(|own| it == own.as_str())))
}

/// The attachments of a pod as its network-status has them: network by interface.
pub(super) type Attachments = BTreeMap<String, String>;

/// Compares a pod's network-status with its network namespace and with its annotation. Returns its
/// attachments, or the first difference.
pub(super) fn compare(pod: &Pod<'_>, status: Option<&Value>) -> Result<Attachments, String> {
    let status = status.ok_or("no network-status")?;
    if let Some(entry) = foreign(status, pod.number) {
        return Err(format!("an entry of another pod: {entry}"));
    }
    let links = links(&pod.container.id());
    let mut attachments = Attachments::new();
    for entry in status.as_array().unwrap() {
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let (interface, network) = (text("interface"), text("name"));
        let link = links
            .get(&interface)
            .ok_or_else(|| format!("interface {interface} is missing"))?;
        let addresses = link["addr_info"].as_array().unwrap();
        let has_address = |wanted: &Value| addresses.iter().any(|it| it["local"] == *wanted);
        if link["address"] != entry["mac"]
            || !entry["ips"].as_array().unwrap().iter().all(has_address)
        {
            return Err(format!("{entry} is not what the kernel shows: {link}"));
        }
        attachments.insert(interface, network);
    }
    if attachments.len() != links.len() {
        return Err(format!(
            "network-status has {attachments:?}, the kernel {:?}",
            links.keys()
        ));
    }
    agrees(pod, status, &attachments)?;
    Ok(attachments)
}

/// Whether the pod has exactly what it selects.
fn agrees(pod: &Pod<'_>, status: &Value, attachments: &Attachments) -> Result<(), String> {
    let of = |name: &str| format!("{}/{name}", pod.node.lab.namespace);
    let mut selected: Vec<String> = pod.networks.iter().map(|it| of(it.definition)).collect();
    let further = attachments.iter().filter(|(name, _)| *name != "eth0");
    let mut attached: Vec<String> = further.map(|(_, network)| network.clone()).collect();
    selected.sort();
    attached.sort();
    if selected != attached {
        return Err(format!(
            "the pod selects {selected:?}, but has {attached:?}"
        ));
    }
    for selection in &pod.networks {
        let is_here = status.as_array().unwrap().iter().any(|entry| {
            let is_named = selection.interface.as_ref();
            let is_named = is_named.is_none_or(|it| entry["interface"] == it.as_str());
            let request = selection.request.as_ref();
            let is_as_asked = request.is_none_or(|(_, mac)| entry["mac"] == mac.as_str());
            entry["name"] == of(selection.definition) && is_named && is_as_asked
        });
        if !is_here {
            return Err(format!("{selection:?} is not in {status}"));
        }
    }
    Ok(())
}

/// The links of a network namespace by name, but `lo` and what the small plugin gave back.
pub(super) fn links(netns: &str) -> BTreeMap<String, Value> {
    let child = Command::new("ip")
        .args(["-n", netns, "-json", "address"])
        .stdout(Stdio::piped())
        // That something has changed meanwhile.
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let shown = child.wait_with_output().unwrap().stdout;
    let shown: Vec<Value> = serde_json::from_slice(&shown).unwrap_or_default();
    let links = shown.into_iter().map(|link| {
        let name = link["ifname"].as_str().unwrap_or_default().to_owned();
        (name, link)
    });
    links
        .filter(|(name, _)| name != "lo" && !name.starts_with("was-"))
        .collect()
}

/// The leases of the reference plugin host-local: container and interface, a line each.
pub(super) fn leases(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let leases = entries.filter(|it| it.file_name().to_string_lossy().starts_with("10."));
    let mut leases: Vec<String> = leases
        .map(|it| fs::read_to_string(it.path()).unwrap().replace("\r\n", " "))
        .collect();
    leases.sort();
    leases
}
