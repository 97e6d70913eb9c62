//! The plugin's question to the cluster, and the answer.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use super::lookup::LookupResult;
use super::pod::{Pod, PodAnnotations, PodName};
use super::sandbox_networks::SandboxNetworks;
use crate::bounded;
use crate::kubelet::PodDevices;
use crate::npwg::{Definition, Dialect, IpamClaim, ObjectRef};

/// The plugin's question to the cluster. An ADD asks at most one question, but may repeat it while
/// waiting for the agent or for the pod's devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Question {
    /// The pod, if the runtime names one.
    pub pod: Option<PodName>,
    /// The pod's annotations, if the runtime passes them.
    pub annotations: Option<PodAnnotations>,
    /// Whether the pod is static, according to the annotations from the runtime. A static pod may
    /// run before its mirror pod exists, and even without an API server.
    pub is_static: bool,
    /// The definitions to look up in addition to those that the pod requests.
    pub networks: Vec<ObjectRef>,
    /// The namespace of the definition in
    /// [`DEFAULT_NETWORK_ANNOTATION`](crate::npwg::DEFAULT_NETWORK_ANNOTATION), if the annotation
    /// does not name a namespace.
    pub multus_namespace: String,
    /// The version of NPWG by which Jackfield reads the annotations.
    pub dialect: Dialect,
    /// Kubelet's socket (`podResourcesSocket`); `None` if the call does not need the pod's devices.
    pub kubelet: Option<PathBuf>,
    /// Whether the answer must list the sandboxes whose attachments do not match the current
    /// `networks` annotation of their pod.
    pub differing: bool,
    /// Whether the plugin accepts definitions in separate messages before the answer.
    pub parts: bool,
    /// How long to wait for an agent that may still be starting.
    #[serde(skip)]
    pub patience: Duration,
}

impl Question {
    /// Returns the names of all definitions in the pod's `annotations`, without duplicates.
    pub(super) fn references(&self, annotations: &PodAnnotations) -> Vec<ObjectRef> {
        let namespace = self.pod.as_ref().map_or("", |pod| &pod.namespace);
        annotations.references(namespace, &self.multus_namespace, self.dialect)
    }
}

/// The answer to a [`Question`]: the pod, and the definitions and IPAMClaims of its networks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// The pod.
    pub pod: Option<Pod>,
    /// Every definition in the annotations or the question, in no particular order.
    #[serde(deserialize_with = "looked_up")]
    pub definitions: Vec<(ObjectRef, LookupResult<Definition>)>,
    /// Every IPAMClaim in the annotations, in no particular order.
    #[serde(deserialize_with = "looked_up")]
    pub claims: Vec<(String, LookupResult<IpamClaim>)>,
    /// The pod's devices according to kubelet. `None` if neither the agent nor the plugin asked
    /// kubelet, for example because no network uses devices.
    pub kubelet: Option<PodDevices>,
    /// The sandboxes whose attachments do not match the current `networks` annotation of their pod.
    #[serde(
        deserialize_with = "bounded::list::<_, _, 256>",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub differing: Vec<SandboxNetworks>,
    /// Whether the agent asks the plugin for the list of all attached sandboxes, for example
    /// because the agent has just started.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wants_sandboxes: bool,
}

/// The longest line of text in a message from the agent, in bytes. The plugin cuts a longer line.
pub(super) const LONGEST_LINE: usize = 1 << 10;

fn looked_up<'de, D, Name, T>(input: D) -> Result<Vec<(Name, LookupResult<T>)>, D::Error>
where
    D: Deserializer<'de>,
    Name: Deserialize<'de>,
    T: Deserialize<'de>,
{
    let mut all: Vec<(Name, LookupResult<T>)> = bounded::list::<_, _, 256>(input)?;
    for (_, found) in &mut all {
        if let Err(cause) = found {
            bounded::cut(cause, LONGEST_LINE);
        }
    }
    Ok(all)
}

impl Answer {
    /// Returns the definition `object`, or the error of its lookup.
    pub fn definition(&self, object: &ObjectRef) -> Option<&LookupResult<Definition>> {
        self.definitions
            .iter()
            .find(|(name, _)| name == object)
            .map(|(_, found)| found)
    }

    /// Returns whether a network is known. A network of the form `namespace/name` is known if the
    /// answer contains a usable definition of this name. Any other network counts as known.
    pub fn knows(&self, network: &str) -> bool {
        match network.parse() {
            Ok(object) => matches!(self.definition(&object), Some(Ok(_))),
            Err(_) => true,
        }
    }

    /// Fills in the definitions that the agent sent before the answer. The answer itself lists
    /// these definitions without their configurations.
    pub fn complete(&mut self, definitions: Vec<(ObjectRef, Definition)>) {
        for (object, definition) in definitions {
            if let Some((_, found)) = self.definitions.iter_mut().find(|(it, _)| *it == object) {
                *found = Ok(definition);
            }
        }
    }

    /// Returns the IPAMClaim `name`, or the error of its lookup.
    pub fn claim(&self, name: &str) -> Option<&LookupResult<IpamClaim>> {
        self.claims
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, found)| found)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::Census;
    use crate::cluster::frame::FromAgent;

    #[test]
    fn long_lines_from_the_agent_are_cut() {
        let long = "x".repeat(1 << 20);
        let answer =
            json!({"definitions": [["a/b", {"Err": long}]], "claims": [["c", {"Err": long}]]});
        let answer: Answer = serde_json::from_str(&answer.to_string()).unwrap();
        let definition = answer.definitions[0].1.as_ref().unwrap_err();
        let claim = answer.claims[0].1.as_ref().unwrap_err();
        let refused = json!({"refused": long}).to_string();
        let Ok(FromAgent::Refused(refused)) = serde_json::from_str(&refused) else {
            panic!("not read as a refusal");
        };
        let census = json!({"version": long, "node": long, "broken": [long]}).to_string();
        let census: Census = serde_json::from_str(&census).unwrap();
        for line in [
            definition,
            claim,
            &refused,
            &census.version.unwrap(),
            &census.node,
            &census.broken[0],
        ] {
            assert_eq!(line.len(), LONGEST_LINE);
        }
    }
}
