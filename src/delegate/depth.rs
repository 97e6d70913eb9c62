//! Detects that another Jackfield, or one of its delegates, called this Jackfield.

use std::ffi::OsStr;

use thiserror::Error;

/// The highest [`Depth`] at which Jackfield runs. If the runtime calls Jackfield, the depth is 1.
/// If this outer Jackfield, or one of its delegates, calls an inner Jackfield, the inner one has
/// depth 2 and refuses to run.
///
/// The outer Jackfield holds the container's lock until its delegates are done. An inner Jackfield
/// would wait for that lock until its own deadline.
pub const MAX_DEPTH: u32 = 1;

/// The environment variable with the number of Jackfields that called this process, directly or
/// through delegates.
pub const DEPTH_VARIABLE: &str = "JACKFIELD_DEPTH";

/// The number of Jackfields that called this process, directly or through delegates, plus one for
/// this Jackfield.
///
/// [`find`](super::find) refuses a configuration that names Jackfield itself as a delegate. The
/// depth detects other cycles: through another plugin that delegates, or through a copy of the
/// Jackfield binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth(u32);

impl Depth {
    /// Computes the depth from the value of [`DEPTH_VARIABLE`] in Jackfield's environment.
    ///
    /// # Errors
    ///
    /// [`DepthError`] when the depth exceeds [`MAX_DEPTH`], or when the value is neither empty nor
    /// a number.
    pub fn parse(value: Option<&OsStr>) -> Result<Self, DepthError> {
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            return Ok(Self(1));
        };
        let above: Option<u32> = value.to_str().and_then(|text| text.parse().ok());
        match above.map(|above| above.saturating_add(1)) {
            Some(depth) if depth <= MAX_DEPTH => Ok(Self(depth)),
            Some(_) => Err(DepthError::TooDeep),
            None => Err(DepthError::NotNumber(value.to_string_lossy().into_owned())),
        }
    }

    /// The value of [`DEPTH_VARIABLE`] for delegates.
    pub(super) fn to_value(self) -> String {
        self.0.to_string()
    }
}

/// Why this Jackfield refuses to run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DepthError {
    /// Another Jackfield, or one of its delegates, called this Jackfield.
    #[error(
        "another jackfield or one of its delegates called this jackfield; in the network's \
         configuration, name a plugin that is not jackfield and does not call jackfield"
    )]
    TooDeep,
    /// The value of [`DEPTH_VARIABLE`] is not a number.
    #[error("{DEPTH_VARIABLE} {0:?} is not a number; remove it from the runtime's environment")]
    NotNumber(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jackfield_refuses_to_run_as_a_delegate_of_jackfield() {
        let parse = |text: &str| Depth::parse(Some(OsStr::new(text)));
        assert_eq!(Depth::parse(None), Ok(Depth(1)));
        assert_eq!(parse(""), Ok(Depth(1)));
        assert_eq!(parse("0"), Ok(Depth(1)));
        assert_eq!(parse(&Depth(1).to_value()), Err(DepthError::TooDeep));
        assert_eq!(parse("4294967295"), Err(DepthError::TooDeep));
        assert_eq!(parse("-1"), Err(DepthError::NotNumber("-1".into())));
    }
}
