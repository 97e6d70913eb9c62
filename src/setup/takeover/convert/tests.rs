use super::*;

/// Converts the configuration `conf` of Multus on a node whose CNI directory has one network.
fn converted(
    conf: &str,
    daemon: Option<&str>,
) -> Result<(serde_json::Value, Vec<TakeoverRemark>), MultusConfError> {
    let root = tempfile::tempdir().unwrap();
    let paths = HostPaths {
        host_root: root.path().into(),
        conf_dir: "/etc/cni/net.d".into(),
        cluster_conf_dir: "/etc/cni/net.d".into(),
        bin_dir: "/opt/cni/bin".into(),
    };
    std::fs::create_dir_all(paths.here(&paths.conf_dir)).unwrap();
    std::fs::write(
        paths.here(&paths.conf_dir).join("10-a.conflist"),
        r#"{"name":"a","plugins":[{"type":"bridge"}]}"#,
    )
    .unwrap();
    let runtime = Directory::read(&paths, &paths.conf_dir).unwrap();
    let object = |text: &str| RawObject::parse(text.as_bytes()).unwrap();
    let daemon = daemon.map(object);
    let (ours, remarks) = convert(&paths, &runtime, &object(conf), daemon.as_ref())?;
    Ok((serde_json::from_str(&ours.to_string()).unwrap(), remarks))
}

#[test]
fn a_converted_thin_configuration_keeps_the_defaults_of_multus() {
    let conf = r#"{"cniVersion":"0.3.1","name":"multus-cni-network","type":"multus",
        "clusterNetwork":"cluster-x","kubeconfig":"/etc/cni/net.d/multus.d/multus.kubeconfig",
        "retryDeleteOnError":true,"isGateway":true,"GlobalNamespaces":"a,b","logLevel":"debug"}"#;
    let (ours, remarks) = converted(conf, None).unwrap();
    assert_eq!(ours["name"], "multus-cni-network");
    assert_eq!(ours["type"], "jackfield");
    assert_eq!(ours["clusterNetwork"], "cluster-x");
    assert_eq!(ours["GlobalNamespaces"], "a,b");
    assert_eq!(ours["namespaceIsolation"], false);
    assert_eq!(ours["undeclared"], "args");
    assert_eq!(ours["invalidAnnotation"], "fail");
    assert!(ours.get("retryDeleteOnError").is_none());
    let unknown_key = TakeoverRemark::UnknownKey("isGateway".to_owned());
    assert_eq!(remarks, [unknown_key]);
    let (warning, remarks) = converted(&conf.replace("debug", "warning"), None).unwrap();
    assert!(warning.get("logLevel").is_none());
    let unknown_level = TakeoverRemark::UnknownLogLevel("warning".to_owned());
    assert_eq!(remarks[1], unknown_level);
    let isolated = conf.replace("\"isGateway\"", "\"namespaceIsolation\"");
    assert_eq!(
        converted(&isolated, None).unwrap().0["namespaceIsolation"],
        true
    );
}

#[test]
fn a_converted_thick_configuration_contains_the_keys_of_the_daemon() {
    let shim = r#"{"cniVersion":"0.3.1","name":"multus-cni-network","type":"multus-shim",
        "clusterNetwork":"/host/etc/cni/net.d/10-a.conflist","daemonSocketDir":"/run/multus",
        "capabilities":{"portMappings":true},"logToStderr":true}"#;
    let daemon = r#"{"chrootDir":"/hostroot","cniVersion":"0.4.0","cniConfigDir":"/host/etc/cni/net.d",
        "readinessindicatorfile":"/host/run/ready","cniDir":"/var/lib/cni/multus","metricsPort":9091,
        "namespaceIsolation":true,"multusNamespace":"multus","confDir":"/hostroot/etc/cni/multus"}"#;
    let (ours, remarks) = converted(shim, Some(daemon)).unwrap();
    assert!(
        ours.get("clusterNetwork").is_none(),
        "without this key, Jackfield uses the first network: {ours}"
    );
    assert_eq!(ours["cniVersion"], "0.3.1");
    assert_eq!(ours["readinessindicatorfile"], "/run/ready");
    assert_eq!(ours["confDir"], "/etc/cni/multus");
    assert_eq!(ours["namespaceIsolation"], true);
    assert_eq!(ours["multusNamespace"], "multus");
    assert_eq!(ours["capabilities"]["portMappings"], true);
    assert!(remarks.is_empty(), "{remarks:?}");
    let other = shim.replace("10-a", "20-b");
    let (ours, _) = converted(&other, None).unwrap();
    assert_eq!(ours["clusterNetwork"], "/etc/cni/net.d/20-b.conflist");
}

#[test]
fn cluster_network_takes_precedence_over_delegates() {
    for conf in [
        r#"{"name":"m","type":"multus","delegates":[{"type":"bridge"}],"clusterNetwork":"x"}"#,
        r#"{"name":"m","plugins":[{"type":"multus","clusterNetwork":"x","Delegates":[{"type":"bridge"}]}]}"#,
    ] {
        let (ours, remarks) = converted(conf, None).unwrap();
        assert_eq!(ours["clusterNetwork"], "x", "{ours}");
        let mut keys = ours.as_object().unwrap().keys();
        assert!(
            !keys.any(|key| key.eq_ignore_ascii_case("delegates")),
            "{ours}"
        );
        assert_eq!(remarks[0], TakeoverRemark::IgnoredDelegates);
    }
    let empty = r#"{"name":"m","type":"multus","delegates":[],"clusterNetwork":"x"}"#;
    assert_eq!(converted(empty, None).unwrap().0["clusterNetwork"], "x");
}

#[test]
fn conversion_keeps_delegates_and_later_plugins() {
    for nothing in ["", r#","clusterNetwork":"""#, r#","ClusterNetwork":null"#] {
        let conf = format!(
            r#"{{"name":"m","type":"multus","delegates":[{{"type":"bridge","n":1.10}}]{nothing}}}"#
        );
        let (ours, _) = converted(&conf, None).unwrap();
        assert_eq!(ours["delegates"][0]["type"], "bridge");
        assert!(ours.get("clusterNetwork").is_none());
    }
    let list = r#"{"cniVersion":"1.0.0","name":"m","plugins":[{"type":"multus","clusterNetwork":"x"},{"type":"istio-cni"}]}"#;
    let (ours, remarks) = converted(list, None).unwrap();
    assert_eq!(ours["name"], "m");
    assert_eq!(ours["plugins"][0]["type"], "jackfield");
    assert_eq!(ours["plugins"][0]["clusterNetwork"], "x");
    assert_eq!(ours["plugins"][1]["type"], "istio-cni");
    assert!(remarks.is_empty(), "{remarks:?}");
    let behind = r#"{"name":"m","plugins":[{"type":"bridge"},{"type":"multus"}]}"#;
    assert!(matches!(
        converted(behind, None),
        Err(MultusConfError::NotFirstPlugin)
    ));
}
