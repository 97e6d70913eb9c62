//! Foreign values: strings from files, the kernel or users, which appear in one-line messages.

use std::fmt;

/// The maximum length of a foreign value in a message, in characters: enough to recognize the
/// value, not enough to flood a log.
const SHOWN: usize = 96;

/// A foreign value for a message: in quotes, with control characters escaped, and cut if it is
/// long, so that the message stays one short line.
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
