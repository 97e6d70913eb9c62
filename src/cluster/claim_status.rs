//! A pod's interfaces in the status of its ResourceClaims (`resource.k8s.io/v1`, KEP-4817).

use serde::{Deserialize, Serialize};

/// The API server accepts at most this many addresses for one interface.
pub const MAX_IPS: usize = 16;
/// The longest interface name that the API server accepts, in bytes.
const MAX_INTERFACE: usize = 256;
/// The longest hardware address that the API server accepts, in bytes.
const MAX_HARDWARE_ADDRESS: usize = 128;

/// A device of a ResourceClaim. The claim is in the pod's Kubernetes namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimedDevice {
    /// The name of the claim.
    pub claim: String,
    /// The DRA driver.
    pub driver: String,
    /// The driver's pool.
    pub pool: String,
    /// The device's name in the pool.
    pub device: String,
}

/// The status of one claim for one pod. If the pod has no interface on the claim's devices,
/// `devices` is empty, and the agent removes the pod's entries from the claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimStatus {
    /// The name of the claim. The claim is in the pod's Kubernetes namespace.
    pub claim: String,
    /// The claim's devices with an interface in the pod.
    pub devices: Vec<DeviceStatus>,
}

/// One entry of `status.devices`, as the API server reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceStatus {
    /// The DRA driver.
    pub driver: String,
    /// The driver's pool.
    pub pool: String,
    /// The device's name in the pool.
    pub device: String,
    /// The ID of the claim's share of the device, if several claims share the device. The plugin
    /// leaves this field empty. The agent copies the ID from the claim's allocation.
    #[serde(rename = "shareID", skip_serializing_if = "Option::is_none")]
    pub share_id: Option<String>,
    /// The interface on the device.
    pub network_data: NetworkData,
}

/// The interface on a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NetworkData {
    /// The name of the interface in the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface_name: Option<String>,
    /// The addresses with their prefix lengths, at most [`MAX_IPS`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ips: Vec<String>,
    /// The hardware address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware_address: Option<String>,
}

impl NetworkData {
    /// Describes an interface. Omits what the API server would refuse: duplicate addresses,
    /// addresses after the first [`MAX_IPS`], and texts that are too long.
    pub fn new(interface: Option<String>, ips: Vec<String>, mac: Option<String>) -> NetworkData {
        let mut unique: Vec<String> = Vec::new();
        for ip in ips {
            if unique.len() < MAX_IPS && !unique.contains(&ip) {
                unique.push(ip);
            }
        }
        NetworkData {
            interface_name: interface.filter(|name| name.len() <= MAX_INTERFACE),
            ips: unique,
            hardware_address: mac.filter(|mac| mac.len() <= MAX_HARDWARE_ADDRESS),
        }
    }
}

impl ClaimStatus {
    /// Groups devices by claim, and returns one status for each claim. A device without
    /// [`NetworkData`] gets no entry in this status, so the status may have no devices.
    pub fn group(
        devices: impl IntoIterator<Item = (ClaimedDevice, Option<NetworkData>)>,
    ) -> Vec<ClaimStatus> {
        let mut claims: Vec<ClaimStatus> = Vec::new();
        for (device, network_data) in devices {
            let known = claims.iter().position(|it| it.claim == device.claim);
            let place = known.unwrap_or_else(|| {
                claims.push(ClaimStatus {
                    claim: device.claim,
                    devices: Vec::new(),
                });
                claims.len() - 1
            });
            let entries = &mut claims[place].devices;
            let is_listed = entries.iter().any(|it| {
                (&it.driver, &it.pool, &it.device) == (&device.driver, &device.pool, &device.device)
            });
            // The API server refuses a list with two entries of one device.
            if let Some(network_data) = network_data.filter(|_| !is_listed) {
                entries.push(DeviceStatus {
                    driver: device.driver,
                    pool: device.pool,
                    device: device.device,
                    share_id: None,
                    network_data,
                });
            }
        }
        claims
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_the_api_server_refuses_are_omitted() {
        let ips = (0..40).map(|number| format!("10.0.0.{}/24", number / 2));
        let data = NetworkData::new(Some("x".repeat(257)), ips.collect(), Some("x".repeat(129)));
        assert_eq!(data.ips.len(), MAX_IPS);
        assert_eq!(data.ips[1], "10.0.0.1/24");
        assert_eq!((data.interface_name, data.hardware_address), (None, None));
    }

    #[test]
    fn devices_are_grouped_by_claim_without_duplicates() {
        let device = |claim: &str, device: &str| ClaimedDevice {
            claim: claim.into(),
            driver: "d".into(),
            pool: "p".into(),
            device: device.into(),
        };
        let data = || Some(NetworkData::default());
        let claims = ClaimStatus::group([
            (device("a", "vf0"), data()),
            (device("b", "vf1"), None),
            (device("a", "vf2"), data()),
            (device("a", "vf0"), data()),
        ]);
        let names = |claim: &ClaimStatus| {
            let names = claim.devices.iter().map(|it| it.device.clone());
            (claim.claim.clone(), names.collect::<Vec<_>>().join(" "))
        };
        let grouped: Vec<_> = claims.iter().map(names).collect();
        assert_eq!(
            grouped,
            [
                ("a".into(), "vf0 vf2".to_owned()),
                ("b".into(), String::new())
            ]
        );
    }
}
