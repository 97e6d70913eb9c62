//! Bounds on lists and texts from other processes. A limit on input bytes alone is not enough,
//! because an element of three input bytes may take a hundred bytes in memory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Reads the first `N` elements of a list. `each` may shorten an element. If `refuses_more` is set,
/// a list of more than `N` elements is an error.
struct Elements<T, F, const N: usize> {
    each: F,
    refuses_more: bool,
    element: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>, F: FnMut(&mut T), const N: usize> Visitor<'de>
    for Elements<T, F, N>
{
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {N} elements")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while list.len() < N {
            let Some(mut element) = seq.next_element()? else {
                return Ok(list);
            };
            (self.each)(&mut element);
            list.push(element);
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {
            if self.refuses_more {
                let cause = format!("a list has more than {N} elements");
                return Err(A::Error::custom(cause));
            }
        }
        Ok(list)
    }
}

/// Reads a list of at most `N` elements.
///
/// # Errors
/// If the list has more elements, or an element is invalid.
pub(crate) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>, const N: usize>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(Elements::<T, _, N> {
        each: |_: &mut T| (),
        refuses_more: true,
        element: PhantomData,
    })
}

/// Reads the first `N` elements of a list and skips the others. Calls `each` on every element that
/// it keeps, so that the caller can also bound the total size of the elements.
pub(crate) fn first<'de, D: Deserializer<'de>, T: Deserialize<'de>, const N: usize>(
    deserializer: D,
    each: impl FnMut(&mut T),
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(Elements::<T, _, N> {
        each,
        refuses_more: false,
        element: PhantomData,
    })
}

/// Cuts a text to at most `length` bytes.
pub(crate) fn cut(text: &mut String, length: usize) {
    if text.len() > length {
        text.truncate(text.floor_char_boundary(length));
        text.shrink_to_fit();
    }
}

/// Reads a text and cuts it to at most `LENGTH` bytes.
pub(crate) fn text<'de, D: Deserializer<'de>, const LENGTH: usize>(
    deserializer: D,
) -> Result<String, D::Error> {
    let mut text = String::deserialize(deserializer)?;
    cut(&mut text, LENGTH);
    Ok(text)
}

/// Reads a text as [`text()`] does. Reads `null` as [`None`].
pub(crate) fn optional_text<'de, D: Deserializer<'de>, const LENGTH: usize>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let mut text = Option::<String>::deserialize(deserializer)?;
    text.iter_mut().for_each(|text| cut(text, LENGTH));
    Ok(text)
}

/// The first `N` texts of a list, each cut to at most `LENGTH` bytes.
struct Texts<const N: usize, const LENGTH: usize>(Vec<String>);

impl<'de, const N: usize, const LENGTH: usize> Deserialize<'de> for Texts<N, LENGTH> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        texts::<_, N, LENGTH>(deserializer).map(Texts)
    }
}

/// Reads the first `N` texts of a list, each cut to at most `LENGTH` bytes.
pub(crate) fn texts<'de, D: Deserializer<'de>, const N: usize, const LENGTH: usize>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    first::<_, _, N>(deserializer, |text: &mut String| cut(text, LENGTH))
}

/// Reads a list as [`texts`] does. Reads `null` as [`None`].
pub(crate) fn optional_texts<'de, D: Deserializer<'de>, const N: usize, const LENGTH: usize>(
    deserializer: D,
) -> Result<Option<Vec<String>>, D::Error> {
    let texts = Option::<Texts<N, LENGTH>>::deserialize(deserializer)?;
    Ok(texts.map(|texts| texts.0))
}

/// Reads the first `N` entries of an object with numbers as values. Cuts each key to at most
/// `LENGTH` bytes.
struct Counts<const N: usize, const LENGTH: usize>;

impl<'de, const N: usize, const LENGTH: usize> Visitor<'de> for Counts<N, LENGTH> {
    type Value = BTreeMap<String, u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of numbers")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut counts = BTreeMap::new();
        while counts.len() < N {
            let Some(mut name) = map.next_key()? else {
                return Ok(counts);
            };
            cut(&mut name, LENGTH);
            counts.insert(name, map.next_value()?);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(counts)
    }
}

/// Reads the first `N` entries of an object with numbers as values. Cuts each key to at most
/// `LENGTH` bytes.
pub(crate) fn counts<'de, D: Deserializer<'de>, const N: usize, const LENGTH: usize>(
    deserializer: D,
) -> Result<BTreeMap<String, u64>, D::Error> {
    deserializer.deserialize_map(Counts::<N, LENGTH>)
}

/// The maximum number of elements that [`named`] puts into a message.
pub(crate) const NAMED: usize = 5;

/// Joins the first elements of a list for a message: `a, b, c, d, e and 3 more`.
pub(crate) fn named<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let mut names = names.into_iter();
    let shown: Vec<T> = names.by_ref().take(NAMED).collect();
    let shown: Vec<Cow<'_, str>> = shown.iter().map(|name| name.as_ref().into()).collect();
    match names.count() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Few {
        #[serde(deserialize_with = "list::<_, _, 3>")]
        ids: Vec<String>,
    }

    #[derive(Debug, PartialEq, Eq, serde::Deserialize)]
    struct Cut {
        #[serde(deserialize_with = "texts::<_, 2, 3>")]
        ids: Vec<String>,
        #[serde(default, deserialize_with = "optional_texts::<_, 1, 3>")]
        names: Option<Vec<String>>,
        #[serde(default, deserialize_with = "optional_text::<_, 3>")]
        cause: Option<String>,
        #[serde(deserialize_with = "counts::<_, 2, 3>")]
        counts: BTreeMap<String, u64>,
    }

    #[test]
    fn reading_a_list_fails_at_the_first_element_beyond_its_limit() {
        let few: Few = serde_json::from_str(r#"{"ids":["a","b","c"]}"#).unwrap();
        assert_eq!(few.ids.len(), 3);
        let error = serde_json::from_str::<Few>(r#"{"ids":["a","b","c","d"]}"#).unwrap_err();
        assert!(error.to_string().contains("more than 3"), "{error}");
    }

    #[test]
    fn keys_after_a_cut_list_or_text_are_still_read() {
        let long = r#"{"ids":["aé bc","b","c"],"names":["x","y"],"counts":{"aaaa":1,"b":2,"c":3},"cause":"abcd"}"#;
        let cut: Cut = serde_json::from_str(long).unwrap();
        assert_eq!(cut.ids, ["aé", "b"]);
        assert_eq!(cut.names, Some(vec!["x".to_owned()]));
        assert_eq!(cut.cause.as_deref(), Some("abc"));
        assert_eq!(
            cut.counts,
            BTreeMap::from([("aaa".into(), 1), ("b".into(), 2)])
        );
        let short: Cut = serde_json::from_str(r#"{"ids":[],"cause":null,"counts":{}}"#).unwrap();
        assert_eq!((short.names, short.cause), (None, None));
    }

    #[test]
    fn a_message_lists_five_elements_and_the_number_of_the_rest() {
        assert_eq!(named(["a", "b"]), "a, b");
        assert_eq!(named(["a"; 7]), "a, a, a, a, a and 2 more");
    }
}
