//! JSON that belongs to somebody else: read where it must be, passed on as it was written.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

mod keys;
mod raw_object;

pub(crate) use keys::{Key, each_key, folded, same_key, unambiguous};
pub use raw_object::RawObject;
pub(crate) use raw_object::{Members, POD_ANNOTATIONS};

/// How deep arrays and objects may nest.
///
/// The same as what the usual parsers of delegates bear; deeper is an attack or an accident.
pub const MAX_DEPTH: usize = 128;

/// Why JSON could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JsonError {
    /// Nothing but white space.
    #[error("empty input where a JSON object was expected")]
    Empty,
    /// Not JSON, or not of the shape that was expected.
    #[error("invalid JSON: {0}")]
    Syntax(String),
    /// Nested beyond [`MAX_DEPTH`].
    #[error("JSON nests deeper than {MAX_DEPTH} levels at byte {offset}; flatten it")]
    TooDeep {
        /// Where the first level too many begins.
        offset: usize,
    },
    /// A key that must be there is not.
    #[error("key {key:?} is missing: {reason}")]
    Missing {
        /// The key, as it is documented.
        key: String,
        /// What was expected.
        reason: String,
    },
    /// A key is there twice, in whatever case; parsers read that differently.
    #[error(
        "key {key:?} occurs more than once in its object, which plugins read regardless of case; \
         keep one"
    )]
    Ambiguous {
        /// The path of the key.
        key: String,
    },
    /// The value of one key is not what it must be.
    #[error("key {key:?}: {value} is not valid: {reason}")]
    Key {
        /// The key, as it is documented.
        key: String,
        /// The value as it was written, cut where it is long.
        value: String,
        /// What was expected.
        reason: String,
    },
}

impl JsonError {
    /// An error about the value of `key`, which stands as `value` in the text.
    pub(crate) fn key(key: &str, value: &str, reason: &str) -> Self {
        Self::Key {
            key: key.to_owned(),
            value: excerpt(value).into_owned(),
            reason: reason.to_owned(),
        }
    }

    /// An error about `key`, which is not there.
    pub(crate) fn missing(key: &str, reason: &str) -> Self {
        Self::Missing {
            key: key.to_owned(),
            reason: reason.to_owned(),
        }
    }

    /// Says in which element of which list the key is: `ips[1].address`.
    pub(crate) fn within(self, list: &str, index: usize) -> Self {
        match self {
            Self::Key { key, value, reason } => Self::Key {
                key: format!("{list}[{index}].{key}"),
                value,
                reason,
            },
            Self::Missing { key, reason } => Self::Missing {
                key: format!("{list}[{index}].{key}"),
                reason,
            },
            other => other,
        }
    }

    /// The error of a parser that read the value of `key`.
    pub(crate) fn of_key(key: &str, value: &RawValue, error: &serde_json::Error) -> Self {
        Self::key(key, value.get(), &without_position(error))
    }
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        Self::Syntax(shortened(&error.to_string(), LONGEST_REASON).into_owned())
    }
}

/// Text in UTF-8 that nests no deeper than [`MAX_DEPTH`], so any parser may have it.
///
/// The check is a loop over bytes and needs no stack, whatever it is given.
///
/// # Errors
///
/// [`JsonError::Empty`], [`JsonError::TooDeep`], or [`JsonError::Syntax`] when it is not UTF-8.
pub fn check(bytes: &[u8]) -> Result<&str, JsonError> {
    let text = str::from_utf8(bytes).map_err(|error| {
        JsonError::Syntax(format!("not UTF-8 after byte {}", error.valid_up_to()))
    })?;
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    let mut blank = true;
    for (offset, byte) in bytes.iter().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => continue,
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(JsonError::TooDeep { offset });
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        blank = false;
    }
    if blank {
        return Err(JsonError::Empty);
    }
    Ok(text)
}

/// Reads one value, with an error that does not speak of lines and columns.
pub(crate) fn read<'a, T: Deserialize<'a>>(key: &str, value: &'a RawValue) -> Result<T, JsonError> {
    serde_json::from_str(value.get()).map_err(|error| JsonError::of_key(key, value, &error))
}

/// Appends `text` as a JSON string.
pub(crate) fn push_string(out: &mut String, text: &str) {
    if text
        .bytes()
        .any(|byte| byte < b' ' || byte == b'"' || byte == b'\\')
    {
        out.push_str(&serde_json::Value::from(text).to_string());
    } else {
        out.push('"');
        out.push_str(text);
        out.push('"');
    }
}

/// A parser's words quote the whole value that it did not expect.
const LONGEST_REASON: usize = 200;

/// A value in a message: whole when it is short.
pub(crate) fn excerpt(text: &str) -> Cow<'_, str> {
    shortened(text, 80)
}

/// As many characters of a text.
pub(super) fn shortened(text: &str, longest: usize) -> Cow<'_, str> {
    match text.char_indices().nth(longest) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

fn without_position(error: &serde_json::Error) -> String {
    let mut message = error.to_string();
    if let Some(end) = message.rfind(" at line ") {
        message.truncate(end);
    }
    shortened(&message, LONGEST_REASON).into_owned()
}

#[cfg(test)]
mod tests;
