//! The main job: a pod with further networks and devices comes, and goes without a trace.

use crate::lab::{DevicePlugin, Lab, Pod, of_resource};

#[test]
fn a_pod_with_two_networks_and_two_devices_runs_and_nothing_is_left_after_its_last_del() {
    let lab = Lab::with_jackfield();
    let plugin = DevicePlugin::start(&lab, &["port-1", "port-2", "port-3"]);
    lab.definition("left", "10.2.0.0/24", &of_resource());
    lab.definition("right", "10.3.0.0/24", &of_resource());
    lab.run(&Pod::new(&lab, "web").networks("left,right").devices(2));

    let status = lab.status("web", 3);
    let told = |entry: usize, key: &str| status[entry][key].as_str().unwrap_or_default().to_owned();
    assert_eq!(
        [
            told(0, "interface"),
            told(1, "interface"),
            told(2, "interface")
        ],
        ["eth0", "net1", "net2"]
    );
    let of = |name: &str| format!("{}/{name}", lab.namespace);
    assert_eq!(
        [told(1, "name"), told(2, "name")],
        [of("left"), of("right")]
    );
    assert_eq!(status[0]["default"], true);
    for (entry, prefix) in [(0, "10.244.0."), (1, "10.2.0."), (2, "10.3.0.")] {
        let address = status[entry]["ips"][0].as_str().unwrap();
        assert!(address.starts_with(prefix), "{status:?}");
    }
    let pod = lab.pod("web").unwrap();
    assert_eq!(pod["status"]["podIP"], status[0]["ips"][0]);

    // Numeric order over what kubelet allocated, whatever order kubelet tells it in.
    let mut devices = plugin.allocated().concat();
    devices.sort();
    let journal = lab.journal("web");
    let first = journal.find(&format!(r#""id":"{}""#, devices[0]));
    let second = journal.find(&format!(r#""id":"{}""#, devices[1]));
    assert!(first.unwrap() < second.unwrap(), "{devices:?} {journal}");

    lab.delete(&["web"]);
    lab.assert_nothing_left(&["web"], 3);
}
