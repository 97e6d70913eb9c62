//! Reads a reply of the agent: one message, preceded by the definitions that belong to it.

use std::io::Read;

use crate::cluster::frame::{self, FrameError, FromAgent, MAX_FROM_AGENT};

/// The memory that a definition takes besides its configuration, in bytes.
const PART: usize = 1 << 10;
/// The maximum number of definitions before an answer. The agent does not look up more definitions
/// for one question.
const MOST_PARTS: usize = 256;
/// The maximum memory for the definitions of one answer, in bytes. The configurations of a pod's
/// plan have at most 8 MiB together.
const MOST_DEFINITIONS: usize = (8 << 20) + MOST_PARTS * PART;

/// Reads an answer, with the definitions that come before it.
pub(super) fn receive(stream: &mut impl Read) -> Result<FromAgent, FrameError> {
    let mut definitions = Vec::new();
    let (mut kept, mut sent) = (0, 0);
    loop {
        let (message, length) = frame::read_sized(stream, MAX_FROM_AGENT)?;
        match message {
            FromAgent::Definition(part) => {
                // `kept` is the memory that the definitions take, with `PART` for each definition.
                // `sent` is the number of bytes that the agent sent, also for keys that this
                // release does not know. Such keys need a limit too, because reading them takes
                // time.
                sent += length;
                kept += PART + part.1.config.as_ref().map_or(0, String::len);
                if kept > MOST_DEFINITIONS
                    || sent > MAX_FROM_AGENT + MOST_PARTS * PART
                    || definitions.len() == MOST_PARTS
                {
                    let (most, limit) = (MOST_PARTS, MOST_DEFINITIONS);
                    return Err(FrameError::Definitions { most, limit });
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
