//! The socket that plugins ask at: root's alone.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::net::{UnixListener, UnixStream};
use tracing::warn;

use super::AgentError;

/// How long an agent of before may take to end: it is replaced while it still runs.
const TAKE_OVER: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(200);

/// The bound socket; its file goes with it, unless another agent has put its own there.
#[derive(Debug)]
pub(super) struct Listening {
    /// Where connections arrive.
    pub(super) listener: UnixListener,
    path: PathBuf,
    inode: u64,
}

impl Listening {
    /// Binds `path`, mode 0600 in a directory of mode 0700. Another agent that still listens
    /// there is waited for; what a dead one left is replaced; anything else is left alone.
    pub(super) async fn bind(path: &Path) -> Result<Listening, AgentError> {
        let wrong = |cause: String| AgentError::Socket {
            path: path.display().to_string(),
            cause,
        };
        make_dir(path)
            .map_err(|error| wrong(format!("its directory: {error}; mount it writable")))?;
        let begun = Instant::now();
        let mut waits = false;
        while free(path).await.map_err(wrong)? == Occupied::ByAnAgent {
            if begun.elapsed() >= TAKE_OVER {
                return Err(wrong(
                    "another agent listens there; end it first".to_owned(),
                ));
            }
            if !waits {
                warn!(socket = %path.display(), "another agent still listens; it is waited for");
                waits = true;
            }
            tokio::time::sleep(PAUSE).await;
        }
        let listener = UnixListener::bind(path)
            .map_err(|error| wrong(format!("{error}; name a path on a local file system")))?;
        let mode = fs::Permissions::from_mode(0o600);
        let bound = fs::set_permissions(path, mode).and_then(|()| fs::symlink_metadata(path));
        let inode = bound.map_err(|error| wrong(error.to_string()))?.ino();
        Ok(Listening {
            listener,
            path: path.to_owned(),
            inode,
        })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|file| file.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[derive(PartialEq, Eq)]
enum Occupied {
    No,
    ByAnAgent,
}

fn make_dir(path: &Path) -> io::Result<()> {
    let Some(dir) = path.parent() else {
        return Ok(());
    };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)?;
    let mode = fs::metadata(dir)?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Looks who has the path, and takes a dead agent's socket away.
async fn free(path: &Path) -> Result<Occupied, String> {
    let file = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Occupied::No),
        file => file.map_err(|error| error.to_string())?,
    };
    if !file.file_type().is_socket() {
        return Err("something that is no socket has this name; remove it or name another".into());
    }
    match UnixStream::connect(path).await {
        Ok(_) => Ok(Occupied::ByAnAgent),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|error| error.to_string())?;
            Ok(Occupied::No)
        }
        Err(error) => Err(format!("{error}; remove it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_runtime<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(future)
    }

    #[test]
    fn the_socket_is_roots_alone_and_goes_with_the_agent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/agent.sock");
        on_runtime(async {
            let listening = Listening::bind(&path).await.unwrap();
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
            drop(listening);
            assert!(!path.exists());
        });
    }

    #[test]
    fn a_dead_agents_socket_is_replaced_and_a_file_of_somebody_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        on_runtime(async { drop(Listening::bind(&path).await.unwrap()) });
        fs::write(&path, "precious").unwrap();
        let error = on_runtime(Listening::bind(&path)).unwrap_err().to_string();
        assert!(
            error.contains("no socket has this name; remove it"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn the_socket_of_a_newer_agent_survives_the_older_ones_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.sock");
        on_runtime(async {
            let older = Listening::bind(&path).await.unwrap();
            let newer = UnixListener::bind(dir.path().join("new")).unwrap();
            fs::rename(dir.path().join("new"), &path).unwrap();
            drop(older);
            assert!(path.exists());
            drop(newer);
        });
    }
}
