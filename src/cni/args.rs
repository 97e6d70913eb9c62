//! `CNI_ARGS`: the arguments that the runtime passes to every plugin of a pod.

use std::fmt;

use thiserror::Error;

use super::json::excerpt;

/// The pairs of `CNI_ARGS` in their order: `K=V;K=V` (CNI 1.1.0 §2 "Parameters").
///
/// Jackfield passes the pairs to plugins in the same order. But Jackfield must not depend on the
/// order of the keys, because containerd changes the order with each call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CniArgs {
    pairs: Vec<(Box<str>, Box<str>)>,
}

impl CniArgs {
    /// Reads the variable. Ignores an empty pair, such as after a final `;`.
    ///
    /// # Errors
    ///
    /// [`ArgsError`] with the first pair that lacks the `=` or the key.
    pub fn parse(text: &str) -> Result<Self, ArgsError> {
        let pairs = text.split(';').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| match pair.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
            _ => Err(ArgsError::Pair(excerpt(pair).into_owned())),
        });
        let pairs = pairs.collect::<Result<_, _>>()?;
        Ok(Self { pairs })
    }

    /// Returns the value of a key. If the key occurs more than once, returns the last value.
    pub fn get(&self, key: &str) -> Option<&str> {
        let mut last_first = self.iter().rev();
        last_first.find_map(|(name, value)| (name == key).then_some(value))
    }

    /// Sets the value of a key. An existing key keeps its position. A new key goes to the end.
    ///
    /// # Errors
    ///
    /// [`ArgsError`] when the key is empty, when the key contains `=`, `;` or NUL, or when the
    /// value contains `;` or NUL. The format has no quoting, so the text after a `;` in a value
    /// would become a separate pair.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ArgsError> {
        if key.is_empty() || key.contains(['=', ';', '\0']) || value.contains([';', '\0']) {
            let pair = format!("{key}={value}");
            return Err(ArgsError::Separator(excerpt(&pair).into_owned()));
        }
        let first = self.pairs.iter().position(|(name, _)| **name == *key);
        self.remove(key);
        let place = first.unwrap_or(self.pairs.len());
        self.pairs.insert(place, (key.into(), value.into()));
        Ok(())
    }

    /// Removes every occurrence of a key.
    pub fn remove(&mut self, key: &str) {
        self.pairs.retain(|(name, _)| **name != *key);
    }

    /// The pairs in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(key, value)| (&**key, &**value))
    }
}

impl fmt::Display for CniArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (key, value)) in self.iter().enumerate() {
            if index > 0 {
                f.write_str(";")?;
            }
            write!(f, "{key}={value}")?;
        }
        Ok(())
    }
}

/// Why `CNI_ARGS` cannot be read or written (CNI error code 4).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArgsError {
    /// A pair without `=` or without a key.
    #[error("CNI_ARGS: {0:?} is not a pair; write KEY=VALUE;KEY=VALUE")]
    Pair(String),
    /// An empty key, or a character that the format does not allow in a key or a value.
    #[error(
        "CNI_ARGS: {0:?} cannot be passed to a plugin; give a key that is not empty and has no \
         equals sign, and use no semicolon or NUL"
    )]
    Separator(String),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CONTAINERD: &str = "K8S_POD_INFRA_CONTAINER_ID=abc;K8S_POD_UID=u-1;IgnoreUnknown=1;\
                              K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-0";

    // clause: CNI-1.1.0 §2 parameters: CNI_ARGS are key-value pairs separated by semicolons
    #[test]
    fn pairs_are_found_by_key_and_keep_their_order() {
        let args = CniArgs::parse(CONTAINERD).unwrap();
        assert_eq!(args.get("K8S_POD_NAME"), Some("web-0"));
        assert_eq!(args.get("K8S_POD_NAMESPACE"), Some("default"));
        assert_eq!(args.get("k8s_pod_name"), None);
        assert_eq!(args.to_string(), CONTAINERD);
    }

    #[test]
    fn an_error_quotes_the_invalid_pair() {
        let table = [
            ("", Ok("")),
            (";", Ok("")),
            ("A=1;", Ok("A=1")),
            ("A=", Ok("A=")),
            ("A=b=c", Ok("A=b=c")),
            ("A=1;A=2", Ok("A=1;A=2")),
            ("A", Err("A")),
            ("A=1;B;C=2", Err("B")),
            ("=1", Err("=1")),
        ];
        for (text, expected) in table {
            let actual = CniArgs::parse(text).map(|args| args.to_string());
            let expected = expected
                .map(ToOwned::to_owned)
                .map_err(|pair| ArgsError::Pair(pair.to_owned()));
            assert_eq!(actual, expected, "{text:?}");
        }
    }

    #[test]
    fn setting_a_key_leaves_one_value() {
        let mut args = CniArgs::parse("A=1;B=2;A=3").unwrap();
        assert_eq!(args.get("A"), Some("3"));
        args.set("A", "4").unwrap();
        args.set("IP", "10.0.0.1/24,2001:db8::1").unwrap();
        assert_eq!(args.to_string(), "A=4;B=2;IP=10.0.0.1/24,2001:db8::1");
        args.remove("B");
        assert_eq!(args.to_string(), "A=4;IP=10.0.0.1/24,2001:db8::1");
    }

    #[test]
    fn a_key_or_value_cannot_add_a_second_pair() {
        let mut args = CniArgs::default();
        for (key, value) in [
            ("A", "1;B=2"),
            ("A;B", "1"),
            ("A=B", "1"),
            ("", "1"),
            ("A", "\0"),
        ] {
            args.set(key, value).unwrap_err();
        }
        assert_eq!(args, CniArgs::default());
    }

    proptest! {
        #[test]
        fn parsed_arguments_read_back_unchanged(text in "[A-C=;x]{0,24}|\\PC{0,24}") {
            if let Ok(args) = CniArgs::parse(&text) {
                prop_assert_eq!(CniArgs::parse(&args.to_string()).unwrap(), args);
            }
        }
    }
}
