//! Reads JSON from definitions, delegates and runtimes. Jackfield interprets only the values that
//! it needs. Jackfield keeps the text of every value, so that delegates get it byte for byte.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

mod error;
mod keys;
mod raw_object;

pub use error::{InvalidValue, JsonError, ParserError};
pub(crate) use keys::{Key, each_key, folded, same_key, unambiguous};
pub use raw_object::RawObject;
pub(crate) use raw_object::{Members, POD_ANNOTATIONS};

/// How deep arrays and objects may nest. The JSON parsers of delegates accept this depth.
pub const MAX_DEPTH: usize = 128;

/// Checks that a text is not blank, is UTF-8 and nests no deeper than [`MAX_DEPTH`].
///
/// The check is a loop over the bytes, so deep input does not exhaust the stack.
///
/// # Errors
///
/// [`JsonError::Empty`], [`JsonError::TooDeep`] or [`JsonError::NotUtf8`].
pub fn check(bytes: &[u8]) -> Result<&str, JsonError> {
    let text = str::from_utf8(bytes).map_err(|error| JsonError::NotUtf8(error.valid_up_to()))?;
    if bytes.iter().all(|byte| b" \t\n\r".contains(byte)) {
        return Err(JsonError::Empty);
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
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
            b'"' => in_string = true,
            b'{' | b'[' if depth == MAX_DEPTH => return Err(JsonError::TooDeep(offset)),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(text)
}

/// Reads the value of `key`. An error names the key instead of a line and a column.
pub(crate) fn read<'a, T: Deserialize<'a>>(key: &str, value: &'a RawValue) -> Result<T, JsonError> {
    serde_json::from_str(value.get()).map_err(|error| JsonError::of_key(key, value, error))
}

/// Converts a value to JSON. The conversion succeeds for every value that Jackfield writes.
pub(crate) fn raw<T: Serialize + ?Sized>(value: &T) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Appends `text` as a JSON string.
pub(crate) fn push_string(out: &mut String, text: &str) {
    let needs_escape = |byte| byte < b' ' || byte == b'"' || byte == b'\\';
    if text.bytes().any(needs_escape) {
        out.push_str(&serde_json::Value::from(text).to_string());
    } else {
        out.push('"');
        out.push_str(text);
        out.push('"');
    }
}

/// Shortens a value to 80 characters, for a message.
pub(crate) fn excerpt(text: &str) -> Cow<'_, str> {
    shortened(text, 80)
}

/// Shortens a text to `longest` characters, and marks the cut with `…`.
fn shortened(text: &str, longest: usize) -> Cow<'_, str> {
    match text.char_indices().nth(longest) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests;
