//! The plugin's side of the agent's socket: one question, one answer.
//!
//! While no agent listens (it starts, or is upgraded), a question waits for the socket. A publication
//! never waits: it goes to disk, and the plugin reminds the agent when the call is over. Where a
//! kubeconfig is configured, the API server takes an absent agent's place at once.

mod connection;

use std::cell::{Cell, OnceCell, RefCell};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use connection::{AgentConnection, ByDeadline, ConnectError, Purpose};

use super::devices::ask_kubelet;
use super::frame::{self, FrameError, FromAgent, MAX_FROM_AGENT, MAX_TO_AGENT, ToAgent};
use super::{
    AgentAbsence, AgentProblem, Answer, Api, Census, Cluster, ClusterError, Examination, Figures,
    Installation, KeepProblem, OwedWrites, PodName, Publication, Question,
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
    /// The connection of the question. Reports at the end of the call use it too.
    stream: RefCell<Option<AgentConnection>>,
    /// An announced question, and the connection over which its answer comes.
    announced: RefCell<Option<(ToAgent, AgentConnection)>>,
    /// Set once the API server has taken the agent's place, which it keeps for the whole call.
    agent_is_away: OnceCell<()>,
    /// Whether the call has kept a publication without reminding the agent yet.
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

    fn connect(&self, until: Instant) -> Result<AgentConnection, AskError> {
        connection::open(&self.socket, Purpose::Asking(until)).map_err(|error| match error {
            ConnectError::Io(error) => {
                use std::io::ErrorKind::{ConnectionRefused, NotFound, TimedOut, WouldBlock};
                match error.kind() {
                    NotFound | ConnectionRefused => AskError::Away(AgentAbsence::NoListener),
                    TimedOut | WouldBlock => self.failed(AgentAbsence::Late),
                    _ => self.failed(AgentAbsence::Io(error)),
                }
            }
            ConnectError::NotSocket => self.failed(AgentAbsence::NotSocket),
            ConnectError::Untrusted(uid) => AskError::Failed(ClusterError::Untrusted {
                socket: self.socket.clone(),
                uid,
            }),
        })
    }

    /// Sends a message and reads the answer, by `until`. The connection stays open for later
    /// messages.
    fn exchange(&self, message: &ToAgent, until: Instant) -> Result<FromAgent, AskError> {
        let announced = self.announced.borrow_mut().take();
        // The answer to another announced question is dropped with its connection.
        let stream = match announced {
            Some((announced, stream)) if announced == *message => stream,
            Some((_, stream)) => {
                let _ = stream.shutdown(Shutdown::Both);
                self.send(message, until)?
            }
            None => self.send(message, until)?,
        };
        let answer =
            receive(&mut ByDeadline::new(&stream, until)).map_err(|error| self.broken(error))?;
        *self.stream.borrow_mut() = Some(stream);
        Ok(answer)
    }

    /// Sends a message by `until`, over the open connection or a new one.
    fn send(&self, message: &ToAgent, until: Instant) -> Result<AgentConnection, AskError> {
        let frame = frame::encode(message, MAX_TO_AGENT).map_err(|error| self.broken(error))?;
        let kept = self.stream.borrow_mut().take();
        let stream = match kept {
            Some(stream) => stream,
            None => self.connect(until)?,
        };
        let sent = ByDeadline::new(&stream, until).write_all(&frame);
        sent.map_err(|error| self.broken(FrameError::Io(error)))?;
        Ok(stream)
    }

    /// The connection failed with this error.
    fn broken(&self, error: FrameError) -> AskError {
        match error {
            error if error.is_gone() => AskError::Away(AgentAbsence::Closed),
            error if error.is_late() => self.failed(AgentAbsence::Late),
            error => AskError::Failed(self.no_answer(AgentProblem::Frame(error))),
        }
    }

    fn failed(&self, source: AgentAbsence) -> AskError {
        AskError::Failed(self.no_agent(source))
    }

    fn no_agent(&self, source: AgentAbsence) -> ClusterError {
        ClusterError::NoAgent {
            socket: self.socket.clone(),
            source,
        }
    }

    fn no_answer(&self, source: AgentProblem) -> ClusterError {
        ClusterError::Agent {
            socket: self.socket.clone(),
            source,
        }
    }

    /// Sends messages that have no answer, without waiting, and `record` with them. An agent that
    /// starts later looks for owed writes by itself, and does not count this call.
    fn tell(&self, messages: &[ToAgent], record: &dyn Fn() -> Option<OwnedFd>) {
        let kept = self.stream.borrow_mut().take();
        let kept = kept.filter(|stream| stream.set_nonblocking(true).is_ok());
        let at_once = || connection::open(&self.socket, Purpose::Telling).ok();
        let Some(stream) = kept.or_else(at_once) else {
            return;
        };
        let frames: Vec<Vec<u8>> = messages
            .iter()
            .filter_map(|message| frame::encode(message, MAX_TO_AGENT).ok())
            .collect();
        // Messages that do not fit into the socket's buffer are lost.
        let _ = connection::send_with(&stream, &frames.concat(), record());
        // The connection stays open until this process ends: only then does the agent set to work.
    }

    /// Has the agent keep in memory what the disk does not take.
    fn entrust(
        &self,
        publication: &Publication,
        disk: io::Error,
        until: Instant,
    ) -> Result<(), ClusterError> {
        let agent = match self.exchange(&ToAgent::Keep(publication.clone()), until) {
            Ok(FromAgent::Kept) => return Ok(()),
            Ok(FromAgent::Refused(line)) => KeepProblem::Refused(line),
            Ok(_) => KeepProblem::OtherReply,
            Err(error) => KeepProblem::Unreachable(Box::new(error.into_error(self))),
        };
        Err(ClusterError::Owed {
            pod: publication.pod().to_string(),
            path: self.owed.dir().to_owned(),
            source: disk,
            agent,
        })
    }
}

/// The message of a question. The agent may send definitions before the answer.
fn in_parts(question: &Question) -> ToAgent {
    ToAgent::Question(Question {
        parts: true,
        ..question.clone()
    })
}

/// Reads an answer, with the definitions that come before it.
fn receive(stream: &mut impl Read) -> Result<FromAgent, FrameError> {
    let mut definitions = Vec::new();
    let (mut kept, mut sent) = (0, 0);
    loop {
        let (message, length) = frame::read_sized(stream, MAX_FROM_AGENT)?;
        match message {
            FromAgent::Definition(part) => {
                // A definition without a configuration takes memory too, and skipped keys take time.
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

/// The memory that a definition takes besides its configuration, in bytes.
const PART: usize = 1 << 10;
/// How many definitions come before an answer: no question names more.
const MOST_PARTS: usize = 256;

/// Why an attempt to ask the agent failed.
enum AskError {
    /// No agent listens at the moment: a retry may succeed.
    Away(AgentAbsence),
    /// A retry would fail too.
    Failed(ClusterError),
}

impl AskError {
    fn into_error(self, agent: &Agent) -> ClusterError {
        match self {
            AskError::Away(absence) => agent.no_agent(absence),
            AskError::Failed(error) => error,
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
                    // An agent of an older release does not ask kubelet itself.
                    ask_kubelet(question, &mut answer);
                    return Ok(*answer);
                }
                (Ok(FromAgent::Refused(line)), _) => {
                    return Err(self.no_answer(AgentProblem::Refused(line)));
                }
                (Ok(FromAgent::Kept | FromAgent::Census(_) | FromAgent::Definition(_)), _) => {
                    return Err(self.no_answer(AgentProblem::OtherReply));
                }
                (Err(AskError::Away(_)), Some(api)) => {
                    let _ = self.agent_is_away.set(());
                    return api.ask(question, until);
                }
                (Err(AskError::Away(_)), None) if Instant::now() < give_up.min(until) => {
                    std::thread::sleep(PAUSE);
                }
                (Err(error), _) => return Err(error.into_error(self)),
            }
        }
    }

    fn announce(&self, question: &Question) {
        let message = in_parts(question);
        // If the agent does not take it at once, the plugin sends it when it needs the answer.
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
            Err(AskError::Away(_)) if self.api.is_some() => Ok(()),
            Err(error) => Err(error.into_error(self)),
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
            (Ok(FromAgent::Refused(line)), _) => Err(self.no_answer(AgentProblem::Refused(line))),
            (Ok(FromAgent::Answer(_) | FromAgent::Kept | FromAgent::Definition(_)), _) => {
                Err(self.no_answer(AgentProblem::OtherReply))
            }
            (Err(AskError::Away(_)), Some(api)) => {
                let _ = self.agent_is_away.set(());
                api.census(node, with_definitions)
            }
            (Err(error), _) => Err(error.into_error(self)),
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
                Err(AskError::Away(_)) => return api.publish(publication, until),
                Err(AskError::Failed(error)) => return Err(error),
            }
        }
        match self.owed.keep(publication) {
            Ok(()) => {
                self.owes.set(true);
                Ok(())
            }
            Err(disk) => self.entrust(publication, disk, until),
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

/// Reports the state of the installation to the agent. It keeps one connection as long as that lasts,
/// since a connection to the agent must not be closed before the process ends.
#[derive(Debug)]
pub struct Informant {
    socket: PathBuf,
    stream: Option<AgentConnection>,
}

impl Informant {
    /// Reports to the agent at `socket`; nothing is opened yet.
    pub fn at(socket: &Path) -> Informant {
        Informant {
            socket: socket.to_owned(),
            stream: None,
        }
    }

    /// Reports without waiting, and returns whether the agent took it.
    pub fn tell(&mut self, installation: Installation) -> bool {
        let Ok(frame) = frame::encode(&ToAgent::Installation(installation), MAX_TO_AGENT) else {
            return false;
        };
        let tell = |stream: &AgentConnection| connection::send_with(stream, &frame, None).is_ok();
        self.stream = self.stream.take().filter(tell).or_else(|| {
            let stream = connection::open(&self.socket, Purpose::Telling).ok();
            stream.filter(tell)
        });
        self.stream.is_some()
    }
}

impl Drop for Agent {
    /// Reminds the agent of owed writes where no report of the call did.
    fn drop(&mut self) {
        if self.owes.take() {
            self.tell(&[ToAgent::Owed], &|| None);
        }
    }
}

#[cfg(test)]
mod tests;
