//! Builds directories from a [`Capture`], the stored `/sys` and `/dev` of a machine.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};

use super::{Capture, Node};
use crate::quoted::Quoted;
use crate::sysfs::Sysfs;
use crate::sysfs::path::follow;

impl Capture {
    /// Builds the captured machine in `sys` and `dev` below `directory`, and returns a [`Sysfs`]
    /// that reads these two directories.
    ///
    /// Only root can create character devices. Without root, this method skips them. The returned
    /// [`Sysfs`] then reports no path of a skipped device, such as `/dev/vfio/11`.
    ///
    /// # Errors
    ///
    /// [`CaptureError`] for a path or link that would leave the directory, for a character device
    /// without valid numbers, and for errors of the file system.
    pub fn build(&self, directory: &Path) -> Result<Sysfs, CaptureError> {
        let (root, dev) = (directory.join("sys"), directory.join("dev"));
        for base in [&root, &dev] {
            fs::create_dir_all(base).map_err(|error| CaptureError::io(base, error))?;
        }
        // Create links last, so that no file or directory is created through a link.
        for (path, node) in &self.sysfs {
            match node {
                Node::Directory => {
                    let path = within(&root, path)?;
                    fs::create_dir_all(&path).map_err(|error| CaptureError::io(&path, error))?;
                }
                Node::Text(text) => {
                    let path = with_parent(within(&root, path)?)?;
                    fs::write(&path, format!("{text}\n"))
                        .map_err(|error| CaptureError::io(&path, error))?;
                }
                Node::Link(_) => {
                    with_parent(within(&root, path)?)?;
                }
            }
        }
        for (path, node) in &self.sysfs {
            if let Node::Link(target) = node {
                let path = within(&root, path)?;
                let parent = path.parent().unwrap_or(&root);
                follow(&root, parent, Path::new(target))
                    .ok_or_else(|| CaptureError::Outside(Quoted::new(target)))?;
                symlink(target, &path).map_err(|error| CaptureError::io(&path, error))?;
            }
        }
        for (path, numbers) in &self.dev {
            make_node(&with_parent(within(&dev, path)?)?, numbers)?;
        }
        Ok(Sysfs::at(root, dev))
    }
}

fn within(root: &Path, path: &str) -> Result<PathBuf, CaptureError> {
    let inside = !path.is_empty()
        && Path::new(path)
            .components()
            .all(|component| matches!(component, Component::Normal(_)));
    inside
        .then(|| root.join(path))
        .ok_or_else(|| CaptureError::Outside(Quoted::new(path)))
}

fn with_parent(path: PathBuf) -> Result<PathBuf, CaptureError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|error| CaptureError::io(parent, error))?;
    }
    Ok(path)
}

fn make_node(path: &Path, numbers: &str) -> Result<(), CaptureError> {
    let wrong = || CaptureError::Numbers(Quoted::new(numbers));
    let (major, minor) = numbers.split_once(':').ok_or_else(wrong)?;
    let device = makedev(
        major.parse().map_err(|_| wrong())?,
        minor.parse().map_err(|_| wrong())?,
    );
    match mknod(path, SFlag::S_IFCHR, Mode::S_IRUSR | Mode::S_IWUSR, device) {
        Ok(()) | Err(Errno::EPERM) => Ok(()),
        Err(errno) => Err(CaptureError::io(path, errno.into())),
    }
}

/// Why a capture cannot be read or built.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// Not the JSON of a capture.
    #[error("the capture is broken: {0}; capture the machine again")]
    Json(#[source] serde_json::Error),
    /// The format version is unknown.
    #[error("the capture has format {0}, not {FORMAT}; capture the machine again, or use the release of device-info that wrote the capture", FORMAT = super::FORMAT)]
    Format(u32),
    /// A path or link that leaves the directory.
    #[error(
        "the capture has the path {0}, which leads outside the capture's directory; capture the machine again"
    )]
    Outside(Quoted),
    /// A device node without valid numbers.
    #[error(
        "the capture has a device node with the numbers {0}, which are not major:minor; capture the machine again"
    )]
    Numbers(Quoted),
    /// An error of the file system.
    #[error("{path} cannot be created: {source}; use an empty directory with enough space")]
    Io {
        /// The path.
        path: String,
        /// The error of the system call.
        source: io::Error,
    },
}

impl CaptureError {
    fn io(path: &Path, source: io::Error) -> Self {
        Self::Io {
            path: path.display().to_string(),
            source,
        }
    }
}
