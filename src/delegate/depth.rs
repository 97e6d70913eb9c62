//! How deep one Jackfield runs below another.

use std::ffi::OsStr;

use thiserror::Error;

/// How many Jackfields may call each other: one, so a second one below it refuses.
///
/// They would serve the same sandbox, whose lock the first one holds until its delegates are
/// done: the second would wait for it until its deadline.
pub const MAX_DEPTH: u32 = 1;

/// The variable that tells a Jackfield how many others are above it.
pub const DEPTH_VARIABLE: &str = "JACKFIELD_DEPTH";

/// The number of Jackfields from the runtime down to this one, itself included.
///
/// A configuration that names us as a delegate is found by the file that it would run; this finds
/// the way round through another plugin that delegates, and copies of the binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth(u32);

impl Depth {
    /// The depth from the value of [`DEPTH_VARIABLE`] in our own environment.
    ///
    /// # Errors
    ///
    /// [`DepthError`] when there are more than [`MAX_DEPTH`], or when the value is no number.
    pub fn parse(value: Option<&OsStr>) -> Result<Self, DepthError> {
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            return Ok(Self(1));
        };
        let above: Option<u32> = value.to_str().and_then(|text| text.parse().ok());
        match above.map(|above| above.saturating_add(1)) {
            Some(depth) if depth <= MAX_DEPTH => Ok(Self(depth)),
            Some(_) => Err(DepthError::TooDeep),
            None => Err(DepthError::NoNumber(value.to_string_lossy().into_owned())),
        }
    }

    /// What the delegates are told.
    pub(super) fn to_value(self) -> String {
        self.0.to_string()
    }
}

/// Why this Jackfield does not run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DepthError {
    /// Another one called us.
    #[error(
        "jackfield was called by a delegate of another jackfield; name a plugin that does not \
         delegate back to it"
    )]
    TooDeep,
    /// Somebody else set the variable.
    #[error("{DEPTH_VARIABLE} {0:?} is no number; remove it from the runtime's environment")]
    NoNumber(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jackfield_below_another_refuses() {
        let parse = |text: &str| Depth::parse(Some(OsStr::new(text)));
        assert_eq!(Depth::parse(None), Ok(Depth(1)));
        assert_eq!(parse(""), Ok(Depth(1)));
        assert_eq!(parse("0"), Ok(Depth(1)));
        assert_eq!(parse(&Depth(1).to_value()), Err(DepthError::TooDeep));
        assert_eq!(parse("4294967295"), Err(DepthError::TooDeep));
        assert_eq!(parse("-1"), Err(DepthError::NoNumber("-1".into())));
    }
}
