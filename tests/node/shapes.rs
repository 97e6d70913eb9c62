//! Pods of other shapes: from a file on the node, with several containers, with a claim for a device
//! of a DRA driver.

use std::fs;

use serde_json::json;

use crate::lab::{DevicePlugin, Lab, NETWORKS, Pod, container, eventually, limits, of_resource};

#[test]
fn a_static_pod_gets_its_networks_and_goes_with_its_file() {
    let lab = Lab::with_jackfield();
    lab.definition("storage", "10.2.0.0/24", &json!({}));
    let mut pod = Pod::new(&lab, "static").networks("storage");
    let manifest = pod.manifest();
    manifest["metadata"]["namespace"] = json!(lab.namespace);
    let spec = manifest["spec"].as_object_mut().unwrap();
    spec.remove("nodeName");
    let file = "disk/var/lib/kubelet/static/static.json";
    lab.machine.write(file, &manifest.to_string());
    // Its mirror in the API has the node's name behind its own.
    let mirror = format!("static-{}", lab.machine.name);
    eventually("the pod's mirror is there", || lab.pod(&mirror).is_some());
    lab.wait_until_running(&mirror);
    assert_eq!(lab.status(&mirror, 2)[1]["interface"], "net1");
    fs::remove_file(lab.machine.path(file)).unwrap();
    eventually("the mirror is gone", || lab.pod(&mirror).is_none());
    lab.assert_nothing_left(&[&mirror], 3);
}

#[test]
fn devices_of_a_sidecar_come_before_those_of_the_containers_and_those_of_init_containers_are_reused()
 {
    let lab = Lab::with_jackfield();
    let plugin = DevicePlugin::start(&lab, &["port-1", "port-2", "port-3"]);
    lab.definition("left", "10.2.0.0/24", &of_resource());
    lab.definition("right", "10.3.0.0/24", &of_resource());
    let mut pod = Pod::new(&lab, "web").networks("left,right").devices(1);
    let mut init = container("init");
    init["args"] = json!(["end"]);
    init["resources"] = limits(1);
    let mut sidecar = container("sidecar");
    sidecar["restartPolicy"] = json!("Always");
    sidecar["resources"] = limits(1);
    pod.manifest()["spec"]["initContainers"] = json!([init, sidecar]);
    lab.run(&pod);
    let status = lab.status("web", 3);
    assert_eq!(status[2]["interface"], "net2", "{status:?}");
    let mut devices = plugin.allocated().concat();
    devices.sort();
    devices.dedup();
    let journal = lab.journal("web");
    for device in &devices {
        assert!(journal.contains(device.as_str()), "{device}: {journal}");
    }
    lab.delete(&["web"]);
    lab.assert_nothing_left(&["web"], 3);
}

#[test]
fn a_pod_without_networks_is_no_business_of_the_agents() {
    let lab = Lab::with_jackfield();
    lab.run(&Pod::new(&lab, "plain"));
    let pod = lab.pod("plain").unwrap();
    assert!(pod["metadata"]["annotations"][NETWORKS].is_null());
    assert_eq!(lab.status("plain", 1)[0]["interface"], "eth0");
    lab.delete(&["plain"]);
    lab.assert_nothing_left(&["plain"], 3);
}

#[test]
fn a_pod_with_a_claim_gets_the_device_that_its_driver_prepared() {
    let lab = Lab::with_jackfield();
    let attributes = json!({
        "k8s.cni.cncf.io/resourceName": {"string": "example.com/claimed"},
        "k8s.cni.cncf.io/deviceID": {"string": "claimed-1"}});
    let class = lab.start_dra_driver(&attributes);
    let annotation = json!({"k8s.v1.cni.cncf.io/resourceName": "example.com/claimed"});
    lab.definition("vf", "10.2.0.0/24", &annotation);
    let claims = format!(
        "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
        lab.namespace
    );
    let request = json!({"name": "nic", "exactly": {"deviceClassName": class}});
    lab.admin.create(
        &claims,
        &json!({"metadata": {"name": "nic"}, "spec": {"devices": {"requests": [request]}}}),
    );
    let mut pod = Pod::new(&lab, "web").networks("vf");
    let spec = pod.manifest()["spec"].as_object_mut().unwrap();
    // The scheduler gives the claim its device, on the only node that has one.
    spec.remove("nodeName");
    spec.insert(
        "resourceClaims".into(),
        json!([{"name": "nic", "resourceClaimName": "nic"}]),
    );
    spec["containers"][0]["resources"] = json!({"claims": [{"name": "nic"}]});
    lab.run(&pod);
    assert_eq!(lab.status("web", 2)[1]["interface"], "net1");
    let journal = lab.journal("web");
    assert!(journal.contains(r#""id":"claimed-1""#), "{journal}");
    let devices = || {
        let claim = lab.admin.get(&format!("{claims}/nic")).unwrap();
        claim["status"]["devices"].clone()
    };
    eventually("the claim shows the network", || devices()[0].is_object());
    let shown = devices();
    let data = &shown[0]["networkData"];
    assert_eq!(shown[0]["device"], "vf1");
    assert_eq!(data["interfaceName"], "net1", "{data}");
    let address = data["ips"][0].as_str().unwrap();
    assert!(address.starts_with("10.2.0.") && address.ends_with("/24"));
    assert_eq!(data["hardwareAddress"], lab.status("web", 2)[1]["mac"]);
    // The entry follows a change of the networks of the running pod.
    for (networks, is_shown) in [("", false), ("vf", true)] {
        let annotations = json!({"metadata": {"annotations": {NETWORKS: networks}}});
        let path = format!("{}/web", lab.pods());
        lab.admin.merge(&path, &annotations);
        eventually("the claim shows the change", || {
            devices()[0].is_object() == is_shown
        });
    }
    // Another pod keeps the claim allocated, so that only the agent removes the entry.
    let mut second = Pod::new(&lab, "second");
    let spec = second.manifest()["spec"].as_object_mut().unwrap();
    spec.insert(
        "resourceClaims".into(),
        json!([{"name": "nic", "resourceClaimName": "nic"}]),
    );
    spec["containers"][0]["resources"] = json!({"claims": [{"name": "nic"}]});
    spec.remove("nodeName");
    lab.run(&second);
    lab.delete(&["web"]);
    eventually("the claim shows the network no more", || {
        devices().is_null()
    });
    let claim = lab.admin.get(&format!("{claims}/nic")).unwrap();
    assert!(claim["status"]["allocation"].is_object(), "{claim}");
    lab.delete(&["second"]);
    lab.assert_nothing_left(&["web", "second"], 3);
}
