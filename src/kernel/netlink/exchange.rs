//! One question, one answer: what rtnetlink leaves to its users.
//!
//! The crate's own requests drop the flag that says that a list changed while it was read, take a
//! closed socket for the end of a list, and keep the kernel's words to themselves. Hence the
//! messages are sent as they are, and their answers are read here.

use std::io;
use std::time::Duration;

use futures_util::StreamExt;
use netlink_packet_core::{
    ErrorMessage, NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_DUMP, NLM_F_DUMP_INTR,
    NLM_F_REQUEST, NetlinkMessage, NetlinkPayload, NlasIterator,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{AsyncSocket, TokioSocket};
use rtnetlink::proto::Connection;
use tokio::runtime::{Builder, Runtime};

use crate::kernel::KernelError;

/// What kind of answer is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One message.
    One,
    /// Any number of messages and an end.
    List,
    /// An acknowledgement of something added, behind what is there.
    Append,
    /// An acknowledgement of something removed.
    Remove,
}

impl Kind {
    fn flags(self) -> u16 {
        NLM_F_REQUEST
            | match self {
                Self::One => 0,
                Self::List => NLM_F_DUMP,
                Self::Append => NLM_F_ACK | NLM_F_CREATE | NLM_F_APPEND,
                Self::Remove => NLM_F_ACK,
            }
    }
}

/// Why there is no answer; [`Failure::about`] says what was asked.
#[derive(Debug)]
pub(super) enum Failure {
    Refused {
        errno: i32,
        explanation: Option<String>,
    },
    Silent(Duration),
    Closed,
    Unsteady(u32),
}

impl Failure {
    pub(super) fn is_errno(&self, number: i32) -> bool {
        matches!(self, Self::Refused { errno, .. } if *errno == number)
    }

    pub(super) fn about(self, action: String) -> KernelError {
        match self {
            Self::Refused { errno, explanation } => KernelError::Refused {
                action,
                source: io::Error::from_raw_os_error(errno),
                explanation,
            },
            Self::Silent(within) => KernelError::Silent { action, within },
            Self::Closed => KernelError::Closed { action },
            Self::Unsteady(attempts) => KernelError::Unsteady { action, attempts },
        }
    }
}

/// How often a list that changes under way is read anew.
const ATTEMPTS: u32 = 8;

type Opened = io::Result<(Connection<RouteNetlinkMessage>, rtnetlink::Handle)>;

/// A socket, the runtime that drives it, and how long it is waited for.
#[derive(Debug)]
pub(super) struct Exchange {
    handle: rtnetlink::Handle,
    runtime: Runtime,
    patience: Duration,
}

impl Exchange {
    /// Opens the socket where `place` runs what it is given: on this thread, or in a namespace.
    pub(super) fn open<'a>(
        place: impl FnOnce(Box<dyn FnOnce() -> Opened + Send + 'a>) -> Result<Opened, KernelError>,
        patience: Duration,
    ) -> Result<Self, KernelError> {
        let failed = |step| move |source| KernelError::Socket { step, source };
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(failed("starting its runtime"))?;
        let reactor = runtime.handle().clone();
        let (connection, handle) = place(Box::new(move || {
            let _entered = reactor.enter();
            let (connection, handle, _) = rtnetlink::new_connection()?;
            Ok((connection, handle))
        }))?
        .map_err(failed("opening a socket"))?;
        runtime.spawn(tuned(connection));
        Ok(Self {
            handle,
            runtime,
            patience,
        })
    }

    pub(super) fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Asks, and keeps of each message what `read` makes of it.
    pub(super) fn ask<T>(
        &mut self,
        request: RouteNetlinkMessage,
        kind: Kind,
        read: impl Fn(RouteNetlinkMessage) -> Option<T>,
    ) -> Result<Vec<T>, Failure> {
        for _ in 1..ATTEMPTS {
            if let Some(answer) = self.once(request.clone(), kind, &read)? {
                return Ok(answer);
            }
        }
        self.once(request, kind, &read)?
            .ok_or(Failure::Unsteady(ATTEMPTS))
    }

    /// Has something done.
    pub(super) fn act(&mut self, request: RouteNetlinkMessage, kind: Kind) -> Result<(), Failure> {
        self.ask(request, kind, |_| Some(())).map(|_| ())
    }

    /// One try; [`None`] when what was listed changed meanwhile.
    fn once<T>(
        &mut self,
        request: RouteNetlinkMessage,
        kind: Kind,
        read: &impl Fn(RouteNetlinkMessage) -> Option<T>,
    ) -> Result<Option<Vec<T>>, Failure> {
        let mut message = NetlinkMessage::from(request);
        message.header.flags = kind.flags();
        let handle = &mut self.handle;
        let patience = self.patience;
        self.runtime.block_on(async move {
            let answer = collect(handle, message, kind, read);
            tokio::time::timeout(patience, answer)
                .await
                .unwrap_or(Err(Failure::Silent(patience)))
        })
    }
}

/// Sets what older kernels may lack; none of it is needed for a right answer.
fn tuned(mut connection: Connection<RouteNetlinkMessage>) -> Connection<RouteNetlinkMessage> {
    // Without the two the end of an answer looks like the end of the socket.
    connection.set_forward_done(true);
    connection.set_forward_ack(true);
    let socket: &mut TokioSocket = connection.socket_mut();
    let socket = socket.socket_mut();
    // Lists are filtered by the kernel (4.20), refusals come with words (4.12), and without the
    // request that they refuse.
    let _ = socket.set_netlink_get_strict_chk(true);
    let _ = socket.set_ext_ack(true);
    let _ = socket.set_cap_ack(true);
    connection
}

async fn collect<T>(
    handle: &mut rtnetlink::Handle,
    message: NetlinkMessage<RouteNetlinkMessage>,
    kind: Kind,
    read: &impl Fn(RouteNetlinkMessage) -> Option<T>,
) -> Result<Option<Vec<T>>, Failure> {
    let mut stream = handle.request(message).map_err(|_| Failure::Closed)?;
    let mut answer = Vec::new();
    let mut interrupted = false;
    while let Some(message) = stream.next().await {
        interrupted |= message.header.flags & NLM_F_DUMP_INTR != 0;
        match message.payload {
            NetlinkPayload::InnerMessage(inner) => {
                answer.extend(read(inner));
                if kind == Kind::One {
                    return Ok(Some(answer));
                }
            }
            NetlinkPayload::Done(done) if done.code >= 0 => {
                return Ok((!interrupted).then_some(answer));
            }
            NetlinkPayload::Done(done) => {
                return Err(Failure::Refused {
                    errno: done.code.saturating_neg(),
                    explanation: words(&done.extended_ack),
                });
            }
            NetlinkPayload::Error(error) => {
                return match error.code {
                    None => Ok(Some(answer)),
                    Some(code) => Err(Failure::Refused {
                        errno: code.get().saturating_neg(),
                        explanation: explanation(&error),
                    }),
                };
            }
            _ => return Err(Failure::Closed),
        }
    }
    Err(Failure::Closed)
}

/// The octets of a message's header, which a refusal repeats before the kernel's words.
const HEADER: usize = 16;
/// `NLMSGERR_ATTR_MSG`.
const WORDS: u16 = 1;

fn explanation(error: &ErrorMessage) -> Option<String> {
    words(error.header.get(HEADER..)?)
}

fn words(attributes: &[u8]) -> Option<String> {
    let attribute = NlasIterator::new(attributes)
        .map_while(Result::ok)
        .find(|attribute| attribute.kind() == WORDS)?;
    let text = String::from_utf8_lossy(attribute.value());
    Some(text.trim_end_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_found_among_the_attributes_of_a_refusal() {
        let text = [
            8, 0, 2, 0, 9, 9, 9, 9, 9, 0, 1, 0, b'n', b'o', b'p', b'e', 0,
        ];
        assert_eq!(words(&text).as_deref(), Some("nope"));
        let mut error = ErrorMessage::default();
        error.header = [[0; HEADER].as_slice(), &text].concat();
        assert_eq!(explanation(&error).as_deref(), Some("nope"));
    }

    #[test]
    fn a_refusal_without_words_or_with_broken_ones_has_none() {
        let broken: [&[u8]; 5] = [
            &[],
            &[0],
            &[8, 0, 2, 0, 9, 9, 9, 9],
            &[99, 0, 1, 0],
            &[0; 8],
        ];
        for octets in broken {
            assert_eq!(words(octets), None, "{octets:?}");
        }
        assert_eq!(explanation(&ErrorMessage::default()), None);
    }
}
