//! The API server's audit log.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::Deserialize;

use crate::Failure;

/// A request of an agent, or of a daemon of Multus.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The node of an agent; empty for Multus.
    pub(crate) node: String,
    pub(crate) at: SystemTime,
    pub(crate) verb: String,
    /// The resource, with the part of it that is written, as `pods/status`.
    pub(crate) resource: String,
    /// The path with its parameters.
    pub(crate) uri: String,
    pub(crate) code: u16,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    verb: String,
    #[serde(rename = "requestURI")]
    uri: String,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: Object,
    #[serde(default)]
    response_status: Status,
    request_received_timestamp: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    resource: String,
    subresource: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    code: u16,
}

/// What begins the name that an agent gives itself, before its node.
const AGENT: &str = "(agent; ";
const MULTUS: &str = "multus";

/// Reads the requests of agents and of Multus. The log has a watch only after its end.
pub(crate) fn read(path: &Path) -> Result<Vec<Request>, Failure> {
    let mut requests = Vec::new();
    for line in BufReader::new(std::fs::File::open(path)?).lines() {
        let line = line?;
        // The other lines are many and need no reading.
        if !line.contains(AGENT) && !line.contains(MULTUS) {
            continue;
        }
        let entry: Entry = serde_json::from_str(&line)?;
        let node = match entry.user_agent.split_once(AGENT) {
            Some((_, rest)) => rest.trim_end_matches(')').to_owned(),
            None if entry.user_agent.starts_with(MULTUS) => String::new(),
            None => continue,
        };
        let mut resource = entry.object_ref.resource;
        if !entry.object_ref.subresource.is_empty() {
            resource = format!("{resource}/{}", entry.object_ref.subresource);
        }
        requests.push(Request {
            node,
            at: humantime::parse_rfc3339(&entry.request_received_timestamp)?,
            verb: entry.verb,
            resource,
            uri: entry.uri,
            code: entry.response_status.code,
        });
    }
    Ok(requests)
}

impl Request {
    /// The request without what differs from node to node and from time to time.
    pub(crate) fn pattern(&self) -> String {
        let (path, parameters) = self.uri.split_once('?').unwrap_or((&self.uri, ""));
        let parameters = parameters.split('&').map(|it| {
            let (name, value) = it.split_once('=').unwrap_or((it, ""));
            let differs = [
                "resourceVersion",
                "timeoutSeconds",
                "timeout",
                "continue",
                "fieldSelector",
            ];
            match value {
                _ if differs.contains(&name) => format!("{name}=…"),
                _ => it.to_owned(),
            }
        });
        let parameters: Vec<String> = parameters.collect();
        format!("{} {path}?{}", self.verb, parameters.join("&"))
    }
}

/// How often each pattern occurs.
pub(crate) fn patterns<'a>(requests: impl Iterator<Item = &'a Request>) -> BTreeMap<String, usize> {
    let mut patterns = BTreeMap::new();
    for request in requests {
        *patterns.entry(request.pattern()).or_default() += 1;
    }
    patterns
}

/// How many requests came in each second from `from` on, up to the last that came.
pub(crate) fn per_second<'a>(
    requests: impl Iterator<Item = &'a Request>,
    from: SystemTime,
) -> Vec<usize> {
    let mut seconds = Vec::new();
    for request in requests {
        let after = request.at.duration_since(from).unwrap_or(Duration::ZERO);
        let place = usize::try_from(after.as_secs())
            .unwrap_or(usize::MAX)
            .min(3600);
        if seconds.len() <= place {
            seconds.resize(place + 1, 0);
        }
        if let Some(second) = seconds.get_mut(place) {
            *second += 1;
        }
    }
    seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str, seconds: u64) -> Request {
        Request {
            node: "a".into(),
            at: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
            verb: "list".into(),
            resource: "pods".into(),
            uri: uri.into(),
            code: 200,
        }
    }

    #[test]
    fn a_pattern_is_the_same_on_every_node_and_not_for_another_limit() {
        let pattern = |node, limit| {
            let uri = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}&limit={limit}");
            request(&uri, 0).pattern()
        };
        assert_eq!(pattern("a", 16), pattern("b", 16));
        assert_ne!(pattern("a", 16), pattern("a", 17));
    }

    #[test]
    fn each_second_has_its_requests() {
        let requests = [0, 2, 2].map(|seconds| request("/", seconds));
        let seconds = per_second(requests.iter(), SystemTime::UNIX_EPOCH);
        assert_eq!(seconds, [1, 0, 2]);
    }
}
