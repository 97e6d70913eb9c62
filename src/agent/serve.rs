//! Serves the connections of plugins, of the installer and of `doctor`: answers their questions and
//! takes their reports.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::cmsg_space;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tracing::{info, warn};

use super::attached_sandboxes::AttachedSandboxes;
use super::census;
use super::device_usage::DeviceUsage;
use super::knowledge::Knowledge;
use super::lookups::QuestionLookups;
use super::node_events::NodeEvents;
use super::publisher::Publisher;
use super::record_sync::RecordSync;
use crate::cluster::api::answer;
use crate::cluster::frame::{
    self, FrameError, FromAgent, HEADER, MAX_FROM_AGENT, MAX_TO_AGENT, ToAgent,
};
use crate::cluster::{Event, Figures, Question};

/// The limit of concurrent connections. Further connections wait in the queue of the kernel.
const CONNECTIONS: usize = 512;
/// The time limit for the first message of a connection, for the remaining bytes of a message that
/// has begun, and for sending a message.
const ARRIVAL: Duration = Duration::from_secs(5);
/// The time limit for each further message of a connection. It is longer than the default deadline
/// of an ADD, because a plugin keeps its connection during the ADD.
const PATIENCE: Duration = Duration::from_secs(600);
/// The pause before the agent reads the report of a plugin, so that the plugin can end first.
/// Without the pause, the agent could take the processor from the plugin while the runtime waits
/// for the end of the plugin.
const LAST_STEPS: Duration = Duration::from_millis(2);
/// If the agent was absent for at least this many seconds, it creates an event. The agent learns
/// the duration from the first plugin that it answers after the absence. An upgrade of the agent
/// takes less time, so an upgrade causes no event.
const LONG_SILENCE: u64 = 60;
/// The pause after the agent failed to accept a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves the connections to the agent's socket.
pub(super) struct PluginService {
    pub(super) knowledge: Rc<Knowledge>,
    pub(super) publisher: Rc<Publisher>,
    pub(super) durable: RecordSync,
    pub(super) devices: Rc<DeviceUsage>,
    pub(super) node_events: Rc<NodeEvents>,
    pub(super) sandboxes: Rc<AttachedSandboxes>,
}

impl PluginService {
    /// Serves connections and never returns.
    pub(super) async fn serve(self, listener: &UnixListener) {
        let service = Rc::new(self);
        let free = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let permit = Arc::clone(&free).acquire_owned().await;
            match listener.accept().await {
                Ok((stream, _)) => {
                    let service = Rc::clone(&service);
                    tokio::task::spawn_local(async move {
                        service.converse(stream).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    warn!(
                        "cannot accept a connection: {error}; if too many files are open, raise \
                         the agent's limit of open files"
                    );
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn converse(&self, mut stream: UnixStream) {
        let ours = nix::unistd::geteuid().as_raw();
        match stream.peer_cred() {
            Ok(peer) if peer.uid() == ours => {}
            Ok(peer) => {
                warn!(
                    uid = peer.uid(),
                    pid = peer.pid(),
                    "refused a connection: only root may use the socket"
                );
                self.knowledge.metrics.refused.inc();
                let refusal = "only root may use the socket; run the plugin as root";
                send(&mut stream, &FromAgent::Refused(refusal.into())).await;
                return;
            }
            Err(error) => {
                return warn!("refused a connection: cannot read its credentials: {error}");
            }
        }
        let (mut owes, mut has_answer, mut has_waited) = (false, false, false);
        let mut patience = ARRIVAL;
        loop {
            let next = async {
                // Pause for `LAST_STEPS` only once per connection. `doctor` asks many questions
                // over one connection, and a pause before each question would slow `doctor` down.
                if has_answer && !std::mem::replace(&mut has_waited, true) {
                    stream.readable().await.map_err(FrameError::Io)?;
                    tokio::time::sleep(LAST_STEPS).await;
                }
                receive(&mut stream).await
            };
            let message = match tokio::time::timeout(patience, next).await {
                Ok(Ok((message, record))) => {
                    if let Some(record) = record {
                        self.durable.written(record);
                    }
                    message
                }
                // The peer has closed the connection, or its next message is late.
                Err(_) | Ok(Err(FrameError::Io(_))) => break,
                Ok(Err(error)) => {
                    warn!("refused a message: {error}");
                    self.knowledge.metrics.refused.inc();
                    send(&mut stream, &FromAgent::Refused(error.to_string())).await;
                    break;
                }
            };
            match message {
                ToAgent::Question(question) => {
                    if !self.answer(&question, &mut stream).await {
                        break;
                    }
                    has_answer = true;
                }
                ToAgent::Owed => owes = true,
                ToAgent::Over(figures) => self.over(*figures),
                ToAgent::Examined(examination) => self.knowledge.metrics.examined(&examination),
                ToAgent::Keep(publication) => {
                    let reply = match self.publisher.waiting.keep(publication) {
                        Ok(()) => FromAgent::Kept,
                        Err(error) => FromAgent::Refused(error.to_string()),
                    };
                    owes = true;
                    send(&mut stream, &reply).await;
                }
                ToAgent::Census => {
                    let census = census::whole(&self.knowledge).await;
                    send(&mut stream, &FromAgent::Census(Box::new(census))).await;
                }
                ToAgent::Pods => {
                    let pods = census::of_pods(&self.knowledge);
                    send(&mut stream, &FromAgent::Census(Box::new(pods))).await;
                }
                ToAgent::Sandboxes { list, is_last } => {
                    let pods = &self.knowledge.cache.pods;
                    self.sandboxes.list(list, is_last, pods);
                }
                ToAgent::Installation(installation) => {
                    self.knowledge.metrics.installation(&installation.state);
                    self.node_events.installation(&installation);
                }
            }
            patience = PATIENCE;
        }
        // Publish only after the end of the connection. A plugin closes its connection after it has
        // answered the runtime, so publishing does not delay the pod.
        if owes {
            self.publisher.wake();
        }
    }

    /// Handles the report of a finished call: updates the metrics and the agent's list of attached
    /// sandboxes, and logs a failure. If the call reports that the agent was absent for at least
    /// [`LONG_SILENCE`] seconds, creates an event.
    fn over(&self, mut figures: Figures) {
        self.knowledge.metrics.over(&figures);
        let reported = figures.sandbox.take();
        let pods = &self.knowledge.cache.pods;
        if let Some(took) = reported.and_then(|sandbox| self.sandboxes.report(sandbox, pods)) {
            self.knowledge.metrics.changed(took);
        }
        if let Some(seconds) = figures.agent_silent.filter(|it| *it >= LONG_SILENCE) {
            let message = format!(
                "the agent did not answer for {seconds} s, and pods that needed the agent had to wait; find out why"
            );
            self.node_events
                .create(Event::warning("AgentAway", message));
        }
        if let Some(failure) = &figures.failure {
            let failed = figures.networks.iter().find(|network| !network.done);
            warn!(
                pod = figures.pod,
                container = figures.container,
                network = failed.map(|failed| failed.network.as_str()),
                phase = figures.last.as_deref(),
                verb = &*figures.verb,
                code = figures.code,
                "{failure}"
            );
        }
    }

    /// Answers a question and returns whether the agent could send the answer.
    async fn answer(&self, question: &Question, stream: &mut UnixStream) -> bool {
        let began = Instant::now();
        // After a start, the agent waits for a random time before it starts its watches. End this
        // wait, so that the cache can answer the next question about a pod.
        if question.pod.is_some() {
            self.knowledge.start.end();
        }
        let node = Some(self.knowledge.node.as_str());
        let errand = QuestionLookups::new(&self.knowledge, question.parts.then_some(&mut *stream));
        let answered = answer(&errand, node, question).await;
        let took = began.elapsed();
        self.knowledge.metrics.answered(answered.is_ok(), took);
        let reply = match answered {
            Ok(mut answer) => {
                if question.differing {
                    self.sandboxes.complete(&mut answer);
                }
                if answer.kubelet.is_some() {
                    self.devices.changed();
                }
                let failure = answer.kubelet.as_ref().and_then(|it| it.failure.as_ref());
                if let Some(failure) = failure {
                    let pod = question.pod.as_ref().map(ToString::to_string);
                    warn!(pod, phase = "devices", "{failure}");
                }
                FromAgent::Answer(Box::new(answer))
            }
            Err(error) => {
                let pod = question.pod.as_ref().map(ToString::to_string);
                info!(pod, phase = "question", "refused: {error}");
                FromAgent::Refused(error.to_string())
            }
        };
        let is_gone = errand.is_plugin_gone();
        let _room = errand.close();
        !is_gone && send(stream, &reply).await
    }
}

/// Receives the next message. If a descriptor of a journal record arrives with the message, also
/// returns the descriptor. Once the message has begun, its remaining bytes must arrive within
/// [`ARRIVAL`].
async fn receive(stream: &mut UnixStream) -> Result<(ToAgent, Option<OwnedFd>), FrameError> {
    let mut header = [0; HEADER];
    let first = stream.async_io(Interest::READABLE, || {
        receive_with_descriptor(stream, &mut header[..1])
    });
    let (read, record) = first.await.map_err(FrameError::Io)?;
    if read == 0 {
        return Err(FrameError::Io(io::ErrorKind::UnexpectedEof.into()));
    }
    let rest = async {
        let io = FrameError::Io;
        stream.read_exact(&mut header[1..]).await.map_err(io)?;
        let mut body = vec![0; frame::length(header, MAX_TO_AGENT)?];
        stream.read_exact(&mut body).await.map_err(io)?;
        serde_json::from_slice(&body).map_err(FrameError::Json)
    };
    let rest = tokio::time::timeout(ARRIVAL, rest).await;
    let late = |_| FrameError::Io(io::ErrorKind::TimedOut.into());
    Ok((rest.map_err(late)??, record))
}

/// Reads the bytes that have arrived, and the descriptor that arrived with them, if any.
fn receive_with_descriptor(
    stream: &UnixStream,
    bytes: &mut [u8],
) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let read = recvmsg(stream, &mut [IoSliceMut::new(bytes)], &mut control, flags)?.bytes;
    let descriptor = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok((read, descriptor))
}

/// Sends a message. If the message is too large, sends a refusal instead. Returns whether the agent
/// could send the message or the refusal within [`ARRIVAL`].
pub(super) async fn send(stream: &mut UnixStream, message: &FromAgent) -> bool {
    let frame = frame::encode(message, MAX_FROM_AGENT).or_else(|error| {
        let refusal =
            format!("the answer is too large: {error}; select fewer or smaller definitions");
        frame::encode(&FromAgent::Refused(refusal), MAX_FROM_AGENT)
    });
    match frame {
        Ok(frame) => send_frame(stream, &frame).await,
        Err(_) => false,
    }
}

/// Sends the bytes of a message and returns whether the agent could send them within [`ARRIVAL`].
pub(super) async fn send_frame(stream: &mut UnixStream, frame: &[u8]) -> bool {
    let sent = tokio::time::timeout(ARRIVAL, stream.write_all(frame)).await;
    matches!(sent, Ok(Ok(())))
}
