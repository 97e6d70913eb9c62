//! The messages of `v1.PodResourcesLister`, reduced to the fields about devices. The field numbers
//! come from kubelet's `podresources/v1/api.proto`. The parser skips other fields.

/// The request of `Get`: the name of a pod.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GetRequest {
    #[prost(string, tag = "1")]
    pub(super) pod_name: String,
    #[prost(string, tag = "2")]
    pub(super) pod_namespace: String,
}

/// The answer to `Get`: the pod. If kubelet does not know the pod, it returns an error instead.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GetResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) pod_resources: Option<Pod>,
}

/// The answer to `List`: all pods of the node.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ListResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) pod_resources: Vec<Pod>,
}

/// The devices of a pod: `PodResources` in kubelet's definition.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Pod {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) namespace: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) containers: Vec<ContainerResources>,
}

/// The devices of a container.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ContainerResources {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) devices: Vec<DevicesOfResource>,
    #[prost(message, repeated, tag = "5")]
    pub(super) dynamic_resources: Vec<DynamicResource>,
}

/// Devices of one resource: `ContainerDevices` in kubelet's definition.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DevicesOfResource {
    #[prost(string, tag = "1")]
    pub(super) resource_name: String,
    #[prost(string, repeated, tag = "2")]
    pub(super) device_ids: Vec<String>,
}

/// A resource claim (DRA) of a container.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DynamicResource {
    #[prost(string, tag = "2")]
    pub(super) claim_name: String,
    #[prost(string, tag = "3")]
    pub(super) claim_namespace: String,
    #[prost(message, repeated, tag = "4")]
    pub(super) claim_resources: Vec<ClaimResource>,
}

/// One device of a claim.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ClaimResource {
    #[prost(string, tag = "2")]
    pub(super) driver_name: String,
    #[prost(string, tag = "3")]
    pub(super) pool_name: String,
    #[prost(string, tag = "4")]
    pub(super) device_name: String,
}

/// The answer to `GetAllocatableResources`: all devices of device plugins on this node.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AllocatableResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) devices: Vec<DevicesOfResource>,
}
