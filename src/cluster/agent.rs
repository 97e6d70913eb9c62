//! The plugin's side of the agent's socket: one question, one answer.
//!
//! The question of an ADD waits while no agent listens, for example because the agent is being
//! upgraded. The questions of other calls do not wait. A [`Publication`] (a status and
//! events) does not wait either: the plugin writes it to disk and notifies the agent at the end of
//! the call. With a kubeconfig, no call waits for an absent agent: the plugin then uses the API
//! server.

mod connection;
mod informant;
mod reply;

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::mem::ManuallyDrop;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use connection::{ByDeadline, Purpose};

pub use informant::Informant;

use super::devices::ask_kubelet;
use super::frame::{self, FrameError, FromAgent, MAX_TO_AGENT, ToAgent};
use super::{
    AgentProblem, Answer, Api, Census, Cluster, ClusterError, Examination, Figures, OwedWrites,
    PodName, Publication, Question, SandboxNetworks,
};

/// The longest time that an ADD waits for an agent that does not listen.
pub const AGENT_WAIT: Duration = Duration::from_secs(10);
/// The time limit for one answer of the agent. The agent may have to ask the API server first.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause between two attempts to connect to the agent. Also the time limit for sending a
/// question in advance ([`Cluster::announce`]).
const PAUSE: Duration = Duration::from_millis(50);

/// The maximum number of sandboxes in one message. Even with the longest names, this many sandboxes
/// fit into a message.
const MOST_SANDBOXES: usize = 1000;

/// A connection to the agent, which [`Agent::opened`] keeps open.
type AgentConnection = Rc<UnixStream>;

/// A client of the agent, over a unix socket.
#[derive(Debug)]
pub struct Agent {
    socket: PathBuf,
    owed: OwedWrites,
    api: Option<Api>,
    /// All connections. They stay open until [`Agent::close`] or the end of this process, because a
    /// compromised agent can delay the process that closes a connection. Over a connection that the
    /// plugin reads ([`Purpose::Asking`]), the agent can send file descriptors. When a connection
    /// closes, the kernel also closes the descriptors that the plugin has not read. Two kinds of
    /// descriptors take long to close:
    /// - A socket with SO_LINGER: the kernel waits for the socket's peer, except at the end of a
    ///   process.
    /// - A deleted file: the kernel frees the file's blocks one by one, even at the end of a
    ///   process. So with deleted files, a compromised agent can delay the end of a call. This is
    ///   no new risk, because such an agent can also delay a call by not answering.
    opened: ManuallyDrop<RefCell<Vec<AgentConnection>>>,
    /// The connection over which the plugin sent its question. Reports at the end of the call use
    /// this connection too.
    stream: RefCell<Option<AgentConnection>>,
    /// An announced question, and the connection over which its answer will arrive.
    announced: RefCell<Option<(ToAgent, AgentConnection)>>,
    /// Whether a kubeconfig is configured and the agent was absent. If so, the rest of the call
    /// publishes to the API server.
    agent_is_away: Cell<bool>,
    /// Whether the call has written a publication to disk and not yet notified the agent.
    owes: Cell<bool>,
}

impl Agent {
    /// Creates a client of the agent at `socket`. Does not connect yet.
    pub fn new(socket: &Path, kubeconfig: Option<&Path>, journal_dir: &Path) -> Agent {
        Agent {
            socket: socket.to_owned(),
            owed: OwedWrites::new(journal_dir),
            api: kubeconfig.map(Api::new),
            opened: ManuallyDrop::default(),
            stream: RefCell::default(),
            announced: RefCell::default(),
            agent_is_away: Cell::new(false),
            owes: Cell::new(false),
        }
    }

    fn connect(&self, until: Instant) -> Result<AgentConnection, ClusterError> {
        let stream = self.open(Purpose::Asking(until));
        stream.map_err(|error| self.failed(error))
    }

    fn open(&self, purpose: Purpose) -> Result<AgentConnection, AgentProblem> {
        let stream = Rc::new(connection::open(&self.socket, purpose)?);
        self.opened.borrow_mut().push(Rc::clone(&stream));
        Ok(stream)
    }

    /// Sends a message and reads the answer by `until`. If the message is the announced question,
    /// only reads the answer. The connection stays open for later messages.
    fn exchange(&self, message: &ToAgent, until: Instant) -> Result<FromAgent, ClusterError> {
        let announced = self.announced.borrow_mut().take();
        // The first answer on the connection of an announced question belongs to that question. If
        // `message` is different, shut that connection down and use another one.
        let stream = match announced {
            Some((announced, stream)) if announced == *message => stream,
            Some((_, stream)) => {
                let _ = stream.shutdown(Shutdown::Both);
                self.send(message, until)?
            }
            None => self.send(message, until)?,
        };
        let answer = reply::receive(&mut ByDeadline::new(&stream, until));
        let answer = answer.map_err(|error| self.failed(error))?;
        *self.stream.borrow_mut() = Some(stream);
        match answer {
            FromAgent::Refused(line) => Err(self.failed(AgentProblem::Refused(line))),
            answer => Ok(answer),
        }
    }

    /// Sends a message by `until`, over the open connection or a new one.
    fn send(&self, message: &ToAgent, until: Instant) -> Result<AgentConnection, ClusterError> {
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

    fn failed(&self, source: impl Into<AgentProblem>) -> ClusterError {
        ClusterError::Agent(self.socket.clone(), source.into())
    }

    /// If `error` means that the agent is absent, returns the API server of the configured
    /// kubeconfig and sets `agent_is_away`. Returns [`None`] without a kubeconfig.
    fn stand_in(&self, error: &ClusterError) -> Option<&Api> {
        let api = self.api.as_ref().filter(|_| error.is_of_absent_agent())?;
        self.agent_is_away.set(true);
        Some(api)
    }

    /// Sends messages that have no answer. Also sends the descriptor that `record` returns, so that
    /// the agent can sync the journal record. Does not wait. If no agent listens, the messages are
    /// lost. An agent that starts later finds the publications on disk, but does not get the
    /// measurements of this call.
    fn tell(&self, messages: &[ToAgent], record: &dyn Fn() -> Option<OwnedFd>) {
        let kept = self.stream.borrow_mut().take();
        let encoded = |message: &ToAgent| frame::encode(message, MAX_TO_AGENT).ok();
        let frames: Vec<u8> = messages.iter().filter_map(encoded).flatten().collect();
        let send = |stream: &UnixStream| connection::send_with(stream, &frames, record());
        let is_sent = kept
            .is_some_and(|stream| stream.set_nonblocking(true).is_ok() && send(&stream).is_ok());
        // Use a new connection if none is open, or if the open one fails, for example because the
        // agent was restarted. Messages that do not fit into the buffer of the new socket are lost.
        if !is_sent && let Ok(stream) = self.open(Purpose::Telling) {
            let _ = send(&stream);
        }
        // The agent publishes when the connection closes: at the end of this process, or in
        // [`Agent::close`].
    }
}

/// Returns the message for a question. The message allows the agent to send definitions before the
/// answer.
fn in_parts(question: &Question) -> ToAgent {
    ToAgent::Question(Question {
        parts: true,
        ..question.clone()
    })
}

impl Cluster for Agent {
    fn ask(&self, question: &Question, until: Instant) -> Result<Answer, ClusterError> {
        let give_up = until.min(Instant::now() + question.patience);
        let message = in_parts(question);
        loop {
            let answered_by = until.min(Instant::now() + ANSWER_TIMEOUT);
            let error = match self.exchange(&message, answered_by) {
                Ok(FromAgent::Answer(mut answer)) => {
                    // Asks kubelet only if the agent has not done so. An agent from an older
                    // release never asks kubelet.
                    ask_kubelet(question, &mut answer);
                    return Ok(*answer);
                }
                Ok(_) => return Err(self.failed(AgentProblem::OtherReply)),
                Err(error) => error,
            };
            if let Some(api) = self.stand_in(&error) {
                return api.ask(question, until);
            }
            if !error.is_of_absent_agent() || Instant::now() >= give_up {
                return Err(error);
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn announce(&self, question: &Question) {
        let message = in_parts(question);
        // If the agent does not accept the question within `PAUSE`, `ask` sends it later.
        if let Ok(stream) = self.send(&message, Instant::now() + PAUSE) {
            *self.announced.borrow_mut() = Some((message, stream));
        }
    }

    fn ready(&self, question: &Question, until: Instant) -> Result<Answer, ClusterError> {
        let stream = match self.connect(until) {
            Err(error) if self.stand_in(&error).is_some() => return Ok(Answer::default()),
            stream => stream?,
        };
        *self.stream.borrow_mut() = Some(stream);
        self.ask(question, until)
    }

    fn hand_over(&self, mut sandboxes: Vec<SandboxNetworks>, until: Instant) {
        loop {
            let rest = sandboxes.split_off(sandboxes.len().min(MOST_SANDBOXES));
            let is_last = rest.is_empty();
            let list = std::mem::replace(&mut sandboxes, rest);
            // If the list cannot be sent, the agent asks for it again in its answer to the next
            // STATUS.
            let Ok(stream) = self.send(&ToAgent::Sandboxes { list, is_last }, until) else {
                return;
            };
            *self.stream.borrow_mut() = Some(stream);
            if is_last {
                return;
            }
        }
    }

    fn census(&self, node: &str, with_definitions: bool) -> Result<Census, ClusterError> {
        let until = Instant::now() + ANSWER_TIMEOUT;
        let message = match with_definitions {
            true => ToAgent::Census,
            false => ToAgent::Pods,
        };
        match self.exchange(&message, until) {
            Ok(FromAgent::Census(census)) => Ok(*census),
            Ok(_) => Err(self.failed(AgentProblem::OtherReply)),
            Err(error) => match self.stand_in(&error) {
                Some(api) => api.census(node, with_definitions),
                None => Err(error),
            },
        }
    }

    fn publish(&self, publication: &Publication, until: Instant) -> Result<(), ClusterError> {
        if let Some(api) = &self.api {
            if self.agent_is_away.get() {
                return api.publish(publication, until);
            }
            if self.stream.borrow().is_none() {
                match self.connect(until) {
                    Ok(stream) => *self.stream.borrow_mut() = Some(stream),
                    Err(error) if self.stand_in(&error).is_none() => return Err(error),
                    Err(_) => return api.publish(publication, until),
                }
            }
        }
        let Err(disk) = self.owed.keep(publication) else {
            self.owes.set(true);
            return Ok(());
        };
        // If the disk does not accept a publication, the agent keeps it in memory.
        let agent = match self.exchange(&ToAgent::Keep(publication.clone()), until) {
            Ok(FromAgent::Kept) => return Ok(()),
            Ok(_) => self.failed(AgentProblem::OtherReply),
            Err(error) => error,
        };
        Err(ClusterError::Owed {
            pod: publication.pod().to_string(),
            path: self.owed.dir().to_owned(),
            source: disk,
            agent: Box::new(agent),
        })
    }

    fn withdraw(&self, removal: &Publication) {
        // Only an agent reads `removal` from disk and removes the detached networks from the status
        // of the pod's ResourceClaims. A node with a kubeconfig may have no agent. The plugin then
        // drops `removal`, because the call must not wait for the API server. The status still
        // lists the detached networks until the claim is deallocated.
        let has_agent = self.api.is_none() || self.open(Purpose::Telling).is_ok();
        if has_agent && self.owed.keep(removal).is_ok() {
            self.owes.set(true);
        }
    }

    fn sweep(&self, _: &PodName) {
        self.owed.sweep();
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

    fn close(&self) {
        self.stream.take();
        self.announced.take();
        self.opened.take();
    }
}

impl Drop for Agent {
    /// Notifies the agent of publications on disk, if [`Cluster::over`] has not done so.
    fn drop(&mut self) {
        if self.owes.take() {
            self.tell(&[ToAgent::Owed], &|| None);
        }
    }
}

#[cfg(test)]
mod tests;
