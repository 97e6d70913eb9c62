//! The installer's side of the agent's socket. The installer sends reports, and the agent does not
//! answer them.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::connection::{self, Purpose};
use crate::cluster::Installation;
use crate::cluster::frame::{self, MAX_TO_AGENT, ToAgent};

/// Reports the state of the installation to the agent. Uses one connection until that connection
/// fails.
#[derive(Debug)]
pub struct Informant {
    socket: PathBuf,
    stream: Option<UnixStream>,
}

impl Informant {
    /// Creates an informant for the agent at `socket`. Does not connect yet.
    pub fn at(socket: &Path) -> Informant {
        Informant {
            socket: socket.to_owned(),
            stream: None,
        }
    }

    /// Sends a report without waiting. Returns whether the report was sent.
    pub fn tell(&mut self, installation: Installation) -> bool {
        let Ok(frame) = frame::encode(&ToAgent::Installation(installation), MAX_TO_AGENT) else {
            return false;
        };
        let tell = |stream: &UnixStream| connection::send_with(stream, &frame, None).is_ok();
        self.stream = self.stream.take().filter(tell).or_else(|| {
            let stream = connection::open(&self.socket, Purpose::Telling).ok();
            stream.filter(tell)
        });
        self.stream.is_some()
    }
}
