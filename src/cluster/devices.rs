//! Decides whether an answer needs the devices that kubelet allocated to the pod. Asks kubelet for
//! these devices.

use std::collections::{BTreeSet, HashSet};

use super::pod::{Container, MOST_CONTAINERS, MOST_REQUESTS};
use super::{Answer, Question};
use crate::kubelet;
use crate::npwg::ObjectRef;

/// Returns `None` if the answer needs nothing from kubelet, as for most pods. Otherwise returns a
/// list of resources: those of the definitions in `question.networks` and in the pod's annotations.
///
/// In a folder of manifests, the annotation `jackfield.io/devices` of the pod's manifest can list
/// devices by resource. The returned list omits the resources in this annotation.
///
/// The key `deviceID` in the annotations can name a device of any resource. So if the annotations
/// mention this key and the manifest lists no devices, the answer also needs kubelet. The returned
/// list may then be empty. [`kubelet::ask`] returns all devices of the pod even for an empty list.
pub(super) fn wanted<'a>(question: &Question, answer: &'a Answer) -> Option<Vec<&'a str>> {
    let pod = answer.pod.as_ref()?;
    let annotations = question.annotations.as_ref().unwrap_or(&pod.annotations);
    let selected = question.references(annotations);
    // An answer may contain definitions that neither the question nor the annotations name.
    let named: HashSet<&ObjectRef> = question.networks.iter().chain(&selected).collect();
    let definitions = answer.definitions.iter();
    let resources: BTreeSet<&str> = definitions
        .filter(|(object, _)| named.contains(object))
        .filter_map(|(_, found)| found.as_ref().ok()?.resource_name.as_deref())
        .filter(|resource| !pod.devices.contains_key(*resource))
        .collect();
    let names_one = annotations.may_name_devices() && pod.devices.is_empty();
    (names_one || !resources.is_empty()).then(|| resources.into_iter().collect())
}

/// If the pod in `answer` exceeds [`MOST_CONTAINERS`] or [`MOST_REQUESTS`], keeps only the requests
/// for the resources that [`wanted`] returns, and only the containers with such requests. Drops
/// nothing if an annotation may name a device, because any container may have that device. Returns
/// whether the pod is now within both limits.
pub(super) fn fit_containers(question: &Question, answer: &mut Answer) -> bool {
    if fits(answer) {
        return true;
    }
    let wanted = wanted(question, answer).unwrap_or_default();
    let wanted: HashSet<String> = wanted.into_iter().map(str::to_owned).collect();
    if let Some(pod) = &mut answer.pod
        && !pod.annotations.may_name_devices()
    {
        pod.containers.retain_mut(|Container { requests, .. }| {
            requests.retain(|resource, _| wanted.contains(resource));
            !requests.is_empty()
        });
    }
    fits(answer)
}

fn fits(answer: &Answer) -> bool {
    answer.pod.as_ref().is_none_or(|pod| {
        let requests = pod.containers.iter().map(|it| it.requests.len());
        pod.containers.len() <= MOST_CONTAINERS && requests.sum::<usize>() <= MOST_REQUESTS
    })
}

/// Asks kubelet for the pod's devices if the answer needs them and does not contain them yet.
pub(super) fn ask_kubelet(question: &Question, answer: &mut Answer) {
    let (Some(name), Some(socket)) = (&question.pod, &question.kubelet) else {
        return;
    };
    if answer.kubelet.is_none()
        && let Some(resources) = wanted(question, answer)
    {
        let devices = kubelet::ask(socket, &name.namespace, &name.name, &resources);
        answer.kubelet = Some(devices);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cluster::{Pod, PodAnnotations};
    use crate::npwg::Definition;

    fn question() -> Question {
        let pod = crate::cluster::PodName {
            namespace: "a".into(),
            name: "web".into(),
            uid: None,
        };
        Question {
            pod: Some(pod),
            ..Question::default()
        }
    }

    fn answer(resource: Option<&str>, annotation: &str, manifest: &[&str]) -> Answer {
        let definition = Definition {
            object: "a/n".parse().unwrap(),
            config: None,
            resource_name: resource.map(str::to_owned),
        };
        let devices: BTreeMap<String, Vec<String>> = manifest
            .iter()
            .map(|resource| ((*resource).to_owned(), Vec::new()))
            .collect();
        Answer {
            pod: Some(Pod {
                annotations: PodAnnotations {
                    networks: Some(annotation.to_owned()),
                    default_network: None,
                },
                devices,
                ..Pod::default()
            }),
            definitions: vec![("a/n".parse().unwrap(), Ok(definition))],
            ..Answer::default()
        }
    }

    #[test]
    fn kubelet_is_asked_only_for_devices_missing_from_the_manifest() {
        let named = r#"[{"name":"n","deviceID":"0000:01:10.0"}]"#;
        for (resource, annotation, manifest, expected) in [
            (None, "n", &[][..], None),
            (Some("r"), "n", &[], Some(vec!["r"])),
            (Some("r"), "n", &["r"], None),
            (Some("r"), "n", &["s"], Some(vec!["r"])),
            (None, named, &[], Some(vec![])),
            (None, named, &["r"], None),
        ] {
            let answer = answer(resource, annotation, manifest);
            assert_eq!(
                wanted(&question(), &answer),
                expected,
                "{resource:?} {annotation} {manifest:?}"
            );
        }
        assert_eq!(wanted(&question(), &Answer::default()), None);
        let mut more = answer(Some("r"), "n", &[]);
        let (_, other) = answer(Some("s"), "n", &[]).definitions.remove(0);
        more.definitions
            .push(("a/not-asked-for".parse().unwrap(), other));
        assert_eq!(wanted(&question(), &more), Some(vec!["r"]));
    }

    #[test]
    fn a_large_pod_is_sent_without_requests_for_unused_devices() {
        let with = |resource: Option<&str>, annotation: &str, own: usize, others: usize| {
            let mut answer = answer(resource, annotation, &[]);
            let of = |resource: &str| Container {
                name: resource.to_owned(),
                requests: BTreeMap::from([(resource.to_owned(), 1)]),
                ends_first: false,
            };
            let own = std::iter::repeat_n(of("r"), own);
            let all = own.chain(std::iter::repeat_n(of("s"), others));
            answer.pod.as_mut().unwrap().containers = all.collect();
            let fits = fit_containers(&question(), &mut answer);
            (fits, answer.pod.unwrap().containers.len())
        };
        assert_eq!(with(Some("r"), "n", 2, 254), (true, 256));
        assert_eq!(with(Some("r"), "n", 2, 255), (true, 2));
        assert_eq!(with(None, "n", 257, 0), (true, 0));
        assert_eq!(with(Some("r"), "n", 257, 9), (false, 257));
        let named = r#"[{"name":"n","deviceID":"0000:01:10.0"}]"#;
        assert_eq!(
            with(None, named, 2, 255),
            (false, 257),
            "any container may have the named device"
        );
    }

    #[test]
    fn kubelet_is_asked_at_most_once() {
        let socket = Some("/nonexistent/kubelet.sock".into());
        let asking = Question {
            kubelet: socket,
            ..question()
        };
        let mut asked = answer(Some("r"), "n", &[]);
        ask_kubelet(&asking, &mut asked);
        let failure = asked.kubelet.as_ref().unwrap().failure.clone().unwrap();
        assert!(failure.contains("/nonexistent/kubelet.sock"), "{failure}");
        asked.kubelet = Some(kubelet::PodDevices::default());
        ask_kubelet(&asking, &mut asked);
        assert_eq!(asked.kubelet, Some(kubelet::PodDevices::default()));
        let silent = Question {
            kubelet: None,
            ..asking
        };
        let mut unasked = answer(Some("r"), "n", &[]);
        ask_kubelet(&silent, &mut unasked);
        assert_eq!(unasked.kubelet, None);
    }
}
