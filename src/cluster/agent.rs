//! The agent, asked by the plugin: one question, one answer, over its socket.
//!
//! While the agent is away (it starts, it is upgraded) a question waits for the socket. What is
//! to be told never waits: it goes to disk, and the agent is reminded when the call is over. Where a
//! kubeconfig is configured, the API server itself takes an absent agent's place at once.

use std::cell::{Cell, OnceCell, RefCell};
use std::io::Write;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket,
    sockopt::PeerCredentials,
};

use super::devices::ask_kubelet;
use super::frame::{self, FrameError, FromAgent, MAX_FROM_AGENT, MAX_TO_AGENT, ToAgent};
use super::{
    Answer, Api, Census, Cluster, ClusterError, Figures, OwedWrites, Publication, Question,
};

/// How long an ADD waits for an agent that is away.
pub const AGENT_WAIT: Duration = Duration::from_secs(10);
/// How long the agent may take for one answer: it may have to ask the API server.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How often the socket is tried.
const PAUSE: Duration = Duration::from_millis(50);

/// The agent behind its socket.
#[derive(Debug)]
pub struct Agent {
    socket: PathBuf,
    owed: OwedWrites,
    api: Option<Api>,
    /// The connection that the question went over; what is told at the end goes over it too.
    stream: RefCell<Option<UnixStream>>,
    /// A question that was sent ahead of being asked, and the connection that its answer comes over.
    announced: RefCell<Option<(ToAgent, UnixStream)>>,
    /// Set once the API server has taken the agent's place: it then does for the whole call.
    agent_is_away: OnceCell<()>,
    /// Whether something is owed that the agent has not been reminded of.
    owes: Cell<bool>,
}

impl Agent {
    /// The agent at `socket`; nothing is opened yet.
    pub fn new(socket: &Path, kubeconfig: Option<&Path>, journal_dir: &Path) -> Agent {
        Agent {
            socket: socket.to_owned(),
            owed: OwedWrites::new(journal_dir),
            api: kubeconfig.map(Api::new),
            stream: RefCell::default(),
            announced: RefCell::default(),
            agent_is_away: OnceCell::new(),
            owes: Cell::new(false),
        }
    }

    fn connect(&self) -> Result<UnixStream, Attempt> {
        let stream = UnixStream::connect(&self.socket).map_err(|error| {
            use std::io::ErrorKind::{ConnectionRefused, NotFound};
            match error.kind() {
                NotFound => Attempt::Away("nobody listens there".to_owned()),
                ConnectionRefused => Attempt::Away("nobody listens any more".to_owned()),
                _ => Attempt::Failed(self.no_agent(&error)),
            }
        })?;
        // Whoever answers decides what runs as root here.
        let peer = getsockopt(&stream, PeerCredentials)
            .map_err(|error| Attempt::Failed(self.no_agent(&error)))?;
        if peer.uid() != nix::unistd::geteuid().as_raw() {
            return Err(Attempt::Failed(ClusterError::Untrusted {
                socket: self.socket.display().to_string(),
                uid: peer.uid(),
            }));
        }
        let bounded = stream
            .set_read_timeout(Some(ANSWER_TIMEOUT))
            .and_then(|()| stream.set_write_timeout(Some(ANSWER_TIMEOUT)));
        bounded.map_err(|error| Attempt::Failed(self.no_agent(&error)))?;
        Ok(stream)
    }

    /// One message and its answer; the connection is kept for what follows.
    fn exchange(&self, message: &ToAgent) -> Result<FromAgent, Attempt> {
        let announced = self.announced.borrow_mut().take();
        // The answer to what was not asked after all goes with its connection.
        let announced = announced.filter(|(announced, _)| announced == message);
        let mut stream = match announced {
            Some((_, stream)) => stream,
            None => self.send(message)?,
        };
        let answer =
            frame::read(&mut stream, MAX_FROM_AGENT).map_err(|error| self.failed(error))?;
        *self.stream.borrow_mut() = Some(stream);
        Ok(answer)
    }

    /// Sends a message, over the connection that there is or a new one.
    fn send(&self, message: &ToAgent) -> Result<UnixStream, Attempt> {
        let frame = frame::encode(message, MAX_TO_AGENT).map_err(|error| self.failed(error))?;
        let kept = self.stream.borrow_mut().take();
        let mut stream = match kept {
            Some(stream) => stream,
            None => self.connect()?,
        };
        let sent = stream.write_all(&frame);
        sent.map_err(|error| self.failed(FrameError::Io(error)))?;
        Ok(stream)
    }

    fn failed(&self, error: FrameError) -> Attempt {
        match error {
            error if error.is_gone() => Attempt::Away("it went away while it was asked".to_owned()),
            FrameError::Io(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                Attempt::Failed(ClusterError::NoAgent {
                    socket: self.socket.display().to_string(),
                    cause: "no answer in time".to_owned(),
                    remedy: "look into its log, and restart it",
                })
            }
            error => Attempt::Failed(ClusterError::Agent {
                socket: self.socket.display().to_string(),
                cause: error.to_string(),
            }),
        }
    }

    fn no_agent(&self, cause: &dyn std::fmt::Display) -> ClusterError {
        ClusterError::NoAgent {
            socket: self.socket.display().to_string(),
            cause: cause.to_string(),
            remedy: "start it or set kubeconfig",
        }
    }

    fn something_else(&self) -> ClusterError {
        ClusterError::Agent {
            socket: self.socket.display().to_string(),
            cause: "it answered something else; restart it".to_owned(),
        }
    }

    /// The agent's socket, if there is room in its queue: one that hangs holds up nobody.
    fn connect_at_once(&self) -> Option<UnixStream> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let stream = socket(AddressFamily::Unix, SockType::Stream, flags, None).ok()?;
        let address = UnixAddr::new(&self.socket).ok()?;
        connect(stream.as_raw_fd(), &address).ok()?;
        Some(UnixStream::from(stream))
    }

    /// Tells an agent that is there, without waiting: one that is not looks by itself for what is
    /// owed, and counts what it hears.
    fn tell(&self, messages: &[ToAgent]) {
        let kept = self.stream.borrow_mut().take();
        let kept = kept.filter(|stream| stream.set_nonblocking(true).is_ok());
        let Some(mut stream) = kept.or_else(|| self.connect_at_once()) else {
            return;
        };
        let frames: Vec<Vec<u8>> = messages
            .iter()
            .filter_map(|message| frame::encode(message, MAX_TO_AGENT).ok())
            .collect();
        let _ = stream.write_all(&frames.concat());
        // Open until this process ends: only then is the processor free for what is owed.
        let _ = stream.into_raw_fd();
    }

    /// Where nothing can be kept on disk, the agent keeps it in memory.
    fn entrust(
        &self,
        publication: &Publication,
        disk: &std::io::Error,
    ) -> Result<(), ClusterError> {
        let failed = |cause: String| ClusterError::Owed {
            pod: publication.pod().to_string(),
            path: self.owed.dir().display().to_string(),
            cause: format!("{disk}, and {cause}"),
        };
        match self.exchange(&ToAgent::Keep(publication.clone())) {
            Ok(FromAgent::Kept) => Ok(()),
            Ok(FromAgent::Refused(cause)) => Err(failed(cause)),
            Ok(_) => Err(failed("the agent did not take it".to_owned())),
            Err(attempt) => Err(failed(attempt.error(self).to_string())),
        }
    }
}

/// How one attempt to ask ended.
enum Attempt {
    /// Nobody is there at the moment.
    Away(String),
    /// Asking again brings nothing else.
    Failed(ClusterError),
}

impl Attempt {
    fn error(self, agent: &Agent) -> ClusterError {
        match self {
            Attempt::Away(cause) => agent.no_agent(&cause),
            Attempt::Failed(error) => error,
        }
    }
}

impl Cluster for Agent {
    fn ask(&self, question: &Question) -> Result<Answer, ClusterError> {
        let until = Instant::now() + question.patience;
        let message = ToAgent::Question(question.clone());
        loop {
            match (self.exchange(&message), &self.api) {
                (Ok(FromAgent::Answer(mut answer)), _) => {
                    // Which devices a pod has is kubelet's to say, in files of its own.
                    if let Some(pod) = &mut answer.pod {
                        pod.devices.clear();
                    }
                    // An agent of an older release does not ask kubelet.
                    ask_kubelet(question, &mut answer);
                    return Ok(*answer);
                }
                (Ok(FromAgent::Refused(cause)), _) => {
                    return Err(ClusterError::Agent {
                        socket: self.socket.display().to_string(),
                        cause,
                    });
                }
                (Ok(FromAgent::Kept | FromAgent::Census(_)), _) => {
                    return Err(self.something_else());
                }
                (Err(Attempt::Away(_)), Some(api)) => {
                    let _ = self.agent_is_away.set(());
                    return api.ask(question);
                }
                (Err(Attempt::Away(_)), None) if Instant::now() < until => {
                    std::thread::sleep(PAUSE);
                }
                (Err(attempt), _) => return Err(attempt.error(self)),
            }
        }
    }

    fn announce(&self, question: &Question) {
        let message = ToAgent::Question(question.clone());
        if let Ok(stream) = self.send(&message) {
            *self.announced.borrow_mut() = Some((message, stream));
        }
    }

    fn ready(&self, until: Instant) -> Result<(), ClusterError> {
        match self.connect() {
            Ok(stream) => {
                let left = until.saturating_duration_since(Instant::now());
                // A limit of nothing would mean none.
                let _ = stream.set_read_timeout(Some(left.max(PAUSE)));
                *self.stream.borrow_mut() = Some(stream);
                self.ask(&Question::default()).map(drop)
            }
            Err(Attempt::Away(_)) if self.api.is_some() => Ok(()),
            Err(attempt) => Err(attempt.error(self)),
        }
    }

    fn census(&self, node: &str) -> Result<Census, ClusterError> {
        match (self.exchange(&ToAgent::Census), &self.api) {
            (Ok(FromAgent::Census(census)), _) => Ok(*census),
            (Ok(FromAgent::Refused(cause)), _) => Err(ClusterError::Agent {
                socket: self.socket.display().to_string(),
                cause,
            }),
            (Ok(FromAgent::Answer(_) | FromAgent::Kept), _) => Err(self.something_else()),
            (Err(Attempt::Away(_)), Some(api)) => {
                let _ = self.agent_is_away.set(());
                api.census(node)
            }
            (Err(attempt), _) => Err(attempt.error(self)),
        }
    }

    fn publish(&self, publication: &Publication) -> Result<(), ClusterError> {
        if let (Some(()), Some(api)) = (self.agent_is_away.get(), &self.api) {
            return api.publish(publication);
        }
        if let Some(api) = &self.api
            && self.stream.borrow().is_none()
        {
            match self.connect() {
                Ok(stream) => *self.stream.borrow_mut() = Some(stream),
                Err(Attempt::Away(_)) => return api.publish(publication),
                Err(attempt @ Attempt::Failed(_)) => return Err(attempt.error(self)),
            }
        }
        match self.owed.keep(publication) {
            Ok(()) => {
                self.owes.set(true);
                Ok(())
            }
            Err(disk) => self.entrust(publication, &disk),
        }
    }

    fn over(&self, figures: Figures) {
        let over = ToAgent::Over(Box::new(figures));
        if self.owes.take() {
            self.tell(&[ToAgent::Owed, over]);
        } else {
            self.tell(&[over]);
        }
    }
}

impl Drop for Agent {
    /// Who does not count reminds all the same.
    fn drop(&mut self) {
        if self.owes.take() {
            self.tell(&[ToAgent::Owed]);
        }
    }
}

#[cfg(test)]
mod tests;
