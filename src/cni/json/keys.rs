//! Keys as plugins written in Go see them: folded, and in the order of the text.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write;
use std::ops::Range;

use super::{JsonError, excerpt};

/// Whether two spellings are one key to Go's decoder.
///
/// It folds by Unicode, so plugins find `type` under `Type` and `sysctl` under `ſysctl`.
pub(crate) fn same_key(written: &str, meant: &str) -> bool {
    written.eq_ignore_ascii_case(meant)
        || (!written.is_ascii() && written.chars().map(fold).eq(meant.chars().map(fold)))
}

/// The one spelling that stands for all that Go's decoder takes for the same key.
pub(crate) fn folded(key: &str) -> Cow<'_, str> {
    if key.is_ascii() && !key.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Cow::Borrowed(key);
    }
    Cow::Owned(key.chars().map(fold).collect())
}

/// Unicode's simple case folding, as Go's `unicode.SimpleFold` has it. The dotless `ı` has an
/// upper case and folds to itself all the same.
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

/// Refuses an object that has a key twice, in whatever case.
///
/// Two parsers read such a text differently: Go merges the values and skips a `null`, others take
/// the first or the last. `names` is the path of an object whose keys are no keys of a
/// configuration but names that may differ in their case alone.
///
/// # Errors
///
/// [`JsonError::Ambiguous`] with the path of the key.
pub(crate) fn unambiguous(text: &str, names: &[&str]) -> Result<(), JsonError> {
    let mut seen: HashSet<(usize, Cow<'_, str>)> = HashSet::new();
    visit(text, &mut |key| {
        let is_name = key.is_in(names);
        let spelling = match (is_name, key.name) {
            (true, name) => name.clone(),
            (false, Cow::Borrowed(name)) => folded(name),
            (false, Cow::Owned(name)) => Cow::Owned(folded(name).into_owned()),
        };
        if seen.insert((key.object, spelling)) {
            Ok(())
        } else {
            Err(JsonError::Ambiguous { key: key.path() })
        }
    })
}

/// Calls `found` for every key of a text, at every depth, in their order.
pub(crate) fn each_key<'t>(text: &'t str, mut found: impl FnMut(&Key<'_, 't>)) {
    // A key that cannot be read stops every parser there.
    let _ = visit(text, &mut |key| {
        found(key);
        Ok(())
    });
}

/// A key at its place in a text.
pub(crate) struct Key<'v, 't> {
    pub(crate) name: &'v Cow<'t, str>,
    /// The number of its object.
    pub(crate) object: usize,
    /// Where its text ends.
    end: usize,
    text: &'t str,
    levels: &'v [Level],
}

/// An object or a list that is open.
enum Level {
    Object {
        number: usize,
        /// The text of the last key, with its quotes.
        key: Range<usize>,
        /// Whether the next string is a key.
        at_key: bool,
    },
    List {
        index: usize,
    },
}

impl Key<'_, '_> {
    /// Its value, where that is a text.
    pub(crate) fn text(&self) -> Option<String> {
        let mut values = serde_json::Deserializer::from_str(self.value()).into_iter::<String>();
        values.next()?.ok()
    }

    /// Whether its value is `true`.
    pub(crate) fn is_true(&self) -> bool {
        self.value().starts_with("true")
    }

    /// The number of the object that has the list in which this key's object stands, where that list
    /// stands under the key `meant`.
    pub(crate) fn above_list(&self, meant: &str) -> Option<usize> {
        match self.levels {
            [.., Level::Object { number, key, .. }, Level::List { .. }, _] => {
                let name = name(self.text, key).ok()?;
                same_key(&name, meant).then_some(*number)
            }
            _ => None,
        }
    }

    /// The text from its value on.
    fn value(&self) -> &str {
        let value = self.text.get(self.end..).unwrap_or_default();
        let value = value.trim_start().strip_prefix(':').unwrap_or_default();
        value.trim_start()
    }

    /// Whether its object stands at `path`; no object stands at the empty path.
    fn is_in(&self, path: &[&str]) -> bool {
        let above = self.levels.len().saturating_sub(1);
        let mut outer = self.levels.iter().take(above).zip(path);
        let is_on_path = |(level, meant): (&Level, &&str)| match level {
            Level::Object { key, .. } => {
                name(self.text, key).is_ok_and(|name| same_key(&name, meant))
            }
            Level::List { .. } => false,
        };
        !path.is_empty() && above == path.len() && outer.all(is_on_path)
    }

    /// `plugins[0].ipam.type`.
    fn path(&self) -> String {
        let mut path = String::new();
        for level in self.levels {
            let _ = match level {
                Level::List { index } => write!(path, "[{index}]"),
                Level::Object { key, .. } => {
                    let name = name(self.text, key).unwrap_or_default();
                    let period = if path.is_empty() { "" } else { "." };
                    write!(path, "{period}{}", excerpt(&name))
                }
            };
        }
        path
    }
}

fn name<'t>(text: &'t str, quoted: &Range<usize>) -> Result<Cow<'t, str>, JsonError> {
    let quoted = text.get(quoted.clone()).unwrap_or_default();
    let bare = quoted.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    match bare {
        Some(bare) if !bare.contains('\\') => Ok(Cow::Borrowed(bare)),
        // Half of a surrogate pair is no text to us, and to Go the same as any other half.
        _ => Ok(Cow::Owned(serde_json::from_str(quoted)?)),
    }
}

/// Calls `found` for every key of a text, in one pass that needs no stack. What is no JSON is for
/// its parser to refuse.
fn visit<'t>(
    text: &'t str,
    found: &mut dyn FnMut(&Key<'_, 't>) -> Result<(), JsonError>,
) -> Result<(), JsonError> {
    let bytes = text.as_bytes();
    let mut levels: Vec<Level> = Vec::new();
    let (mut objects, mut at) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        let begin = at;
        at += 1;
        match byte {
            b'{' => {
                objects += 1;
                levels.push(Level::Object {
                    number: objects,
                    key: 0..0,
                    at_key: true,
                });
            }
            b'[' => levels.push(Level::List { index: 0 }),
            b'}' | b']' => drop(levels.pop()),
            b',' => match levels.last_mut() {
                Some(Level::Object { at_key, .. }) => *at_key = true,
                Some(Level::List { index }) => *index += 1,
                None => {}
            },
            b'"' => {
                at = end_of_string(bytes, at);
                if let Some(Level::Object {
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

/// Where a string ends, behind its closing quote, that begins before `at`.
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
