//! The agent's socket, to which plugins connect. Only root has access to the socket.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::net::{UnixListener, UnixStream};
use tracing::warn;

use super::{AgentError, SocketError};
use crate::private_dir;
use crate::regular_file::found;

/// How long the previous agent may take to end after a new agent has started.
const TAKE_OVER: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(200);

/// The bound socket. Dropping this value removes the socket's file, unless a new agent has replaced
/// the file.
#[derive(Debug)]
pub(super) struct AgentSocket {
    /// The listener.
    pub(super) listener: UnixListener,
    path: PathBuf,
    inode: u64,
}

impl AgentSocket {
    /// Binds `path` with mode 0600, in a directory with mode 0700.
    ///
    /// An existing directory may be open to other users. `bind` changes the mode of such a
    /// directory to 0700, but fails if the directory contains a file other than the socket. Other
    /// programs may need access to that file.
    ///
    /// Replaces the socket of a dead agent. If another agent listens on the socket, waits at most
    /// [`TAKE_OVER`] for that agent to end. Fails if the file at `path` is not a socket.
    ///
    /// # Errors
    /// [`AgentError::Socket`].
    pub(super) async fn bind(path: &Path) -> Result<AgentSocket, AgentError> {
        let bound = bind(path).await;
        bound.map_err(|source| AgentError::Socket {
            path: path.to_owned(),
            source,
        })
    }
}

async fn bind(path: &Path) -> Result<AgentSocket, SocketError> {
    make_dir(path)?;
    let begun = Instant::now();
    let mut waits = false;
    while has_listener(path).await? {
        if begun.elapsed() >= TAKE_OVER {
            return Err(SocketError::OtherAgent);
        }
        if !waits {
            warn!(socket = %path.display(), "another agent still listens; waiting for it to end");
            waits = true;
        }
        tokio::time::sleep(PAUSE).await;
    }
    let listener = UnixListener::bind(path).map_err(SocketError::Bind)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(AgentSocket {
        listener,
        path: path.to_owned(),
        inode: fs::symlink_metadata(path)?.ino(),
    })
}

impl Drop for AgentSocket {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|file| file.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn make_dir(path: &Path) -> Result<(), SocketError> {
    let failed = SocketError::Directory;
    let Some(dir) = path.parent() else {
        return Ok(());
    };
    private_dir::create(dir).map_err(failed)?;
    let mode = fs::metadata(dir).map_err(failed)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    if !is_our_own(dir, path).map_err(failed)? {
        return Err(SocketError::OpenDirectory {
            instead: dir.join("agent/agent.sock"),
        });
    }
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).map_err(failed)
}

/// Returns whether the directory contains no file other than the socket.
fn is_our_own(dir: &Path, socket: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(dir)? {
        if entry?.path().file_name() != socket.file_name() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether another agent listens at `path`. Removes the socket of a dead agent.
async fn has_listener(path: &Path) -> Result<bool, SocketError> {
    let Some(file) = found(fs::symlink_metadata(path))? else {
        return Ok(false);
    };
    if !file.file_type().is_socket() {
        return Err(SocketError::NotSocket);
    }
    match UnixStream::connect(path).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path)?;
            Ok(false)
        }
        Err(error) => Err(SocketError::Peer(error)),
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
    fn only_root_has_access_to_the_socket_and_the_agent_removes_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/agent.sock");
        on_runtime(async {
            let listening = AgentSocket::bind(&path).await.unwrap();
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
            drop(listening);
            assert!(!path.exists());
        });
    }

    fn is_socket_error(error: &AgentError, is_expected: impl Fn(&SocketError) -> bool) -> bool {
        matches!(error, AgentError::Socket { source, .. } if is_expected(source))
    }

    /// The directory `shared` stands for `/run`. With `--socket /run/agent.sock`, the agent must
    /// not change the mode of `/run`.
    #[test]
    fn an_open_directory_with_other_files_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            let path = dir.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (shared, empty) = (open("run"), open("empty"));
        fs::write(shared.join("other"), "").unwrap();
        let error = on_runtime(AgentSocket::bind(&shared.join("agent.sock"))).unwrap_err();
        assert!(
            is_socket_error(
                &error,
                |it| matches!(it, SocketError::OpenDirectory { instead }
                if *instead == shared.join("agent/agent.sock"))
            ),
            "{error}"
        );
        assert_eq!(mode(&shared), 0o755);
        assert!(!shared.join("agent.sock").exists());
        on_runtime(async { drop(AgentSocket::bind(&empty.join("agent.sock")).await.unwrap()) });
        assert_eq!(mode(&empty), 0o700);
        // A directory with mode 0700 may contain other files, because `bind` keeps its mode.
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o700)).unwrap();
        on_runtime(async { drop(AgentSocket::bind(&shared.join("agent.sock")).await.unwrap()) });
    }

    #[test]
    fn only_the_socket_of_a_dead_agent_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        on_runtime(async { drop(AgentSocket::bind(&path).await.unwrap()) });
        fs::write(&path, "precious").unwrap();
        let error = on_runtime(AgentSocket::bind(&path)).unwrap_err();
        let is_not_socket = is_socket_error(&error, |it| matches!(it, SocketError::NotSocket));
        assert!(is_not_socket, "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn an_agent_that_ends_does_not_remove_the_socket_of_a_newer_agent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.sock");
        on_runtime(async {
            let older = AgentSocket::bind(&path).await.unwrap();
            let newer = UnixListener::bind(dir.path().join("new")).unwrap();
            fs::rename(dir.path().join("new"), &path).unwrap();
            drop(older);
            assert!(path.exists());
            drop(newer);
        });
    }
}
