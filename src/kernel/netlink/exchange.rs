//! One question, one answer, over a socket that blocks: a call of the plugin has nothing else to do
//! meanwhile, and a runtime that could would cost more than the answer.
//!
//! A list that changed while it was read is read anew, an answer to somebody else's question is
//! passed over, and the kernel's words are kept.

mod narrowed;

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use netlink_packet_core::{
    DecodeError, ErrorMessage, NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_DUMP, NLM_F_DUMP_INTR,
    NLM_F_REQUEST, NetlinkBuffer, NetlinkDeserializable, NetlinkMessage, NetlinkPayload,
    NlasIterator,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use nix::libc;
use nix::sys::socket::{setsockopt, sockopt::ReceiveTimeout};
use nix::sys::time::{TimeVal, TimeValLike};

use crate::kernel::KernelError;
use narrowed::Narrowed;

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
    /// An acknowledgement of something changed.
    Change,
}

impl Kind {
    fn flags(self) -> u16 {
        NLM_F_REQUEST
            | match self {
                Self::One => 0,
                Self::List => NLM_F_DUMP,
                Self::Append => NLM_F_ACK | NLM_F_CREATE | NLM_F_APPEND,
                Self::Remove | Self::Change => NLM_F_ACK,
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
    Garbled(String),
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
            Self::Garbled(cause) => KernelError::Garbled { action, cause },
            Self::Unsteady(attempts) => KernelError::Unsteady { action, attempts },
        }
    }
}

/// How often a list that changes under way is read anew.
const ATTEMPTS: u32 = 8;

/// The kernel's answers come in pieces of up to 32 KiB, and no larger than what was offered before.
const BUFFER: usize = 32 << 10;

type Opened = io::Result<Socket>;

/// A socket and how long it is waited for.
#[derive(Debug)]
pub(super) struct Exchange {
    socket: Socket,
    sequence: u32,
    patience: Duration,
    buffer: Vec<u8>,
}

impl Exchange {
    /// Opens the socket where `place` runs what it is given: on this thread, or in a namespace.
    pub(super) fn open<'a>(
        place: impl FnOnce(Box<dyn FnOnce() -> Opened + Send + 'a>) -> Result<Opened, KernelError>,
        patience: Duration,
    ) -> Result<Self, KernelError> {
        let opened = place(Box::new(|| Socket::new(NETLINK_ROUTE)))?;
        let socket = opened.map_err(|source| KernelError::Socket {
            step: "opening a socket",
            source,
        })?;
        // Lists are filtered by the kernel (4.20), refusals come with words (4.12), and without the
        // request that they refuse.
        let _ = socket.set_netlink_get_strict_chk(true);
        let _ = socket.set_ext_ack(true);
        let _ = socket.set_cap_ack(true);
        let mut exchange = Self {
            socket,
            sequence: 0,
            patience,
            buffer: Vec::with_capacity(BUFFER),
        };
        exchange.set_patience(patience);
        Ok(exchange)
    }

    pub(super) fn set_patience(&mut self, patience: Duration) {
        // To the kernel no time at all means for ever.
        self.patience = patience.max(Duration::from_millis(1));
        let time = i64::try_from(self.patience.as_millis()).unwrap_or(i64::MAX);
        let time = TimeVal::milliseconds(time.min(i64::from(i32::MAX)));
        // Any socket has it.
        let _ = setsockopt(&self.socket, ReceiveTimeout, &time);
    }

    /// Makes room for an answer that is known to be long, so that it need not be asked for twice.
    pub(super) fn reserve(&mut self, octets: usize) {
        self.buffer.clear();
        self.buffer.reserve(octets);
    }

    /// Asks, and keeps of each message what `read` makes of it.
    pub(super) fn ask<T>(
        &mut self,
        request: RouteNetlinkMessage,
        kind: Kind,
        read: impl Fn(RouteNetlinkMessage) -> Option<T>,
    ) -> Result<Vec<T>, Failure> {
        self.ask_for(request, kind, |Narrowed(message)| read(message))
    }

    /// Likewise, of messages that are taken apart as `M`.
    pub(super) fn ask_for<M, T>(
        &mut self,
        request: RouteNetlinkMessage,
        kind: Kind,
        read: impl Fn(M) -> Option<T>,
    ) -> Result<Vec<T>, Failure>
    where
        M: NetlinkDeserializable<Error = DecodeError>,
    {
        let mut message = NetlinkMessage::from(request);
        for _ in 0..ATTEMPTS {
            self.send(&mut message, kind)?;
            if let Some(answer) = self.answer(kind, &read)? {
                return Ok(answer);
            }
        }
        Err(Failure::Unsteady(ATTEMPTS))
    }

    /// Has something done.
    pub(super) fn act(&mut self, request: RouteNetlinkMessage, kind: Kind) -> Result<(), Failure> {
        self.ask(request, kind, |_| Some(())).map(|_| ())
    }

    /// Puts a question, under a number of its own.
    fn send(
        &mut self,
        message: &mut NetlinkMessage<RouteNetlinkMessage>,
        kind: Kind,
    ) -> Result<(), Failure> {
        self.sequence = self.sequence.wrapping_add(1);
        message.header.flags = kind.flags();
        message.header.sequence_number = self.sequence;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        let sent = self.socket.send_to(&bytes, &SocketAddr::new(0, 0), 0);
        sent.map(drop).map_err(|_| Failure::Closed)
    }

    /// The answer to the last question; nothing when it has to be asked anew.
    fn answer<M, T>(
        &mut self,
        kind: Kind,
        read: &impl Fn(M) -> Option<T>,
    ) -> Result<Option<Vec<T>>, Failure>
    where
        M: NetlinkDeserializable<Error = DecodeError>,
    {
        let mut answer = Answer {
            kind,
            read,
            messages: Vec::new(),
            interrupted: false,
        };
        let until = Instant::now() + self.patience;
        loop {
            if !self.receive(until)? {
                // A list goes on, and the next must not begin before its end.
                if kind != Kind::List {
                    return Ok(None);
                }
                answer.interrupted = true;
            }
            for message in messages(&self.buffer) {
                let message = message?;
                let sequence = NetlinkBuffer::new(message).sequence_number();
                if sequence == self.sequence && answer.is_complete_with::<M>(message)? {
                    return Ok((!answer.interrupted).then_some(answer.messages));
                }
            }
        }
    }

    /// Fills the buffer with the next piece; false when the kernel had to drop some of it.
    fn receive(&mut self, until: Instant) -> Result<bool, Failure> {
        loop {
            self.buffer.clear();
            let received = self.socket.recv(&mut self.buffer, libc::MSG_TRUNC);
            match received.map_err(|error| (error.kind(), error.raw_os_error())) {
                Ok(length) if length > self.buffer.len() => {
                    self.buffer.clear();
                    self.buffer.reserve(length);
                    return Ok(false);
                }
                Ok(0) => return Err(Failure::Closed),
                Ok(_) => return Ok(true),
                Err((_, Some(libc::ENOBUFS))) => return Ok(false),
                Err((ErrorKind::Interrupted, _)) if Instant::now() < until => {}
                Err((ErrorKind::Interrupted | ErrorKind::WouldBlock, _)) => {
                    return Err(Failure::Silent(self.patience));
                }
                Err(_) => return Err(Failure::Closed),
            }
        }
    }
}

/// The messages of a piece.
fn messages(mut piece: &[u8]) -> impl Iterator<Item = Result<&[u8], Failure>> {
    std::iter::from_fn(move || {
        if piece.is_empty() {
            return None;
        }
        let checked = NetlinkBuffer::new_checked(piece);
        let length = checked.map(|message| message.length() as usize);
        let whole = length.as_ref().map_or(usize::MAX, |length| *length);
        let message = piece.get(..whole).unwrap_or(piece);
        piece = piece
            .get(whole.saturating_add(3) & !3..)
            .unwrap_or_default();
        Some(
            length
                .map(|_| message)
                .map_err(|cause| Failure::Garbled(cause.to_string())),
        )
    })
}

/// An answer as it comes in.
struct Answer<'r, T, R> {
    kind: Kind,
    read: &'r R,
    messages: Vec<T>,
    interrupted: bool,
}

impl<T, R> Answer<'_, T, R> {
    /// Takes a message in; true when nothing more is to come.
    fn is_complete_with<M>(&mut self, message: &[u8]) -> Result<bool, Failure>
    where
        M: NetlinkDeserializable<Error = DecodeError>,
        R: Fn(M) -> Option<T>,
    {
        let message = NetlinkMessage::<M>::deserialize(message)
            .map_err(|cause| Failure::Garbled(cause.to_string()))?;
        self.interrupted |= message.header.flags & NLM_F_DUMP_INTR != 0;
        match message.payload {
            NetlinkPayload::InnerMessage(inner) => {
                self.messages.extend((self.read)(inner));
                Ok(self.kind == Kind::One)
            }
            NetlinkPayload::Done(done) if done.code >= 0 => Ok(true),
            NetlinkPayload::Done(done) => Err(Failure::Refused {
                errno: done.code.saturating_neg(),
                explanation: words(&done.extended_ack),
            }),
            NetlinkPayload::Error(error) => match error.code {
                None => Ok(true),
                Some(code) => Err(Failure::Refused {
                    errno: code.get().saturating_neg(),
                    explanation: explanation(&error),
                }),
            },
            NetlinkPayload::Noop => Ok(false),
            _ => {
                self.interrupted = true;
                Ok(true)
            }
        }
    }
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
    use netlink_packet_route::link::{LinkAttribute, LinkMessage};

    use super::*;

    fn exchange() -> Exchange {
        let here = |connect: Box<dyn FnOnce() -> Opened + Send>| Ok(connect());
        Exchange::open(here, Duration::from_secs(5)).unwrap()
    }

    fn link(name: &str) -> RouteNetlinkMessage {
        let mut message = LinkMessage::default();
        message
            .attributes
            .push(LinkAttribute::IfName(name.to_owned()));
        RouteNetlinkMessage::GetLink(message)
    }

    #[test]
    fn an_answer_that_nobody_took_is_not_the_next_questions_answer() {
        let mut exchange = exchange();
        let forsaken = exchange.send(&mut NetlinkMessage::from(link("no-such-link")), Kind::One);
        forsaken.unwrap();
        let answer = exchange.ask(link("lo"), Kind::One, Some).unwrap();
        let [RouteNetlinkMessage::NewLink(lo)] = answer.as_slice() else {
            panic!("{answer:?}");
        };
        assert!(
            lo.attributes
                .contains(&LinkAttribute::IfName("lo".to_owned()))
        );
    }

    #[test]
    fn silence_ends_with_patience() {
        let mut exchange = exchange();
        exchange.set_patience(Duration::ZERO);
        let silence = exchange.receive(Instant::now());
        assert!(matches!(silence, Err(Failure::Silent(_))), "{silence:?}");
    }

    #[test]
    fn a_piece_is_cut_into_its_messages_and_a_broken_rest_is_an_error() {
        let message = |length: u8, octets: usize| {
            let mut message = vec![0; octets];
            message[0] = length;
            message
        };
        let piece = [message(16, 16), message(18, 20), message(40, 20)].concat();
        let lengths: Vec<Option<usize>> = messages(&piece)
            .map(|message| message.ok().map(<[u8]>::len))
            .collect();
        assert_eq!(lengths, [Some(16), Some(18), None]);
        assert_eq!(messages(&[]).count(), 0);
        assert!(messages(&[1, 2, 3]).all(|message| message.is_err()));
    }

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
