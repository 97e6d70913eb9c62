//! Finds the keys of a JSON text, in the order of the text. Keys that differ only in case count as
//! the same key, as in Go's JSON decoder. Most plugins are written in Go.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write;
use std::ops::Range;

use super::{JsonError, excerpt};

/// Returns whether Go's decoder treats two spellings as the same key.
///
/// The decoder applies Unicode case folding. It reads `Type` as `type`. It also reads the long s
/// (`ſ`, U+017F) as `s`, so `ſysctl` counts as `sysctl`.
pub(crate) fn same_key(written: &str, meant: &str) -> bool {
    written.eq_ignore_ascii_case(meant)
        || (!written.is_ascii() && written.chars().map(fold).eq(meant.chars().map(fold)))
}

/// Folds the case of a key. Two spellings fold to the same text if Go's decoder treats them as the
/// same key.
pub(crate) fn folded(key: &str) -> Cow<'_, str> {
    if key.is_ascii() && !key.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Cow::Borrowed(key);
    }
    Cow::Owned(key.chars().map(fold).collect())
}

/// Unicode's simple case folding, as in Go's `unicode.SimpleFold`. The dotless `ı` folds to itself,
/// although its upper case is `I`.
fn fold(letter: char) -> char {
    if letter.is_ascii() {
        return letter.to_ascii_lowercase();
    }
    if letter == 'ı' {
        return letter;
    }
    let upper = only(letter.to_uppercase()).unwrap_or(letter);
    only(upper.to_lowercase()).unwrap_or(upper)
}

fn only(mut letters: impl Iterator<Item = char>) -> Option<char> {
    letters.next().filter(|_| letters.next().is_none())
}

/// Refuses a text in which any object has the same key twice, ignoring case.
///
/// Parsers disagree about the value of a repeated key. Some take the first value, others take the
/// last, and Go's decoder merges objects.
///
/// `names` is the path of the one object whose keys are case-sensitive. The annotations of a pod
/// are such an object. If `names` is empty, no object has case-sensitive keys.
///
/// # Errors
///
/// [`JsonError::Ambiguous`] with the path of the key, or [`JsonError::Syntax`] for a key that is
/// not a valid JSON string.
pub(crate) fn unambiguous(text: &str, names: &[&str]) -> Result<(), JsonError> {
    let mut seen: HashSet<(usize, Cow<'_, str>)> = HashSet::new();
    visit(text, &mut |key| {
        let spelling = match key.name {
            name if key.is_in(names) => name.clone(),
            Cow::Borrowed(name) => folded(name),
            Cow::Owned(name) => Cow::Owned(folded(name).into_owned()),
        };
        let is_new = seen.insert((key.object, spelling));
        is_new
            .then_some(())
            .ok_or_else(|| JsonError::Ambiguous(key.path()))
    })
}

/// Calls `found` for every key of a text, at every depth, in the order of the text.
pub(crate) fn each_key<'t>(text: &'t str, mut found: impl FnMut(&Key<'_, 't>)) {
    // A key that cannot be read ends the search. `unambiguous` refuses such a text.
    let _ = visit(text, &mut |key| {
        found(key);
        Ok(())
    });
}

/// A key at its position in a text.
pub(crate) struct Key<'v, 't> {
    pub(crate) name: &'v Cow<'t, str>,
    /// The number of the object that contains the key, counted from 1 in the order of the text.
    pub(crate) object: usize,
    /// The offset after the key's closing quote, in bytes.
    end: usize,
    text: &'t str,
    levels: &'v [Nesting],
}

/// An object or a list that is open at the current position.
enum Nesting {
    Object {
        /// The number of the object, as in [`Key::object`].
        number: usize,
        /// The position of the key that was read last in this object, including the key's quotes.
        key: Range<usize>,
        /// Whether the next string is a key.
        at_key: bool,
    },
    List {
        index: usize,
    },
}

impl Key<'_, '_> {
    /// The value, if it is a string.
    pub(crate) fn text(&self) -> Option<String> {
        let mut values = serde_json::Deserializer::from_str(self.value()).into_iter::<String>();
        values.next()?.ok()
    }

    /// Whether the value is `true`.
    pub(crate) fn is_true(&self) -> bool {
        self.value().starts_with("true")
    }

    /// If this key belongs to an element of the list `meant`, returns the number of the object
    /// around that list. Example: in `{"links":[{"name":"eth0"}]}`, `above_list("links")` of the
    /// key `name` returns 1, the number of the outer object.
    pub(crate) fn above_list(&self, meant: &str) -> Option<usize> {
        let [.., outer, Nesting::List { .. }, _] = self.levels else {
            return None;
        };
        outer.object_at(self.text, meant)
    }

    /// The text from the beginning of the key's value to the end of the input.
    fn value(&self) -> &str {
        let value = self.text.get(self.end..).unwrap_or_default();
        let value = value.trim_start().strip_prefix(':').unwrap_or_default();
        value.trim_start()
    }

    /// Whether the object that contains the key is at `path`. The empty path matches no object.
    fn is_in(&self, path: &[&str]) -> bool {
        let mut outer = self.levels.iter().zip(path);
        !path.is_empty()
            && self.levels.len() == path.len() + 1
            && outer.all(|(level, meant)| level.object_at(self.text, meant).is_some())
    }

    /// The path of the key, such as `plugins[0].ipam.type`.
    fn path(&self) -> String {
        let mut path = String::new();
        for level in self.levels {
            let _ = match level {
                Nesting::List { index } => write!(path, "[{index}]"),
                Nesting::Object { key, .. } => {
                    let name = name(self.text, key).unwrap_or_default();
                    let period = if path.is_empty() { "" } else { "." };
                    write!(path, "{period}{}", excerpt(&name))
                }
            };
        }
        path
    }
}

impl Nesting {
    /// Returns the `number` of an object if the key that was read last in this object is `meant`.
    /// Otherwise, and for a list, returns `None`.
    fn object_at(&self, text: &str, meant: &str) -> Option<usize> {
        let Self::Object { number, key, .. } = self else {
            return None;
        };
        same_key(&name(text, key).ok()?, meant).then_some(*number)
    }
}

fn name<'t>(text: &'t str, quoted: &Range<usize>) -> Result<Cow<'t, str>, JsonError> {
    let quoted = text.get(quoted.clone()).unwrap_or_default();
    let bare = quoted
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    match bare {
        Some(bare) if !bare.contains('\\') => Ok(Cow::Borrowed(bare)),
        // Go reads every unpaired half of a surrogate pair as U+FFFD, so Go could read two
        // different keys as the same key. serde_json refuses an unpaired half.
        _ => Ok(Cow::Owned(serde_json::from_str(quoted)?)),
    }
}

/// Calls `found` for every key of a text, in one pass and without recursion. Stops at an invalid
/// key and at the first error of `found`. Does not report other syntax errors, because `serde_json`
/// also parses the text and reports them.
fn visit<'t>(
    text: &'t str,
    found: &mut dyn FnMut(&Key<'_, 't>) -> Result<(), JsonError>,
) -> Result<(), JsonError> {
    let bytes = text.as_bytes();
    let mut levels: Vec<Nesting> = Vec::new();
    let (mut objects, mut at) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        let begin = at;
        at += 1;
        match byte {
            b'{' => {
                objects += 1;
                levels.push(Nesting::Object {
                    number: objects,
                    key: 0..0,
                    at_key: true,
                });
            }
            b'[' => levels.push(Nesting::List { index: 0 }),
            b'}' | b']' => drop(levels.pop()),
            b',' => match levels.last_mut() {
                Some(Nesting::Object { at_key, .. }) => *at_key = true,
                Some(Nesting::List { index }) => *index += 1,
                None => {}
            },
            b'"' => {
                at = end_of_string(bytes, at);
                if let Some(Nesting::Object {
                    number,
                    key,
                    at_key: at_key @ true,
                }) = levels.last_mut()
                {
                    *at_key = false;
                    *key = begin..at;
                    let object = *number;
                    found(&Key {
                        name: &name(text, &(begin..at))?,
                        object,
                        end: at,
                        text,
                        levels: &levels,
                    })?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the position after the closing quote of the string that contains `at`, or the end of the
/// text if the string has no closing quote.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    bytes.len()
}

#[cfg(test)]
mod tests;
