//! From data to a directory.

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
    /// Makes the captured machine below `directory`, in `sys` and `dev`, and returns it.
    ///
    /// Character devices can only be made by root; without, they are left out, and the paths that
    /// depend on them are unknown.
    ///
    /// # Errors
    ///
    /// [`CaptureError`] for a path or link that would leave the directory, and when the file
    /// system refuses.
    pub fn build(&self, directory: &Path) -> Result<Sysfs, CaptureError> {
        let (root, dev) = (directory.join("sys"), directory.join("dev"));
        for base in [&root, &dev] {
            fs::create_dir_all(base).map_err(|error| CaptureError::io(base, &error))?;
        }
        // Links come last: what is below a path is then made there, not where a link leads.
        for (path, node) in &self.sysfs {
            match node {
                Node::Directory => {
                    let path = within(&root, path)?;
                    fs::create_dir_all(&path).map_err(|error| CaptureError::io(&path, &error))?;
                }
                Node::Text(text) => {
                    let path = parent_made(within(&root, path)?)?;
                    fs::write(&path, format!("{text}\n"))
                        .map_err(|error| CaptureError::io(&path, &error))?;
                }
                Node::Link(_) => {}
            }
        }
        for (path, node) in &self.sysfs {
            if let Node::Link(target) = node {
                let path = parent_made(within(&root, path)?)?;
                let parent = path.parent().unwrap_or(&root);
                follow(&root, parent, Path::new(target))
                    .ok_or_else(|| CaptureError::Outside(Quoted::new(target)))?;
                symlink(target, &path).map_err(|error| CaptureError::io(&path, &error))?;
            }
        }
        for (path, numbers) in &self.dev {
            make_node(&parent_made(within(&dev, path)?)?, numbers)?;
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

fn parent_made(path: PathBuf) -> Result<PathBuf, CaptureError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|error| CaptureError::io(parent, &error))?;
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
        Err(errno) => Err(CaptureError::io(path, &errno.into())),
    }
}

/// Why a capture cannot be read or built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// Not the JSON of a capture.
    #[error("the capture is broken: {0}; make it anew")]
    Json(String),
    /// A format of another version.
    #[error("the capture has format {0}, which is not {FORMAT}: make it anew, or use the version that made it", FORMAT = super::FORMAT)]
    Format(u32),
    /// A path or link that leaves the directory.
    #[error("the capture has the path {0}, which leads out of its directory: make it anew")]
    Outside(Quoted),
    /// A device node without numbers.
    #[error("the capture has {0} for a device node, which is not major:minor: make it anew")]
    Numbers(Quoted),
    /// The file system refused.
    #[error("{path} cannot be made: {reason}; give an empty directory with room")]
    Io {
        /// What was to be made.
        path: String,
        /// Why not.
        reason: String,
    },
}

impl CaptureError {
    fn io(path: &Path, error: &io::Error) -> Self {
        Self::Io {
            path: path.display().to_string(),
            reason: error.to_string(),
        }
    }
}
