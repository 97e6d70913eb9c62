//! A pod gets its cluster network and every network that it asks for.

use serde_json::json;

use crate::lab::Lab;

#[test]
fn a_pod_that_asks_for_nothing_gets_the_cluster_network_and_goes_without_a_trace() {
    let lab = Lab::new();
    let result = lab.add();
    assert_eq!(lab.pod.links(), ["eth0"]);
    assert_eq!(result["interfaces"][2]["name"], "eth0");
    assert_eq!(
        json!(lab.pod.addresses("eth0")),
        json!([result["ips"][0]["address"]])
    );
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}
