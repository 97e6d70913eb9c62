//! The embedded cluster: manifests in a folder, and files below `status/` for the outcomes.

mod pod;
mod status;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::devices::ask_kubelet;
use super::lookup::{LookupError, Place};
use super::manifests::Manifests;
use super::{Answer, Census, Cluster, ClusterError, PodName, Publication, Question};
use crate::npwg::{Definition, IpamClaim, ObjectRef};

const DEFINITION: &str = "NetworkAttachmentDefinition";
const CLAIM: &str = "IPAMClaim";
/// How long reading the folder may take for a census.
const CENSUS_WITHIN: Duration = Duration::from_secs(30);

/// A folder in place of a cluster.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The cluster in `path`; nothing is read yet.
    pub fn new(path: PathBuf) -> Folder {
        Folder { path }
    }

    fn read(&self, until: Instant) -> Result<Manifests, ClusterError> {
        Manifests::read(&self.path, until).map_err(|source| ClusterError::Folder {
            folder: self.path.clone(),
            source,
        })
    }

    /// Where an object was looked up.
    fn place(&self, manifests: &Manifests) -> Place {
        Place::Folder {
            path: self.path.clone(),
            broken: manifests.broken.first().cloned(),
        }
    }

    fn status_dir(&self, pod: &PodName) -> PathBuf {
        self.path
            .join("status")
            .join(&pod.namespace)
            .join(&pod.name)
    }
}

impl Cluster for Folder {
    fn ask(&self, question: &Question, until: Instant) -> Result<Answer, ClusterError> {
        let manifests = self.read(until)?;
        let mut answer = Answer::default();
        let mut wanted = question.networks.clone();
        if let Some(name) = &question.pod {
            let mut pod = pod::find(&manifests, name)?.ok_or_else(|| ClusterError::UnknownPod {
                pod: name.to_string(),
                place: self.place(&manifests),
            })?;
            if let Some(given) = &question.annotations {
                pod.annotations = given.clone();
            }
            let named = pod.annotations.references(
                &name.namespace,
                &question.multus_namespace,
                question.dialect,
            );
            wanted.extend(named);
            for claim in pod.annotations.claims(&name.namespace, question.dialect) {
                let found = self.claim(&manifests, &name.namespace, &claim);
                let found = found.map_err(|error| error.to_string());
                answer.claims.push((claim, found));
            }
            answer.pod = Some(pod);
        }
        for object in wanted {
            if answer.definition(&object).is_none() {
                let found = self.definition(&manifests, &object);
                let found = found.map_err(|error| error.to_string());
                answer.definitions.push((object, found));
            }
        }
        ask_kubelet(question, &mut answer);
        Ok(answer)
    }

    /// The folder has the manifests of one node.
    fn census(&self, node: &str, _: bool) -> Result<Census, ClusterError> {
        let manifests = self.read(Instant::now() + CENSUS_WITHIN)?;
        let mut census = Census {
            node: node.to_owned(),
            broken: manifests.broken.iter().map(ToString::to_string).collect(),
            ..Census::default()
        };
        for manifest in &manifests.documents {
            let namespace = manifest.metadata.namespace.as_deref().unwrap_or("default");
            let name = manifest.metadata.name.as_deref().unwrap_or_default();
            let object = match (manifest.kind.as_str(), ObjectRef::new(namespace, name)) {
                ("Pod" | DEFINITION, Ok(object)) => object,
                (kind @ ("Pod" | DEFINITION), Err(error)) => {
                    census.broken.push(format!("{kind} {error}"));
                    continue;
                }
                _ => continue,
            };
            let on_host = manifest.body.pointer("/spec/hostNetwork");
            if on_host.and_then(serde_json::Value::as_bool) == Some(true) {
                continue;
            }
            if manifest.kind == DEFINITION {
                census.definitions.push(object);
            } else {
                census.pods.push(PodName {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                    uid: manifest.metadata.uid.clone(),
                });
            }
        }
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

impl Folder {
    fn definition(
        &self,
        manifests: &Manifests,
        object: &ObjectRef,
    ) -> Result<Definition, LookupError> {
        match manifests.find(DEFINITION, object.namespace(), object.name()) {
            Some(manifest) => Ok(Definition::from_json(&manifest.body)?),
            None => Err(LookupError::Missing {
                kind: DEFINITION,
                object: object.to_string(),
                place: self.place(manifests),
            }),
        }
    }

    fn claim(
        &self,
        manifests: &Manifests,
        namespace: &str,
        name: &str,
    ) -> Result<IpamClaim, LookupError> {
        match manifests.find(CLAIM, namespace, name) {
            Some(manifest) => Ok(IpamClaim::from_json(&manifest.body)?),
            None => Err(LookupError::Missing {
                kind: CLAIM,
                object: format!("{namespace}/{name}"),
                place: self.place(manifests),
            }),
        }
    }
}
