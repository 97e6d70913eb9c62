//! Names and paths.

use std::fmt;
use std::str::FromStr;

use crate::quoted::Quoted;
use crate::sysfs::path::is_entry_name;

/// The name of a device, an RDMA device or an interface. It must be a valid name for a directory
/// entry and have no white space. It must have no commas, because commas separate the names in a
/// list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceName(String);

/// An absolute path without `..` or control characters, at most 4,095 bytes long.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AbsolutePath(String);

impl FromStr for DeviceName {
    type Err = DeviceNameError;

    fn from_str(text: &str) -> Result<Self, DeviceNameError> {
        let plain = !text.contains(|character: char| character == ',' || character.is_whitespace());
        if is_entry_name(text) && plain {
            Ok(Self(text.to_owned()))
        } else {
            Err(DeviceNameError(Quoted::new(text)))
        }
    }
}

impl FromStr for AbsolutePath {
    type Err = AbsolutePathError;

    fn from_str(text: &str) -> Result<Self, AbsolutePathError> {
        let whole = text.starts_with('/')
            && text.len() < 4096
            && !text.contains(char::is_control)
            && !text.split('/').any(|part| part == "..");
        if whole {
            Ok(Self(text.to_owned()))
        } else {
            Err(AbsolutePathError(Quoted::new(text)))
        }
    }
}

macro_rules! text {
    ($type:ty) => {
        impl $type {
            /// Returns the text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
text!(DeviceName);
text!(AbsolutePath);

/// A text that is not a device name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a device name; write the name alone, as in /sys or `ip link`")]
pub struct DeviceNameError(Quoted);

/// A text that is not an absolute path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not an absolute path; write the whole path, without .. in it")]
pub struct AbsolutePathError(Quoted);
