//! Lists in what less trusted parties send: an element of three bytes may take a hundred in memory,
//! so that a limit on bytes is none on memory.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

struct AtMost<T, const N: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for AtMost<T, N> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {N} elements")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = seq.next_element()? {
            if list.len() == N {
                return Err(A::Error::custom(format!(
                    "a list has more than {N} elements"
                )));
            }
            list.push(element);
        }
        Ok(list)
    }
}

/// Reads a list of at most `N` elements.
///
/// # Errors
/// At the first element beyond.
pub(crate) fn list<'de, D, T, const N: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(AtMost::<T, N>(PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Few {
        #[serde(deserialize_with = "list::<_, _, 3>")]
        ids: Vec<String>,
    }

    #[test]
    fn a_list_ends_with_an_error_at_the_first_element_beyond_its_limit() {
        let few: Few = serde_json::from_str(r#"{"ids":["a","b","c"]}"#).unwrap();
        assert_eq!(few.ids.len(), 3);
        let error = serde_json::from_str::<Few>(r#"{"ids":["a","b","c","d"]}"#).unwrap_err();
        assert!(error.to_string().contains("more than 3"), "{error}");
    }
}
