//! Telling the cluster: one PATCH of the pod's status, and an event.

use device_info::printable;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{ApiError, ApiServer, PodView};
use crate::cluster::identity::is_of_static_form;
use crate::cluster::publication::Omission;
use crate::cluster::{Event, EventKind, Publication};
use crate::npwg::{ObjectRef, STATUS_ANNOTATION, merge_status};

/// How often a patch is made anew when others change the same annotation in between.
const ATTEMPTS: usize = 5;
/// Where events about nodes are, which are in no namespace themselves.
const NAMESPACE_OF_NODES: &str = "default";

/// What came of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// It is told.
    Told,
    /// The pod is gone, or another one has its name: there is nobody to be told of.
    PodGone,
    /// It is a static pod, and the API server does not have its mirror, or not yet.
    NoMirror,
}

/// Why a publication failed.
#[derive(Debug)]
pub enum NotPublished {
    /// The API server did not take the status. No event has been created.
    Status(ApiError),
    /// The status is written, and the API server did not take an event.
    Event(ApiError),
}

impl From<ApiError> for NotPublished {
    fn from(error: ApiError) -> NotPublished {
        NotPublished::Status(error)
    }
}

/// How events are signed and told apart.
#[derive(Debug, Clone, Copy)]
pub struct Occasion<'a> {
    /// The node's name, where it is known.
    pub node: &'a str,
    /// The same words about the same pod in the same period are one event.
    pub period: &'a str,
}

/// Publishes, on the assumption that the pod is as in `view`; `None` when it is not known yet.
///
/// The patch tests the pod's UID and the annotation that it replaces, so that it changes no other
/// pod of that name and nothing that somebody wrote in between (NPWG 1.3 §5.1). The resource
/// version is no part of that: kubelet writes the status of the same pod at the same time, to
/// which this is no contradiction. Where a test fails, the pod is read and the patch made anew.
///
/// # Errors
/// [`NotPublished`]: it is still owed then. What was told already is not told twice.
pub async fn publish(
    server: &ApiServer,
    view: Option<&PodView>,
    publication: &Publication,
    occasion: Occasion<'_>,
) -> Result<Published, NotPublished> {
    let name = publication.pod();
    let Ok(pod) = ObjectRef::new(&name.namespace, &name.name) else {
        return Ok(Published::PodGone);
    };
    let mut current = view
        .filter(|view| view.identity.is(name.uid.as_deref()))
        .cloned();
    let mut attempt = 0;
    let mut events = publication.events().to_vec();
    let identified = loop {
        let view = match current.take() {
            Some(view) => view,
            None => match server.pod(&name.namespace, &name.name).await? {
                Some(view) if view.identity.is(name.uid.as_deref()) => view,
                _ if name.uid.as_deref().is_some_and(is_of_static_form) => {
                    return Ok(Published::NoMirror);
                }
                _ => return Ok(Published::PodGone),
            },
        };
        let Some(patch) = patch(&view, publication) else {
            break view;
        };
        attempt += 1;
        match server.patch_pod_status(&pod, &patch).await {
            Ok(patched) => break patched,
            Err(error) if error.code() == Some(404) => return Ok(Published::PodGone),
            // It is as long the next time.
            Err(error) if error.is_too_long() => {
                events.push(Omission::RefusedStatus(error).event());
                break view;
            }
            // 422: a test failed; 409: somebody wrote between the server's own read and write.
            Err(error) if matches!(error.code(), Some(409 | 422)) && attempt < ATTEMPTS => {}
            Err(error) => return Err(NotPublished::Status(error)),
        }
    };
    let about = About {
        kind: "Pod",
        namespace: &name.namespace,
        name: &name.name,
        uid: &identified.identity.uid,
    };
    for event in &events {
        let told = tell(server, about, event, occasion).await;
        told.map_err(NotPublished::Event)?;
    }
    Ok(Published::Told)
}

/// Creates an event about the node of `occasion`.
///
/// # Errors
/// [`ApiError`].
pub async fn tell_of_node(
    server: &ApiServer,
    event: &Event,
    occasion: Occasion<'_>,
) -> Result<(), ApiError> {
    let about = About {
        kind: "Node",
        namespace: NAMESPACE_OF_NODES,
        name: occasion.node,
        // As kubelet has it: `kubectl describe node` looks for this one.
        uid: occasion.node,
    };
    tell(server, about, event, occasion).await
}

async fn tell(
    server: &ApiServer,
    about: About<'_>,
    event: &Event,
    occasion: Occasion<'_>,
) -> Result<(), ApiError> {
    let body = event_body(about, event, occasion);
    match server.create_event(about.namespace, &body).await {
        // 409: it was told already. 404: the namespace is gone.
        Err(error) if matches!(error.code(), Some(409 | 404)) => Ok(()),
        told => told,
    }
}

/// What an event is about.
#[derive(Debug, Clone, Copy)]
struct About<'a> {
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
}

/// The change, or none where the pod says it already.
fn patch(view: &PodView, publication: &Publication) -> Option<Value> {
    let ours = publication.status()?;
    let merged = merge_status(view.status.as_deref(), ours);
    if view.status.as_deref() == Some(merged.as_str()) {
        return None;
    }
    let key = format!(
        "/metadata/annotations/{}",
        STATUS_ANNOTATION.replace('/', "~1")
    );
    let uid = json!({"op": "test", "path": "/metadata/uid", "value": view.identity.uid});
    Some(if view.has_annotations {
        json!([
            uid,
            {"op": "test", "path": key, "value": view.status},
            {"op": "add", "path": key, "value": merged},
        ])
    } else {
        json!([
            uid,
            {"op": "test", "path": "/metadata/annotations", "value": null},
            {"op": "add", "path": "/metadata/annotations", "value": {STATUS_ANNOTATION: merged}},
        ])
    })
}

/// An event whose name is made of its words and their period: a pod that is tried again and again
/// is told once in a while, and telling it twice makes one.
fn event_body(about: About<'_>, event: &Event, occasion: Occasion<'_>) -> Value {
    let Occasion { node, period } = occasion;
    let About {
        kind: of,
        namespace,
        name,
        uid,
    } = about;
    let kind = match event.kind {
        EventKind::Normal => "Normal",
        EventKind::Warning => "Warning",
    };
    let said = format!("{uid} {period} {} {}", event.reason, event.message);
    let sum = crc32fast::hash(said.as_bytes());
    let more = crc32fast::hash(format!("{sum} {said}").as_bytes());
    let start = shortened(name, 200).trim_end_matches(['.', '-']);
    let now = Timestamp::now();
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let now = json!(now.to_string());
    let mut involved = json!({"apiVersion": "v1", "kind": of, "name": name, "uid": uid});
    if of == "Pod" {
        involved["namespace"] = json!(namespace);
    }
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {
            "name": format!("{start}.{sum:08x}{more:08x}"),
            "namespace": namespace,
        },
        "involvedObject": involved,
        "type": kind, "reason": event.reason,
        // The API server refuses more than 1 KiB.
        "message": printable(&event.message, 1000),
        "source": {"component": "jackfield", "host": node},
        "reportingComponent": "jackfield", "reportingInstance": node,
        "firstTimestamp": now, "lastTimestamp": now, "count": 1,
    })
}

fn shortened(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
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
    fn a_patch_tests_the_uid_and_what_it_replaces() {
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
    fn a_pod_without_annotations_gets_them() {
        let patch = patch(&view(None), &publication()).unwrap();
        assert_eq!(patch[1]["value"], Value::Null);
        assert_eq!(patch[2]["path"], "/metadata/annotations");
    }

    #[test]
    fn what_the_pod_says_already_is_not_written_again() {
        let said = r#"[{"name":"n","default":false}]"#;
        assert_eq!(patch(&view(Some(said)), &publication()), None);
    }

    #[test]
    fn an_events_name_is_valid_and_the_same_for_the_same_words_in_one_period() {
        let name = format!("{}.{}", "x".repeat(199), "y".repeat(40));
        let about = About {
            kind: "Pod",
            namespace: "a",
            name: &name,
            uid: "u",
        };
        let event = Event::normal("AddedInterface", "é".repeat(800));
        let node = "node-a";
        let body = |event: &Event, period| event_body(about, event, Occasion { node, period });
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
