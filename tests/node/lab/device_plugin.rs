//! A device plugin on kubelet's socket (Kubernetes device plugin API v1beta1). Its devices are names;
//! a container is told which it has in `PCIDEVICE_…`, as plugins for network devices do.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use prost::Message;

use super::grpc::{self, Reply, Service};
use super::{Lab, RESOURCE, eventually};

const SOCKET: &str = "example.com_port.sock";

#[derive(Clone, PartialEq, Message)]
struct RegisterRequest {
    #[prost(string, tag = "1")]
    version: String,
    #[prost(string, tag = "2")]
    endpoint: String,
    #[prost(string, tag = "3")]
    resource_name: String,
}

#[derive(Clone, PartialEq, Message)]
struct ListAndWatchResponse {
    #[prost(message, repeated, tag = "1")]
    devices: Vec<Device>,
}

#[derive(Clone, PartialEq, Message)]
struct Device {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    health: String,
}

#[derive(Clone, PartialEq, Message)]
struct AllocateRequest {
    #[prost(message, repeated, tag = "1")]
    containers: Vec<ContainerRequest>,
}

#[derive(Clone, PartialEq, Message)]
struct ContainerRequest {
    #[prost(string, repeated, tag = "1")]
    devices: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct AllocateResponse {
    #[prost(message, repeated, tag = "1")]
    containers: Vec<ContainerResponse>,
}

#[derive(Clone, PartialEq, Message)]
struct ContainerResponse {
    #[prost(map = "string, string", tag = "1")]
    envs: HashMap<String, String>,
}

/// The plugin, at work until it is dropped. It registers again after each restart of kubelet.
pub(crate) struct DevicePlugin {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// What each container got, in the order of the calls.
    allocated: Arc<Mutex<Vec<Vec<String>>>>,
}

impl DevicePlugin {
    /// Serves these devices on the lab's node, and waits until kubelet counts them.
    pub(crate) fn start(lab: &Lab, ids: &[&str]) -> DevicePlugin {
        let folder = lab.machine.path("disk/var/lib/kubelet/device-plugins");
        let devices = ids.iter().map(|id| Device {
            id: (*id).to_owned(),
            health: "Healthy".to_owned(),
        });
        let devices = ListAndWatchResponse {
            devices: devices.collect(),
        };
        let end: Arc<AtomicBool> = Arc::default();
        let allocated: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
        let thread = {
            let (end, allocated) = (Arc::clone(&end), Arc::clone(&allocated));
            std::thread::spawn(move || live(&folder, &devices, &end, &allocated))
        };
        let plugin = DevicePlugin {
            end,
            thread: Some(thread),
            allocated,
        };
        let path = format!("/api/v1/nodes/{}", lab.machine.name);
        let count = ids.len().to_string();
        eventually("kubelet counts the devices", || {
            let node = lab.admin.get(&path).unwrap();
            node["status"]["allocatable"][RESOURCE] == count.as_str()
        });
        plugin
    }

    /// What each container got, in the order of kubelet's calls.
    pub(crate) fn allocated(&self) -> Vec<Vec<String>> {
        self.allocated.lock().unwrap().clone()
    }
}

impl Drop for DevicePlugin {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// kubelet removes every socket of its folder when it starts: served and registered again then.
fn live(
    folder: &Path,
    devices: &ListAndWatchResponse,
    end: &AtomicBool,
    allocated: &Arc<Mutex<Vec<Vec<String>>>>,
) {
    let socket: PathBuf = folder.join(SOCKET);
    let pause = || std::thread::sleep(Duration::from_millis(100));
    while !end.load(Ordering::Relaxed) {
        if !folder.join("kubelet.sock").exists() {
            pause();
            continue;
        }
        let (devices, allocated) = (devices.encode_to_vec(), Arc::clone(allocated));
        let _service = Service::serve(&socket, move |method, message| match method {
            "ListAndWatch" => Reply::Stream(devices.clone()),
            "Allocate" => Reply::Once(allocate(message, &mut allocated.lock().unwrap())),
            // No options, nothing to do before a start.
            _ => Reply::Once(Vec::new()),
        });
        let request = RegisterRequest {
            version: "v1beta1".to_owned(),
            endpoint: SOCKET.to_owned(),
            resource_name: RESOURCE.to_owned(),
        };
        let method = "/v1beta1.Registration/Register";
        if grpc::call(&folder.join("kubelet.sock"), method, &request).is_err() {
            pause();
            continue;
        }
        while socket.exists() && !end.load(Ordering::Relaxed) {
            pause();
        }
    }
}

fn allocate(message: &[u8], allocated: &mut Vec<Vec<String>>) -> Vec<u8> {
    let request = AllocateRequest::decode(message).unwrap();
    let variable = format!(
        "PCIDEVICE_{}",
        RESOURCE.to_uppercase().replace(['.', '/'], "_")
    );
    let mut response = AllocateResponse::default();
    for container in request.containers {
        let envs = HashMap::from([(variable.clone(), container.devices.join(","))]);
        response.containers.push(ContainerResponse { envs });
        allocated.push(container.devices);
    }
    response.encode_to_vec()
}
