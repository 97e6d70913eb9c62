//! Searches configurations for denied keys. A policy names a denied key by its path, such as
//! `ipam.dataDir`.
//!
//! The search compares keys as Go plugins do, so that no spelling of a key gets past the policy.
//! The search does not parse values other than objects and lists. A search that parsed numbers
//! would end at a number that Jackfield cannot parse, such as `1e400`, and would miss the keys
//! after that number.

use serde_json::value::RawValue;

use super::LISTS;
use crate::cni::RawObject;
use crate::cni::json::same_key;

/// A denied key: its whole path in the policy, and the rest of the path from the current object on.
/// For example, inside `ipam` the rest of `ipam.dataDir` is `dataDir`.
type DeniedKey<'k> = (&'k str, &'k str);

/// Returns one of the denied `paths`, if one matches a key of the object.
pub(super) fn denied_key<'k>(object: &RawObject, paths: &'k [String]) -> Option<&'k str> {
    let denied: Vec<DeniedKey<'_>> = paths.iter().map(|path| (&**path, &**path)).collect();
    first_of(object, &denied)
}

/// Returns one of the denied `paths`, if one matches a key of the pod's `cni-args`. Plugins get
/// `cni-args` as `args.cni`. So the path `args.cni.a` matches the key `a`, and the paths `args` and
/// `args.cni` match every key.
pub(super) fn denied_pod_key<'k>(cni_args: &RawObject, paths: &'k [String]) -> Option<&'k str> {
    if cni_args.is_empty() {
        return None;
    }
    let mut below = Vec::new();
    for path in paths {
        let mut keys = path.splitn(3, '.');
        let leads = |key: Option<&str>, to| key.is_none_or(|key| same_key(key, to));
        if leads(keys.next(), "args") && leads(keys.next(), "cni") {
            match keys.next() {
                None => return Some(path),
                Some(rest) => below.push((path.as_str(), rest)),
            }
        }
    }
    first_of(cni_args, &below)
}

/// Finds the first denied key in an object and in its nested objects and lists. One pass searches
/// for all denied keys, since a value may be long.
fn first_of<'k>(object: &RawObject, denied: &[DeniedKey<'k>]) -> Option<&'k str> {
    object.iter().find_map(|(key, raw)| {
        let mut below = Vec::new();
        for (denied, path) in denied {
            match path.split_once('.') {
                None if same_key(key, path) => return Some(*denied),
                Some((first, rest)) if same_key(key, first) => below.push((*denied, rest)),
                _ => {}
            }
        }
        first_below(raw, &below, LISTS)
    })
}

/// Finds the first denied key in a value. If lists nest too deeply for the search, assumes that the
/// value has a denied key.
fn first_below<'k>(raw: &RawValue, denied: &[DeniedKey<'k>], lists: usize) -> Option<&'k str> {
    let (first, _) = denied.first()?;
    match raw.get().as_bytes().first() {
        Some(b'[') if lists == 0 => Some(first),
        Some(b'[') => {
            let list: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
            let mut elements = list.into_iter();
            elements.find_map(|element| first_below(element, denied, lists - 1))
        }
        Some(b'{') => {
            let object: RawObject = serde_json::from_str(raw.get()).ok()?;
            first_of(&object, denied)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_key_is_found_in_any_spelling() {
        let object = RawObject::parse(
            br#"{"type":"ptp","IPAM":{"n":1e400,"\u0064ataDir":"/"},"ipam":{},"list":[[7,{"a":1}],{"b":null}],"deep":[[[[[{"y":1}]]]]],"ny\u017fctl":null}"#,
        )
        .unwrap();
        for (path, is_denied) in [
            ("type", true),
            ("ipam", true),
            ("ipam.dataDir", true),
            ("ipam.datadir", true),
            ("ipam.n", true),
            ("ipam.dataDir.x", false),
            ("list.a", true),
            ("LIST.b", true),
            ("list.c", false),
            ("nysctl", true),
            ("dataDir", false),
            ("", false),
            ("deep.x", true),
        ] {
            let key = first_of(&object, &[("another", "x.y"), (path, path)]);
            assert_eq!(key, is_denied.then_some(path), "{path}");
        }
    }

    #[test]
    fn a_denied_path_also_matches_keys_in_cni_args() {
        let args = RawObject::parse(br#"{"zz":{"q":1}}"#).unwrap();
        for (path, is_denied) in [
            ("args", true),
            ("Args.CNI", true),
            ("args.cni.zz", true),
            ("args.cni.zz.q", true),
            ("args.cni.zz.r", false),
            ("args.other", false),
            ("ipam", false),
        ] {
            let paths = ["other".to_owned(), path.to_owned()];
            let key = denied_pod_key(&args, &paths);
            assert_eq!(key, is_denied.then_some(path), "{path}");
            assert_eq!(
                denied_pod_key(&RawObject::default(), &paths),
                None,
                "{path}"
            );
        }
    }
}
