//! Sends requests over a netlink socket and waits for the answers.
//!
//! The calls block, because the plugin has nothing else to do while it waits. Starting an async
//! runtime would take longer than the wait. [`Netlink`] repeats a request if a list changed during
//! the read, or if a part of the answer was lost. [`Netlink`] ignores answers to earlier requests,
//! and keeps the kernel's explanation of a refusal.

mod answer;
mod filtered;

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use netlink_packet_core::{
    DecodeError, NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer,
    NetlinkDeserializable, NetlinkMessage,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr};
use nix::libc;
use nix::sys::socket::{setsockopt, sockopt::ReceiveTimeout};
use nix::sys::time::{TimeVal, TimeValLike};

use crate::kernel::{KernelError, NetlinkError};
use answer::{Answer, messages};
pub(super) use filtered::FilteredMessage;

/// The kind of a request, which determines its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Reads one object. The answer is one message.
    One,
    /// Reads a list. The answer is any number of messages and an end marker.
    List,
    /// Adds an object after existing objects. The answer is an acknowledgement.
    Append,
    /// Changes or removes an object. The answer is an acknowledgement.
    Change,
}

impl Kind {
    fn flags(self) -> u16 {
        NLM_F_REQUEST
            | match self {
                Self::One => 0,
                Self::List => NLM_F_DUMP,
                Self::Append => NLM_F_ACK | NLM_F_CREATE | NLM_F_APPEND,
                Self::Change => NLM_F_ACK,
            }
    }
}

/// After this many incomplete answers to a request, [`Netlink`] gives up.
const ATTEMPTS: u32 = 8;

/// The initial size of the buffer, in bytes. The kernel sends a list in pieces that fit the buffer,
/// up to 32 KiB each. So a smaller buffer would need more reads.
const BUFFER: usize = 32 << 10;

/// Parses a piece of an answer without a socket, for [`crate::fuzzing`].
#[cfg(any(test, feature = "fuzzing"))]
pub(super) fn read_piece<M, T>(
    piece: &[u8],
    kind: Kind,
    read: impl Fn(M) -> Option<T>,
) -> Result<Vec<T>, NetlinkError>
where
    M: NetlinkDeserializable<Error = DecodeError>,
{
    let mut answer = Answer::new(kind, &read);
    for message in messages(piece) {
        if answer.is_complete_with::<M>(message?)? {
            break;
        }
    }
    Ok(answer.messages)
}

/// A netlink socket in one network namespace.
///
/// The socket keeps the namespace alive and stays in it, even if a thread in another namespace uses
/// the socket. The calls block, so an async caller needs a separate thread.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
    /// How long to wait for each piece of an answer.
    patience: Duration,
    buffer: Vec<u8>,
}

impl Netlink {
    /// Sets the options of a socket. `patience` limits the wait for each piece of an answer.
    pub(super) fn new(opened: io::Result<Socket>, patience: Duration) -> Result<Self, KernelError> {
        let socket = opened.map_err(KernelError::Socket)?;
        // Ignore errors: older kernels lack these options, and the socket works without them.
        // With strict checking (Linux 4.20 and later), the kernel filters lists.
        let _ = socket.set_netlink_get_strict_chk(true);
        // With `ext_ack` (Linux 4.12 and later), a refusal can contain an explanation.
        let _ = socket.set_ext_ack(true);
        // With `cap_ack`, a refusal contains only the header of the request.
        let _ = socket.set_cap_ack(true);
        let time = TimeVal::milliseconds(i64::try_from(patience.as_millis()).unwrap_or(i64::MAX));
        let _ = setsockopt(&socket, ReceiveTimeout, &time);
        Ok(Self {
            socket,
            sequence: 0,
            patience,
            buffer: Vec::with_capacity(BUFFER),
        })
    }

    /// Empties the buffer and enlarges it for a long answer. If an answer does not fit into the
    /// buffer, [`Netlink`] has to repeat the request.
    pub(super) fn reserve(&mut self, octets: usize) {
        self.buffer.clear();
        self.buffer.reserve(octets);
    }

    /// Sends a request, calls `read` for each message of the answer, and collects the values that
    /// `read` returns.
    pub(super) fn ask<M: NetlinkDeserializable<Error = DecodeError>, T>(
        &mut self,
        request: RouteNetlinkMessage,
        kind: Kind,
        read: impl Fn(M) -> Option<T>,
    ) -> Result<Vec<T>, NetlinkError> {
        let mut message = NetlinkMessage::from(request);
        for _ in 0..ATTEMPTS {
            self.send(&mut message, kind)?;
            if let Some(answer) = self.answer(kind, &read)? {
                return Ok(answer);
            }
        }
        Err(NetlinkError::Unsteady(ATTEMPTS))
    }

    /// Sends a request that the kernel only acknowledges. A refusal with the error number `done`
    /// also counts as success.
    pub(super) fn act(
        &mut self,
        request: RouteNetlinkMessage,
        kind: Kind,
        done: Option<i32>,
    ) -> Result<(), NetlinkError> {
        match self.ask(request, kind, |FilteredMessage(_)| Some(())) {
            Err(failure) if done.is_some_and(|number| failure.is_errno(number)) => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// Sends a request with a new sequence number.
    fn send(
        &mut self,
        message: &mut NetlinkMessage<RouteNetlinkMessage>,
        kind: Kind,
    ) -> Result<(), NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        message.header.flags = kind.flags();
        message.header.sequence_number = self.sequence;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        let sent = self.socket.send_to(&bytes, &SocketAddr::new(0, 0), 0);
        sent.map(drop).map_err(|_| NetlinkError::Closed)
    }

    /// Reads the answer to the last request. Returns [`None`] if the caller must repeat the
    /// request.
    fn answer<M: NetlinkDeserializable<Error = DecodeError>, T>(
        &mut self,
        kind: Kind,
        read: &impl Fn(M) -> Option<T>,
    ) -> Result<Option<Vec<T>>, NetlinkError> {
        let mut answer = Answer::new(kind, read);
        let until = Instant::now() + self.patience;
        loop {
            if !self.receive(until)? {
                // Only a list has further pieces. Read all of them before the next request.
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

    /// Fills the buffer with the next piece of the answer. Returns false if the kernel dropped a
    /// part of the answer, or if the buffer was too small.
    fn receive(&mut self, until: Instant) -> Result<bool, NetlinkError> {
        loop {
            self.buffer.clear();
            let received = self.socket.recv(&mut self.buffer, libc::MSG_TRUNC);
            match received.map_err(|error| (error.kind(), error.raw_os_error())) {
                Ok(length) if length > self.buffer.len() => {
                    self.reserve(length);
                    return Ok(false);
                }
                Ok(0) => return Err(NetlinkError::Closed),
                Ok(_) => return Ok(true),
                Err((_, Some(libc::ENOBUFS))) => return Ok(false),
                Err((ErrorKind::Interrupted, _)) if Instant::now() < until => {}
                Err((ErrorKind::Interrupted | ErrorKind::WouldBlock, _)) => {
                    return Err(NetlinkError::Silent(self.patience));
                }
                Err(_) => return Err(NetlinkError::Closed),
            }
        }
    }
}

#[cfg(test)]
mod tests;
