//! The error document of a plugin.

use std::fmt;

use serde_json::json;

use super::Version;
use super::code;
use super::json::RawObject;
use crate::console;

/// The error document of a plugin: CNI 1.1.0 §5 "Error".
///
/// Jackfield writes error documents for the runtime, and reads the error documents of delegates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The error code: see [`super::code`]. It is 0 if a delegate's document has no valid code.
    pub code: u32,
    /// What happened, in one line.
    pub msg: String,
    /// Details; may be empty.
    pub details: String,
}

impl Error {
    /// Creates an error without details.
    pub fn new(code: u32, msg: impl Into<String>) -> Self {
        Self {
            code,
            msg: msg.into(),
            details: String::new(),
        }
    }

    /// Returns the document as one line, for stdout. Escapes line breaks and control characters in
    /// the texts, and cuts long texts.
    pub fn to_json(&self, version: Version) -> String {
        let mut document = json!({
            "cniVersion": version.as_str(),
            "code": self.code,
            "msg": console::line(&self.msg),
        });
        if !self.details.is_empty() {
            document["details"] = json!(console::line(&self.details));
        }
        document.to_string()
    }

    /// Reads a delegate's document. Returns `None` if the bytes are not an error document.
    ///
    /// A document needs only a code or a message. `cniVersion` may be missing. This method is
    /// lenient, because the message is often the only hint at the cause.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let object = RawObject::parse(bytes).ok()?;
        let error = Self {
            code: object.value_as("code").unwrap_or_default(),
            msg: object.value_as("msg").unwrap_or_default(),
            details: object.value_as("details").unwrap_or_default(),
        };
        (error.code != 0 || !error.msg.is_empty()).then_some(error)
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.msg.as_str(), self.details.as_str()) {
            ("", "") => {
                write!(f, "code {}", self.code)?;
                // Each plugin assigns its own meanings to codes above 99.
                if let Some(code) = code::lookup(self.code).filter(|code| code.number < 100) {
                    write!(f, " ({})", code.name)?;
                }
                f.write_str(" without a message")
            }
            (msg, "") => f.write_str(msg),
            ("", details) => f.write_str(details),
            (msg, details) => write!(f, "{msg}: {details}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with_details(error: Error) -> Error {
        let details = "details".to_owned();
        Error { details, ..error }
    }

    // clause: CNI-1.1.0 §5 Error: the document has the keys cniVersion, code, msg and details
    #[test]
    fn an_error_document_has_the_specified_keys() {
        let error = Error {
            details: "Network 192.168.0.0/31 too small to allocate from.".to_owned(),
            ..Error::new(code::INVALID_NETWORK_CONFIG, "Invalid Configuration")
        };
        assert_eq!(
            error.to_json(Version::V1_1_0),
            r#"{"cniVersion":"1.1.0","code":7,"msg":"Invalid Configuration","details":"Network 192.168.0.0/31 too small to allocate from."}"#
        );
        assert_eq!(
            error.to_string(),
            "Invalid Configuration: Network 192.168.0.0/31 too small to allocate from."
        );
        assert_eq!(
            Error::new(100, "a\n  b\r\nc").to_json(Version::V0_4_0),
            r#"{"cniVersion":"0.4.0","code":100,"msg":"a\\n  b\\r\\nc"}"#
        );
        assert_eq!(Error::new(100, "a").to_string(), "a");
    }

    #[test]
    fn a_long_message_is_cut() {
        let json = Error::new(100, "é".repeat(100_000)).to_json(Version::LATEST);
        assert!(json.len() < 17_000, "{}", json.len());
        assert!(Error::parse(json.as_bytes()).unwrap().msg.contains('…'));
    }

    #[test]
    fn an_error_without_a_message_shows_its_code() {
        let text = |code| Error::new(code, "").to_string();
        assert_eq!(
            text(7),
            "code 7 (invalid network configuration) without a message"
        );
        assert_eq!(text(102), "code 102 without a message");
        assert_eq!(with_details(Error::new(7, "")).to_string(), "details");
    }

    #[test]
    fn an_incomplete_error_from_a_delegate_is_read() {
        let table = [
            (
                r#"{"code":11,"msg":"later"}"#,
                Some(Error::new(11, "later")),
            ),
            (
                r#"{"Code":100,"Msg":"x","details":null}"#,
                Some(Error::new(100, "x")),
            ),
            (r#"{"cniVersion":"9","code":3}"#, Some(Error::new(3, ""))),
            (r#"{"msg":"no code"}"#, Some(Error::new(0, "no code"))),
            (r#"{"code":"7","msg":"text"}"#, Some(Error::new(0, "text"))),
            (
                r#"{"code":7,"msg":"a","details":"details","more":[1]}"#,
                Some(with_details(Error::new(7, "a"))),
            ),
            ("{}", None),
            ("", None),
            ("null", None),
            ("[]", None),
            (r#"{"interfaces":[]}"#, None),
            (r#"{"code":1}{"code":2}"#, None),
        ];
        for (text, expected) in table {
            assert_eq!(Error::parse(text.as_bytes()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_error_reads_back_unchanged(code in 1_u32.., msg in ".{0,40}", details in ".{0,40}") {
            let error = Error { code, msg, details };
            let json = error.to_json(Version::LATEST);
            prop_assert!(!json.contains('\n'));
            let shown = |text: &str| console::line(text).into_owned();
            let read = Error { code, msg: shown(&error.msg), details: shown(&error.details) };
            prop_assert_eq!(Error::parse(json.as_bytes()), Some(read));
        }

        #[test]
        fn parsing_an_error_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Error::parse(&bytes);
        }
    }
}
