//! Collects the messages of an answer, which arrives in pieces.

use netlink_packet_core::{
    DecodeError, ErrorMessage, NLM_F_DUMP_INTR, NetlinkBuffer, NetlinkDeserializable,
    NetlinkMessage, NetlinkPayload, NlasIterator,
};

use super::Kind;
use crate::kernel::NetlinkError;

/// The messages that have arrived so far.
pub(super) struct Answer<'r, T, R> {
    kind: Kind,
    read: &'r R,
    pub(super) messages: Vec<T>,
    pub(super) interrupted: bool,
}

impl<'r, T, R> Answer<'r, T, R> {
    pub(super) fn new(kind: Kind, read: &'r R) -> Self {
        Self {
            kind,
            read,
            messages: Vec::new(),
            interrupted: false,
        }
    }

    /// Adds a message. Returns true if this message completes the answer.
    pub(super) fn is_complete_with<M>(&mut self, message: &[u8]) -> Result<bool, NetlinkError>
    where
        M: NetlinkDeserializable<Error = DecodeError>,
        R: Fn(M) -> Option<T>,
    {
        let message = NetlinkMessage::<M>::deserialize(message).map_err(NetlinkError::Garbled)?;
        self.interrupted |= message.header.flags & NLM_F_DUMP_INTR != 0;
        match message.payload {
            NetlinkPayload::InnerMessage(inner) => {
                self.messages.extend((self.read)(inner));
                Ok(self.kind == Kind::One)
            }
            NetlinkPayload::Done(done) if done.code >= 0 => Ok(true),
            NetlinkPayload::Done(done) => Err(NetlinkError::errno(
                done.code.saturating_neg(),
                explanation_in(&done.extended_ack),
            )),
            NetlinkPayload::Error(error) => match error.code {
                None => Ok(true),
                Some(code) => Err(NetlinkError::errno(
                    code.get().saturating_neg(),
                    explanation(&error),
                )),
            },
            NetlinkPayload::Noop => Ok(false),
            _ => {
                self.interrupted = true;
                Ok(true)
            }
        }
    }
}

/// Splits a piece of an answer into its messages.
pub(super) fn messages(mut piece: &[u8]) -> impl Iterator<Item = Result<&[u8], NetlinkError>> {
    std::iter::from_fn(move || {
        if piece.is_empty() {
            return None;
        }
        let checked = NetlinkBuffer::new_checked(piece);
        let length = checked.map(|message| message.length() as usize);
        let whole = length.as_ref().map_or(usize::MAX, |length| *length);
        let message = piece.get(..whole).unwrap_or(piece);
        let next = whole.saturating_add(3) & !3;
        piece = piece.get(next..).unwrap_or_default();
        Some(length.map(|_| message).map_err(NetlinkError::Garbled))
    })
}

/// The length of a message header. A refusal contains the header of the request, followed by the
/// explanation.
const HEADER: usize = 16;
/// `NLMSGERR_ATTR_MSG`.
const EXPLANATION: u16 = 1;

fn explanation(error: &ErrorMessage) -> Option<String> {
    explanation_in(error.header.get(HEADER..)?)
}

fn explanation_in(attributes: &[u8]) -> Option<String> {
    let attribute = NlasIterator::new(attributes)
        .map_while(Result::ok)
        .find(|attribute| attribute.kind() == EXPLANATION)?;
    let text = String::from_utf8_lossy(attribute.value());
    Some(text.trim_end_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_from_the_kernel_splits_into_messages_up_to_a_broken_one() {
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
    fn the_explanation_in_a_refusal_of_the_kernel_is_read() {
        let text = [
            8, 0, 2, 0, 9, 9, 9, 9, 9, 0, 1, 0, b'n', b'o', b'p', b'e', 0,
        ];
        assert_eq!(explanation_in(&text).as_deref(), Some("nope"));
        let mut error = ErrorMessage::default();
        error.header = [[0; HEADER].as_slice(), &text].concat();
        assert_eq!(explanation(&error).as_deref(), Some("nope"));
    }

    #[test]
    fn a_missing_or_broken_explanation_is_ignored() {
        let broken: [&[u8]; 5] = [
            &[],
            &[0],
            &[8, 0, 2, 0, 9, 9, 9, 9],
            &[99, 0, 1, 0],
            &[0; 8],
        ];
        for octets in broken {
            assert_eq!(explanation_in(octets), None, "{octets:?}");
        }
        assert_eq!(explanation(&ErrorMessage::default()), None);
    }
}
