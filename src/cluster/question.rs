//! The question of the plugin, and the answer to it.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use super::lookup::LookupResult;
use super::pod::{Pod, PodAnnotations, PodName};
use crate::bounded;
use crate::kubelet::PodDevices;
use crate::npwg::{Definition, Dialect, IpamClaim, ObjectRef};

/// The question of the plugin, one per ADD; the default asks for nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Question {
    /// The pod, where the runtime names one.
    pub pod: Option<PodName>,
    /// Its annotations, where the runtime hands them over.
    pub annotations: Option<PodAnnotations>,
    /// Whether kubelet says, by the annotations that the runtime hands over, that it is a static
    /// pod: it may run before the API server has its mirror, and while there is no API server.
    pub is_static: bool,
    /// Definitions that the administrator's configuration names.
    pub networks: Vec<ObjectRef>,
    /// Where a bare name in [`DEFAULT_NETWORK_ANNOTATION`](crate::npwg::DEFAULT_NETWORK_ANNOTATION) is looked up.
    pub multus_namespace: String,
    /// How annotations are read.
    pub dialect: Dialect,
    /// The socket at which kubelet is asked for the pod's devices (`podResourcesSocket`) if one of
    /// its networks uses any; `None` when they do not matter.
    pub kubelet: Option<PathBuf>,
    /// Whether the plugin takes definitions in messages of their own before the answer.
    pub parts: bool,
    /// How long to wait for an agent: it may be starting.
    #[serde(skip)]
    pub patience: Duration,
}

/// The objects that an ADD needs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// The pod.
    pub pod: Option<Pod>,
    /// Every definition that was named, in no order.
    #[serde(deserialize_with = "looked_up")]
    pub definitions: Vec<(ObjectRef, LookupResult<Definition>)>,
    /// Every claim that was named, by its name.
    #[serde(deserialize_with = "looked_up")]
    pub claims: Vec<(String, LookupResult<IpamClaim>)>,
    /// The pod's devices according to kubelet; `None` where no network uses any, so that kubelet
    /// was not asked.
    pub kubelet: Option<PodDevices>,
}

/// The longest line in an answer, in bytes; a longer one is cut.
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
    /// The definition of that name.
    pub fn definition(&self, object: &ObjectRef) -> Option<&LookupResult<Definition>> {
        self.definitions
            .iter()
            .find(|(name, _)| name == object)
            .map(|(_, found)| found)
    }

    /// Whether a network of that name is known: it has a definition that was found, or needs none.
    pub fn knows(&self, network: &str) -> bool {
        match network.parse() {
            Ok(object) => matches!(self.definition(&object), Some(Ok(_))),
            Err(_) => true,
        }
    }

    /// Adds definitions that came before the answer, which holds only their names.
    pub fn complete(&mut self, definitions: Vec<(ObjectRef, Definition)>) {
        for (object, definition) in definitions {
            if let Some((_, found)) = self.definitions.iter_mut().find(|(it, _)| *it == object) {
                *found = Ok(definition);
            }
        }
    }

    /// The claim of that name.
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
    fn lines_of_others_are_cut() {
        let long = "x".repeat(1 << 20);
        let answer =
            json!({"definitions": [["a/b", {"Err": long}]], "claims": [["c", {"Err": long}]]});
        let answer: Answer = serde_json::from_str(&answer.to_string()).unwrap();
        let definition = answer.definitions[0].1.as_ref().unwrap_err();
        let claim = answer.claims[0].1.as_ref().unwrap_err();
        let refused = json!({"refused": long}).to_string();
        let Ok(FromAgent::Refused(refused)) = serde_json::from_str(&refused) else {
            panic!("a refusal");
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
