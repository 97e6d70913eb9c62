//! Why JSON could not be read.

use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;
use thiserror::Error;

use super::{MAX_DEPTH, excerpt, shortened};

/// Why JSON could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JsonError {
    /// The input is empty or white space.
    #[error("empty input where a JSON object was expected")]
    Empty,
    /// The input is not UTF-8.
    #[error("invalid JSON: not UTF-8 after byte {valid_up_to}")]
    NotUtf8 {
        /// The length of the valid prefix, in bytes.
        valid_up_to: usize,
    },
    /// The input is not JSON, or not of the expected shape.
    #[error("invalid JSON: {0}")]
    Syntax(#[source] ParserError),
    /// The input nests beyond [`MAX_DEPTH`].
    #[error("JSON nests deeper than {MAX_DEPTH} levels at byte {offset}; flatten it")]
    TooDeep {
        /// Where the first level beyond the limit begins, in bytes.
        offset: usize,
    },
    /// A required key is missing.
    #[error("key {key:?} is missing: {expected}")]
    Missing {
        /// The key, as it is documented.
        key: String,
        /// The expected value.
        expected: &'static str,
    },
    /// A key occurs twice when case is ignored. Parsers disagree about which value counts.
    #[error(
        "key {key:?} occurs more than once in its object (plugins ignore the case of keys); keep one"
    )]
    Ambiguous {
        /// The path of the key.
        key: String,
    },
    /// The value of a key is invalid.
    #[error("key {key:?}: {value} is not valid: {reason}")]
    Key {
        /// The key, as it is documented.
        key: String,
        /// The value as it was written, cut if it is long.
        value: String,
        /// Why the value is invalid.
        #[source]
        reason: InvalidValue,
    },
}

/// Why the value of a key is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidValue {
    /// The value is not what is documented.
    #[error("{0}")]
    Expected(&'static str),
    /// The parser refused the value.
    #[error("{}", .0.without_position())]
    Parser(#[source] ParserError),
}

/// An error of the JSON parser.
///
/// Its text is cut, since the parser quotes the whole value that it refused. Two errors are equal
/// if they are of the same category and at the same position.
#[derive(Clone, Debug)]
pub struct ParserError(Arc<serde_json::Error>);

impl JsonError {
    /// An invalid value of `key`, which is written as `value`.
    pub(crate) fn key(key: &str, value: &str, expected: &'static str) -> Self {
        Self::invalid(key, value, InvalidValue::Expected(expected))
    }

    /// The missing key `key`.
    pub(crate) fn missing(key: &str, expected: &'static str) -> Self {
        Self::Missing {
            key: key.to_owned(),
            expected,
        }
    }

    /// The error of a parser that read the value of `key`.
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

    /// Prefixes the key with the list element that holds it: `ips[1].address`.
    pub(crate) fn within(self, list: &str, index: usize) -> Self {
        match self {
            Self::Key { key, value, reason } => Self::Key {
                key: format!("{list}[{index}].{key}"),
                value,
                reason,
            },
            Self::Missing { key, expected } => Self::Missing {
                key: format!("{list}[{index}].{key}"),
                expected,
            },
            other => other,
        }
    }
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        Self::Syntax(error.into())
    }
}

impl ParserError {
    /// The longest text, in characters.
    const LONGEST: usize = 200;

    /// The text without line and column, which count from the beginning of one value.
    fn without_position(&self) -> String {
        let mut message = self.0.to_string();
        if let Some(end) = message.rfind(" at line ") {
            message.truncate(end);
        }
        shortened(&message, Self::LONGEST).into_owned()
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

impl fmt::Display for ParserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shortened(&self.0.to_string(), Self::LONGEST))
    }
}

impl std::error::Error for ParserError {}
