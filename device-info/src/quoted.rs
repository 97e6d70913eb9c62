//! A foreign string inside of a one-line message.

use std::fmt;

/// How much of a foreign value a message shows: enough to find it, not enough to flood a log.
const SHOWN: usize = 96;

/// A foreign value as messages show it: in quotes, control characters escaped, cut when it is long, so
/// that whatever was given, the message stays one short line.
#[derive(Clone, PartialEq, Eq)]
pub struct Quoted(String);

impl Quoted {
    pub(crate) fn new(value: &str) -> Self {
        let mut shown: String = value.chars().take(SHOWN).collect();
        if shown.len() < value.len() {
            shown.push('…');
        }
        Self(shown)
    }
}

impl fmt::Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl fmt::Debug for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_with_line_feeds_is_shown_on_one_short_line() {
        let shown = Quoted::new(&"a\nb".repeat(10_000)).to_string();
        assert!(!shown.contains('\n'));
        assert!(shown.len() < 200, "{shown}");
        assert!(shown.ends_with("…\""));
    }
}
