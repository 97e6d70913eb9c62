//! Makes the nodes of an axis: one for each point, with a pod that is ready to be measured.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use device_info::{Capture, fixtures};
use serde_json::{Value, json};

use crate::Outcome;
use crate::axis::Axis;
use crate::call::Verb;
use crate::namespaces;
use crate::node::Node;

/// The resource of the VFs.
const RESOURCE: &str = "intel.com/sriov";
/// The directory of the first VF, which [`fixtures::unverified_e810`] has below this bridge.
const VF: &str = "devices/pci0000:a0/0000:a0:02.0/0000:a2:01.0";
const VF_ADDRESS: &str = "0000:a2:01.0";
/// How far away the retry of an owed detachment is: beyond the end of the run, and not beyond the
/// longest wait, which Jackfield would take for a clock that was set back.
const RETRY: Duration = Duration::from_secs(590);

/// The nodes of `axis`, each with its number. Their files are below `root`.
///
/// # Errors
/// If a file or a namespace cannot be made, or if a pod of the nodes cannot be attached.
pub(crate) fn nodes(root: &Path, axis: Axis) -> Outcome<Vec<(usize, Node)>> {
    let counts = axis.points().iter().copied();
    let nodes = counts.map(|count| {
        let name = format!("{}-{count}", axis.name());
        Ok((count, Node::new(root, &name)?))
    });
    let mut nodes = nodes.collect::<Outcome<Vec<_>>>()?;
    for (count, node) in &mut nodes {
        let networks = match axis {
            Axis::Networks => *count,
            _ => 1,
        };
        namespaces::create(&[node.name().to_owned()], networks)?;
        let networks = (1..=networks).map(|number| format!("n{number}")).collect();
        cluster(node, networks)?;
        match axis {
            Axis::Pods => others(root, node, *count - 1)?,
            Axis::Owed => {
                others(root, node, 1_000)?;
                owe(node, *count)?;
            }
            Axis::VirtualFunctions => virtual_functions(node, u32::try_from(*count)?)?,
            Axis::Routes => namespaces::add_routes(node.name(), *count)?,
            Axis::Networks | Axis::Definitions => {}
        }
    }
    Ok(nodes)
}

/// The node `definitions-COUNT`, whose agent runs already.
///
/// # Errors
/// If a file or the namespace cannot be made.
pub(crate) fn node_of_agent(root: &Path, count: usize) -> Outcome<Node> {
    let mut node = Node::new(root, &format!("{}-{count}", Axis::Definitions.name()))?;
    node.ask_agent()?;
    namespaces::create(&[node.name().to_owned()], 1)?;
    Ok(node)
}

/// Writes the manifests of the measured pod and of the networks that it selects.
fn cluster(node: &Node, networks: Vec<String>) -> Outcome<()> {
    let annotations = json!({ "k8s.v1.cni.cncf.io/networks": networks.join(",") });
    node.write("cluster/pod.json", &pod(node.name(), &annotations))?;
    let definitions = networks
        .iter()
        .map(|name| definition(name, "rename", &json!({})));
    let list = json!({ "kind": "List", "items": definitions.collect::<Vec<_>>() });
    node.write("cluster/definitions.json", &list)
}

fn pod(name: &str, annotations: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "bench", "annotations": annotations },
    })
}

fn definition(name: &str, plugin: &str, annotations: &Value) -> Value {
    let config = json!({ "cniVersion": "1.1.0", "name": name, "type": plugin,
                         "capabilities": { "deviceID": true } });
    json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": { "name": name, "namespace": "bench", "annotations": annotations },
        "spec": { "config": config.to_string() },
    })
}

/// Gives the node `count` other pods. The first call attaches 1,000 pods with real ADDs. The journal
/// of each node gets copies of their records, because a record does not name its journal.
fn others(root: &Path, node: &mut Node, count: usize) -> Outcome<()> {
    let names: Vec<String> = (0..1_000).map(|number| format!("other-{number}")).collect();
    let records = root.join("others/journal/sandboxes");
    if !records.exists() {
        namespaces::create(&names, 0)?;
        let mut attaching = Node::new(root, "others")?;
        for name in &names {
            attaching.write("cluster/pod.json", &pod(name, &json!({})))?;
            attaching.call_for(Verb::Add, name)?;
        }
    }
    let own = node.path("journal/sandboxes");
    fs::create_dir_all(&own)?;
    for name in names.into_iter().take(count) {
        let record = format!("{name}@eth0");
        fs::copy(records.join(&record), own.join(&record))?;
        node.others.push(name);
    }
    Ok(())
}

/// Marks the detachment of the first `count` other pods as failed.
fn owe(node: &Node, count: usize) -> Outcome<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    fs::create_dir_all(node.path("journal/owed"))?;
    for name in node.others.iter().take(count) {
        let owed = json!({
            "container": name, "ifname": "eth0", "attempts": 9,
            "due": (now + RETRY).as_secs(), "since": now.as_secs(),
            "cause": "bench/n1 (net1): plugin rename failed on DEL",
        });
        node.write(&format!("journal/owed/{name}@eth0"), &owed)?;
    }
    Ok(())
}

/// Gives the node a NIC with `count` VFs, and the measured pod its first VF. The NIC is a tree of
/// files like sysfs: the kernel has no such device. So the VF is one that a program of the pod
/// drives, which no interface shows.
fn virtual_functions(node: &mut Node, count: u32) -> Outcome<()> {
    let mut machine = fixtures::unverified_e810(count);
    machine.remove(&format!("{VF}/net"));
    machine.remove("class/net/ens801f0v0");
    let driver = "../../../../bus/pci/drivers/vfio-pci";
    let with_vfio = json!({
        "format": 1,
        "sysfs": {
            format!("{VF}/driver"): { "link": driver },
            format!("{VF}/driver_override"): { "text": "vfio-pci" },
            format!("{VF}/vfio-dev/vfio0"): "directory",
            "bus/pci/drivers/vfio-pci": "directory",
            "kernel/iommu_groups/300/name": { "text": "DMA" },
        },
        "dev": { "vfio/300": "245:0" },
    });
    let machine = machine.with(Capture::from_json(&with_vfio.to_string())?);
    machine.build(&node.path("hardware"))?;
    node.configure("sysfsRoot", json!(node.path("hardware/sys")))?;
    let annotations = json!({
        "k8s.v1.cni.cncf.io/networks": "n1",
        "jackfield.io/devices": json!({ RESOURCE: [VF_ADDRESS] }).to_string(),
    });
    node.write("cluster/pod.json", &pod(node.name(), &annotations))?;
    let resource = json!({ "k8s.v1.cni.cncf.io/resourceName": RESOURCE });
    node.write(
        "cluster/definitions.json",
        &definition("n1", "user-space", &resource),
    )
}
