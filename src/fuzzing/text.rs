//! Fuzz targets for JSON objects and for small texts such as addresses and names.

use std::cmp::Ordering;
use std::fmt::{Debug, Display};
use std::str::FromStr;

use device_info::{
    AbsolutePath, CniFileName, DeviceName, Guid, IpoibAddr, MacAddr, PciAddress, PhysPortName,
    SpecVersion, VdpaDriver, natural_order,
};

use super::{accepted, text};
use crate::agent::Exposition;
use crate::cni::json::same_key;
use crate::cni::{
    CniArgs, ContainerId, InterfaceName, NetworkName, PluginType, RawObject, Version,
};
use crate::npwg::{Dialect, ObjectRef, RequestedIp, RequestedMac};
use crate::request::Call;

/// The maximum number of keys that a target checks in one object. Each check takes time
/// proportional to the size of the object.
const KEYS: usize = 32;

/// Parses a JSON object. Checks that writing and parsing the object again gives the same object.
/// Also checks that a removed key is gone, and that a configuration contains no key twice.
pub(super) fn json(bytes: &[u8]) -> Option<()> {
    let object = accepted(RawObject::parse(bytes))?;
    let written = object.to_string();
    assert_eq!(RawObject::parse(written.as_bytes()), Ok(object.clone()));
    assert_eq!(serde_json::to_string(&object).ok(), Some(written));
    if let Some(configuration) = accepted(RawObject::parse_configuration(bytes)) {
        assert_eq!(configuration, object);
        assert_eq!(RawObject::parse_stdin(bytes), Ok(configuration));
        let keys: Vec<&str> = object.iter().map(|(key, _)| key).take(KEYS).collect();
        for (place, key) in keys.iter().enumerate() {
            let mut later = keys.iter().skip(place + 1);
            assert!(later.all(|other| !same_key(key, other)), "{key:?}");
        }
    }
    for (key, value) in object.iter().take(KEYS) {
        assert!(object.contains(key), "{key:?}");
        let mut changed = object.clone();
        assert!(changed.remove(key) && !changed.contains(key), "{key:?}");
        changed.set(key, value.to_owned());
        let set = Some(value.get()).filter(|value| *value != "null");
        assert_eq!(changed.get(key).map(|value| value.get()), set, "{key:?}");
    }
    Some(())
}

/// Parses `CNI_ARGS`. Checks that writing and parsing the pairs again gives the same pairs. Also
/// checks that `get` returns each value that `set` accepts, and that a removed key is gone.
fn cni_args(text: &str) -> Option<()> {
    let given = accepted(CniArgs::parse(text))?;
    assert_eq!(CniArgs::parse(&given.to_string()), Ok(given.clone()));
    let mut args = given.clone();
    for (key, value) in given.iter().take(KEYS) {
        if accepted(args.set(key, value)).is_some() {
            assert_eq!(args.get(key), Some(value));
        }
        args.remove(key);
        assert_eq!(args.get(key), None);
    }
    Some(())
}

/// Parses the whole input as `CNI_ARGS`. Then reads a call from the input, with one environment
/// variable in each line.
pub(super) fn environment(bytes: &[u8]) -> Option<()> {
    let text = text(bytes)?;
    cni_args(text);
    let variable = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        lines.find_map(|(key, value)| (key == name).then(|| value.to_owned()))
    };
    let call = accepted(Call::read(variable))?;
    accepted(call.attachment());
    assert!(call.path_dirs().all(|dir| !dir.as_os_str().is_empty()));
    Some(())
}

/// If `text` is a valid value, checks that writing and parsing the value again gives the same
/// value.
fn reads_back<T>(text: &str)
where
    T: FromStr<Err: Display> + Display + PartialEq + Debug,
{
    if let Some(value) = accepted(text.parse::<T>()) {
        let again = value.to_string().parse::<T>();
        assert_eq!(again.map_err(|error| error.to_string()), Ok(value));
    }
}

/// Splits the input into two words at the first line feed. Parses each word as an address, a name
/// and a version. Also checks that `natural_order` returns the reverse result if the words are
/// swapped.
pub(super) fn words(bytes: &[u8]) -> Option<()> {
    let text = text(bytes)?;
    let (left, right) = text.split_once('\n').unwrap_or((text, ""));
    for word in [left, right] {
        reads_back::<PciAddress>(word);
        reads_back::<PhysPortName>(word);
        reads_back::<VdpaDriver>(word);
        reads_back::<SpecVersion>(word);
        reads_back::<DeviceName>(word);
        reads_back::<AbsolutePath>(word);
        reads_back::<CniFileName>(word);
        reads_back::<IpoibAddr>(word);
        reads_back::<Guid>(word);
        reads_back::<MacAddr>(word);
        reads_back::<ObjectRef>(word);
        reads_back::<RequestedIp>(word);
        reads_back::<Version>(word);
        reads_back::<ContainerId>(word);
        reads_back::<InterfaceName>(word);
        reads_back::<NetworkName>(word);
        reads_back::<PluginType>(word);
        let twice = Exposition::parse(&format!("{word},{word}"));
        assert_eq!(Exposition::parse(word), twice);
        if let Ok(guid) = Guid::parse_observed(word) {
            assert_eq!(Guid::parse_observed(&guid.to_string()), Ok(guid));
        }
        if let Ok(mac) = MacAddr::parse_observed(word) {
            assert_eq!(MacAddr::parse_observed(&mac.to_string()), Ok(mac));
        }
        for dialect in [Dialect::V1_0, Dialect::V1_3] {
            if let Ok(mac) = RequestedMac::parse(word, dialect) {
                assert_eq!(RequestedMac::parse(&mac.to_string(), dialect), Ok(mac));
            }
        }
    }
    assert_eq!(natural_order(left, left), Ordering::Equal);
    assert_eq!(
        natural_order(left, right),
        natural_order(right, left).reverse()
    );
    Some(())
}
