//! The IPAMClaim, an object for addresses that stay allocated after the pod is deleted.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::manifest::{Manifest, ManifestError};
use super::object_ref::ObjectRef;
use super::requested_ip::RequestedIp;
use super::selection::MAX_IPS;
use crate::bounded;

/// The parts of an IPAMClaim that an attachment needs (NPWG 1.3 §8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpamClaim {
    /// The object's name.
    pub object: ObjectRef,
    /// The claim's network: `spec.network`.
    pub network: String,
    /// The claim's interface: `spec.interface`.
    pub interface: String,
    /// The addresses that a plugin wrote to `status.ips`; empty before the first attachment.
    ///
    /// Deserialization keeps at most `MAX_IPS + 1` addresses, which is enough to detect a claim
    /// that exceeds the limit.
    #[serde(deserialize_with = "ips")]
    pub ips: Vec<RequestedIp>,
}

fn ips<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<RequestedIp>, D::Error> {
    bounded::first::<_, _, { MAX_IPS + 1 }>(input, |_| ())
}

impl IpamClaim {
    /// Reads an object of one of the two API groups in the specification (NPWG 1.3 §8.1, §8.2.1).
    ///
    /// # Errors
    ///
    /// [`ManifestError`] when the object is of another kind or has no valid name, when an address
    /// is invalid, or when a value has the wrong type.
    pub fn from_json(object: &Value) -> Result<Self, ManifestError> {
        let manifest = Manifest(object);
        manifest.is(
            "IPAMClaim",
            &["k8s.cni.cncf.io", "persistentip.cni.cncf.io"],
        )?;
        let text = |pointer| {
            Ok::<_, ManifestError>(manifest.text(pointer)?.unwrap_or_default().to_owned())
        };
        Ok(Self {
            object: manifest.object()?,
            network: text("/spec/network")?,
            interface: text("/spec/interface")?,
            ips: manifest
                .texts("/status/ips")?
                .into_iter()
                .map(str::parse)
                .collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // clause: NPWG-1.3 §8.2: a claim has a network, an interface and addresses
    #[test]
    fn an_ipam_claim_of_either_api_group_is_read() {
        for group in ["k8s.cni.cncf.io", "persistentip.cni.cncf.io"] {
            let claim = IpamClaim::from_json(&json!({
                "apiVersion": format!("{group}/v1alpha1"),
                "kind": "IPAMClaim",
                "metadata": {"name": "vm-a.tenantred.pod16367aacb67", "namespace": "ns1"},
                "spec": {"network": "tenantred", "interface": "pod16367aacb67"},
                "status": {"ips": ["10.128.20.8/24", "fd10:128:20::8/64"]},
            }))
            .unwrap();
            assert_eq!(
                claim.object.to_string(),
                "ns1/vm-a.tenantred.pod16367aacb67"
            );
            assert_eq!(claim.network, "tenantred");
            assert_eq!(claim.interface, "pod16367aacb67");
            assert_eq!(
                serde_json::to_value(&claim.ips).unwrap(),
                json!(["10.128.20.8/24", "fd10:128:20::8/64"])
            );
        }
    }

    #[test]
    fn an_empty_claim_is_read_and_an_invalid_one_is_refused() {
        let claim = json!({"metadata": {"name": "a"}, "spec": {}, "status": null});
        assert!(IpamClaim::from_json(&claim).unwrap().ips.is_empty());
        let table = [
            (
                json!({"metadata": {"name": "a"}, "status": {"ips": ["x"]}}),
                ManifestError::Ip("x".parse::<RequestedIp>().unwrap_err()),
            ),
            (
                json!({"metadata": {"name": "a"}, "status": {"ips": "x"}}),
                ManifestError::NotList("status.ips".to_owned()),
            ),
            (
                json!({"metadata": {"name": "a"}, "status": {"ips": [1]}}),
                ManifestError::NotList("status.ips".to_owned()),
            ),
            (
                json!({"apiVersion": "x/v1", "kind": "IPAMClaim", "metadata": {"name": "a"}}),
                ManifestError::Kind {
                    expected: "IPAMClaim",
                    found: "x/IPAMClaim".to_owned(),
                },
            ),
        ];
        for (object, expected) in table {
            assert_eq!(IpamClaim::from_json(&object), Err(expected), "{object}");
        }
    }
}
