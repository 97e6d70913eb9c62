//! Versions of the specification.

use std::fmt;
use std::str::FromStr;

use crate::quoted::Quoted;

/// A version of the Device Information Specification, `<MAJOR>.<MINOR>.<PATCH>`
/// (`DEVINFO 1.1.0 §3.1.2`).
///
/// The crate accepts every version 1.x.y: a minor version only adds keys, and the crate keeps the
/// keys that it does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpecVersion {
    minor: u32,
    patch: u32,
}

impl SpecVersion {
    /// The first version.
    pub const V1_0_0: Self = Self { minor: 0, patch: 0 };
    /// The version that added representors. The crate knows no keys of later versions.
    pub const V1_1_0: Self = Self { minor: 1, patch: 0 };
}

impl FromStr for SpecVersion {
    type Err = SpecVersionError;

    fn from_str(text: &str) -> Result<Self, SpecVersionError> {
        parse(text).ok_or_else(|| SpecVersionError(Quoted::new(text)))
    }
}

fn parse(text: &str) -> Option<SpecVersion> {
    let mut parts = text.split('.');
    let mut number = || {
        let part = parts.next()?;
        let digits = part.bytes().all(|character| character.is_ascii_digit());
        digits.then(|| part.parse::<u32>().ok()).flatten()
    };
    let (major, minor, patch) = (number()?, number()?, number()?);
    (major == 1 && parts.next().is_none()).then_some(SpecVersion { minor, patch })
}

impl fmt::Display for SpecVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}.{}", self.minor, self.patch)
    }
}

/// A text that is not a version 1.x.y.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a version 1.x.y of the Device Information Specification; write 1.1.0")]
pub struct SpecVersionError(Quoted);
