//! Reads one YAML document as kubectl does. The parsers of kubectl and of `serde_norway` are ports
//! of libyaml. Unlike the YAML specification, libyaml lets the lines of a quoted text begin in any
//! column. If a key occurs twice, the last value counts. Merge keys (`<<`) are expanded.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{DocumentError, MAX_FILE};

/// The size limit of a document after its aliases are expanded. The size is the length of all
/// strings in bytes, plus [`EACH`] for each key and each value.
const MAX_EXPANDED: u64 = MAX_FILE;
/// The size of a key or a value in addition to its text, in bytes.
const EACH: u64 = 8;

/// How many brackets may be open at the same time. The time that libyaml takes grows with the
/// square of this number.
pub(super) const MAX_OPEN: usize = 1024;

/// Reads a document. An empty document is null.
///
/// # Errors
/// [`DocumentError`].
pub(super) fn read(text: &str) -> Result<Value, DocumentError> {
    if most_open(text) > MAX_OPEN {
        return Err(DocumentError::TooDeep);
    }
    let Some(document) = serde_norway::Deserializer::from_str(text).next() else {
        return Ok(Value::Null);
    };
    let left = Cell::new(MAX_EXPANDED);
    Ok(Node { left: &left }.deserialize(document)?)
}

/// Returns the largest number of brackets that are open at the same time. Counts brackets in quoted
/// texts too. Most of these brackets come in pairs, so they rarely push the result above
/// [`MAX_OPEN`].
fn most_open(text: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// Reads one value of the document. `left` is how much of [`MAX_EXPANDED`] remains for all values
/// that have not been read yet.
#[derive(Clone, Copy)]
struct Node<'a> {
    left: &'a Cell<u64>,
}

impl Node<'_> {
    fn counted<E: Error>(self, text: &str) -> Result<(), E> {
        let size = EACH + text.len() as u64;
        let Some(left) = self.left.get().checked_sub(size) else {
            let cause = format_args!(
                "the document is larger than {MAX_EXPANDED} bytes after its aliases are expanded"
            );
            return Err(E::custom(cause));
        };
        self.left.set(left);
        Ok(())
    }

    fn scalar<E: Error>(self, value: impl Into<Value>) -> Result<Value, E> {
        self.counted("")?;
        Ok(value.into())
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, document: D) -> Result<Value, D::Error> {
        document.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value without a custom tag")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.scalar(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        self.scalar(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.scalar(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.scalar(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.scalar(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.scalar(value)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        self.counted(text)?;
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        self.counted("")?;
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        self.counted("")?;
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            self.counted(&key)?;
            let value = map.next_value_seed(self)?;
            if key == "<<" {
                merge(&mut object, value)?;
            } else {
                object.insert(key, value);
            }
        }
        Ok(Value::Object(object))
    }
}

/// Merges the keys of `others` into `object`. `others` is one object or a list of objects. The
/// merged keys replace keys that `object` already has, as with kubectl. If several objects in the
/// list have the same key, the value in the first of these objects counts.
fn merge<E: Error>(object: &mut Map<String, Value>, others: Value) -> Result<(), E> {
    match others {
        Value::Object(other) => {
            object.extend(other);
            Ok(())
        }
        Value::Array(others) => others
            .into_iter()
            .rev()
            .try_for_each(|other| merge(object, other)),
        _ => Err(E::custom("the merge key << has no mapping to merge")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The examples of NPWG, Multus and KubeVirt contain texts like these.
    #[test]
    fn the_lines_of_a_quoted_text_may_begin_in_any_column() {
        for (text, value) in [
            ("spec:\n  config: '{\n  \"a\": 1\n}'\n", "{ \"a\": 1 }"),
            ("spec:\n  config: '{\n\"a\": 1\n\n}'\n", "{ \"a\": 1\n}"),
            (
                "spec:\n  config: '{\n\t\"a\": 1,\n\t\t\"b\": 2\n\t}'\n",
                "{ \"a\": 1, \"b\": 2 }",
            ),
            (
                "spec:\n  config: \"{\n\t\\\"a\\\": 1\n }\"\n",
                "{ \"a\": 1 }",
            ),
            ("spec:\n  config: 'a:\n- b'\n", "a: - b"),
            ("spec:\n    config: \"one\n  two\"\n", "one two"),
            ("spec: {config: 'one\ntwo'}\n", "one two"),
        ] {
            let expected = json!({ "spec": { "config": value } });
            assert_eq!(read(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn the_last_of_several_duplicate_keys_wins() {
        let text = "kind: A\nmetadata: {name: a, name: b}\nkind: Pod\n";
        let expected = json!({ "kind": "Pod", "metadata": { "name": "b" } });
        assert_eq!(read(text).unwrap(), expected);
        let json = "{\"a\": 1, \"a\": [2]}";
        assert_eq!(read(json).unwrap(), json!({ "a": [2] }));
    }

    #[test]
    fn aliases_and_merge_keys_are_expanded() {
        let text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [{x: 4}, *a]}\nd: *a\n1: ~\n";
        let expected = json!({
            "a": { "x": 1, "y": 2 }, "b": { "x": 1, "y": 3 }, "c": { "x": 4, "y": 2 },
            "d": { "x": 1, "y": 2 }, "1": null,
        });
        assert_eq!(read(text).unwrap(), expected);
        assert_eq!(read("").unwrap(), Value::Null);
        let error = read("a: {<<: 1}").unwrap_err().to_string();
        assert!(error.contains("<<"), "{error}");
    }

    #[test]
    fn an_error_is_one_line() {
        for text in [
            "a: 'b",
            "a: [1",
            "a: 'b\n---\n'",
            "\t- a",
            "a: b: c",
            "*a",
            "a: !own b",
        ] {
            let cause = read(text).expect_err(text).to_string();
            assert!(!cause.is_empty() && !cause.contains('\n'), "{cause}");
        }
    }

    #[test]
    fn alias_expansion_and_nesting_have_limits() {
        let much = format!(
            "a: &a {}\nb: [{}*a]\n",
            "x".repeat(1 << 16),
            "*a, ".repeat(200)
        );
        let error = read(&much).unwrap_err().to_string();
        assert!(error.contains("larger than"), "{error}");
        let deep = format!("a: {}{}", "[".repeat(100_000), "]".repeat(100_000));
        read(&deep).unwrap_err();
    }
}
