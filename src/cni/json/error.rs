//! Why JSON could not be read.

use std::sync::Arc;

use serde_json::value::RawValue;
use thiserror::Error;

use super::{MAX_DEPTH, excerpt, shortened};

/// Why JSON could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JsonError {
    /// The input is empty or contains only white space.
    #[error("empty input where a JSON object was expected")]
    Empty,
    /// The input is not UTF-8.
    ///
    /// The number is the length of the valid prefix, in bytes.
    #[error("invalid JSON: not UTF-8 after byte {0}")]
    NotUtf8(usize),
    /// The input is not JSON, or not of the expected shape.
    #[error("invalid JSON: {0}")]
    Syntax(#[source] ParserError),
    /// Arrays and objects in the input nest deeper than [`MAX_DEPTH`].
    ///
    /// The number is the offset of the first bracket beyond the limit, in bytes.
    #[error("JSON nests deeper than {MAX_DEPTH} levels at byte {0}; flatten it")]
    TooDeep(usize),
    /// A required key is missing.
    #[error("key {key:?} is missing: {expected}")]
    Missing {
        /// The key in its documented spelling.
        key: String,
        /// The expected value.
        expected: &'static str,
    },
    /// The key with this path occurs more than once in its object, ignoring case. Parsers disagree
    /// about which value applies.
    #[error(
        "key {0:?} occurs more than once in its object (plugins ignore the case of keys); keep one"
    )]
    Ambiguous(String),
    /// The value of a key is invalid.
    #[error("key {key:?}: {value} is not valid: {reason}")]
    Key {
        /// The key in its documented spelling.
        key: String,
        /// The JSON text of the value, shortened if it is long.
        value: String,
        /// Why the value is invalid.
        #[source]
        reason: InvalidValue,
    },
}

/// Why the value of a key is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidValue {
    /// The value is not the expected one. The text describes the expected value.
    #[error("{0}")]
    Expected(&'static str),
    /// The parser refused the value.
    #[error("{}", .0.without_position())]
    Parser(#[source] ParserError),
}

/// An error of the JSON parser.
///
/// `Display` shortens the parser's message, because the message quotes the whole refused value. Two
/// errors are equal if they have the same category and the same position.
#[derive(Clone, Debug, Error)]
#[error("{}", shortened(&.0.to_string(), Self::LONGEST))]
pub struct ParserError(Arc<serde_json::Error>);

impl JsonError {
    /// The error for the invalid value `value` of `key`.
    pub(crate) fn key(key: &str, value: &str, expected: &'static str) -> Self {
        Self::invalid(key, value, InvalidValue::Expected(expected))
    }

    /// The error for a missing `key`.
    pub(crate) fn missing(key: &str, expected: &'static str) -> Self {
        Self::Missing {
            key: key.to_owned(),
            expected,
        }
    }

    /// The error if the parser refuses the value of `key`.
    pub(crate) fn of_key(key: &str, value: &RawValue, error: serde_json::Error) -> Self {
        Self::invalid(key, value.get(), InvalidValue::Parser(error.into()))
    }

    fn invalid(key: &str, value: &str, reason: InvalidValue) -> Self {
        Self::Key {
            key: key.to_owned(),
            value: excerpt(value).into_owned(),
            reason,
        }
    }

    /// Prefixes the key with the list element that contains it: `ips[1].address`.
    pub(crate) fn within(self, list: &str, index: usize) -> Self {
        self.inside(&format!("{list}[{index}]"))
    }

    /// Prefixes the key with the key of the object that contains it: `ipam.type`.
    pub(crate) fn inside(mut self, outer: &str) -> Self {
        if let Self::Key { key, .. } | Self::Missing { key, .. } = &mut self {
            *key = format!("{outer}.{key}");
        }
        self
    }
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        Self::Syntax(error.into())
    }
}

impl ParserError {
    /// The maximum length of a shown message, in characters.
    const LONGEST: usize = 200;

    /// The message without line and column. The parser counts lines and columns from the beginning
    /// of the value, so they do not show the position in the whole text.
    fn without_position(&self) -> String {
        let message = self.0.to_string();
        let end = message.rfind(" at line ").unwrap_or(message.len());
        shortened(message.get(..end).unwrap_or_default(), Self::LONGEST).into_owned()
    }
}

impl From<serde_json::Error> for ParserError {
    fn from(error: serde_json::Error) -> Self {
        Self(Arc::new(error))
    }
}

impl PartialEq for ParserError {
    fn eq(&self, other: &Self) -> bool {
        let key = |error: &Self| (error.0.classify(), error.0.line(), error.0.column());
        key(self) == key(other)
    }
}

impl Eq for ParserError {}
