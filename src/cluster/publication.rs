//! What Jackfield publishes about a pod in the cluster: the network-status, events, and the status
//! of the pod's ResourceClaims.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::pod::PodName;
use super::{ApiError, ClaimStatus};
use crate::npwg::StatusEntry;

/// The maximum number of events in one publication. It limits the load on the API server.
pub const MAX_EVENTS: usize = 32;
/// The longest message of an event, in bytes. The API of events allows 1 KiB.
pub const MAX_MESSAGE: usize = 1000;
/// The largest network-status, in bytes. All annotations of a pod together may have 256 KiB, and
/// other annotations need room too. `deploy/admission.yaml` sets the same limit.
pub const MAX_STATUS: usize = 192 * 1024;

/// The maximum number of claims in one publication, and of devices in one claim. Each network of a
/// pod uses at most one device. A pod can select 64 networks, and the node configuration can add
/// others.
pub const MAX_CLAIMS: usize = 128;

/// One publication about a pod. [`MAX_EVENTS`], [`MAX_MESSAGE`], [`MAX_STATUS`] and [`MAX_CLAIMS`]
/// limit its size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Unbounded")]
pub struct Publication {
    pod: PodName,
    status: Option<Vec<StatusEntry>>,
    events: Vec<Event>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    claims: Vec<ClaimStatus>,
}

/// A publication as it was written. It may exceed the limits, because a release with other limits
/// may have written it.
#[derive(Deserialize)]
struct Unbounded {
    pod: PodName,
    status: Option<Vec<StatusEntry>>,
    #[serde(default)]
    events: Vec<Event>,
    #[serde(default)]
    claims: Vec<ClaimStatus>,
}

impl From<Unbounded> for Publication {
    fn from(written: Unbounded) -> Publication {
        Publication::new(written.pod, written.status, written.events).with_claims(written.claims)
    }
}

impl Publication {
    /// Creates a publication for `pod`. A `status` of `None` leaves the pod's current status
    /// unchanged.
    ///
    /// Replaces a status longer than [`MAX_STATUS`] with an event. If there are too many events,
    /// keeps the first events and the last event. An additional event says how many events are
    /// omitted. Cuts messages longer than [`MAX_MESSAGE`].
    pub fn new(
        pod: PodName,
        status: Option<Vec<StatusEntry>>,
        mut events: Vec<Event>,
    ) -> Publication {
        let length = serde_json::to_string(&status).map_or(0, |text| text.len());
        let status = status.filter(|_| length <= MAX_STATUS);
        if length > MAX_STATUS {
            events.push(Omission::LongStatus(length).event());
        }
        Publication {
            pod,
            status,
            events: few(events),
            claims: Vec::new(),
        }
    }

    /// Sets the status of the pod's claims. The agent replaces the pod's entries in each of these
    /// claims, and does not change other claims. Drops claims and devices beyond [`MAX_CLAIMS`].
    #[must_use]
    pub fn with_claims(mut self, mut claims: Vec<ClaimStatus>) -> Publication {
        claims.truncate(MAX_CLAIMS);
        for claim in &mut claims {
            claim.devices.truncate(MAX_CLAIMS);
        }
        self.claims = claims;
        self
    }

    /// The pod.
    pub fn pod(&self) -> &PodName {
        &self.pod
    }

    /// The pod's network-status; `None` leaves the current status unchanged.
    pub fn status(&self) -> Option<&[StatusEntry]> {
        self.status.as_deref()
    }

    /// The events about the pod.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The status of the pod's claims.
    pub fn claims(&self) -> &[ClaimStatus] {
        &self.claims
    }

    /// Whether the publication changes only claims.
    pub fn is_of_claims_alone(&self) -> bool {
        self.status.is_none() && self.events.is_empty()
    }

    /// Merges an `earlier` publication for the same pod into this publication. Adds the earlier
    /// events. If this publication has no status for the pod or for a claim, takes that status from
    /// `earlier`.
    #[must_use]
    pub fn after(self, earlier: Publication) -> Publication {
        let newer: HashSet<&Event> = self.events.iter().collect();
        let mut events = earlier.events;
        events.retain(|event| !newer.contains(event));
        events.extend(self.events);
        let mut claims = self.claims;
        let newer: HashSet<String> = claims.iter().map(|it| it.claim.clone()).collect();
        let earlier_claims = earlier.claims.into_iter();
        claims.extend(earlier_claims.filter(|it| !newer.contains(&it.claim)));
        claims.truncate(MAX_CLAIMS);
        Publication {
            pod: self.pod,
            status: self.status.or(earlier.status),
            events: few(events),
            claims,
        }
    }
}

fn few(mut events: Vec<Event>) -> Vec<Event> {
    if events.len() > MAX_EVENTS
        && let Some(last) = events.pop()
    {
        let omitted = events.len() - (MAX_EVENTS - 2);
        events.truncate(MAX_EVENTS - 2);
        events.extend([Omission::Events(omitted).event(), last]);
    }
    for event in &mut events {
        let end = event.message.floor_char_boundary(MAX_MESSAGE);
        event.message.truncate(end);
    }
    events
}

/// What a publication omits, and why.
#[derive(Debug, thiserror::Error)]
pub(super) enum Omission {
    /// The status has this many bytes, which is more than [`MAX_STATUS`].
    #[error("network-status is not written: it has {0} bytes; {MAX_STATUS} are allowed")]
    LongStatus(usize),
    /// The API server refused the status, because the pod object would be too large with this
    /// status.
    #[error("network-status is not written: {0}")]
    RefusedStatus(ApiError),
    /// The publication omits this many events, because of [`MAX_EVENTS`].
    #[error("{0} more events are omitted; at most {MAX_EVENTS} are written")]
    Events(usize),
}

impl Omission {
    /// The event that reports the omission.
    pub(super) fn event(&self) -> Event {
        let reason = match self {
            Omission::LongStatus(_) | Omission::RefusedStatus(_) => "StatusTooLong",
            Omission::Events(_) => "EventsOmitted",
        };
        Event::warning(reason, self.to_string())
    }
}

/// An event about a pod or a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Event {
    /// Normal or Warning.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// The reason, in one word.
    pub reason: String,
    /// What happened, in one line.
    pub message: String,
}

impl Event {
    /// An event about a problem.
    pub fn warning(reason: &str, message: impl Into<String>) -> Event {
        Event {
            kind: EventKind::Warning,
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    /// An event that reports no problem.
    pub fn normal(reason: &str, message: impl Into<String>) -> Event {
        Event {
            kind: EventKind::Normal,
            reason: reason.to_owned(),
            message: message.into(),
        }
    }
}

/// The type of an event in the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EventKind {
    /// There is no problem.
    Normal,
    /// There is a problem.
    Warning,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::NetworkData;
    use crate::cluster::claim_status::DeviceStatus;

    fn pod() -> PodName {
        PodName {
            namespace: "a".into(),
            name: "web".into(),
            uid: Some("u".into()),
        }
    }

    fn warnings(count: usize) -> Vec<Event> {
        let warning = |number| Event::warning("R", format!("{number} {}", "é".repeat(4000)));
        (0..count).map(warning).collect()
    }

    fn entry(name: &str) -> StatusEntry {
        StatusEntry {
            name: name.into(),
            ..StatusEntry::default()
        }
    }

    #[test]
    fn a_publication_contains_a_limited_number_of_events() {
        let mut events = warnings(30_000);
        events.push(Event::normal("AddedInterface", "last"));
        let made = Publication::new(pod(), Some(vec![entry("n")]), events.clone());
        assert_eq!(made.events().len(), MAX_EVENTS);
        assert_eq!(made.events()[MAX_EVENTS - 1].reason, "AddedInterface");
        let omitted = &made.events()[MAX_EVENTS - 2];
        assert_eq!(omitted.reason, "EventsOmitted");
        assert!(omitted.message.starts_with("29970 more"), "{omitted:?}");
        assert!(
            made.events()
                .iter()
                .all(|it| it.message.len() <= MAX_MESSAGE)
        );
        let text = serde_json::to_string(&made).unwrap();
        assert!(text.len() < 64 << 10, "{}", text.len());
        let written = serde_json::json!({"pod": pod(), "status": null, "events": events});
        let read: Publication = serde_json::from_value(written).unwrap();
        assert_eq!(read.events().len(), MAX_EVENTS);
    }

    #[test]
    fn an_event_replaces_a_status_that_is_too_long() {
        let status = vec![entry(&"x".repeat(MAX_STATUS))];
        let made = Publication::new(pod(), Some(status), Vec::new());
        assert_eq!(made.status(), None);
        assert_eq!(made.events()[0].reason, "StatusTooLong");
    }

    #[test]
    fn an_older_publication_is_merged_into_a_newer_one() {
        let [old, new] = ["old", "new"].map(|name| Some(vec![entry(name)]));
        let event = |text: &str| Event::warning("R", text);
        let make = |status: &Option<Vec<StatusEntry>>, events: &[&str]| {
            let events = events.iter().map(|text| event(text)).collect();
            Publication::new(pod(), status.clone(), events)
        };
        let earlier = make(&old, &["a", "b"]);
        for (status, expected) in [(&new, &new), (&None, &old)] {
            let merged = make(status, &["b", "c"]).after(earlier.clone());
            assert_eq!(merged, make(expected, &["a", "b", "c"]));
        }
        let claim = |name: &str, devices| ClaimStatus {
            claim: name.into(),
            devices,
        };
        let device = DeviceStatus {
            driver: "d".into(),
            pool: "p".into(),
            device: "vf1".into(),
            share_id: None,
            network_data: NetworkData::default(),
        };
        let with = |claims| Publication::new(pod(), None, Vec::new()).with_claims(claims);
        let added = with(vec![
            claim("a", vec![device.clone()]),
            claim("b", vec![device]),
        ]);
        let removed = with(vec![claim("a", Vec::new())]);
        let both = removed.after(added.clone());
        let expected = with(vec![claim("a", Vec::new()), added.claims()[1].clone()]);
        assert_eq!(both, expected);
        assert!(both.is_of_claims_alone());
        let merged = Publication::new(pod(), None, warnings(30));
        let merged = merged.after(Publication::new(pod(), None, warnings(60)));
        assert!(merged.events().len() <= MAX_EVENTS);
    }

    #[test]
    fn each_omission_says_what_is_missing_and_why() {
        for (omission, words) in [
            (
                Omission::LongStatus(200_000),
                "network-status is not written: it has 200000 bytes; 196608 are allowed",
            ),
            (
                Omission::Events(7),
                "7 more events are omitted; at most 32 are written",
            ),
        ] {
            assert_eq!(omission.to_string(), words);
        }
    }
}
