//! Types for the names in a call. Their parsers refuse invalid names.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::json::excerpt;

/// An invalid name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind} {value:?} is not valid; {rule}")]
pub struct NameError {
    kind: &'static str,
    value: String,
    rule: &'static str,
}

impl NameError {
    pub(crate) fn new(kind: &'static str, value: &str, rule: &'static str) -> Self {
        Self {
            kind,
            value: excerpt(value).into_owned(),
            rule,
        }
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(Box<str>);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match $check(text) {
                    Ok(()) => Ok(Self(text.into())),
                    Err(rule) => Err(NameError::new($kind, text, rule)),
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

name! {
    /// The runtime's ID of a sandbox: `CNI_CONTAINERID` (CNI 1.1.0 §2 "Parameters").
    ///
    /// The ID begins with a letter or digit and contains no slash, so it is safe as a part of a
    /// file name. But an ID may be too long for a file name, because the specification does not
    /// limit its length.
    ContainerId, "container ID", plain
}

name! {
    /// The name of a network: the key `name` of a configuration, CNI 1.1.0 §1.
    ///
    /// The name follows the rules of a container ID. Plugins name directories after the network, so
    /// the name must be safe as a part of a path.
    NetworkName, "network name", plain
}

name! {
    /// The name of an interface in the pod: `CNI_IFNAME`.
    ///
    /// The kernel accepts the name (NPWG 1.3 §4.1.2.1.5). The name has 1 to 15 bytes and contains
    /// no `/`, `:` or white space. The names `.`, `..`, `all` and `default` are reserved.
    ///
    /// The name contains no `%`, because the kernel treats a name with `%` as a pattern. The name
    /// contains no control characters, because they could reach a terminal.
    InterfaceName, "interface name", interface
}

name! {
    /// The name of a plugin's binary: the key `type` of a plugin or of its `ipam` (CNI 1.1.0 §1
    /// "Plugin configuration objects").
    ///
    /// Jackfield executes the file of this name in a plugin directory as root. The name contains no
    /// `/` and is not `..`, so the file cannot be outside of that directory.
    PluginType, "plugin type", file_name
}

impl InterfaceName {
    /// The name that every Kubernetes runtime gives to a pod's first interface.
    pub(crate) fn first() -> Self {
        Self("eth0".into())
    }

    /// The name of a numbered interface: `net1`, `net2`, … (NPWG 1.3 §4.2.1).
    ///
    /// Does not check the name. The prefix and the number are short enough for a name of at most 15
    /// bytes.
    pub(crate) fn numbered(prefix: &'static str, number: usize) -> Self {
        Self(format!("{prefix}{number}").into())
    }
}

fn plain(text: &str) -> Result<(), &'static str> {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    if text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(is_valid) {
        Ok(())
    } else {
        Err("use only letters, digits, '_', '.' and '-', and begin with a letter or digit")
    }
}

fn interface(text: &str) -> Result<(), &'static str> {
    // The kernel checks single bytes, and treats 0xa0 as white space even inside a multi-byte
    // character.
    let is_refused_byte = |byte| matches!(byte, b'/' | b':' | b'%' | 0xa0);
    let is_refused = |letter: char| letter.is_whitespace() || letter.is_control();
    if !(1..=15).contains(&text.len()) {
        Err("use 1 to 15 bytes")
    } else if matches!(text, "." | "..") {
        Err("'.' and '..' are reserved")
    } else if matches!(text, "all" | "default") {
        Err("the kernel reserves 'all' and 'default'")
    } else if text.bytes().any(is_refused_byte) || text.contains(is_refused) {
        Err("use no '/', ':', '%', white space or control character")
    } else {
        Ok(())
    }
}

fn file_name(text: &str) -> Result<(), &'static str> {
    if text.is_empty() || matches!(text, "." | "..") || text.contains(['/', '\\', '\0']) {
        Err("give the name of a file in the plugin directory, without '/', '\\' or NUL")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
