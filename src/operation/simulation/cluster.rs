//! The simulated cluster: the agent's answers about pods and definitions, and kubelet's record of
//! devices. The agent may fail, be slow, or answer from a stale cache.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

use serde_json::json;

use super::machine::Process;
use super::virtual_function::RESOURCE;
use super::world::{SimulatedPod, World};
use crate::cluster::{
    AgentProblem, Answer, Census, Cluster, ClusterError, Container, Pod, PodAnnotations,
    Publication, Question, SandboxNetworks,
};
use crate::kubelet::{ContainerDevices, PodDevices, Resource};
use crate::npwg::{Definition, NetworksDigest, ObjectRef};

pub(super) const NAMESPACE: &str = "demo";

/// The simulated agent, for one process. The agents of all processes use the same [`World`].
pub(super) struct Agent {
    process: Rc<Process>,
    /// The attached sandboxes. A STATUS sends them ([`Cluster::hand_over`]) if the agent's answer
    /// asks for them ([`Answer::wants_sandboxes`]).
    listed: RefCell<Vec<SandboxNetworks>>,
}

impl Agent {
    pub(super) fn new(process: Rc<Process>) -> Agent {
        Agent {
            process,
            listed: RefCell::default(),
        }
    }

    /// Fails or delays some requests. Returns whether the agent's cache is stale.
    fn trouble(&self, until: Instant) -> Result<bool, ClusterError> {
        let (process, sim) = (&self.process, &self.process.sim);
        process.step(30);
        if sim.world().is_calm || !sim.happens(sim.conditions.cluster_faults, 100) {
            return Ok(false);
        }
        let absent = |problem| Err(ClusterError::Agent("/agent.sock".into(), problem));
        match sim.below(4) {
            0 => absent(AgentProblem::Closed),
            1 => {
                process.pause(until.saturating_duration_since(sim.instant()));
                absent(AgentProblem::Late)
            }
            2 => {
                let pause = sim.milliseconds(3000);
                process.pause(pause.min(until.saturating_duration_since(sim.instant())));
                Ok(false)
            }
            _ => Ok(true),
        }
    }
}

impl Cluster for Agent {
    fn ask(&self, question: &Question, until: Instant) -> Result<Answer, ClusterError> {
        let is_stale = self.trouble(until)?;
        let world = self.process.sim.world();
        let mut answer = Answer {
            wants_sandboxes: question.differing,
            ..Answer::default()
        };
        let mut wanted = question.networks.clone();
        if let Some(name) = &question.pod {
            let uid = name.uid.as_deref().unwrap_or_default();
            let Some(pod) = world.pods.get(uid) else {
                return Err(ClusterError::NotListed);
            };
            let annotations = annotations(pod, is_stale);
            wanted.extend(annotations.references(NAMESPACE, "kube-system", question.dialect));
            answer.pod = Some(described(uid, pod, annotations));
            answer.kubelet = question.kubelet.as_ref().map(|_| devices(&world, uid));
        }
        for object in wanted {
            let definition = definition(&object).ok_or_else(|| format!("no network {object}"));
            answer.definitions.push((object, definition));
        }
        if question.differing {
            let listed = self.listed.take();
            answer.wants_sandboxes = listed.is_empty();
            let differs = |sandbox: &SandboxNetworks| {
                let uid = sandbox.pod.as_ref().and_then(|pod| pod.uid.clone());
                let pod = world.pods.get(&uid.unwrap_or_default());
                pod.is_some_and(|pod| annotations(pod, false).digest() != sandbox.networks)
            };
            let differing = listed.into_iter().filter(differs).map(|it| {
                let uid = it.pod.as_ref().and_then(|pod| pod.uid.clone());
                let pod = &world.pods[&uid.unwrap_or_default()];
                let networks: NetworksDigest = annotations(pod, false).digest();
                SandboxNetworks { networks, ..it }
            });
            answer.differing = differing.collect();
        }
        Ok(answer)
    }

    fn hand_over(&self, sandboxes: Vec<SandboxNetworks>, _: Instant) {
        *self.listed.borrow_mut() = sandboxes;
    }

    fn census(&self, _: &str, _: bool) -> Result<Census, ClusterError> {
        Ok(Census::default())
    }

    fn publish(&self, _: &Publication, until: Instant) -> Result<(), ClusterError> {
        match self.trouble(until)? {
            true => Err(ClusterError::NotListed),
            false => Ok(()),
        }
    }
}

fn annotations(pod: &SimulatedPod, is_stale: bool) -> PodAnnotations {
    let text = if is_stale { &pod.stale } else { &pod.networks };
    PodAnnotations {
        networks: Some(text.clone()).filter(|text| !text.is_empty()),
        default_network: None,
    }
}

fn described(uid: &str, pod: &SimulatedPod, annotations: PodAnnotations) -> Pod {
    let requests: BTreeMap<String, u64> = match pod.wants_device {
        true => [(RESOURCE.to_owned(), 1)].into(),
        false => BTreeMap::new(),
    };
    Pod {
        uid: Some(uid.to_owned()),
        annotations,
        containers: vec![Container {
            name: "main".to_owned(),
            requests,
            ends_first: false,
        }],
        ..Pod::default()
    }
}

fn devices(world: &World, uid: &str) -> PodDevices {
    let given = world.functions.iter();
    let given = given.filter(|it| it.given_to.as_deref() == Some(uid));
    let ids: Vec<String> = given.map(|it| it.address.to_owned()).collect();
    let resources = (!ids.is_empty()).then(|| Resource {
        name: RESOURCE.to_owned(),
        ids,
    });
    PodDevices {
        containers: vec![ContainerDevices {
            name: "main".to_owned(),
            resources: resources.into_iter().collect(),
            ..ContainerDevices::default()
        }],
        on_node: Some(vec![RESOURCE.to_owned()]),
        failure: None,
    }
}

/// Writes kubelet's checkpoint.
pub(super) fn write_checkpoint(world: &World, path: &std::path::Path) {
    let entries: Vec<_> = world
        .functions
        .iter()
        .filter_map(|it| {
            Some(json!({
                "PodUID": it.given_to.as_ref()?, "ContainerName": "main", "ResourceName": RESOURCE,
                "DeviceIDs": {"0": [it.address]}, "AllocResp": "",
            }))
        })
        .collect();
    let ids: Vec<&str> = world.functions.iter().map(|it| it.address).collect();
    let data = json!({"PodDeviceEntries": entries, "RegisteredDevices": {RESOURCE: ids}});
    std::fs::write(path, json!({"Data": data, "Checksum": 0}).to_string()).unwrap();
}

/// Returns the definition of the network `object`. The networks `net-a` and `net-b` share a bridge.
fn definition(object: &ObjectRef) -> Option<Definition> {
    let (config, resource) = match object.name() {
        "net-a" => (bridge("a", "br0"), None),
        "net-b" => (bridge("b", "br0"), None),
        "net-c" => {
            let mut config = bridge("c", "br1");
            config["plugins"][0]["isDefaultGateway"] = true.into();
            let plugins = json!([config["plugins"][0], {"type": "tuning"}]);
            config["plugins"] = plugins;
            (config, None)
        }
        "vf" => {
            let plugin = json!({"type": "sriov", "vlan": 7, "capabilities": {"mac": true}});
            let config = json!({"cniVersion": "1.1.0", "name": "vf", "plugins": [plugin]});
            (config, Some(RESOURCE.to_owned()))
        }
        _ => return None,
    };
    Some(Definition {
        object: object.clone(),
        config: Some(config.to_string()),
        resource_name: resource,
    })
}

fn bridge(name: &str, bridge: &str) -> serde_json::Value {
    let plugin = json!({"type": "bridge", "bridge": bridge, "capabilities": {"mac": true}});
    json!({"cniVersion": "1.1.0", "name": name, "plugins": [plugin]})
}
