//! The agent, asked by the plugin: one question, one answer, over its socket.
//!
//! While the agent is away (it starts, it is upgraded) a question waits for the socket. What is
//! to be told never waits: it goes to disk, and the agent is reminded when the call is over. Where a
//! kubeconfig is configured, the API server itself takes an absent agent's place at once.

mod connection;

use std::cell::{Cell, OnceCell, RefCell};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use connection::{AgentConnection, ByDeadline, ConnectError, For};

use super::devices::ask_kubelet;
use super::frame::{self, FrameError, FromAgent, MAX_FROM_AGENT, MAX_TO_AGENT, ToAgent};
use super::{
    Answer, Api, Census, Cluster, ClusterError, Examination, Figures, Installation, OwedWrites,
    PodName, Publication, Question,
};

/// How long an ADD waits for an agent that is away.
pub const AGENT_WAIT: Duration = Duration::from_secs(10);
/// How long the agent may take for one answer: it may have to ask the API server.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// All definitions of one answer together, in bytes: a plan has 8 MiB at most.
const MOST_DEFINITIONS: usize = (8 << 20) + MOST_PARTS * PART;
/// How often the socket is tried.
const PAUSE: Duration = Duration::from_millis(50);

/// The agent behind its socket.
#[derive(Debug)]
pub struct Agent {
    socket: PathBuf,
    owed: OwedWrites,
    api: Option<Api>,
    /// The connection that the question went over; what is told at the end goes over it too.
    stream: RefCell<Option<AgentConnection>>,
    /// A question that was sent ahead of being asked, and the connection that its answer comes over.
    announced: RefCell<Option<(ToAgent, AgentConnection)>>,
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

    fn connect(&self, until: Instant) -> Result<AgentConnection, Attempt> {
        connection::open(&self.socket, For::Asking(until)).map_err(|error| match error {
            ConnectError::Io(error) => {
                use std::io::ErrorKind::{ConnectionRefused, NotFound, TimedOut, WouldBlock};
                match error.kind() {
                    NotFound => Attempt::Away("nobody listens there".to_owned()),
                    ConnectionRefused => Attempt::Away("nobody listens any more".to_owned()),
                    TimedOut | WouldBlock => self.late(),
                    _ => Attempt::Failed(self.no_agent(&error)),
                }
            }
            ConnectError::Untrusted(uid) => Attempt::Failed(ClusterError::Untrusted {
                socket: self.socket.display().to_string(),
                uid,
            }),
        })
    }

    /// One message and its answer, by `until`; the connection is kept for what follows.
    fn exchange(&self, message: &ToAgent, until: Instant) -> Result<FromAgent, Attempt> {
        let announced = self.announced.borrow_mut().take();
        // The answer to what was not asked after all goes with its connection.
        let stream = match announced {
            Some((announced, stream)) if announced == *message => stream,
            Some((_, stream)) => {
                let _ = stream.shutdown(Shutdown::Both);
                self.send(message, until)?
            }
            None => self.send(message, until)?,
        };
        let answer =
            receive(&mut ByDeadline::new(&stream, until)).map_err(|error| self.failed(error))?;
        *self.stream.borrow_mut() = Some(stream);
        Ok(answer)
    }

    /// Sends a message by `until`, over the open connection or a new one.
    fn send(&self, message: &ToAgent, until: Instant) -> Result<AgentConnection, Attempt> {
        let frame = frame::encode(message, MAX_TO_AGENT).map_err(|error| self.failed(error))?;
        let kept = self.stream.borrow_mut().take();
        let stream = match kept {
            Some(stream) => stream,
            None => self.connect(until)?,
        };
        let sent = ByDeadline::new(&stream, until).write_all(&frame);
        sent.map_err(|error| self.failed(FrameError::Io(error)))?;
        Ok(stream)
    }

    fn late(&self) -> Attempt {
        Attempt::Failed(ClusterError::NoAgent {
            socket: self.socket.display().to_string(),
            cause: "no answer in time".to_owned(),
            remedy: "look into its log, and restart it",
        })
    }

    fn failed(&self, error: FrameError) -> Attempt {
        match error {
            error if error.is_gone() => Attempt::Away("it went away while it was asked".to_owned()),
            FrameError::Io(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) =>
            {
                self.late()
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

    /// Tells an agent that is there, without waiting: one that is not looks by itself for what is
    /// owed, and counts what it hears. `record` is handed over with the messages.
    fn tell(&self, messages: &[ToAgent], record: &dyn Fn() -> Option<OwnedFd>) {
        let kept = self.stream.borrow_mut().take();
        let kept = kept.filter(|stream| stream.set_nonblocking(true).is_ok());
        let at_once = || connection::open(&self.socket, For::Telling).ok();
        let Some(stream) = kept.or_else(at_once) else {
            return;
        };
        let frames: Vec<Vec<u8>> = messages
            .iter()
            .filter_map(|message| frame::encode(message, MAX_TO_AGENT).ok())
            .collect();
        // What does not fit into the socket's buffer is not counted.
        let _ = connection::send_with(&stream, &frames.concat(), record());
        // Open until this process ends: only then is the processor free for what is owed.
    }

    /// Where nothing can be kept on disk, the agent keeps it in memory.
    fn entrust(
        &self,
        publication: &Publication,
        disk: &std::io::Error,
        until: Instant,
    ) -> Result<(), ClusterError> {
        let failed = |cause: String| ClusterError::Owed {
            pod: publication.pod().to_string(),
            path: self.owed.dir().display().to_string(),
            cause: format!("{disk}, and {cause}"),
        };
        match self.exchange(&ToAgent::Keep(publication.clone()), until) {
            Ok(FromAgent::Kept) => Ok(()),
            Ok(FromAgent::Refused(cause)) => Err(failed(cause)),
            Ok(_) => Err(failed("the agent did not take it".to_owned())),
            Err(attempt) => Err(failed(attempt.error(self).to_string())),
        }
    }
}

/// A question as it is sent: definitions may come before the answer.
fn in_parts(question: &Question) -> ToAgent {
    ToAgent::Question(Question {
        parts: true,
        ..question.clone()
    })
}

/// What the agent says, with the definitions that it says before.
fn receive(stream: &mut impl Read) -> Result<FromAgent, FrameError> {
    let mut definitions = Vec::new();
    let (mut kept, mut sent) = (0, 0);
    loop {
        let (message, length) = frame::read_sized(stream, MAX_FROM_AGENT)?;
        match message {
            FromAgent::Definition(part) => {
                // One without a text takes memory too, and what is skipped takes time.
                sent += length;
                kept += PART + part.1.config.as_ref().map_or(0, String::len);
                if kept > MOST_DEFINITIONS
                    || sent > MAX_FROM_AGENT + MOST_PARTS * PART
                    || definitions.len() == MOST_PARTS
                {
                    let limit = MOST_DEFINITIONS;
                    return Err(FrameError::Definitions { limit });
                }
                definitions.push(*part);
            }
            FromAgent::Answer(mut answer) => {
                answer.complete(definitions);
                return Ok(FromAgent::Answer(answer));
            }
            other => return Ok(other),
        }
    }
}

/// What a definition takes besides its text, in bytes.
const PART: usize = 1 << 10;
/// How many definitions come before an answer: no question names more.
const MOST_PARTS: usize = 256;

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
    fn ask(&self, question: &Question, until: Instant) -> Result<Answer, ClusterError> {
        let give_up = Instant::now() + question.patience;
        let message = in_parts(question);
        loop {
            let answered_by = until.min(Instant::now() + ANSWER_TIMEOUT);
            match (self.exchange(&message, answered_by), &self.api) {
                (Ok(FromAgent::Answer(mut answer)), _) => {
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
                (Ok(FromAgent::Kept | FromAgent::Census(_) | FromAgent::Definition(_)), _) => {
                    return Err(self.something_else());
                }
                (Err(Attempt::Away(_)), Some(api)) => {
                    let _ = self.agent_is_away.set(());
                    return api.ask(question, until);
                }
                (Err(Attempt::Away(_)), None) if Instant::now() < give_up.min(until) => {
                    std::thread::sleep(PAUSE);
                }
                (Err(attempt), _) => return Err(attempt.error(self)),
            }
        }
    }

    fn announce(&self, question: &Question) {
        let message = in_parts(question);
        // An agent that does not take it at once is asked once the answer is needed.
        if let Ok(stream) = self.send(&message, Instant::now() + PAUSE) {
            *self.announced.borrow_mut() = Some((message, stream));
        }
    }

    fn ready(&self, until: Instant) -> Result<(), ClusterError> {
        match self.connect(until) {
            Ok(stream) => {
                *self.stream.borrow_mut() = Some(stream);
                self.ask(&Question::default(), until).map(drop)
            }
            Err(Attempt::Away(_)) if self.api.is_some() => Ok(()),
            Err(attempt) => Err(attempt.error(self)),
        }
    }

    fn census(&self, node: &str, with_definitions: bool) -> Result<Census, ClusterError> {
        let until = Instant::now() + ANSWER_TIMEOUT;
        let message = match with_definitions {
            true => ToAgent::Census,
            false => ToAgent::Pods,
        };
        match (self.exchange(&message, until), &self.api) {
            (Ok(FromAgent::Census(census)), _) => Ok(*census),
            (Ok(FromAgent::Refused(cause)), _) => Err(ClusterError::Agent {
                socket: self.socket.display().to_string(),
                cause,
            }),
            (Ok(FromAgent::Answer(_) | FromAgent::Kept | FromAgent::Definition(_)), _) => {
                Err(self.something_else())
            }
            (Err(Attempt::Away(_)), Some(api)) => {
                let _ = self.agent_is_away.set(());
                api.census(node, with_definitions)
            }
            (Err(attempt), _) => Err(attempt.error(self)),
        }
    }

    fn publish(&self, publication: &Publication, until: Instant) -> Result<(), ClusterError> {
        if let (Some(()), Some(api)) = (self.agent_is_away.get(), &self.api) {
            return api.publish(publication, until);
        }
        if let Some(api) = &self.api
            && self.stream.borrow().is_none()
        {
            match self.connect(until) {
                Ok(stream) => *self.stream.borrow_mut() = Some(stream),
                Err(Attempt::Away(_)) => return api.publish(publication, until),
                Err(attempt @ Attempt::Failed(_)) => return Err(attempt.error(self)),
            }
        }
        match self.owed.keep(publication) {
            Ok(()) => {
                self.owes.set(true);
                Ok(())
            }
            Err(disk) => self.entrust(publication, &disk, until),
        }
    }

    fn forget(&self, pod: &PodName) {
        self.owed.forget_pod(pod);
    }

    fn over(&self, figures: Figures, record: &dyn Fn() -> Option<OwnedFd>) {
        let over = ToAgent::Over(Box::new(figures));
        if self.owes.take() {
            self.tell(&[ToAgent::Owed, over], record);
        } else {
            self.tell(&[over], record);
        }
    }

    fn examined(&self, examination: Examination) {
        self.tell(&[ToAgent::Examined(examination)], &|| None);
    }
}

/// Tells the agent of the installation, over one connection as long as it lasts: a process that stays
/// closes none.
#[derive(Debug)]
pub struct Informant {
    socket: PathBuf,
    stream: Option<AgentConnection>,
}

impl Informant {
    /// Nothing is opened yet.
    pub fn at(socket: &Path) -> Informant {
        Informant {
            socket: socket.to_owned(),
            stream: None,
        }
    }

    /// Tells it without waiting, and returns whether the agent was there to take it.
    pub fn tell(&mut self, installation: Installation) -> bool {
        let Ok(frame) = frame::encode(&ToAgent::Installation(installation), MAX_TO_AGENT) else {
            return false;
        };
        let tell = |stream: &AgentConnection| connection::send_with(stream, &frame, None).is_ok();
        self.stream = self.stream.take().filter(tell).or_else(|| {
            let stream = connection::open(&self.socket, For::Telling).ok();
            stream.filter(tell)
        });
        self.stream.is_some()
    }
}

impl Drop for Agent {
    /// Who does not count reminds all the same.
    fn drop(&mut self) {
        if self.owes.take() {
            self.tell(&[ToAgent::Owed], &|| None);
        }
    }
}

#[cfg(test)]
mod tests;
