//! The types and parsers of the NPWG multi-network specification: the networks that pods select,
//! network definitions, IPAM claims and status entries. This module does no I/O.
//!
//! ```text
//! annotation of a pod ──▶ Selection ──┐
//! NetworkAttachmentDefinition ──▶ Definition ──▶ attachment ──▶ StatusEntry ──▶ annotation
//! IPAMClaim ──▶ IpamClaim ────────────┘
//! ```
//!
//! The parsers are lenient where the specification is silent. They refuse a value that the
//! specification calls invalid, and the error names the key (NPWG 1.3 §4.1.2.1).

pub mod bandwidth;
pub mod definition;
pub mod ipam_claim;
pub mod manifest;
pub mod networks_digest;
pub mod object_ref;
pub mod port_mapping;
pub mod requested_ip;
pub mod requested_mac;
pub mod selection;
pub mod status;

pub use bandwidth::{Bandwidth, BandwidthError};
pub use definition::Definition;
pub use ipam_claim::IpamClaim;
pub use manifest::ManifestError;
pub use networks_digest::NetworksDigest;
pub use object_ref::{ObjectRef, ObjectRefError};
pub use port_mapping::{PortMapping, Protocol};
pub use requested_ip::{RequestedIp, RequestedIpError};
pub use requested_mac::RequestedMac;
pub use selection::{ElementError, Selection, SelectionError};
pub use status::{StatusAddresses, StatusEntry, StatusSource, merge_status};

/// The annotation that selects a pod's networks (NPWG 1.3 §4.1).
pub const NETWORKS_ANNOTATION: &str = "k8s.v1.cni.cncf.io/networks";

/// The annotation that reports a pod's attachments (NPWG 1.3 §5).
pub const STATUS_ANNOTATION: &str = "k8s.v1.cni.cncf.io/network-status";

/// Multus' annotation that replaces the cluster network of one pod.
pub const DEFAULT_NETWORK_ANNOTATION: &str = "v1.multus-cni.io/default-network";

/// The annotation in which a definition names the resource of its devices.
pub const RESOURCE_NAME_ANNOTATION: &str = "k8s.v1.cni.cncf.io/resourceName";

/// The version of the specification to follow where versions 1.0 and 1.3 differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Dialect {
    /// 1.0: `mac` may be an IPoIB address of 20 bytes (NPWG 1.0 §4.1.2.1.4).
    V1_0,
    /// 1.3: `mac` has 6 bytes. For an IPoIB interface, a pod uses `infiniband-guid` instead.
    #[default]
    V1_3,
}
