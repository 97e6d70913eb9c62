//! A folder of manifests in place of a cluster. Jackfield writes the status and the events of pods
//! to files below the folder's subfolder `status/`.

mod status;

use std::cell::OnceCell;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;

use super::api::PodView;
use super::devices::ask_kubelet;
use super::lookup::{LookupError, LookupResult, Place};
use super::manifests::Manifests;
use super::{Answer, Census, Cluster, ClusterError, Pod, PodName, Publication, Question};
use crate::npwg::{Definition, IpamClaim, ManifestError, ObjectRef};

/// The annotation with a pod's devices, by resource. In a cluster, kubelet allocates the devices.
const DEVICES: &str = "jackfield.io/devices";
const DEFINITION: &str = "NetworkAttachmentDefinition";
const CLAIM: &str = "IPAMClaim";
/// The time limit for reading the folder for a [`Census`], the list of all pods and definitions.
const CENSUS_WITHIN: Duration = Duration::from_secs(30);

/// A folder in place of a cluster.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// The manifests that a census has read. The caller of a census asks about each object in the
    /// census. If each question read the folder again, the time would grow with the square of the
    /// number of objects.
    of_census: OnceCell<Manifests>,
}

impl Folder {
    /// Uses the folder `path` in place of a cluster. Reads nothing yet.
    pub fn new(path: PathBuf) -> Folder {
        Folder {
            path,
            of_census: OnceCell::new(),
        }
    }

    /// Returns this folder as a [`Place`] for messages about missing objects.
    fn place(&self, manifests: &Manifests) -> Place {
        Place::Folder {
            path: self.path.clone(),
            broken: manifests.broken.first().cloned(),
        }
    }

    fn object<T>(
        &self,
        manifests: &Manifests,
        kind: &'static str,
        (namespace, name): (&str, &str),
        read: impl Fn(&Value) -> Result<T, ManifestError>,
    ) -> LookupResult<T> {
        let Some(manifest) = manifests.find(kind, namespace, name) else {
            let object = format!("{namespace}/{name}");
            return Err(LookupError::Missing(kind, object, self.place(manifests)).to_string());
        };
        read(&manifest.body).map_err(|error| error.to_string())
    }

    /// Finds the pod with this name.
    fn find_pod(&self, manifests: &Manifests, name: &PodName) -> Result<Pod, ClusterError> {
        let Some(manifest) = manifests.find("Pod", &name.namespace, &name.name) else {
            let place = self.place(manifests);
            return Err(ClusterError::UnknownPod(name.to_string(), place));
        };
        let view = PodView::deserialize(&manifest.body);
        let view = view.map_err(|error| ClusterError::Manifest(name.to_string(), error))?;
        let annotations = manifest.metadata.annotations.as_ref();
        let devices = annotations.and_then(|annotations| annotations.get(DEVICES));
        let devices = devices
            .filter(|text| !text.trim().is_empty())
            .map(|text| serde_json::from_str(text))
            .transpose()
            .map_err(|error| ClusterError::Devices(name.to_string(), error))?;
        Ok(Pod {
            uid: manifest.metadata.uid.clone(),
            devices: devices.unwrap_or_default(),
            ..view.to_pod(None)
        })
    }

    fn status_dir(&self, pod: &PodName) -> PathBuf {
        self.path.join(format!("status/{pod}"))
    }
}

impl Cluster for Folder {
    fn ask(&self, question: &Question, until: Instant) -> Result<Answer, ClusterError> {
        let current;
        let manifests = match self.of_census.get() {
            Some(manifests) => manifests,
            None => {
                current = Manifests::read(&self.path, until)?;
                &current
            }
        };
        let mut answer = Answer::default();
        let mut wanted = question.networks.clone();
        if let Some(name) = &question.pod {
            let mut pod = self.find_pod(manifests, name)?;
            if let Some(given) = &question.annotations {
                pod.annotations = given.clone();
            }
            wanted.extend(question.references(&pod.annotations));
            for claim in pod.annotations.claims(&name.namespace, question.dialect) {
                let name = (name.namespace.as_str(), claim.as_str());
                let found = self.object(manifests, CLAIM, name, IpamClaim::from_json);
                answer.claims.push((claim, found));
            }
            answer.pod = Some(pod);
        }
        for object in wanted {
            if answer.definition(&object).is_none() {
                let name = (object.namespace(), object.name());
                let found = self.object(manifests, DEFINITION, name, Definition::from_json);
                answer.definitions.push((object, found));
            }
        }
        ask_kubelet(question, &mut answer);
        Ok(answer)
    }

    /// Lists the pods in the folder as pods of `node`. Omits pods that use the host's network.
    /// Lists the definitions even if the caller does not ask for them. Answers to later questions
    /// come from the manifests that the first census has read.
    fn census(&self, node: &str, _: bool) -> Result<Census, ClusterError> {
        let manifests = Manifests::read(&self.path, Instant::now() + CENSUS_WITHIN)?;
        let mut census = Census {
            node: node.to_owned(),
            broken: manifests.broken.iter().map(ToString::to_string).collect(),
            ..Census::default()
        };
        for manifest in &manifests.documents {
            let namespace = manifest.metadata.namespace.as_deref().unwrap_or("default");
            let name = manifest.metadata.name.as_deref().unwrap_or_default();
            let kind = manifest.kind.as_str();
            if kind != "Pod" && kind != DEFINITION {
                continue;
            }
            let on_host = manifest.body.pointer("/spec/hostNetwork");
            match ObjectRef::new(namespace, name) {
                Err(error) => census.broken.push(format!("{kind} {error}")),
                Ok(_) if on_host == Some(&Value::Bool(true)) => {}
                Ok(object) if kind == DEFINITION => census.definitions.push(object),
                Ok(object) => {
                    let uid = manifest.metadata.uid.clone();
                    census.pods.push(PodName::of(&object, uid));
                }
            }
        }
        // If an earlier census has already stored its manifests, `set` fails and keeps them.
        let _ = self.of_census.set(manifests);
        Ok(census)
    }

    fn publish(&self, publication: &Publication, _: Instant) -> Result<(), ClusterError> {
        let dir = self.status_dir(publication.pod());
        status::write(&dir, publication).map_err(|source| ClusterError::Status {
            pod: publication.pod().to_string(),
            path: dir,
            source,
        })
    }

    fn sweep(&self, pod: &PodName) {
        status::sweep(&self.status_dir(pod));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definitions(names: &[&str]) -> String {
        let manifest = |name| {
            format!(
                r#"{{"kind":"NetworkAttachmentDefinition","metadata":{{"name":"{name}"}},"spec":{{"config":"{{}}"}}}}"#
            )
        };
        names.iter().map(manifest).collect()
    }

    #[test]
    fn questions_after_a_census_do_not_read_the_folder_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("all.json");
        std::fs::write(&file, definitions(&["a", "b"])).unwrap();
        let folder = Folder::new(dir.path().to_owned());
        let until = Instant::now() + Duration::from_secs(60);
        let is_found = |name: &str| {
            let object = ObjectRef::new("default", name).unwrap();
            let question = Question {
                networks: vec![object.clone()],
                ..Question::default()
            };
            let answer = folder.ask(&question, until).unwrap();
            answer.definition(&object).unwrap().is_ok()
        };
        assert!(is_found("a") && !is_found("c"));
        std::fs::write(&file, definitions(&["a", "b", "c"])).unwrap();
        assert!(is_found("c"), "without a census, questions read the folder");
        assert_eq!(folder.census("node", true).unwrap().definitions.len(), 3);
        std::fs::remove_file(&file).unwrap();
        assert!(is_found("a") && is_found("b") && is_found("c"));
    }
}
