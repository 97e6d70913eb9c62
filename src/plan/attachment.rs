//! One attachment, with all inputs of its delegates.

use std::net::IpAddr;
use std::path::PathBuf;

use serde_json::value::RawValue;

use super::{NetworkPlace, PlanError, Reason, Segment};
use crate::allocation::AllocatedDevice;
use crate::cni::{
    ArgsError, CapabilityArgs, CniArgs, InterfaceName, NetworkConfig, NetworkName, RawObject,
};
use crate::npwg::{Dialect, NetworksDigest, RequestedIp, RequestedMac};
use device_info::{Guid, PciAddress};

/// The key of CNI_ARGS with which a Kubernetes runtime names the pod.
const POD_NAME: &str = "K8S_POD_NAME";
/// The keys with which a runtime requests addresses for the cluster network.
const ADDRESSES: [&str; 3] = ["IP", "GATEWAY", "MAC"];
/// The key that makes plugins accept unknown keys of CNI_ARGS.
const IGNORE_UNKNOWN: &str = "IgnoreUnknown";

/// One network of one pod, ready to be attached. The journal stores the attachment, because a DEL
/// must pass the same configuration to the delegates (CNI 1.1.0 §3).
#[derive(Debug, Clone)]
pub struct Attachment {
    /// The network's name in messages: `namespace/definition`, or the CNI name of a network without
    /// a definition (NPWG 1.3 §5.3.1).
    pub label: String,
    /// Whether this is the cluster-wide default network (NPWG 1.3 §6).
    pub is_cluster: bool,
    /// The interface in the pod.
    pub ifname: InterfaceName,
    /// The network's name in the delegates' configurations (NPWG 1.3 §4.2.1).
    pub network: NetworkName,
    /// The plugins to run.
    pub config: NetworkConfig,
    /// Capability arguments (CNI 1.1.0 §3 Deriving runtimeConfig).
    pub capability_args: CapabilityArgs,
    /// Keys that replace or extend the definition's `args.cni`.
    pub cni_args: Option<RawObject>,
    /// Keys that Jackfield adds to the runtime's CNI_ARGS.
    pub extra_args: Vec<(String, String)>,
    /// Keys that Jackfield adds to each plugin's configuration: `deviceID`, `pciBusID`.
    pub inject: Vec<(String, Box<RawValue>)>,
    /// The resource whose devices the network uses (`k8s.v1.cni.cncf.io/resourceName`).
    pub resource: Option<String>,
    /// The device that is assigned to the attachment.
    pub device: Option<AllocatedDevice>,
    /// The device-info file that the plugins read and write (DEVINFO 1.1.0 §4.2, §5.1.1). Jackfield
    /// removes the file when it detaches the attachment.
    pub device_info_file: Option<PathBuf>,
    /// The pod's requests, which Jackfield verifies.
    pub requested: Requested,
    /// The layer-2 network that the attachment joins; `None` if the pod requests no MAC or GUID.
    /// Records of older releases also have `None`.
    pub segment: Option<Segment>,
    /// The gateways of the pod's new default routes; an empty list removes all default routes of
    /// the pod. `None` changes no default route.
    pub default_route: Option<Vec<IpAddr>>,
    /// Whether this is the chain of `auxiliaryCNIChainName`. Its plugins make no interface, so
    /// there is nothing to verify or report.
    pub is_auxiliary: bool,
    /// The digest of the annotation's element that selects this network. `None` for the cluster
    /// network, and for networks of the node configuration. Records of older releases also have
    /// `None`.
    pub selection: Option<NetworksDigest>,
}

impl Attachment {
    /// A secondary network without a device and without requests.
    pub fn bare(
        label: String,
        ifname: InterfaceName,
        network: NetworkName,
        config: NetworkConfig,
    ) -> Attachment {
        Attachment {
            label,
            is_cluster: false,
            ifname,
            network,
            config,
            capability_args: CapabilityArgs::default(),
            cni_args: None,
            extra_args: Vec::new(),
            inject: Vec::new(),
            resource: None,
            device: None,
            device_info_file: None,
            requested: Requested::default(),
            segment: None,
            default_route: None,
            is_auxiliary: false,
            selection: None,
        }
    }

    /// Returns CNI_ARGS for the delegates: the runtime's CNI_ARGS and the attachment's own keys,
    /// which take precedence. Only the cluster network gets the addresses that the runtime
    /// requests, because two networks cannot have the same address.
    ///
    /// Plugins that use the reference library refuse unknown keys unless `IgnoreUnknown` is set.
    /// Not every plugin knows `K8S_POD_NAME` or the attachment's own keys. If CNI_ARGS contain such
    /// a key, this function sets `IgnoreUnknown`.
    ///
    /// # Errors
    /// If one of the attachment's own keys or values cannot be written as CNI_ARGS.
    pub fn args(&self, runtime: CniArgs) -> Result<CniArgs, ArgsError> {
        let mut args = runtime;
        if !self.is_cluster {
            ADDRESSES.iter().for_each(|key| args.remove(key));
        }
        for (key, value) in &self.extra_args {
            args.set(key, value)?;
        }
        let may_be_unknown = !self.extra_args.is_empty() || args.get(POD_NAME).is_some();
        if may_be_unknown && args.get(IGNORE_UNKNOWN).is_none() {
            args.set(IGNORE_UNKNOWN, "1")?;
        }
        Ok(args)
    }

    /// The MACs that the pod requests by `mac`, or by the key `mac` in `cni-args`.
    pub fn macs(&self) -> impl Iterator<Item = RequestedMac> {
        let parse = |text: &str| RequestedMac::parse(text, Dialect::default()).ok();
        self.with_cni_args(self.requested.mac, "mac", parse)
    }

    /// The GUIDs that the pod requests by `infiniband-guid`, or by the key `guid` in `cni-args`.
    pub fn guids(&self) -> impl Iterator<Item = Guid> {
        self.with_cni_args(self.requested.guid, "guid", |text| text.parse().ok())
    }

    /// Returns `own`, then the values under `key` in `cni-args` that differ from `own`. Ignores the
    /// case of the key, as Go does, so several keys may match.
    fn with_cni_args<T: Copy + PartialEq>(
        &self,
        own: Option<T>,
        key: &'static str,
        parse: fn(&str) -> Option<T>,
    ) -> impl Iterator<Item = T> {
        let members = self.cni_args.iter().flat_map(RawObject::iter);
        let named = members.filter(move |(name, _)| name.eq_ignore_ascii_case(key));
        let texts = named.filter_map(|(_, value)| serde_json::from_str::<String>(value.get()).ok());
        let values = texts.filter_map(move |text| parse(&text));
        let others = values.filter(move |value| Some(*value) != own);
        own.into_iter().chain(others)
    }

    /// The address of the device, if it is a PCI function.
    pub fn pci(&self) -> Option<PciAddress> {
        self.device.as_ref()?.pci()
    }

    /// The network's label and the interface, for messages.
    pub fn place(&self) -> NetworkPlace {
        NetworkPlace {
            label: self.label.clone(),
            ifname: Some(self.ifname.to_string()),
        }
    }

    /// The plan error for this attachment.
    pub fn problem(&self, reason: Reason) -> PlanError {
        reason.at(&self.label, Some(self.ifname.as_str()))
    }
}

/// A pod's requests (NPWG 1.3 §4.1.2.1).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Requested {
    /// `ips`, or the addresses of the IPAMClaim.
    pub ips: Vec<RequestedIp>,
    /// `mac`.
    pub mac: Option<RequestedMac>,
    /// `infiniband-guid`.
    pub guid: Option<Guid>,
    /// `deviceID`, a key of Multus that the specification does not define.
    pub device: Option<String>,
}

impl Requested {
    /// Whether the other attachment requests the same MAC or GUID.
    pub(super) fn shares_address(&self, other: &Requested) -> bool {
        self.mac.is_some() && self.mac == other.mac
            || self.guid.is_some() && self.guid == other.guid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_cluster_network_gets_addresses_from_the_runtime() {
        let runtime = CniArgs::parse("IgnoreUnknown=1;IP=10.10.0.9;MAC=02:00:00:00:00:09;A=1");
        let runtime = runtime.unwrap();
        let mut attachment = Attachment::for_tests(r#"{"cniVersion":"1.0.0","type":"bridge"}"#);
        let args = |attachment: &Attachment| attachment.args(runtime.clone()).unwrap().to_string();
        assert_eq!(args(&attachment), "IgnoreUnknown=1;A=1");
        attachment.extra_args = vec![("IP".to_owned(), "10.1.0.7/24".to_owned())];
        assert_eq!(args(&attachment), "IgnoreUnknown=1;A=1;IP=10.1.0.7/24");
        attachment.extra_args.clear();
        attachment.is_cluster = true;
        assert_eq!(args(&attachment), runtime.to_string());
    }
}
