//! Where everything is on the host, and where this process finds it.

use std::path::{Path, PathBuf};

/// The directories that an installation touches, as the host names them.
///
/// In a container the host's directories are mounted below `host_root`; what is written into
/// configurations is always the host's name, since the runtime reads them there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPaths {
    /// Below what the host's directories are found here; `/` on the host itself.
    pub host_root: PathBuf,
    /// Where the runtime looks for its network: ours goes there.
    pub conf_dir: PathBuf,
    /// Where the cluster network puts its configuration: the same directory, or, where the
    /// runtime reads one of its own, `/etc/cni/net.d` (NPWG 1.3 §6.1.1).
    pub cluster_conf_dir: PathBuf,
    /// Where plugins' binaries are.
    pub bin_dir: PathBuf,
}

impl HostPaths {
    /// Where this process finds a path of the host's.
    pub fn here(&self, on_host: &Path) -> PathBuf {
        match on_host.strip_prefix("/") {
            Ok(relative) => self.host_root.join(relative),
            Err(_) => self.host_root.join(on_host),
        }
    }

    /// Whether the runtime reads another directory than the one that the cluster network's
    /// configuration comes to.
    pub fn is_apart(&self) -> bool {
        self.conf_dir != self.cluster_conf_dir
    }

    /// Whether this process sees the host as the host sees itself.
    pub fn is_host(&self) -> bool {
        self.host_root == Path::new("/")
    }

    /// Where the binary goes, as the host names it.
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
