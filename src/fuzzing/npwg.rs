//! Fuzz targets for annotations and objects that users write to the cluster.

use std::rc::Rc;
use std::time::Instant;

use serde_json::Value;

use super::files::dir_with;
use super::{accepted, said, settles, text};
use crate::cluster::api::definitions::{self, Unread};
use crate::cluster::api::events;
use crate::cluster::api::slices::identify;
use crate::cluster::api::{PodView, SliceView};
use crate::cluster::lookup::LookupError;
use crate::cluster::{Answer, Cluster, Folder, PodAnnotations, PodName, Question};
use crate::cni::RawObject;
use crate::kubelet::PodDevices;
use crate::npwg::selection::MAX_NETWORKS;
use crate::npwg::{Definition, Dialect, IpamClaim, Selection, StatusEntry, merge_status};

/// Parses the annotations `k8s.v1.cni.cncf.io/networks` and `v1.multus-cni.io/default-network`.
pub(super) fn annotation(bytes: &[u8]) -> Option<()> {
    let text = text(bytes)?;
    for dialect in [Dialect::V1_0, Dialect::V1_3] {
        let Some(list) = accepted(Selection::parse_list(text, "ns", dialect)) else {
            continue;
        };
        assert!(list.len() <= MAX_NETWORKS);
        assert!(list.iter().filter(|it| it.default_route.is_some()).count() <= 1);
        for selection in &list {
            let args = selection.capability_args();
            let mut values = args.iter().map(|(_, value)| value.get());
            assert!(values.all(|value| value != "null"), "{selection:?}");
            if let Some(args) = &selection.cni_args {
                let again = RawObject::parse(args.to_string().as_bytes());
                assert_eq!(again.as_ref(), Ok(args));
            }
        }
        let one = Selection::parse_default_network(text, "ns", dialect);
        assert_eq!(one.is_ok(), list.len() == 1);
        let annotations = PodAnnotations {
            networks: Some(text.to_owned()),
            default_network: Some(text.to_owned()),
        };
        let named = annotations.references("ns", "ns", dialect);
        assert!(list.iter().all(|it| named.contains(&it.network)));
        let claims = annotations.claims("ns", dialect);
        let has = |claim| claims.contains(claim);
        assert!(list.iter().filter_map(|it| it.ipam_claim.as_ref()).all(has));
    }
    Some(())
}

/// Merges a status into an existing annotation `k8s.v1.cni.cncf.io/network-status`. Checks that a
/// second merge changes nothing.
pub(super) fn network_status(bytes: &[u8]) -> Option<()> {
    let text = text(bytes)?;
    let ours = [StatusEntry {
        name: "default/net-a".to_owned(),
        interface: Some("net1".to_owned()),
        ..StatusEntry::default()
    }];
    let merged = merge_status(Some(text), &ours);
    let list: Result<Vec<RawObject>, _> = serde_json::from_str(&merged);
    assert!(list.is_ok_and(|list| !list.is_empty()), "{merged}");
    assert_eq!(merge_status(Some(&merged), &ours), merged);
    settles(&serde_json::from_str::<Vec<StatusEntry>>(text).ok()?);
    Some(())
}

/// Parses a Kubernetes object as the API server sends it.
pub(super) fn objects(bytes: &[u8]) -> Option<()> {
    let object: Value = serde_json::from_slice(bytes).ok()?;
    let definition = Definition::from_json(&object);
    if let Some(definition) = accepted(definition.as_ref()) {
        settles(definition);
    }
    // The agent reads a definition directly from the answer of the API server. The result must
    // equal the definition that `from_json` returned.
    match definitions::read(bytes) {
        Ok((read, _)) => assert_eq!(definition, Ok(read)),
        Err(LookupError::Invalid(error)) => said(&error),
        Err(_) => {}
    }
    // The agent passes a definition with a long configuration to the plugin without parsing that
    // configuration. If the plugin can read this definition, the definition must equal the one that
    // `from_json` returned.
    if let Ok(unread) = Unread::of(bytes)
        && let Ok(text) = serde_json::to_string(&unread)
        && let Ok(passed_on) = serde_json::from_str::<Definition>(&text)
    {
        assert_eq!(definition, Ok(passed_on));
    }
    if let Some(claim) = accepted(IpamClaim::from_json(&object)) {
        settles(&claim);
    }
    let line = format!(r#"{{"type":"ADDED","object":{object}}}"#);
    assert!(matches!(events::read(&line), Ok(Ok(_))), "{line}");
    if let Ok(view) = serde_json::from_value::<PodView>(object.clone()) {
        assert_eq!(view.to_be_kept().is_none(), view.is_unattached);
    }
    let slice: SliceView = serde_json::from_value(object).ok()?;
    let slices = [Rc::new(slice)];
    let mut devices = PodDevices {
        on_node: Some(Vec::new()),
        ..PodDevices::default()
    };
    assert!(identify(&slices, &mut devices));
    let once = devices.clone();
    identify(&slices, &mut devices);
    assert_eq!(devices, once);
    Some(())
}

/// Reads the input as a manifest in `manifestDir`.
pub(super) fn manifests(bytes: &[u8]) -> Option<()> {
    let dir = dir_with(&[("a.yaml", bytes)])?;
    let question = Question {
        pod: Some(PodName {
            namespace: "default".to_owned(),
            name: "web".to_owned(),
            uid: None,
        }),
        ..Question::default()
    };
    let folder = Folder::new(dir.path().to_owned());
    settles::<Answer>(&accepted(folder.ask(&question, Instant::now()))?);
    Some(())
}
