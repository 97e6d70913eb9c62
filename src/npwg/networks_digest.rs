//! Digests of texts that select networks. If the text changes, the digest changes.

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::bounded;

/// The length of a digest, in hexadecimal digits.
const LENGTH: usize = 32;

/// The digest of an annotation that selects networks, or of one element of the annotation.
///
/// The default value is the empty digest, which matches no text. The record of a sandbox contains
/// the empty digest while Jackfield changes the networks of the sandbox, and after a change that
/// failed halfway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NetworksDigest(#[serde(deserialize_with = "bounded::text::<_, LENGTH>")] String);

impl NetworksDigest {
    /// Returns the digest of a text.
    pub fn of(text: &str) -> NetworksDigest {
        let hash = digest(&SHA256, text.as_bytes());
        let bytes = hash.as_ref().iter().take(LENGTH / 2);
        NetworksDigest(bytes.map(|byte| format!("{byte:02x}")).collect())
    }
}
