//! The JSON form of device information in files.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::DeviceInfoError;
use crate::pci_address::PciAddress;

/// Device information from a file, with unchecked values. Every key may be missing or null. Keeps
/// unknown keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(
    missing_docs,
    reason = "the specification's keys, documented on the strict types"
)]
pub struct WireDeviceInfo {
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci: Option<WirePci>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vdpa: Option<WireVdpa>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vhost_user: Option<WireVhostUser>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memif: Option<WireMemif>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Defines the struct of a section. Each known key of the section is an optional string. The struct
/// also keeps unknown keys.
macro_rules! section {
    ($(#[$doc:meta])* $name:ident { $($field:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[allow(missing_docs, reason = "the specification's keys, documented on the strict types")]
        pub struct $name {
            $(#[serde(default, skip_serializing_if = "Option::is_none")]
            pub $field: Option<String>,)+
            #[serde(flatten)]
            pub extra: Map<String, Value>,
        }
    };
}

section! {
    /// The section `pci`.
    WirePci { pci_address, vhost_net, rdma_device, pf_pci_address, representor_device }
}
section! {
    /// The section `vdpa`.
    WireVdpa { parent_device, driver, path, pci_address, pf_pci_address, representor_device }
}
section! {
    /// The section `vhost-user`.
    WireVhostUser { mode, path }
}
section! {
    /// The section `memif`.
    WireMemif { role, path, mode }
}

impl WireDeviceInfo {
    /// Reads device information from JSON.
    ///
    /// # Errors
    ///
    /// [`DeviceInfoError::Json`] if the JSON is invalid, or if the value of a known key has the
    /// wrong type.
    pub fn from_json(bytes: &[u8]) -> Result<Self, DeviceInfoError> {
        serde_json::from_slice(bytes).map_err(DeviceInfoError::Json)
    }

    /// Returns whether this information describes the device with the identifier `id`. If `id` is a
    /// PCI address, compares PCI addresses; otherwise compares `id` with the name of the vDPA
    /// device. Returns `None` if this information lacks the value to compare. Also returns `None`
    /// if the name of the vDPA device differs from `id`, because a device plugin may choose an
    /// identifier that is not the name.
    #[must_use]
    pub fn describes(&self, id: &str) -> Option<bool> {
        let is_vdpa = self.kind.as_deref() == Some("vdpa");
        let (address, parent) = match (&self.pci, &self.vdpa) {
            (_, Some(vdpa)) if is_vdpa => {
                (vdpa.pci_address.as_deref(), vdpa.parent_device.as_deref())
            }
            (Some(pci), _) if !is_vdpa => (pci.pci_address.as_deref(), None),
            _ => return None,
        };
        match id.parse::<PciAddress>() {
            Ok(id) => Some(address?.parse::<PciAddress>().ok()? == id),
            Err(_) => (parent? == id).then_some(true),
        }
    }
}
