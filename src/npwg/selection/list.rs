//! The two forms of an annotation that selects networks: comma-separated names and a JSON list.

use device_info::printable;
use serde_json::value::RawValue;

use super::{ElementError, MAX_BYTES, MAX_NETWORKS, Selection, SelectionError};
use crate::cni::JsonError;
use crate::cni::json::check;
use crate::npwg::Dialect;
use crate::npwg::object_ref::ObjectRef;

/// The maximum length of a name in a message, in bytes.
const LONGEST_NAME: usize = 96;

impl Selection {
    /// Reads the annotation in either form: comma-separated names or a JSON list.
    ///
    /// As in Multus, a name may have the form `namespace/name@interface`. An empty annotation
    /// selects no network.
    ///
    /// # Errors
    ///
    /// [`SelectionError`] if the annotation is invalid by NPWG 1.3 §4.1.2.1 or exceeds a limit. An
    /// error in one network contains the network's position in the list.
    pub fn parse_list(
        annotation: &str,
        pod_namespace: &str,
        dialect: Dialect,
    ) -> Result<Vec<Self>, SelectionError> {
        if annotation.len() > MAX_BYTES {
            return Err(SelectionError::TooLarge(annotation.len()));
        }
        if annotation.trim().is_empty() {
            return Ok(Vec::new());
        }
        // No name contains these characters, so an annotation with one of them must be JSON.
        let list = if annotation.contains(['[', '{', '"']) {
            json(annotation, pod_namespace, dialect)?
        } else {
            names(annotation, pod_namespace)?
        };
        one_default_route(&list)?;
        Ok(list)
    }
}

/// Reads the JSON list of NPWG 1.3 §4.1.2.
fn json(
    annotation: &str,
    namespace: &str,
    dialect: Dialect,
) -> Result<Vec<Selection>, SelectionError> {
    let text = check(annotation.as_bytes()).map_err(SelectionError::NotList)?;
    let list: Vec<&RawValue> = serde_json::from_str(text)
        .map_err(|error| SelectionError::NotList(JsonError::from(error)))?;
    check_limit(list.len())?;
    list.iter()
        .enumerate()
        .map(|(index, raw)| {
            let (name, selection) = Selection::read(raw, namespace, dialect);
            selection.map_err(|source| element(index, name.as_deref(), source))
        })
        .collect()
}

/// Reads the comma-separated names of NPWG 1.3 §4.1.1, with Multus' `@interface`. Like Multus,
/// ignores white space and treats an empty interface or namespace as absent.
fn names(annotation: &str, namespace: &str) -> Result<Vec<Selection>, SelectionError> {
    check_limit(annotation.split(',').count())?;
    let names = annotation.split(',').map(str::trim).enumerate();
    let selections = names.map(|(index, text)| {
        name(text, namespace).map_err(|source| element(index, Some(text), source))
    });
    selections.collect()
}

fn name(text: &str, namespace: &str) -> Result<Selection, ElementError> {
    if text.is_empty() {
        return Err(ElementError::NoName);
    }
    let (network, interface) = text.split_once('@').unwrap_or((text, ""));
    let (own_namespace, name) = network.split_once('/').unwrap_or(("", network));
    let own_namespace = given(own_namespace).unwrap_or(namespace);
    let network = ObjectRef::new(own_namespace, name.trim())?;
    let interface = given(interface).map(str::parse);
    Ok(Selection {
        interface: interface.transpose().map_err(ElementError::Interface)?,
        ..Selection::of(network)
    })
}

/// Returns a part of a name without white space around it; `None` for an empty part.
fn given(part: &str) -> Option<&str> {
    Some(part.trim()).filter(|part| !part.is_empty())
}

fn check_limit(networks: usize) -> Result<(), SelectionError> {
    if networks > MAX_NETWORKS {
        return Err(SelectionError::TooMany(networks));
    }
    Ok(())
}

fn element(index: usize, name: Option<&str>, source: ElementError) -> SelectionError {
    SelectionError::Element {
        position: index + 1,
        name: name
            .filter(|name| !name.is_empty())
            .map(|name| format!(" ({})", printable(name, LONGEST_NAME)))
            .unwrap_or_default(),
        source,
    }
}

/// Refuses a second `default-route` (NPWG 1.3 §4.1.2.1.9: "Only one network attachment may specify
/// the key").
fn one_default_route(list: &[Selection]) -> Result<(), SelectionError> {
    let mut with_route = (1..)
        .zip(list)
        .filter(|(_, selection)| selection.default_route.is_some())
        .map(|(position, _)| position);
    match (with_route.next(), with_route.next()) {
        (Some(first), Some(second)) => Err(SelectionError::DefaultRouteTwice { first, second }),
        _ => Ok(()),
    }
}
