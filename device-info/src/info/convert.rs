//! Converts between wire types and strict types.

use super::{
    DeviceInfo, DeviceInfoError, DeviceKind, DeviceName, MemifInfo, MemifMode, MemifRole, PciInfo,
    SpecVersion, VdpaInfo, VhostUserInfo, VhostUserMode, WireDeviceInfo, WireMemif, WirePci,
    WireVdpa, WireVhostUser,
};
use crate::quoted::Quoted;
use crate::vdpa::VdpaDriver;

const ADDRESS: &str = "a PCI address, such as 0000:01:10.2";
const PATH: &str = "an absolute path, without .. in it";
const NAME: &str = "the name of a device, as in /sys or `ip link`";

/// Reads an optional value. Programs in Go write a missing value as an empty string.
pub(super) fn optional<T>(
    key: &'static str,
    value: Option<&String>,
    remedy: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, DeviceInfoError> {
    match value.map(String::as_str) {
        None | Some("") => Ok(None),
        Some(text) => match parse(text) {
            Some(value) => Ok(Some(value)),
            None => Err(DeviceInfoError::Value {
                key,
                value: Quoted::new(text),
                remedy,
            }),
        },
    }
}

fn required<T>(
    key: &'static str,
    value: Option<&String>,
    remedy: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, DeviceInfoError> {
    optional(key, value, remedy, parse)?.ok_or(DeviceInfoError::Missing(key))
}

fn parsed<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// Parses a list of names, such as `mlx5_0,mlx5_1`.
pub(super) fn names(text: &str) -> Option<Vec<DeviceName>> {
    text.split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(parsed)
        .collect()
}

impl TryFrom<WireDeviceInfo> for DeviceInfo {
    type Error = DeviceInfoError;

    fn try_from(mut wire: WireDeviceInfo) -> Result<Self, DeviceInfoError> {
        const TYPES: &str = "pci, vdpa, vhost-user or memif";
        let version: SpecVersion = required("version", wire.version.as_ref(), "1.1.0", parsed)?;
        let kind = match wire.kind.as_deref() {
            None | Some("") => return Err(DeviceInfoError::Missing("type")),
            Some("pci") => wire
                .pci
                .take()
                .ok_or(DeviceInfoError::Missing("pci"))
                .and_then(pci)?,
            Some("vdpa") => wire
                .vdpa
                .take()
                .ok_or(DeviceInfoError::Missing("vdpa"))
                .and_then(vdpa)?,
            Some("vhost-user") => wire
                .vhost_user
                .take()
                .ok_or(DeviceInfoError::Missing("vhost-user"))
                .and_then(vhost_user)?,
            Some("memif") => wire
                .memif
                .take()
                .ok_or(DeviceInfoError::Missing("memif"))
                .and_then(memif)?,
            Some(other) => {
                return Err(DeviceInfoError::Value {
                    key: "type",
                    value: Quoted::new(other),
                    remedy: TYPES,
                });
            }
        };
        // Keep the sections of other types as if they were unknown keys. For example, the
        // information of a PCI function may also have the section `vdpa`.
        let mut extra = wire.extra;
        for (key, section) in [
            ("pci", wire.pci.map(serde_json::to_value)),
            ("vdpa", wire.vdpa.map(serde_json::to_value)),
            ("vhost-user", wire.vhost_user.map(serde_json::to_value)),
            ("memif", wire.memif.map(serde_json::to_value)),
        ] {
            if let Some(Ok(section)) = section {
                extra.insert(key.to_owned(), section);
            }
        }
        Ok(Self {
            version: version.max(kind.needs()),
            kind,
            extra,
        })
    }
}

fn pci(wire: WirePci) -> Result<DeviceKind, DeviceInfoError> {
    Ok(DeviceKind::Pci(PciInfo {
        pci_address: required(
            "pci.pci-address",
            wire.pci_address.as_ref(),
            ADDRESS,
            parsed,
        )?,
        vhost_net: optional("pci.vhost-net", wire.vhost_net.as_ref(), PATH, parsed)?,
        rdma_devices: optional("pci.rdma-device", wire.rdma_device.as_ref(), NAME, names)?
            .unwrap_or_default(),
        pf_pci_address: optional(
            "pci.pf-pci-address",
            wire.pf_pci_address.as_ref(),
            ADDRESS,
            parsed,
        )?,
        representor_device: optional(
            "pci.representor-device",
            wire.representor_device.as_ref(),
            NAME,
            parsed,
        )?,
        extra: wire.extra,
    }))
}

fn vdpa(wire: WireVdpa) -> Result<DeviceKind, DeviceInfoError> {
    Ok(DeviceKind::Vdpa(VdpaInfo {
        parent_device: required(
            "vdpa.parent-device",
            wire.parent_device.as_ref(),
            NAME,
            parsed,
        )?,
        driver: required(
            "vdpa.driver",
            wire.driver.as_ref(),
            "vhost or virtio",
            parsed::<VdpaDriver>,
        )?,
        path: required("vdpa.path", wire.path.as_ref(), PATH, parsed)?,
        pci_address: optional(
            "vdpa.pci-address",
            wire.pci_address.as_ref(),
            ADDRESS,
            parsed,
        )?,
        pf_pci_address: optional(
            "vdpa.pf-pci-address",
            wire.pf_pci_address.as_ref(),
            ADDRESS,
            parsed,
        )?,
        representor_device: optional(
            "vdpa.representor-device",
            wire.representor_device.as_ref(),
            NAME,
            parsed,
        )?,
        extra: wire.extra,
    }))
}

fn vhost_user(wire: WireVhostUser) -> Result<DeviceKind, DeviceInfoError> {
    Ok(DeviceKind::VhostUser(VhostUserInfo {
        mode: required(
            "vhost-user.mode",
            wire.mode.as_ref(),
            VhostUserMode::WORDS,
            VhostUserMode::from_word,
        )?,
        path: required("vhost-user.path", wire.path.as_ref(), PATH, parsed)?,
        extra: wire.extra,
    }))
}

fn memif(wire: WireMemif) -> Result<DeviceKind, DeviceInfoError> {
    Ok(DeviceKind::Memif(MemifInfo {
        role: required(
            "memif.role",
            wire.role.as_ref(),
            MemifRole::WORDS,
            MemifRole::from_word,
        )?,
        path: required("memif.path", wire.path.as_ref(), PATH, parsed)?,
        mode: required(
            "memif.mode",
            wire.mode.as_ref(),
            MemifMode::WORDS,
            MemifMode::from_word,
        )?,
        extra: wire.extra,
    }))
}

impl From<DeviceInfo> for WireDeviceInfo {
    fn from(info: DeviceInfo) -> Self {
        let mut wire = Self {
            kind: Some(info.kind.type_name().to_owned()),
            version: Some(info.version.to_string()),
            extra: info.extra,
            ..Self::default()
        };
        match info.kind {
            DeviceKind::Pci(pci) => {
                wire.pci = Some(WirePci {
                    pci_address: Some(pci.pci_address.to_string()),
                    vhost_net: text(pci.vhost_net),
                    rdma_device: joined(&pci.rdma_devices),
                    pf_pci_address: text(pci.pf_pci_address),
                    representor_device: text(pci.representor_device),
                    extra: pci.extra,
                });
            }
            DeviceKind::Vdpa(vdpa) => {
                wire.vdpa = Some(WireVdpa {
                    parent_device: Some(vdpa.parent_device.to_string()),
                    driver: Some(vdpa.driver.to_string()),
                    path: Some(vdpa.path.to_string()),
                    pci_address: text(vdpa.pci_address),
                    pf_pci_address: text(vdpa.pf_pci_address),
                    representor_device: text(vdpa.representor_device),
                    extra: vdpa.extra,
                });
            }
            DeviceKind::VhostUser(socket) => {
                wire.vhost_user = Some(WireVhostUser {
                    mode: Some(socket.mode.as_str().to_owned()),
                    path: Some(socket.path.to_string()),
                    extra: socket.extra,
                });
            }
            DeviceKind::Memif(socket) => {
                wire.memif = Some(WireMemif {
                    role: Some(socket.role.as_str().to_owned()),
                    path: Some(socket.path.to_string()),
                    mode: Some(socket.mode.as_str().to_owned()),
                    extra: socket.extra,
                });
            }
        }
        wire
    }
}

fn text<T: ToString>(value: Option<T>) -> Option<String> {
    value.map(|value| value.to_string())
}

fn joined(names: &[DeviceName]) -> Option<String> {
    let names: Vec<&str> = names.iter().map(DeviceName::as_str).collect();
    (!names.is_empty()).then(|| names.join(","))
}
