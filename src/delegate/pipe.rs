//! The pipes to a delegate's standard input and from its standard output and standard error.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::ioctl_fionbio;

/// The size of the buffer for a read, in bytes. A typical CNI result fits into the buffer. A larger
/// buffer would take longer to fill with zeros.
const CHUNK: usize = 4 * 1024;

/// The standard input of a delegate.
///
/// Jackfield closes the pipe after the last byte, since many plugins read until the end of the
/// input. A broken pipe is not an error, because a plugin may answer without reading its input, as
/// many shell scripts do.
pub(super) struct Feed<'a, W> {
    pipe: Option<W>,
    rest: &'a [u8],
}

impl<'a, W: Write + AsFd> Feed<'a, W> {
    /// Makes the writing end non-blocking. If the kernel refuses to do so, closes the pipe. No
    /// known kernel refuses.
    pub(super) fn new(pipe: Option<W>, bytes: &'a [u8]) -> Self {
        Self {
            pipe: pipe.filter(|pipe| ioctl_fionbio(pipe, true).is_ok()),
            rest: bytes,
        }
    }

    /// The descriptor to poll for writing; `None` once the pipe is closed.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Writes as much as the pipe accepts. Closes the pipe after the last byte, or if the reader
    /// has closed its end.
    pub(super) fn push(&mut self) {
        while let Some(pipe) = &mut self.pipe {
            if self.rest.is_empty() {
                self.pipe = None;
                return;
            }
            match pipe.write(self.rest) {
                Ok(written) => self.rest = self.rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.pipe = None,
            }
        }
    }
}

/// Standard output or standard error of a delegate, stored up to a limit.
pub(super) struct Intake<R> {
    pipe: Option<R>,
    /// The bytes read so far, without the bytes beyond the limit.
    pub(super) kept: Vec<u8>,
    cap: usize,
    /// Whether the output exceeds the limit.
    pub(super) is_over: bool,
}

impl<R: Read + AsFd> Intake<R> {
    /// Makes the reading end non-blocking. If the kernel refuses to do so, closes the pipe. No
    /// known kernel refuses.
    pub(super) fn new(pipe: Option<R>, cap: usize) -> Self {
        Self {
            pipe: pipe.filter(|pipe| ioctl_fionbio(pipe, true).is_ok()),
            kept: Vec::new(),
            cap,
            is_over: false,
        }
    }

    /// The descriptor to poll for reading; `None` once the pipe is closed.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Reads the available bytes. Reads and drops bytes beyond the limit, so that the writer does
    /// not block. One call reads a bounded amount, because a writer that never pauses would
    /// otherwise keep the call busy past the deadline.
    pub(super) fn drain(&mut self) {
        let mut buffer = [0_u8; CHUNK];
        for _ in 0..=self.cap / CHUNK {
            let Some(pipe) = &mut self.pipe else { return };
            match pipe.read(&mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(read) => {
                    let room = self.cap - self.kept.len();
                    self.is_over |= read > room;
                    self.kept
                        .extend_from_slice(buffer.get(..read.min(room)).unwrap_or_default());
                    // A short read means that the pipe is empty. Another read would only cost time.
                    if read < CHUNK {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.pipe = None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn bytes_beyond_the_cap_are_read_and_dropped() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut intake = Intake::new(Some(reader), 4);
        writer.write_all(b"abcdefgh").unwrap();
        intake.drain();
        assert_eq!(intake.kept, b"abcd");
        assert!(intake.is_over && intake.fd().is_some());
        drop(writer);
        intake.drain();
        assert!(intake.fd().is_none());
    }

    #[test]
    fn output_exactly_at_the_limit_is_kept() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut intake = Intake::new(Some(reader), 4);
        writer.write_all(b"abcd").unwrap();
        intake.drain();
        assert_eq!(
            (intake.kept.as_slice(), intake.is_over),
            (b"abcd".as_slice(), false)
        );
    }

    #[test]
    fn reading_an_empty_pipe_does_not_block() {
        let (reader, _writer) = io::pipe().unwrap();
        let mut intake = Intake::new(Some(reader), 4);
        intake.drain();
        assert!(intake.fd().is_some() && intake.kept.is_empty());
    }

    #[test]
    fn writing_to_a_full_pipe_does_not_block() {
        let (mut reader, writer) = io::pipe().unwrap();
        let bytes = vec![b'x'; 100_000];
        let mut feed = Feed::new(Some(writer), &bytes);
        feed.push();
        assert!(
            feed.fd().is_some(),
            "100,000 bytes do not fit into a pipe of 64 KiB"
        );
        let mut got = vec![0; 70_000];
        reader.read_exact(&mut got[..60_000]).unwrap();
        feed.push();
        assert!(feed.fd().is_none());
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        assert_eq!(rest.len(), 40_000);
    }

    // Injects a fault: the reader closes its end before the first byte.
    #[test]
    fn a_closed_reader_is_no_error() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut feed = Feed::new(Some(writer), b"{}");
        feed.push();
        assert!(feed.fd().is_none());
    }
}
