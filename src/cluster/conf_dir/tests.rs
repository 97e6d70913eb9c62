//! Tests the search for a network by its name, and the plugins that Jackfield adds from a folder.

use super::*;

fn dir(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

// clause: NPWG-1.3 §3.4.1 order: a list on disk comes before a single configuration
// clause: NPWG-1.3 §3.4.1 on disk
#[test]
fn lists_come_before_single_configurations() {
    let dir = dir(&[
        ("00-a.conf", r#"{"name":"a"}"#),
        ("99-a.configlist", r#"{"name":"a"}"#),
    ]);
    let found = by_name(dir.path(), "a").unwrap().unwrap();
    assert!(found.path.ends_with("99-a.configlist"));
}

// clause: NPWG-1.3 §3.4.1 on disk: the name in the configuration counts, not the name of the file
#[test]
fn an_unrelated_broken_file_is_ignored() {
    let dir = dir(&[("00-broken.conflist", "{"), ("b.conf", r#"{"name":"a"}"#)]);
    assert!(
        by_name(dir.path(), "a")
            .unwrap()
            .unwrap()
            .path
            .ends_with("b.conf")
    );
    assert_eq!(by_name(dir.path(), "b").unwrap(), None);
    assert_eq!(by_name(&dir.path().join("absent"), "b").unwrap(), None);
}

fn types(text: &str) -> Vec<String> {
    crate::cni::NetworkConfig::parse(text.as_bytes())
        .unwrap()
        .plugins()
        .iter()
        .map(|plugin| plugin.plugin_type().to_string())
        .collect()
}

// clause: CNI-1.1.0 §1 aggregation: plugins in the sibling folder are appended to the list
// clause: CNI-1.1.0 §1 inlined plugins
// clause: CNI-1.1.0 §1 association: the folder has the name of the network
#[test]
fn plugins_in_the_sibling_folder_are_appended_to_a_list() {
    let dir = dir(&[("net.conflist", "")]);
    let folder = dir.path().join("net");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("20-b.conf"), r#"{"type":"b","n":1.10}"#).unwrap();
    fs::write(folder.join("10-a.conf"), r#"{"type":"a"}"#).unwrap();
    fs::write(folder.join("ignored.json"), "{").unwrap();
    let load = |text: &str| {
        let path = dir.path().join("net.conflist");
        with_sibling_plugins(OnDisk {
            path,
            text: text.to_owned(),
        })
        .unwrap()
        .text
    };
    let list = load(r#"{"name":"net","plugins":[{"type":"own"}]}"#);
    assert_eq!(types(&list), ["own", "a", "b"]);
    assert!(
        list.contains("1.10"),
        "the number stays as it was written: {list}"
    );
    let only = r#"{"name":"net","loadOnlyInlinedPlugins":true,"plugins":[{"type":"own"}]}"#;
    assert_eq!(types(&load(only)), ["own"]);
    assert_eq!(types(&load(r#"{"name":"net"}"#)), ["a", "b"]);
    let single = r#"{"name":"net","type":"own"}"#;
    assert_eq!(
        types(&load(single)),
        ["own"],
        "`type` without `plugins` is a single plugin"
    );
    let both = r#"{"name":"net","type":"c","plugins":[{"type":"own"}]}"#;
    assert_eq!(
        types(&load(both)),
        ["own", "a", "b"],
        "`plugins` in a .conflist file is a list despite `type`"
    );
    let other = r#"{"name":"other","plugins":[{"type":"own"}]}"#;
    assert_eq!(types(&load(other)), ["own"]);
    fs::write(folder.join("30-c.conf"), "{}").unwrap();
    let error = with_sibling_plugins(OnDisk {
        path: dir.path().join("net.conflist"),
        text: r#"{"name":"net","plugins":[]}"#.to_owned(),
    });
    let error = error.unwrap_err();
    assert!(
        matches!(&error, ConfDirError::Plugin(path, _) if path.ends_with("30-c.conf")),
        "{error}"
    );
}

#[test]
fn an_auxiliary_chain_is_a_list_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let name: NetworkName = "extra".parse().unwrap();
    let chain = || auxiliary_chain(dir.path(), &name, Version::V1_0_0).unwrap();
    assert_eq!(chain(), None);
    fs::create_dir(dir.path().join("extra")).unwrap();
    assert_eq!(chain(), None, "an empty folder is no chain");
    fs::write(dir.path().join("extra/a.conf"), r#"{"type":"tuning"}"#).unwrap();
    let text = chain().unwrap().text;
    assert_eq!(
        text,
        r#"{"cniVersion":"1.0.0","name":"extra","plugins":[{"type":"tuning"}]}"#
    );
}

#[test]
fn the_first_configuration_of_a_directory_is_read() {
    let dir = dir(&[
        ("10-b.conf", "{}"),
        ("05-readme.txt", ""),
        ("06-a.conflist", "{}"),
    ]);
    assert!(first(dir.path()).unwrap().path.ends_with("06-a.conflist"));
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(
        first(empty.path()),
        Err(ConfDirError::Empty { .. })
    ));
}

#[test]
fn each_error_says_which_file_failed_and_what_to_do() {
    let path = || "/d".into();
    for (error, line) in [
        (
            ConfDirError::Missing(path()),
            "/d does not exist; correct the path or wait for the network to be installed",
        ),
        (
            ConfDirError::Empty(path()),
            "/d has no .conflist, .configlist, .conf, .config or .json file; put a configuration \
             there",
        ),
        (
            ConfDirError::Plugin(path(), PluginConfigError::NoType),
            "/d: key \"type\" is missing; name the plugin's binary; correct the file, or remove it \
             if it configures no plugin",
        ),
        (
            ConfDirError::Unreadable(path(), Arc::new(io::ErrorKind::PermissionDenied.into())),
            "/d: permission denied; correct the file or directory, or its path",
        ),
    ] {
        assert_eq!(error.to_string(), line);
    }
}
