//! Publishing: one PATCH of the pod's status, and a POST for each event.

use std::time::SystemTime;

use device_info::printable;
use http::Method;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::server::{JSON, JSON_PATCH, pod_path};
use super::{ApiError, ApiServer, Lookup, PodView};
use crate::cluster::identity::is_of_static_form;
use crate::cluster::publication::Omission;
use crate::cluster::{Event, Publication};
use crate::npwg::{ObjectRef, STATUS_ANNOTATION, merge_status};

/// How many patches `publish` sends before it gives up. A patch fails if another client changes the
/// same annotation at the same time.
const ATTEMPTS: usize = 5;
/// The namespace of events about nodes. Nodes themselves have no namespace.
const NAMESPACE_OF_NODES: &str = "default";

/// The outcome of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishOutcome {
    /// Everything is written, except a status that the API server refused as too long. An event
    /// reports the refusal.
    Written,
    /// The pod is gone. A new pod may have the same name.
    PodGone,
    /// The pod is static, and the API server does not have its mirror pod.
    NoMirror,
}

/// Why a publication failed.
#[derive(Debug)]
pub enum PublishError {
    /// The pod cannot be read, or the API server did not accept the status. No event has been
    /// created.
    Status(ApiError),
    /// The API server did not accept an event. The status needs no retry.
    Event(ApiError),
}

impl From<PublishError> for ApiError {
    fn from(error: PublishError) -> ApiError {
        match error {
            PublishError::Status(error) | PublishError::Event(error) => error,
        }
    }
}

/// The source of events, and the period in which equal events count as one.
#[derive(Debug, Clone, Copy)]
pub struct EventContext<'a> {
    /// The node's name; empty if it is unknown.
    pub node: &'a str,
    /// Equal events about the same object in the same period count as one event.
    pub period: &'a str,
}

/// Publishes the status and the events. `view` is the pod's state in a cache; `None` if no cache
/// has the pod.
///
/// The patch tests the pod's UID and the annotation that it replaces. So the patch changes no other
/// pod of the same name, and overwrites no annotation that another client has changed in the
/// meantime (NPWG 1.3 §5.1). The patch does not test the pod's resource version, because kubelet
/// writes other parts of the pod's status at the same time. Each of these writes changes the
/// resource version and would make such a test fail. If a test fails, this function reads the pod
/// again and sends a new patch.
///
/// # Errors
/// [`PublishError`]. A retry in the same period creates no duplicate events.
pub async fn publish(
    server: &ApiServer,
    view: Option<&PodView>,
    publication: &Publication,
    occasion: EventContext<'_>,
) -> Result<PublishOutcome, PublishError> {
    let name = publication.pod();
    let Ok(pod) = ObjectRef::new(&name.namespace, &name.name) else {
        return Ok(PublishOutcome::PodGone);
    };
    let mut current = view
        .filter(|view| view.identity.is(name.uid.as_deref()))
        .cloned();
    let path = format!("{}/status", pod_path(&pod));
    let mut attempt = 0;
    let mut events = publication.events().to_vec();
    let identified = loop {
        let view = match current.take() {
            Some(view) => view,
            None => {
                let read = server.pod(&name.namespace, &name.name).await;
                match read.map_err(PublishError::Status)? {
                    Some(view) if view.identity.is(name.uid.as_deref()) => view,
                    _ if name.uid.as_deref().is_some_and(is_of_static_form) => {
                        return Ok(PublishOutcome::NoMirror);
                    }
                    _ => return Ok(PublishOutcome::PodGone),
                }
            }
        };
        let Some(patch) = patch(&view, publication) else {
            break view;
        };
        attempt += 1;
        match server.write(Method::PATCH, JSON_PATCH, &path, &patch).await {
            Ok(patched) => break patched,
            Err(error) if error.code() == Some(404) => return Ok(PublishOutcome::PodGone),
            // A retry would fail too, so an event reports the refusal.
            Err(error) if error.is_too_long() => {
                events.push(Omission::RefusedStatus(error).event());
                break view;
            }
            // 422: a test failed. 409: another client changed the pod while the API server applied
            // the patch.
            Err(error) if matches!(error.code(), Some(409 | 422)) && attempt < ATTEMPTS => {}
            Err(error) => return Err(PublishError::Status(error)),
        }
    };
    let about = EventTarget {
        kind: "Pod",
        namespace: &name.namespace,
        name: &name.name,
        uid: &identified.identity.uid,
    };
    for event in &events {
        let created = create(server, about, event, occasion).await;
        created.map_err(PublishError::Event)?;
    }
    Ok(PublishOutcome::Written)
}

/// Creates an event about the node that `occasion` names.
///
/// # Errors
/// [`ApiError`].
pub async fn create_node_event(
    server: &ApiServer,
    event: &Event,
    occasion: EventContext<'_>,
) -> Result<(), ApiError> {
    let about = EventTarget {
        kind: "Node",
        namespace: NAMESPACE_OF_NODES,
        name: occasion.node,
        // The node's name instead of its UID, as in kubelet's events. `kubectl describe node` also
        // searches for events by this name.
        uid: occasion.node,
    };
    create(server, about, event, occasion).await
}

async fn create(
    server: &ApiServer,
    about: EventTarget<'_>,
    event: &Event,
    occasion: EventContext<'_>,
) -> Result<(), ApiError> {
    let body = event_body(about, event, occasion);
    let path = format!("/api/v1/namespaces/{}/events", about.namespace);
    match server.write(Method::POST, JSON, &path, &body).await {
        // 409: the event exists. 404: the namespace is gone.
        Err(error) if matches!(error.code(), Some(409 | 404)) => Ok(()),
        created => created.map(|_: IgnoredAny| ()),
    }
}

/// The object that an event is about.
#[derive(Debug, Clone, Copy)]
struct EventTarget<'a> {
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
}

/// Returns the patch; `None` if the publication has no status or the pod already has this status.
fn patch(view: &PodView, publication: &Publication) -> Option<Value> {
    let ours = publication.status()?;
    let merged = merge_status(view.status.as_deref(), ours);
    if view.status.as_deref() == Some(merged.as_str()) {
        return None;
    }
    let (path, current, new) = match view.has_annotations {
        true => {
            let key = STATUS_ANNOTATION.replace('/', "~1");
            let path = format!("/metadata/annotations/{key}");
            (path, json!(view.status), json!(merged))
        }
        false => {
            let annotations = json!({STATUS_ANNOTATION: merged});
            ("/metadata/annotations".to_owned(), Value::Null, annotations)
        }
    };
    Some(json!([
        {"op": "test", "path": "/metadata/uid", "value": view.identity.uid},
        {"op": "test", "path": path, "value": current},
        {"op": "add", "path": path, "value": new},
    ]))
}

/// Returns the body of an event. The name of the event depends on the object in `about`, on the
/// event's reason and message, and on the period. The API server refuses an event whose name
/// exists, so repeated ADDs create the same event only once per period.
fn event_body(about: EventTarget<'_>, event: &Event, occasion: EventContext<'_>) -> Value {
    let EventContext { node, period } = occasion;
    let identity = format!("{} {period} {} {}", about.uid, event.reason, event.message);
    let sum = crc32fast::hash(identity.as_bytes());
    let more = crc32fast::hash(format!("{sum} {identity}").as_bytes());
    let start = &about.name[..about.name.floor_char_boundary(200)];
    let start = start.trim_end_matches(['.', '-']);
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let mut involved =
        json!({"apiVersion": "v1", "kind": about.kind, "name": about.name, "uid": about.uid});
    if about.kind == "Pod" {
        involved["namespace"] = json!(about.namespace);
    }
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {
            "name": format!("{start}.{sum:08x}{more:08x}"),
            "namespace": about.namespace,
        },
        "involvedObject": involved,
        "type": event.kind, "reason": event.reason,
        // The API of events allows 1 KiB.
        "message": printable(&event.message, 1000),
        "source": {"component": "jackfield", "host": node},
        "reportingComponent": "jackfield", "reportingInstance": node,
        "firstTimestamp": now, "lastTimestamp": now, "count": 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::PodName;
    use crate::cluster::identity::Identity;
    use crate::npwg::StatusEntry;

    fn publication() -> Publication {
        let pod = PodName {
            namespace: "a".into(),
            name: "web".into(),
            uid: Some("u".into()),
        };
        let status = vec![StatusEntry {
            name: "n".into(),
            ..StatusEntry::default()
        }];
        Publication::new(pod, Some(status), Vec::new())
    }

    fn view(status: Option<&str>) -> PodView {
        PodView {
            identity: Identity {
                uid: "u".into(),
                mirrors: None,
            },
            status: status.map(str::to_owned),
            has_annotations: status.is_some(),
            ..PodView::default()
        }
    }

    #[test]
    fn a_patch_applies_only_to_the_expected_uid_and_annotation() {
        let patch = patch(&view(Some("[]")), &publication()).unwrap();
        assert_eq!(
            patch[0],
            json!({"op": "test", "path": "/metadata/uid", "value": "u"})
        );
        assert_eq!(patch[1]["value"], "[]");
        assert_eq!(
            patch[1]["path"],
            "/metadata/annotations/k8s.v1.cni.cncf.io~1network-status"
        );
        assert_eq!(patch[2]["value"], r#"[{"name":"n","default":false}]"#);
    }

    #[test]
    fn a_patch_creates_the_missing_map_of_annotations() {
        let patch = patch(&view(None), &publication()).unwrap();
        assert_eq!(patch[1]["value"], Value::Null);
        assert_eq!(patch[2]["path"], "/metadata/annotations");
    }

    #[test]
    fn a_status_that_the_pod_has_already_is_not_written_again() {
        let current = r#"[{"name":"n","default":false}]"#;
        assert_eq!(patch(&view(Some(current)), &publication()), None);
    }

    #[test]
    fn equal_events_in_one_period_have_the_same_valid_name() {
        let name = format!("{}.{}", "x".repeat(199), "y".repeat(40));
        let about = EventTarget {
            kind: "Pod",
            namespace: "a",
            name: &name,
            uid: "u",
        };
        let event = Event::normal("AddedInterface", "é".repeat(800));
        let node = "node-a";
        let body = |event: &Event, period| event_body(about, event, EventContext { node, period });
        let name_of = |body: &Value| body["metadata"]["name"].as_str().unwrap().to_owned();
        let first = body(&event, "1");
        assert_eq!(name_of(&first), name_of(&body(&event, "1")));
        assert_ne!(name_of(&first), name_of(&body(&event, "2")));
        let other = Event::warning("AddedInterface", "other words");
        assert_ne!(name_of(&first), name_of(&body(&other, "1")));
        assert!(!name_of(&first).contains(".."), "{first}");
        let length = first["message"].as_str().unwrap().len();
        assert!((990..=1000).contains(&length), "{length}");
        let foreign = Event::warning("Odd", "a\n\u{9b}31m\u{202e}");
        assert_eq!(body(&foreign, "1")["message"], r"a\n\u{9b}31m\u{202e}");
    }
}
