//! The two ends of a delegate's pipes: what goes in, and what comes out up to a cap.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::ioctl_fionbio;

/// How much is read at once; a CNI result fits into one read, and the buffer is wiped for each.
const CHUNK: usize = 4 * 1024;

/// What a delegate gets on its standard input.
///
/// The pipe is closed as soon as all is written, since many plugins read to the end of file, and
/// also when the delegate no longer reads: one that answers without reading (a shell script, say)
/// has done nothing wrong, so a broken pipe is not an error.
pub(super) struct Feed<'a, W> {
    pipe: Option<W>,
    rest: &'a [u8],
}

impl<'a, W: Write + AsFd> Feed<'a, W> {
    /// Takes the writing end; from here on writing never blocks (a pipe that cannot be made so,
    /// of which no kernel is known, is closed).
    pub(super) fn new(pipe: Option<W>, bytes: &'a [u8]) -> Self {
        Self {
            pipe: pipe.filter(|pipe| ioctl_fionbio(pipe, true).is_ok()),
            rest: bytes,
        }
    }

    /// The descriptor to wait for, while there is something left to write.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Writes what the pipe takes, and closes it when nothing is left or nobody reads.
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

/// What a delegate writes to one of its outputs, kept up to a cap.
pub(super) struct Intake<R> {
    pipe: Option<R>,
    kept: Vec<u8>,
    cap: usize,
    over: bool,
}

impl<R: Read + AsFd> Intake<R> {
    /// Takes the reading end; from here on reading never blocks (a pipe that cannot be made so,
    /// of which no kernel is known, is closed).
    pub(super) fn new(pipe: Option<R>, cap: usize) -> Self {
        let pipe = pipe.filter(|pipe| ioctl_fionbio(pipe, true).is_ok());
        Self {
            pipe,
            kept: Vec::new(),
            cap,
            over: false,
        }
    }

    /// The descriptor to wait for, until the end of the stream was seen.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Whether anybody still holds the other end, as far as was seen.
    pub(super) fn open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Whether more came than the cap allows.
    pub(super) fn over(&self) -> bool {
        self.over
    }

    /// What was kept so far.
    pub(super) fn kept(&self) -> &[u8] {
        &self.kept
    }

    /// What was kept, and whether something was dropped.
    pub(super) fn into_kept(self) -> (Vec<u8>, bool) {
        (self.kept, self.over)
    }

    /// Reads what is there now: bytes over the cap are read too, so that the writer goes on, and
    /// dropped. One call reads a bounded amount, or a writer that never pauses would keep it here
    /// past every deadline.
    pub(super) fn drain(&mut self) {
        let mut buffer = [0_u8; CHUNK];
        for _ in 0..=self.cap / CHUNK {
            let Some(pipe) = &mut self.pipe else { return };
            match pipe.read(&mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(read) => {
                    let room = self.cap - self.kept.len();
                    self.over |= read > room;
                    self.kept
                        .extend_from_slice(buffer.get(..read.min(room)).unwrap_or_default());
                    // A short read of a pipe means that it is empty: asking again costs a call.
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
    fn what_is_over_the_cap_is_read_and_dropped() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut intake = Intake::new(Some(reader), 4);
        writer.write_all(b"abcdefgh").unwrap();
        intake.drain();
        assert_eq!(intake.kept(), b"abcd");
        assert!(intake.over() && intake.open());
        drop(writer);
        intake.drain();
        assert!(!intake.open());
    }

    #[test]
    fn exactly_the_cap_is_not_over_it() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut intake = Intake::new(Some(reader), 4);
        writer.write_all(b"abcd").unwrap();
        intake.drain();
        assert_eq!(intake.into_kept(), (b"abcd".to_vec(), false));
    }

    #[test]
    fn an_empty_pipe_does_not_block() {
        let (reader, _writer) = io::pipe().unwrap();
        let mut intake = Intake::new(Some(reader), 4);
        intake.drain();
        assert!(intake.open() && intake.kept().is_empty());
    }

    #[test]
    fn a_full_pipe_does_not_block_and_the_end_closes_it() {
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

    // Injects a fault: the reader is gone before the first byte.
    #[test]
    fn a_reader_that_left_is_no_error() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut feed = Feed::new(Some(writer), b"{}");
        feed.push();
        assert!(feed.fd().is_none());
    }
}
