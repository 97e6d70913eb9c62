//! The real CNI plugins.

use std::path::PathBuf;

/// Where the real CNI plugins are: `$CNI_BIN`, else where the scripts put them.
pub(crate) fn real_plugins() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let dir = variable("CNI_BIN").unwrap_or_else(|| {
        variable("JACKFIELD_CACHE")
            .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("jackfield")))
            .or_else(|| Some(variable("HOME")?.join(".cache/jackfield")))
            .unwrap_or_default()
            .join("cni-plugins-v1.9.1")
    });
    assert!(
        dir.join("bridge").exists(),
        "no CNI plugins in {}; run scripts/test --only netns, which builds them, or set CNI_BIN",
        dir.display()
    );
    dir
}
