//! The messages between plugin and agent: one frame per message, over a unix socket.
//!
//! ```text
//! 'J' 'F' │ version, 2 bytes │ length, 4 bytes │ JSON of that length      (big-endian)
//! ```
//!
//! The version covers both the frame and the meaning of the messages. A release raises the version
//! only if older releases would misinterpret its messages. A release ignores keys that it does not
//! know, and missing keys have defaults. So a plugin and an agent from neighbouring releases work
//! together while a node is upgraded.

mod error;

use std::io::Read;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use error::FrameError;

use super::api::definitions::Unread;
use super::question::LONGEST_LINE;
use super::{
    Answer, Census, Examination, Figures, Installation, Publication, Question, SandboxNetworks,
};
use crate::bounded;
use crate::npwg::{Definition, ObjectRef};

/// The version of the frames that this release sends and accepts.
pub const VERSION: u16 = 1;
/// The size of the header before the JSON, in bytes.
pub const HEADER: usize = 8;
/// The largest message to the agent, in bytes. A question may contain a pod's two network
/// annotations. Kubernetes limits the annotations of a pod to 256 KiB in total, so both annotations
/// fit into a message even if JSON escaping doubles their length.
pub const MAX_TO_AGENT: usize = 1 << 20;
/// The largest message from the agent, in bytes. Has room for a few definitions of the largest size
/// that etcd allows, even if escaping makes them longer.
pub const MAX_FROM_AGENT: usize = 16 << 20;

/// How many bytes the frame of a definition needs in addition to the configuration.
const BESIDE_CONFIG: usize = 2 << 10;

const MAGIC: [u8; 2] = *b"JF";

/// A message to the agent. If the agent's release does not know the message, the agent refuses it
/// and closes the connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToAgent {
    /// A question; answered by [`FromAgent::Answer`].
    Question(Question),
    /// Notifies the agent of an owed write: a publication on disk that the API server does not have
    /// yet. There is no answer. The agent publishes the write when the connection ends. The plugin
    /// has answered the runtime by then, so publishing does not delay the pod.
    Owed,
    /// The measurements of a finished call. There is no answer. If this message is lost, the
    /// agent's metrics lack the call.
    Over(Box<Figures>),
    /// The result of `doctor` on this node: how many findings each check had. There is no answer.
    Examined(Examination),
    /// A publication that the plugin could not write to disk; answered by [`FromAgent::Kept`].
    Keep(Publication),
    /// A request for the names of pods and definitions; answered by [`FromAgent::Census`].
    Census,
    /// A request for the names of pods alone; answered by [`FromAgent::Census`].
    Pods,
    /// The state of the installation on this node. There is no answer.
    Installation(Installation),
    /// Sandboxes that are attached on this node. There is no answer. The plugin sends this message
    /// only to an agent that asked for it ([`Answer::wants_sandboxes`]).
    Sandboxes {
        /// The sandboxes.
        list: Vec<SandboxNetworks>,
        /// Whether the list ends with this message.
        is_last: bool,
    },
}

/// A message from the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromAgent {
    /// A definition that belongs to the next answer. That answer repeats the definition without
    /// its configuration. The agent sends this message only if the question allows it
    /// ([`Question::parts`]).
    Definition(Box<(ObjectRef, Definition)>),
    /// The answer to a question.
    Answer(Box<Answer>),
    /// The agent keeps the publication in memory until it is published or the agent ends.
    Kept,
    /// The names of pods, and for [`ToAgent::Census`] also of definitions.
    Census(Box<Census>),
    /// A refusal, with the reason in one line.
    #[serde(deserialize_with = "bounded::text::<_, LONGEST_LINE>")]
    Refused(String),
}

/// Encodes a message as a frame.
///
/// # Errors
/// [`FrameError::TooLarge`] if the message is longer than `limit`, because the other side would
/// refuse it. [`FrameError::Json`] if the message cannot be written as JSON.
pub fn encode<T: Serialize>(message: &T, limit: usize) -> Result<Vec<u8>, FrameError> {
    encode_into(Vec::new(), message, limit)
}

/// Encodes a definition as a frame. Allocates only the memory that the frame needs, because the
/// configuration may be long. The plugin reads the frame as [`FromAgent::Definition`].
///
/// # Errors
/// As [`encode`].
pub fn definition(object: &ObjectRef, unread: &Unread<'_>) -> Result<Vec<u8>, FrameError> {
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    enum Part<'a> {
        Definition(&'a ObjectRef, &'a Unread<'a>),
    }
    let config = unread.config.map_or(0, |config| config.get().len());
    let room = Vec::with_capacity(config + BESIDE_CONFIG);
    encode_into(room, &Part::Definition(object, unread), MAX_FROM_AGENT)
}

fn encode_into<T: Serialize>(
    mut frame: Vec<u8>,
    message: &T,
    limit: usize,
) -> Result<Vec<u8>, FrameError> {
    frame.extend(MAGIC);
    frame.extend(VERSION.to_be_bytes());
    // The length of the JSON replaces these four bytes.
    frame.extend([0; 4]);
    serde_json::to_writer(&mut frame, message).map_err(FrameError::Json)?;
    let length = frame.len() - HEADER;
    let written = u32::try_from(length).ok().filter(|_| length <= limit);
    let Some(written) = written else {
        return Err(FrameError::TooLarge { length, limit });
    };
    frame[4..HEADER].copy_from_slice(&written.to_be_bytes());
    Ok(frame)
}

/// Returns the length of the JSON that follows a header.
///
/// # Errors
/// When the header is not Jackfield's, has a different version, or announces more than `limit`
/// bytes.
pub fn length(header: [u8; HEADER], limit: usize) -> Result<usize, FrameError> {
    let [j, f, v0, v1, l0, l1, l2, l3] = header;
    if [j, f] != MAGIC {
        return Err(FrameError::Foreign);
    }
    let version = u16::from_be_bytes([v0, v1]);
    if version != VERSION {
        return Err(FrameError::Version(version));
    }
    let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
    if length > limit {
        return Err(FrameError::TooLarge { length, limit });
    }
    Ok(length)
}

/// Waits for one message and reads it.
///
/// # Errors
/// As [`length`], and when the stream fails, ends early or contains something other than the
/// expected message.
pub fn read<T: DeserializeOwned>(stream: &mut impl Read, limit: usize) -> Result<T, FrameError> {
    Ok(read_sized(stream, limit)?.0)
}

/// Like [`read`], and also returns the length of the message in bytes.
///
/// # Errors
/// As [`read`].
pub fn read_sized<T: DeserializeOwned>(
    stream: &mut impl Read,
    limit: usize,
) -> Result<(T, usize), FrameError> {
    let mut header = [0; HEADER];
    stream.read_exact(&mut header).map_err(FrameError::Io)?;
    let length = length(header, limit)?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).map_err(FrameError::Io)?;
    let message = serde_json::from_slice(&body).map_err(FrameError::Json)?;
    Ok((message, length))
}

#[cfg(test)]
mod tests;
