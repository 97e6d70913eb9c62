//! Reads a pod's devices from kubelet's pod-resources API, over gRPC on a unix socket.
//!
//! ```text
//! Get, or List if kubelet lacks Get ──▶ the pod's devices, by container, in kubelet's order
//! GetAllocatableResources ────────────▶ the resources that have devices on this node
//! ```
//!
//! The API identifies pods by name, not by UID. For a moment after kubelet starts, the API returns
//! an empty list without an error. [`allocation`](crate::allocation) therefore compares the API's
//! answers with kubelet's checkpoint.

mod devices;
mod error;
mod grpc;
mod message;
mod pod_resources;
mod usage;

use std::path::Path;

pub use devices::{ContainerDevices, DynamicDevice, PodDevices, Resource, SliceIdentity};
pub use error::KubeletError;
pub use pod_resources::PodResources;
pub use usage::Usage;

/// Asks kubelet for the devices of a pod and waits for the answer. For callers without a tokio
/// runtime.
///
/// If the pod has no device for a resource in `resources`, also asks kubelet which resources have
/// devices on the node.
pub fn ask(socket: &Path, namespace: &str, name: &str, resources: &[&str]) -> PodDevices {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(async {
            let kubelet = PodResources::at(socket);
            kubelet.devices_of(namespace, name, resources).await
        }),
        Err(cause) => PodDevices::unknown(&KubeletError(socket.to_owned(), cause.into())),
    }
}

/// Parses `frame` as an answer to `Get`, as an answer to `List`, and as an answer to
/// `GetAllocatableResources`. Returns the pod of the answer to `Get`, and the first pod of the
/// answer to `List`. For [`crate::fuzzing`].
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn answered(frame: &[u8]) -> [Result<PodDevices, String>; 2] {
    use message::{AllocatableResponse, GetResponse, ListResponse};
    let pod = grpc::unframed::<GetResponse>(frame);
    let list = grpc::unframed::<ListResponse>(frame);
    if let (Ok(list), Ok(all)) = (&list, grpc::unframed::<AllocatableResponse>(frame)) {
        usage::count(all, list.clone());
    }
    [
        pod.map(|answer| answer.pod_resources),
        list.map(|answer| answer.pod_resources.into_iter().next()),
    ]
    .map(|answer| {
        let pod = answer.map_err(|error| error.to_string())?;
        Ok(pod.map(PodDevices::from).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests;
