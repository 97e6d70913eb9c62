//! The embedded cluster: a folder of manifests in, files below `status/` out.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::devices::ask_kubelet;
use super::manifests::{Manifest, Manifests};
use super::{
    Answer, Census, Cluster, ClusterError, Container, Event, Found, Pod, PodAnnotations, PodName,
    Publication, Question,
};
use crate::npwg::{Definition, IpamClaim, ObjectRef, StatusEntry, merge_status};

/// What kubelet would have allocated, written by hand into a manifest.
const DEVICES: &str = "jackfield.io/devices";
/// What a status file is called until it is whole; its writer's process ID follows.
const UNFINISHED: &str = ".network-status.";
const DEFINITION: &str = "NetworkAttachmentDefinition";
const CLAIM: &str = "IPAMClaim";

/// A folder that is the cluster.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The cluster in `path`; nothing is read yet.
    pub fn new(path: PathBuf) -> Folder {
        Folder { path }
    }

    fn read(&self) -> Result<Manifests, ClusterError> {
        Manifests::read(&self.path).map_err(|cause| ClusterError::Folder {
            folder: self.path.display().to_string(),
            cause: cause.to_string(),
        })
    }

    fn status_dir(&self, pod: &PodName) -> PathBuf {
        self.path
            .join("status")
            .join(&pod.namespace)
            .join(&pod.name)
    }
}

impl Cluster for Folder {
    fn ask(&self, question: &Question) -> Result<Answer, ClusterError> {
        let manifests = self.read()?;
        let mut answer = Answer::default();
        let mut wanted = question.networks.clone();
        if let Some(name) = &question.pod {
            let mut pod = pod(&manifests, name)?.ok_or_else(|| ClusterError::UnknownPod {
                pod: format!("{}/{}", name.namespace, name.name),
                place: format!(
                    "manifestDir {}{}",
                    self.path.display(),
                    manifests.broken_hint()
                ),
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
                answer.claims.push((
                    claim.clone(),
                    self.claim(&manifests, &name.namespace, &claim),
                ));
            }
            answer.pod = Some(pod);
        }
        for object in wanted {
            if answer.definition(&object).is_none() {
                let found = self.definition(&manifests, &object);
                answer.definitions.push((object, found));
            }
        }
        ask_kubelet(question, &mut answer);
        Ok(answer)
    }

    /// A folder is one node.
    fn census(&self, node: &str) -> Result<Census, ClusterError> {
        let manifests = self.read()?;
        let mut census = Census {
            node: node.to_owned(),
            broken: manifests.broken.clone(),
            ..Census::default()
        };
        for manifest in &manifests.documents {
            let namespace = manifest.metadata.namespace.as_deref().unwrap_or("default");
            let name = manifest.metadata.name.as_deref().unwrap_or_default();
            let object = match (manifest.kind.as_str(), ObjectRef::new(namespace, name)) {
                ("Pod" | DEFINITION, Ok(object)) => object,
                ("Pod" | DEFINITION, Err(cause)) => {
                    census.broken.push(format!("{} {cause}", manifest.kind));
                    continue;
                }
                _ => continue,
            };
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

    fn publish(&self, publication: &Publication) -> Result<(), ClusterError> {
        let dir = self.status_dir(&publication.pod);
        let failed = |cause: std::io::Error| ClusterError::Status {
            pod: format!("{}/{}", publication.pod.namespace, publication.pod.name),
            path: dir.display().to_string(),
            cause: cause.to_string(),
        };
        fs::create_dir_all(&dir).map_err(failed)?;
        if let Some(status) = &publication.status {
            write_status(&dir, status).map_err(failed)?;
        }
        append_events(&dir, &publication.events).map_err(failed)
    }

    fn sweep(&self, pod: &PodName) {
        let entries = fs::read_dir(self.status_dir(pod));
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name();
            let writer = name.to_str().and_then(|name| name.strip_prefix(UNFINISHED));
            // Another sandbox of the same pod may be publishing at this moment.
            if writer.and_then(|pid| pid.parse().ok()).is_some_and(is_over) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Whether a process has ended, or is this one, which writes nothing when it sweeps.
fn is_over(pid: i32) -> bool {
    let pid = Pid::from_raw(pid);
    pid == Pid::this() || nix::sys::signal::kill(pid, None) == Err(Errno::ESRCH)
}

impl Folder {
    fn definition(&self, manifests: &Manifests, object: &ObjectRef) -> Found<Definition> {
        match manifests.find(DEFINITION, object.namespace(), object.name()) {
            Some(manifest) => {
                Definition::from_json(&manifest.body).map_err(|error| error.to_string())
            }
            None => Err(format!(
                "no NetworkAttachmentDefinition {object} in manifestDir {}{}",
                self.path.display(),
                manifests.broken_hint()
            )),
        }
    }

    fn claim(&self, manifests: &Manifests, namespace: &str, name: &str) -> Found<IpamClaim> {
        match manifests.find(CLAIM, namespace, name) {
            Some(manifest) => {
                IpamClaim::from_json(&manifest.body).map_err(|error| error.to_string())
            }
            None => Err(format!(
                "no IPAMClaim {namespace}/{name} in manifestDir {}",
                self.path.display()
            )),
        }
    }
}

fn pod(manifests: &Manifests, name: &PodName) -> Result<Option<Pod>, ClusterError> {
    let found: Option<&Manifest> = manifests.find("Pod", &name.namespace, &name.name);
    let Some(manifest) = found else {
        return Ok(None);
    };
    let none = BTreeMap::new();
    let annotations = manifest.metadata.annotations.as_ref().unwrap_or(&none);
    let devices = annotations
        .get(DEVICES)
        .filter(|text| !text.trim().is_empty());
    let devices = devices.map(|text| serde_json::from_str(text)).transpose();
    let devices = devices.map_err(|error| ClusterError::Devices {
        pod: name.to_string(),
        cause: error.to_string(),
    })?;
    Ok(Some(Pod {
        uid: manifest.metadata.uid.clone(),
        annotations: PodAnnotations::from_map(annotations),
        devices: devices.unwrap_or_default(),
        containers: containers(&manifest.body),
        has_claims: manifest
            .body
            .pointer("/spec/resourceClaims")
            .and_then(Value::as_array)
            .is_some_and(|claims| !claims.is_empty()),
    }))
}

/// The containers that request extended resources, those that run to completion first, as kubelet
/// has them. A name with `/` is an extended resource's; what counts is the limit, which for these
/// is the request.
fn containers(pod: &Value) -> Vec<Container> {
    let lists = [("/spec/initContainers", true), ("/spec/containers", false)];
    let specs = lists.into_iter().flat_map(|(place, is_init)| {
        let specs = pod.pointer(place).and_then(Value::as_array);
        specs.into_iter().flatten().map(move |spec| (spec, is_init))
    });
    let mut containers = Vec::new();
    for (spec, is_init) in specs {
        let limits = ["/resources/requests", "/resources/limits"].map(|place| spec.pointer(place));
        let limits = limits.into_iter().flatten().filter_map(Value::as_object);
        let requests: BTreeMap<String, u64> = limits
            .flatten()
            .filter(|(resource, _)| resource.contains('/'))
            .filter_map(|(resource, count)| Some((resource.clone(), number(count)?)))
            .collect();
        if let Some(name) = spec.get("name").and_then(Value::as_str)
            && !requests.is_empty()
        {
            containers.push(Container {
                name: name.to_owned(),
                requests,
                ends_first: is_init && spec.get("restartPolicy") != Some(&json!("Always")),
            });
        }
    }
    containers
}

/// A quantity of an extended resource: a whole number, with or without quotes.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// What others wrote stays: foreign entries and keys with a period (NPWG 1.3 §5.1).
fn write_status(dir: &Path, status: &[StatusEntry]) -> std::io::Result<()> {
    let path = dir.join("network-status.json");
    let before = fs::read_to_string(&path).ok();
    let text = merge_status(before.as_deref(), status);
    let temporary = dir.join(format!("{UNFINISHED}{}", std::process::id()));
    fs::write(&temporary, text)?;
    fs::rename(&temporary, &path)
}

fn append_events(dir: &Path, events: &[Event]) -> std::io::Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let mut lines = Vec::new();
    for event in events {
        serde_json::to_writer(&mut lines, event)?;
        lines.push(b'\n');
    }
    let path = dir.join("events.jsonl");
    fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?
        .write_all(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_come_as_kubelet_has_them_with_what_they_ask_of_device_plugins() {
        let pod = serde_json::json!({ "spec": {
            "containers": [
                { "name": "b", "resources": { "requests": { "cpu": "1", "intel.com/vf": "2" } } },
                { "name": "a", "resources": { "limits": { "intel.com/vf": 1, "x.com/y": "z" } } },
                { "name": "none" },
            ],
            "initContainers": [
                { "name": "i", "resources": { "limits": { "intel.com/vf": "3" } } },
                { "name": "s", "restartPolicy": "Always",
                  "resources": { "limits": { "intel.com/vf": 1 } } },
            ],
        }});
        let found: Vec<(String, u64, bool)> = containers(&pod)
            .into_iter()
            .map(|it| (it.name, it.requests["intel.com/vf"], it.ends_first))
            .collect();
        let expected = [
            ("i", 3, true),
            ("s", 1, false),
            ("b", 2, false),
            ("a", 1, false),
        ];
        assert_eq!(
            found,
            expected.map(|(name, count, ends_first)| (name.to_owned(), count, ends_first))
        );
        assert_eq!(containers(&serde_json::json!({"spec": null})), []);
    }

    #[test]
    fn half_written_status_files_of_dead_writers_are_swept_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let pod = PodName {
            namespace: "demo".into(),
            name: "web".into(),
            uid: None,
        };
        let folder = Folder::new(dir.path().to_owned());
        folder.sweep(&pod);
        let status = folder.status_dir(&pod);
        fs::create_dir_all(&status).unwrap();
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let kept = [
            ".network-status.1",
            ".network-status.x",
            "network-status.json",
        ];
        let swept = [dead.id(), std::process::id()].map(|pid| format!("{UNFINISHED}{pid}"));
        for name in kept.iter().copied().chain(swept.iter().map(String::as_str)) {
            fs::write(status.join(name), "[").unwrap();
        }
        folder.sweep(&pod);
        let entries = fs::read_dir(&status).unwrap();
        let mut left: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, kept);
    }
}
