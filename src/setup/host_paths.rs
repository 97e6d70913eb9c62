//! Paths on the host, and the paths at which this process finds the same files.

use std::path::{Path, PathBuf};

/// The directories that an installation uses, as paths on the host.
///
/// In a container, the host's directories are mounted below `host_root`. Configurations always
/// contain paths of the host, because the runtime uses these paths on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPaths {
    /// The mount point of the host's directories; `/` on the host itself.
    pub host_root: PathBuf,
    /// The directory from which the runtime reads configurations. It contains Jackfield's
    /// configuration.
    pub conf_dir: PathBuf,
    /// The directory to which the cluster network writes its configuration. It differs from
    /// `conf_dir` if the runtime reads a separate directory (NPWG 1.3 §6.1.1).
    pub cluster_conf_dir: PathBuf,
    /// The directory of the plugins.
    pub bin_dir: PathBuf,
}

impl HostPaths {
    /// Converts a path on the host to the path of the same file in this process.
    pub fn here(&self, on_host: &Path) -> PathBuf {
        let below = on_host.strip_prefix("/").unwrap_or(on_host);
        self.host_root.join(below)
    }

    /// Whether the cluster network's file is in a different directory than `conf_dir`.
    pub fn is_apart(&self) -> bool {
        self.conf_dir != self.cluster_conf_dir
    }

    /// Whether this process runs on the host itself.
    pub fn is_host(&self) -> bool {
        self.host_root == Path::new("/")
    }

    /// The path of the binary on the host.
    pub fn binary(&self) -> PathBuf {
        self.bin_dir.join(super::NAME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_host_is_found_below_its_root() {
        let mut paths = HostPaths {
            host_root: "/host".into(),
            conf_dir: "/etc/cni/net.d".into(),
            cluster_conf_dir: "/etc/cni/net.d".into(),
            bin_dir: "/opt/cni/bin".into(),
        };
        assert_eq!(
            paths.here(&paths.conf_dir),
            Path::new("/host/etc/cni/net.d")
        );
        assert!(!paths.is_apart() && !paths.is_host());
        paths.host_root = "/".into();
        assert_eq!(
            paths.here(&paths.binary()),
            Path::new("/opt/cni/bin/jackfield")
        );
    }
}
