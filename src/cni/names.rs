//! The names that a call is made of, each checked once.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::json::excerpt;

/// A name that breaks the rules of its kind.
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
        #[serde(into = "String", try_from = "String")]
        pub struct $name(Box<str>);

        impl $name {
            /// The name as text.
            #[must_use]
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

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.into()
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
    /// What the runtime calls a sandbox: `CNI_CONTAINERID`.
    ///
    /// CNI 1.1.0 §2 "Parameters". Since it begins with a letter or digit and holds no slash, it
    /// leads to no other directory; the specification sets no limit to its length.
    ContainerId, "container ID", plain
}

name! {
    /// The name of a network: the key `name` of a configuration, CNI 1.1.0 §1.
    ///
    /// Plugins keep state in directories of that name, hence the rules of a container ID.
    NetworkName, "network name", plain
}

name! {
    /// The name of an interface in the pod: `CNI_IFNAME`.
    ///
    /// What the kernel lets an interface be called (NPWG 1.3 §4.1.2.1.5): 1 to 15 bytes, no `/`,
    /// `:`, white space, not `.` or `..`. `%` is refused too, since the kernel takes it for a
    /// pattern and never for a letter; so are control characters, which would end up on terminals.
    InterfaceName, "interface name", interface
}

name! {
    /// The name of a plugin's binary: the key `type` of a plugin, or of its `ipam`.
    ///
    /// CNI 1.1.0 §1 "Plugin configuration objects". It is joined to a directory and executed as
    /// root, so it must not lead out of there.
    PluginType, "plugin type", file_name
}

impl InterfaceName {
    /// What every runtime of Kubernetes calls a pod's first interface.
    #[must_use]
    pub(crate) fn first() -> Self {
        Self("eth0".into())
    }

    /// The name of a numbered interface: `net1`, `net2`, … (NPWG 1.3 §4.2.1).
    ///
    /// The prefix is one of our own and short; the number is a position, so the name fits.
    #[must_use]
    pub(crate) fn numbered(prefix: &'static str, number: usize) -> Self {
        Self(format!("{prefix}{number}").into())
    }
}

fn plain(text: &str) -> Result<(), &'static str> {
    let mut bytes = text.bytes();
    let starts_well = bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    if starts_well
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
    {
        Ok(())
    } else {
        Err("begin with a letter or digit and go on with letters, digits, '_', '.', '-'")
    }
}

fn interface(text: &str) -> Result<(), &'static str> {
    // The kernel counts and classifies bytes: 0xa0 is white space to it, also inside of a letter.
    const LONGEST: usize = 15;
    if text.is_empty() || text.len() > LONGEST {
        Err("use 1 to 15 bytes")
    } else if matches!(text, "." | "..") {
        Err("'.' and '..' are reserved")
    } else if matches!(text, "all" | "default") {
        Err("'all' and 'default' are the kernel's, for all interfaces at once")
    } else if text
        .bytes()
        .any(|byte| matches!(byte, b'/' | b':' | b'%' | 0xa0))
        || text
            .chars()
            .any(|letter| letter.is_whitespace() || letter.is_control())
    {
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    // clause: CNI-1.1.0 §2 container ID: alphanumeric first, then alphanumeric, '_', '.', '-'
    // clause: CNI-1.1.0 §1 name: alphanumeric first, then alphanumeric, '_', '.', '-'
    #[test]
    fn container_ids_and_network_names_are_plain() {
        let table = [
            ("a", true),
            ("0", true),
            ("A9_.-z", true),
            ("a..", true),
            (
                "8f3ec13ab7c8ab5de2d8a2a3c4b5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f7",
                true,
            ),
            ("", false),
            (".", false),
            ("..", false),
            ("-a", false),
            ("_a", false),
            ("a/b", false),
            ("../a", false),
            ("a b", false),
            ("a\n", false),
            ("a\0", false),
            ("ä", false),
            ("a;b", false),
        ];
        for (text, valid) in table {
            assert_eq!(text.parse::<ContainerId>().is_ok(), valid, "{text:?}");
            assert_eq!(text.parse::<NetworkName>().is_ok(), valid, "{text:?}");
        }
    }

    // clause: NPWG-1.3 §4.1.2.1.5 valid: a Linux kernel interface name
    // clause: CNI-1.1.0 §2 interface name
    #[test]
    fn an_interface_is_called_what_the_kernel_allows() {
        let table = [
            ("eth0", true),
            ("net1", true),
            ("a", true),
            ("123456789012345", true),
            ("...", true),
            ("eth0.100", true),
            ("br-é", true),
            ("", false),
            ("1234567890123456", false),
            ("éééééééé", false),
            (".", false),
            ("..", false),
            ("all", false),
            ("default", false),
            ("a/b", false),
            ("a:b", false),
            ("a b", false),
            ("a\tb", false),
            ("a\n", false),
            ("a\u{b}", false),
            ("a\u{a0}", false),
            ("a\u{2003}", false),
            ("à", false),
            ("net%d", false),
            ("a\0", false),
            ("a\u{1b}[", false),
        ];
        for (text, valid) in table {
            assert_eq!(text.parse::<InterfaceName>().is_ok(), valid, "{text:?}");
        }
    }

    // clause: CNI-1.1.0 §1 type: no characters that file paths disallow
    // clause: CNI-1.1.0 §1 ipam type: the same rule
    #[test]
    fn a_plugin_type_cannot_leave_its_directory() {
        let table = [
            ("bridge", true),
            ("host-local", true),
            ("a.b", true),
            ("...", true),
            ("", false),
            (".", false),
            ("..", false),
            ("../x", false),
            ("/bin/sh", false),
            ("a/b", false),
            ("a\\b", false),
            ("a\0b", false),
        ];
        for (text, valid) in table {
            assert_eq!(text.parse::<PluginType>().is_ok(), valid, "{text:?}");
        }
    }

    #[test]
    fn an_error_names_kind_value_and_rule_in_one_line() {
        let error = "a\nb".parse::<InterfaceName>().unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"interface name "a\nb" is not valid; use no '/', ':', '%', white space or control character"#
        );
        let long = "x/".repeat(5_000).parse::<PluginType>().unwrap_err();
        assert!(long.to_string().len() < 300);
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_reads_back(text in "\\PC{0,20}|[a-z0-9._-]{1,20}") {
            if let Ok(name) = text.parse::<ContainerId>() {
                prop_assert_eq!(name.to_string(), text.as_str());
            }
            if let Ok(name) = text.parse::<InterfaceName>() {
                prop_assert_eq!(name.as_str(), text.as_str());
                let json = serde_json::to_string(&name).unwrap();
                prop_assert_eq!(serde_json::from_str::<InterfaceName>(&json).unwrap(), name);
            }
            if let Ok(name) = text.parse::<PluginType>() {
                prop_assert_eq!(String::from(name), text);
            }
        }
    }
}
