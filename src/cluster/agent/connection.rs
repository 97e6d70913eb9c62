//! The plugin's end of the agent's socket. The socket's path must not be a symlink, and no
//! operation waits beyond its deadline.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket,
    sockopt::PeerCredentials,
};
use nix::sys::stat::Mode;
use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::cluster::AgentProblem;

/// The most descriptors in one message (`SCM_MAX_FD`).
const MOST_DESCRIPTORS: usize = 253;

/// What a connection is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    /// A message with an answer. Connecting may take until this deadline.
    Asking(Instant),
    /// A message without an answer. Connecting does not wait for an agent with a full queue.
    Telling,
}

/// The agent sent a file descriptor.
#[derive(Debug, thiserror::Error)]
#[error("it sent a file descriptor, which an agent must not do")]
pub(super) struct DescriptorError;

/// Connects to the agent's socket.
///
/// Refuses a symlink at `path`. The agent can write to the socket's directory. A compromised agent
/// could replace the socket with a symlink to the socket of a different program on the host. The
/// listener has to run as the same user as this process (root), because the listener's answers
/// decide which programs run.
pub(super) fn open(path: &Path, purpose: Purpose) -> Result<UnixStream, AgentProblem> {
    // `OpenOptions` would ignore O_PATH on musl, so call `open` directly.
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let named = File::from(nix::fcntl::open(path, flags, Mode::empty()).map_err(io::Error::from)?);
    if !named.metadata()?.file_type().is_socket() {
        return Err(AgentProblem::NotSocket);
    }
    let mut flags = SockFlag::SOCK_CLOEXEC;
    flags.set(SockFlag::SOCK_NONBLOCK, matches!(purpose, Purpose::Telling));
    let stream = socket(AddressFamily::Unix, SockType::Stream, flags, None);
    let stream = UnixStream::from(stream.map_err(io::Error::from)?);
    match purpose {
        // The timeout also limits connecting, which waits while the agent's queue is full.
        Purpose::Asking(until) => stream.set_write_timeout(Some(left(until)?))?,
        // Shut down the socket's read side before connecting, so that the agent cannot send
        // descriptors. At the end of this process, the kernel closes the descriptors that it has.
        // Closing the last descriptor of a large deleted file takes long.
        Purpose::Telling => stream.shutdown(Shutdown::Read)?,
    }
    let itself = format!("/proc/self/fd/{}", named.as_raw_fd());
    let address = UnixAddr::new(itself.as_str()).map_err(io::Error::from)?;
    connect(stream.as_raw_fd(), &address).map_err(io::Error::from)?;
    let peer = getsockopt(&stream, PeerCredentials).map_err(io::Error::from)?;
    if peer.uid() != nix::unistd::geteuid().as_raw() {
        return Err(AgentProblem::Untrusted(peer.uid()));
    }
    Ok(stream)
}

/// Sends bytes without waiting. Sends the descriptor, if there is one, with the first byte.
pub(super) fn send_with(
    stream: &UnixStream,
    bytes: &[u8],
    descriptor: Option<OwnedFd>,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = descriptor.as_ref().map(|descriptor| [descriptor.as_fd()]);
    if let Some(descriptors) = &descriptors {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let sent = sendmsg(stream, &[IoSlice::new(bytes)], &mut control, flags)?;
    if sent == bytes.len() {
        Ok(())
    } else {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

/// A stream with one deadline for all reads and writes. A peer cannot extend the deadline by
/// sending single bytes.
#[derive(Debug)]
pub(super) struct ByDeadline<'a> {
    stream: &'a UnixStream,
    until: Instant,
}

impl<'a> ByDeadline<'a> {
    /// Limits reads and writes of `stream` to the time before `until`.
    pub(super) fn new(stream: &'a UnixStream, until: Instant) -> ByDeadline<'a> {
        ByDeadline { stream, until }
    }
}

impl Read for ByDeadline<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(left(self.until)?))?;
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(buffer)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let read = recvmsg(self.stream, &mut into, &mut control, flags)?;
        let mut descriptors = 0;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(sent) = message {
                // Leave the descriptors open until this process ends. Closing a socket with
                // SO_LINGER may block now, but does not block at the end of the process.
                descriptors += sent.map(IntoRawFd::into_raw_fd).count();
            }
        }
        if descriptors > 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, DescriptorError));
        }
        Ok(read.bytes)
    }
}

impl Write for ByDeadline<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(left(self.until)?))?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Returns the time until the deadline, or `TimedOut` after the deadline. The time is never zero,
/// because a socket treats zero as no limit.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    Ok(left.max(Duration::from_micros(1)))
}
