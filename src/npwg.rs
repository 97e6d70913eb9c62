//! The NPWG multi-network specification, without any I/O: what pods ask for, how networks are
//! defined, and what is told about them.
//!
//! ```text
//! annotation of a pod ──▶ Selection ──┐
//! NetworkAttachmentDefinition ──▶ Definition ──▶ (attached) ──▶ StatusEntry ──▶ annotation
//! IPAMClaim ──▶ IpamClaim ────────────┘
//! ```
//!
//! What others write is read leniently where the specification is silent, and refused with the
//! key and the value where it calls them invalid (NPWG 1.3 §4.1.2.1).

pub mod bandwidth;
pub mod definition;
pub mod ipam_claim;
pub mod manifest;
pub mod object_ref;
pub mod port_mapping;
pub mod requested_ip;
pub mod requested_mac;
pub mod selection;
pub mod status;

pub use bandwidth::{Bandwidth, BandwidthError, Shape};
pub use definition::Definition;
pub use ipam_claim::IpamClaim;
pub use manifest::ManifestError;
pub use object_ref::{ObjectRef, ObjectRefError};
pub use port_mapping::{PortMapping, Protocol};
pub use requested_ip::{RequestedIp, RequestedIpError};
pub use requested_mac::{RequestedMac, RequestedMacError};
pub use selection::{ElementError, Selection, SelectionError};
pub use status::{StatusAddresses, StatusDns, StatusEntry, StatusSource, merge_status};

/// The annotation that selects a pod's networks: NPWG 1.3 §4.1.
pub const NETWORKS_ANNOTATION: &str = "k8s.v1.cni.cncf.io/networks";

/// The annotation that says what came of it: NPWG 1.3 §5.
pub const STATUS_ANNOTATION: &str = "k8s.v1.cni.cncf.io/network-status";

/// The annotation that replaces the cluster network of one pod, as Multus knows it.
pub const DEFAULT_NETWORK_ANNOTATION: &str = "v1.multus-cni.io/default-network";

/// The annotation of a definition that names the resource whose devices it uses.
pub const RESOURCE_NAME_ANNOTATION: &str = "k8s.v1.cni.cncf.io/resourceName";

/// Which of the specification's versions a node follows where they differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// 1.0: `mac` may be an IPoIB address of 20 bytes (NPWG 1.0 §4.1.2.1.4).
    V1_0,
    /// 1.3: `mac` has 6 bytes, IPoIB has a key of its own.
    #[default]
    V1_3,
}
