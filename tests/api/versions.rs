//! A cluster in which somebody else brought the kinds, in versions of their own.

use serde_json::json;

use crate::lab::{Lab, NETWORKS, Server, eventually};

#[test]
fn definitions_of_another_version_are_named_with_the_remedy_which_needs_no_restart() {
    let server = Server::with_definitions_of("v1beta1");
    let lab = Lab::of(server);
    let agent = lab.start_agent();
    let watched =
        "does not serve a watch of NetworkAttachmentDefinition objects (k8s.cni.cncf.io/v1)";
    let remedy = "apply deploy/crds, or make the installed CustomResourceDefinition serve the requested version too";
    eventually("it is said", || agent.logged(&[watched, remedy]));
    let plain = lab.pod("plain", &json!({}));
    lab.add("plain", &plain).succeeds();
    let uid = lab.pod("web", &json!({NETWORKS: "storage"}));
    let asked = format!(
        "v1/namespaces/{}/network-attachment-definitions/storage",
        lab.namespace
    );
    lab.add("web", &uid)
        .fails(102, &["does not serve GET", &asked, remedy]);
    assert_eq!(lab.interfaces("web"), Vec::<String>::new());

    let name = "network-attachment-definitions.k8s.cni.cncf.io";
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    let mut versions = lab.admin.get(&path).unwrap()["spec"]["versions"].clone();
    let mut ours = versions[0].clone();
    ours["name"] = "v1".into();
    ours["storage"] = false.into();
    versions.as_array_mut().unwrap().push(ours);
    lab.admin
        .merge(&path, &json!({"spec": {"versions": versions}}));
    server.wait_for_kind("v1/network-attachment-definitions");
    lab.definition("storage", "10.2.0.5/24");
    lab.add("web", &uid).succeeds();
    eventually("the watch begins", || {
        agent.logged(&["watching for changes"])
    });
    lab.pod("next", &json!({NETWORKS: "storage"}));
    eventually("it is kept", || {
        agent.metric(r#"jackfield_cached_objects{kind="definition"}"#) == Some(1.0)
    });
}
