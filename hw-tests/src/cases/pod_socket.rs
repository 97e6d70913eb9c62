//! vhost-user and memif in a pod: sockets of a real program in network-status.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::case::{Case, Outcome, Stop, holds, same};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{Cluster, Testpmd};

pub(super) const CASES: &[Case] = &[Case {
    name: "pod/sockets_of_a_program_are_reported_and_must_exist",
    needs: &[Feature::Pods, Feature::Dpdk],
    run: sockets_of_a_program_are_reported_and_must_exist,
}];

/// A network whose plugin writes device information for a socket.
fn network(kind: &str, section: &Value) -> Value {
    let info = json!({ "type": kind, "version": "1.1.0", kind: section });
    json!({ "type": "hwt-socket", "deviceInfo": info, "capabilities": { "CNIDeviceInfoFile": true } })
}

fn is_reported(cluster: &Cluster, name: &'static str, kind: &str, section: &Value) -> Outcome {
    cluster.network(kind, None, &[network(kind, section)])?;
    let pod = cluster.pod(name, &json!([{ "name": kind }]), &json!({}))?;
    pod.add()?;
    let status = pod.status("net1")?;
    same("type", &status["device-info"]["type"], kind)?;
    same("reported device", &status["device-info"][kind], section)?;
    holds("it has no interface", pod.link("net1").is_err())?;
    pod.check()?;
    pod.del().map(drop)
}

fn sockets_of_a_program_are_reported_and_must_exist(node: &Node) -> Outcome {
    let program = Testpmd::start()?;
    let (vhost, memif) = (program.vhost_user(), program.memif());
    let cluster = Cluster::new(node)?;
    let vhost_user = |mode: &str, path: &Path| json!({ "mode": mode, "path": path });
    let memif_of =
        |role: &str, path: &Path| json!({ "role": role, "path": path, "mode": "ethernet" });
    is_reported(
        &cluster,
        "hwt-vm1",
        "vhost-user",
        &vhost_user("client", &vhost),
    )?;
    is_reported(&cluster, "hwt-pod1", "memif", &memif_of("slave", &memif))?;
    // In the other mode the pod's program creates the socket later.
    let later = cluster.path("plugins").with_file_name("later.sock");
    is_reported(
        &cluster,
        "hwt-vm2",
        "vhost-user",
        &vhost_user("server", &later),
    )?;
    is_reported(&cluster, "hwt-pod2", "memif", &memif_of("master", &later))?;

    drop(program);
    let gone = |name: &'static str, kind: &str, section: &Value, path: &Path| -> Result<(), Stop> {
        // The folder takes the leftovers of a killed program with it.
        let _ = fs::remove_file(path);
        cluster.network(kind, None, &[network(kind, section)])?;
        let pod = cluster.pod(name, &json!([{ "name": kind }]), &json!({}))?;
        pod.is_refused("ADD", 105, &["(net1)", &path.display().to_string()])?;
        pod.del().map(drop)
    };
    gone(
        "hwt-vm3",
        "vhost-user",
        &vhost_user("client", &vhost),
        &vhost,
    )?;
    gone("hwt-pod3", "memif", &memif_of("slave", &memif), &memif)?;
    cluster.nothing_is_left()
}
