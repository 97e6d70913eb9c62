//! Paths within a sysfs, resolved as text.

use std::path::{Component, Path, PathBuf};

use crate::pci_address::PciAddress;

/// The maximum number of directories in a search for an ancestor. The deepest real device (a
/// subfunction's vDPA device behind three bridges) has about twelve ancestors.
const MAX_ANCESTORS: usize = 64;

/// Resolves a symbolic link in `directory` without reading the file system. `target` is the text of
/// the link. Each `..` in the text removes the last component of the path.
///
/// Returns `None` if the target is absolute or leaves `root`.
pub(crate) fn follow(root: &Path, directory: &Path, target: &Path) -> Option<PathBuf> {
    let mut path = directory.to_path_buf();
    for component in target.components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
                if !path.starts_with(root) {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

/// Finds the PCI function nearest to `path`: `path` itself or one of its ancestors inside `root`.
/// Returns the function's address and directory.
pub(crate) fn pci_ancestor(root: &Path, path: &Path) -> Option<(PciAddress, PathBuf)> {
    path.ancestors()
        .take(MAX_ANCESTORS)
        .take_while(|ancestor| ancestor.starts_with(root) && *ancestor != root)
        .find_map(|ancestor| {
            let address = ancestor.file_name()?.to_str()?.parse().ok()?;
            Some((address, ancestor.to_path_buf()))
        })
}

/// Returns whether `name` is a single directory entry: not empty, no separator, not `.` or `..`, no
/// control character, at most 255 bytes.
pub(crate) fn is_entry_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 255
        && name != "."
        && name != ".."
        && !name.contains(|character: char| character == '/' || character.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leaves_the_root_is_refused() {
        let (root, directory) = (Path::new("/sys"), Path::new("/sys/bus/pci/devices"));
        let follow = |target: &str| follow(root, directory, Path::new(target));
        assert_eq!(
            follow("../../../devices/pci0000:00/0000:00:04.0").unwrap(),
            Path::new("/sys/devices/pci0000:00/0000:00:04.0")
        );
        assert_eq!(follow("../../../../etc/passwd"), None);
        assert_eq!(follow("/etc/passwd"), None);
    }

    #[test]
    fn the_nearest_pci_ancestor_is_the_function_and_not_the_bridge() {
        let path =
            Path::new("/sys/devices/pci0000:00/0000:00:04.2/0000:03:00.0/mlx5_core.sf.4/vdpa0");
        let (address, directory) = pci_ancestor(Path::new("/sys"), path).unwrap();
        assert_eq!(address.to_string(), "0000:03:00.0");
        assert!(directory.ends_with("0000:00:04.2/0000:03:00.0"));
        assert!(
            pci_ancestor(
                Path::new("/sys"),
                Path::new("/sys/devices/virtual/vduse/vd0/vd0")
            )
            .is_none()
        );
    }

    #[test]
    fn a_pci_address_above_the_root_is_no_ancestor() {
        let path = Path::new("/x/0000:03:00.0/sys/devices/vd0");
        assert!(pci_ancestor(Path::new("/x/0000:03:00.0/sys"), path).is_none());
    }

    #[test]
    fn paths_are_not_entry_names() {
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "../x",
            "a\0b",
            "a\nb",
            &"x".repeat(256),
        ] {
            assert!(!is_entry_name(name), "{name:?}");
        }
        assert!(is_entry_name("mlx5_core.sf.4"));
    }
}
