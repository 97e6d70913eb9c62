use super::*;

fn object(text: &str) -> RawObject {
    RawObject::parse(text.as_bytes()).unwrap()
}

#[test]
fn a_template_gets_the_defaults_and_reads_back_unchanged() {
    let template = object(
        r#"{"policy": {"a": 1.10}, "CNIVersion": "0.4.0", "capabilities": {"bandwidth": false}}"#,
    );
    let conf = OurConf::from_template(&template).in_front_of(Path::new("/etc/cni/net.d/10-a.conf"));
    let read = OurConf::read(&object(&conf.text())).unwrap();
    assert_eq!(read, conf);
    let stdin = conf.on_stdin().to_string();
    for part in [
        r#""type":"jackfield""#,
        r#""policy":{"a": 1.10}"#,
        r#""cniVersion":"0.4.0""#,
        r#""bandwidth":false"#,
        r#""io.kubernetes.cri.pod-annotations":true"#,
        r#""clusterNetwork":"/etc/cni/net.d/10-a.conf""#,
    ] {
        assert!(stdin.contains(part), "{part} in {stdin}");
    }
    assert_eq!(read.node_config().unwrap().name.as_str(), "jackfield");
}

#[test]
fn a_key_that_is_null_gets_its_default() {
    let template = r#"{"cniVersion": null, "name": null, "capabilities": {"bandwidth": null}}"#;
    let conf = OurConf::from_template(&object(template));
    assert_eq!(conf, OurConf::from_template(&object("{}")));
}

#[test]
fn a_new_cluster_network_keeps_appended_plugins() {
    let istio = object(
        r#"{"name":"jackfield","cniVersion":"1.0.0","plugins":[
            {"type":"jackfield","clusterNetwork":"/a"},{"type":"istio-cni","n":1e400}]}"#,
    );
    let conf = OurConf::read(&istio).unwrap().in_front_of(Path::new("/b"));
    assert_eq!(conf.follower_types(), ["istio-cni"]);
    assert_eq!(conf.cluster_network().as_deref(), Some("/b"));
    assert!(conf.text().contains("1e400"), "{}", conf.text());
    let renewed = OurConf::from_template(&object("{}")).followed_as(&conf);
    assert_eq!(renewed.follower_types(), ["istio-cni"]);
}

#[test]
fn the_keys_of_a_template_replace_those_of_the_base() {
    let base = object(
        r#"{"name":"multus-cni-network","cniVersion":"0.3.1","plugins":[
            {"type":"jackfield","namespaceIsolation":false,"KubeConfig":"/k","delegates":[{"n":1.10}]},
            {"type":"istio-cni"}]}"#,
    );
    let same = OurConf::over(&object("{}"), &base);
    assert_eq!(same, OurConf::from_template(&base));
    let template = r#"{"name":"other","cniVersion":"1.0.0","verify":"warn",
        "kubeconfig":null,"clusterNetwork":"main"}"#;
    let conf = OurConf::over(&object(template), &base);
    let stdin = conf.on_stdin().to_string();
    for part in [
        r#""name":"multus-cni-network""#,
        r#""cniVersion":"1.0.0""#,
        r#""namespaceIsolation":false"#,
        r#""verify":"warn""#,
        r#""clusterNetwork":"main""#,
    ] {
        assert!(stdin.contains(part), "{part} in {stdin}");
    }
    for key in ["kubeconfig", "delegates"] {
        assert!(!conf.on_stdin().contains(key), "{key} in {stdin}");
    }
    assert_eq!(conf.follower_types(), ["istio-cni"]);
    let folder = OurConf::over(&object(r#"{"manifestDir":"/m"}"#), &base);
    assert!(!folder.on_stdin().contains("kubeconfig"));
}

#[test]
fn a_list_that_begins_with_another_plugin_is_not_ours() {
    for text in [
        r#"{"plugins":[{"type":"bridge"},{"type":"jackfield"}]}"#,
        r#"{"type":"bridge"}"#,
        r#"{"plugins":7}"#,
        "{}",
    ] {
        assert_eq!(OurConf::read(&object(text)), None, "{text}");
    }
    let single = object(r#"{"name":"n","type":"jackfield","clusterNetwork":"x"}"#);
    assert!(OurConf::read(&single).unwrap().names_a_network());
}
