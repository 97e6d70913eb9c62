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
    /// Binds `path`, mode 0600 in a directory of mode 0700, which is the agent's own: one that is
    /// open to others is closed, unless others have something in it. Another agent that still listens
    /// there is waited for; what a dead one left is replaced; anything else is left alone.
    pub(super) async fn bind(path: &Path) -> Result<Listening, AgentError> {
        let wrong = |cause: String| AgentError::Socket {
            path: path.display().to_string(),
            cause,
        };
        make_dir(path).map_err(wrong)?;
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
            .map_err(|error| wrong(format!("{error}; name a short path on a local file system")))?;
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

fn make_dir(path: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("its directory: {error}; mount it writable");
    let Some(dir) = path.parent() else {
        return Ok(());
    };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(dir).map_err(failed)?;
    let mode = fs::metadata(dir).map_err(failed)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    if !is_our_own(dir, path).map_err(failed)? {
        return Err(format!(
            "its directory is open to others, who have files in it, and it has to be root's alone; name a path in a directory of its own, as {}",
            dir.join("agent/agent.sock").display()
        ));
    }
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).map_err(failed)
}

/// Whether nothing but the socket is in its directory.
fn is_our_own(dir: &Path, socket: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(dir)? {
        if entry?.path().file_name() != socket.file_name() {
            return Ok(false);
        }
    }
    Ok(true)
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

    /// As `--socket /run/agent.sock` would find it.
    #[test]
    fn a_directory_that_others_use_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            let path = dir.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (shared, empty) = (open("run"), open("empty"));
        fs::write(shared.join("somebodys"), "").unwrap();
        let error = on_runtime(Listening::bind(&shared.join("agent.sock"))).unwrap_err();
        for words in ["open to others", "run/agent/agent.sock"] {
            assert!(error.to_string().contains(words), "{error}");
        }
        assert_eq!(mode(&shared), 0o755);
        assert!(!shared.join("agent.sock").exists());
        on_runtime(async { drop(Listening::bind(&empty.join("agent.sock")).await.unwrap()) });
        assert_eq!(mode(&empty), 0o700);
        // One that is closed already is nobody else's, whatever is in it.
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o700)).unwrap();
        on_runtime(async { drop(Listening::bind(&shared.join("agent.sock")).await.unwrap()) });
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
