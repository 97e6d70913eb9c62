//! Which network is meant, and where its configuration is found.

use serde_json::{Value, json};

use crate::lab::{Lab, POD};

// clause: NPWG-1.3 §3.4.2 a configuration without a name gets the definition's
// clause: NPWG-1.3 §3.4.3 not required: its own name stays
// clause: NPWG-1.3 §4.2.1 created: the name of the network
// clause: NPWG-1.3 §4.2.1 tuple: the name is the same for DEL
#[test]
fn a_network_is_called_by_its_configuration_else_by_its_definition() {
    let lab = Lab::new();
    for (definition, own, subnet) in [
        ("unnamed", None, "10.30.0.0/24"),
        ("named", Some("own-name"), "10.31.0.0/24"),
    ] {
        lab.recorder(definition, "ptp", "");
        let mut config = lab.ptp(subnet);
        config["type"] = json!(definition);
        if let Some(own) = own {
            config["name"] = json!(own);
        }
        lab.definition(&format!("demo/{definition}"), &config);
    }
    lab.selects("unnamed,named");
    lab.add();
    assert_eq!(lab.recorded("unnamed", "ADD")[0]["name"], "unnamed");
    assert_eq!(lab.recorded("named", "ADD")[0]["name"], "own-name");
    lab.del();
    assert_eq!(lab.recorded("named", "DEL")[0]["name"], "own-name");
    lab.assert_nothing_left();
}

// clause: NPWG-1.3 §3.4.1 on disk
// clause: NPWG-1.3 §3.2 no keys
#[test]
fn a_definition_without_configuration_is_found_on_disk_by_name() {
    let lab = Lab::new();
    let mut config = lab.ptp("10.30.0.0/24");
    config["name"] = json!("on-disk");
    lab.write("conf/whatever.conf", &config.to_string());
    lab.write(
        "cluster/nad.yaml",
        "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\n\
         metadata: { name: on-disk, namespace: demo }\n",
    );
    lab.selects("on-disk");
    lab.add();
    assert_eq!(lab.pod.addresses("net1"), ["10.30.0.2/24"]);
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn default_networks_come_before_the_pods_own_and_not_to_system_pods() {
    let mut lab = Lab::new();
    lab.definition("kube-system/everyones", &lab.ptp("10.40.0.0/24"));
    lab.definition("demo/own", &lab.ptp("10.41.0.0/24"));
    lab.configure("defaultNetworks", json!(["everyones"]));
    lab.selects("own");
    lab.add();
    assert_eq!(lab.pod.addresses("net1"), ["10.40.0.2/24"]);
    assert_eq!(lab.pod.addresses("net2"), ["10.41.0.2/24"]);
    lab.del();
    lab.configure("systemNamespaces", json!(["demo"]));
    lab.add();
    assert_eq!(lab.pod.links(), ["eth0", "net1"]);
    assert_eq!(lab.pod.addresses("net1"), ["10.41.0.3/24"]);
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn a_pod_may_replace_its_cluster_network() {
    let lab = Lab::new();
    lab.definition("demo/instead", &lab.ptp("10.42.0.0/24"));
    lab.pod_with(
        POD,
        json!({ "v1.multus-cni.io/default-network": "demo/instead" }),
    );
    let result = lab.add();
    assert_eq!(result["ips"][0]["address"], "10.42.0.2/24");
    assert_eq!(lab.pod.addresses("eth0"), ["10.42.0.2/24"]);
    let status = lab.status();
    assert_eq!(status[0]["name"], "demo/instead");
    assert_eq!(status[0]["default"], true);
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn the_cluster_network_may_be_inline_or_the_first_of_a_directory() {
    let mut lab = Lab::new();
    let conf = lab.path("conf");
    lab.configure("clusterNetwork", json!(conf));
    lab.add();
    assert_eq!(lab.pod.links(), ["eth0"]);
    lab.del();
    lab.configure("clusterNetwork", json!("cluster"));
    lab.add();
    lab.del();
    lab.configure("clusterNetwork", Value::Null);
    let mut inline = lab.ptp("10.43.0.0/24");
    inline["name"] = json!("inline");
    lab.configure("delegates", json!([inline]));
    lab.add();
    assert_eq!(lab.pod.addresses("eth0"), ["10.43.0.2/24"]);
    lab.del();
    lab.assert_nothing_left();
}

/// `binDir` is the administrator's: what is there comes before what the runtime's path has.
#[test]
fn a_plugin_is_looked_for_in_bin_dir_first() {
    let lab = Lab::new();
    lab.recorder("ptp", "ptp", "");
    lab.definition("demo/own", &lab.ptp("10.41.0.0/24"));
    lab.selects("own");
    lab.add();
    lab.del();
    assert_eq!(lab.log("calls"), ["ADD net1 ptp", "DEL net1 ptp"]);
    lab.assert_nothing_left();
}
