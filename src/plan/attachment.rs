//! One attachment, with everything that its delegates are told.

use std::net::IpAddr;
use std::path::PathBuf;

use serde_json::value::RawValue;

use super::{NetworkPlace, PlanError, Reason, Segment};
use crate::allocation::AllocatedDevice;
use crate::cni::{
    ArgsError, CapabilityArgs, CniArgs, InterfaceName, NetworkConfig, NetworkName, RawObject,
};
use crate::npwg::{Dialect, RequestedIp, RequestedMac};
use device_info::Guid;

/// Where a runtime of Kubernetes names the pod.
const POD_NAME: &str = "K8S_POD_NAME";
/// The addresses that a runtime asks for: its own, of the cluster network.
const ADDRESSES: [&str; 3] = ["IP", "GATEWAY", "MAC"];
/// What makes plugins bear keys of CNI_ARGS that they do not know.
const IGNORE_UNKNOWN: &str = "IgnoreUnknown";

/// One network for one pod, ready to be attached; also what the journal keeps of it, since a DEL
/// has to tell the delegates the same (CNI 1.1.0 §3).
#[derive(Debug, Clone)]
pub struct Attachment {
    /// What people call the network: `namespace/definition`, or the CNI name of a cluster network
    /// without a definition (NPWG 1.3 §5.3.1).
    pub label: String,
    /// Whether this is the cluster-wide default network (NPWG 1.3 §6).
    pub is_cluster: bool,
    /// The interface in the pod.
    pub ifname: InterfaceName,
    /// The network's name as delegates see it (NPWG 1.3 §4.2.1).
    pub network: NetworkName,
    /// The plugins to run.
    pub config: NetworkConfig,
    /// Capability arguments (CNI 1.1.0 §3 Deriving runtimeConfig).
    pub capability_args: CapabilityArgs,
    /// What goes over the definition's own `args.cni`, key by key.
    pub cni_args: Option<RawObject>,
    /// CNI_ARGS besides those of the runtime.
    pub extra_args: Vec<(String, String)>,
    /// Keys put into each plugin's configuration: `deviceID`, `pciBusID`.
    pub inject: Vec<(String, Box<RawValue>)>,
    /// The resource whose devices the network uses (`k8s.v1.cni.cncf.io/resourceName`).
    pub resource: Option<String>,
    /// The device that belongs to it.
    pub device: Option<AllocatedDevice>,
    /// The file in which its plugins are told of the device and tell of it (DEVINFO 1.1.0 §4.2,
    /// §5.1.1): removed with the attachment.
    pub device_info_file: Option<PathBuf>,
    /// What the pod asked for, and is therefore verified.
    pub requested: Requested,
    /// The layer-2 network that it joins, where it asks for a MAC or a GUID; none in records of
    /// older releases.
    pub segment: Option<Segment>,
    /// The gateways that become the pod's default routes; `Some` of none clears them.
    pub default_route: Option<Vec<IpAddr>>,
    /// Whether these are the plugins of `auxiliaryCNIChainName`: they make no interface, so there
    /// is nothing to verify and nothing to tell the pod's owner.
    pub is_auxiliary: bool,
}

#[cfg(test)]
impl Attachment {
    /// One of this configuration, as net1, that asks for nothing.
    pub(crate) fn for_tests(config: &str) -> Attachment {
        Attachment::bare(
            "demo/n".to_owned(),
            "net1".parse().unwrap(),
            "n".parse().unwrap(),
            NetworkConfig::parse(config.as_bytes()).unwrap(),
        )
    }
}

impl Attachment {
    /// A secondary network without a device, of which nothing is asked.
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
        }
    }

    /// CNI_ARGS for the delegates: the runtime's with ours over them. The addresses that the
    /// runtime asks for are the cluster network's, as its `runtimeConfig` is: no two networks can
    /// have the same.
    ///
    /// Plugins of the reference library refuse keys that they do not know, unless they are told
    /// not to. The pod's name and what we add ourselves are not meant for each of them.
    ///
    /// # Errors
    /// When one of ours cannot be written as CNI_ARGS.
    pub fn args(&self, runtime: &CniArgs) -> Result<CniArgs, ArgsError> {
        let mut args = runtime.clone();
        if !self.is_cluster {
            ADDRESSES.iter().for_each(|key| args.remove(key));
        }
        for (key, value) in &self.extra_args {
            args.set(key, value)?;
        }
        let some_are_not_theirs = !self.extra_args.is_empty() || args.get(POD_NAME).is_some();
        if some_are_not_theirs && args.get(IGNORE_UNKNOWN).is_none() {
            args.set(IGNORE_UNKNOWN, "1")?;
        }
        Ok(args)
    }

    /// The MACs that its plugins are asked for by the pod: by `mac`, and past it by `cni-args`.
    pub fn macs(&self) -> impl Iterator<Item = RequestedMac> {
        let in_args = self.in_cni_args("mac");
        let in_args =
            in_args.filter_map(|text| RequestedMac::parse(&text, Dialect::default()).ok());
        let own = self.requested.mac;
        own.into_iter()
            .chain(in_args.filter(move |mac| Some(*mac) != own))
    }

    /// The GUIDs that its plugins are asked for by the pod: by `infiniband-guid`, and past it by
    /// `cni-args`.
    pub fn guids(&self) -> impl Iterator<Item = Guid> {
        let in_args = self
            .in_cni_args("guid")
            .filter_map(|text| text.parse().ok());
        let own = self.requested.guid;
        own.into_iter()
            .chain(in_args.filter(move |guid| Some(*guid) != own))
    }

    /// The texts under a key of `cni-args`, in whichever spelling: Go does not tell them apart.
    fn in_cni_args(&self, key: &'static str) -> impl Iterator<Item = String> {
        let members = self.cni_args.iter().flat_map(RawObject::iter);
        let named = members.filter(move |(name, _)| name.eq_ignore_ascii_case(key));
        named.filter_map(|(_, value)| serde_json::from_str(value.get()).ok())
    }

    /// The network as messages name it.
    pub fn place(&self) -> NetworkPlace {
        NetworkPlace {
            label: self.label.clone(),
            ifname: Some(self.ifname.to_string()),
        }
    }

    /// A reason against this attachment.
    pub fn problem(&self, reason: Reason) -> PlanError {
        PlanError {
            place: Some(self.place()),
            reason: Box::new(reason),
        }
    }

    /// The reason against an interface that the pod's netns already has
    /// (NPWG 1.3 §4.1.2.1.5).
    pub fn taken(&self) -> PlanError {
        self.problem(Reason::InterfaceExists(self.ifname.clone()))
    }
}

/// What a pod asked for (NPWG 1.3 §4.1.2.1).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Requested {
    /// `ips`, or those of the claim.
    pub ips: Vec<RequestedIp>,
    /// `mac`.
    pub mac: Option<RequestedMac>,
    /// `infiniband-guid`.
    pub guid: Option<Guid>,
    /// `deviceID`, which Multus knows and the specification does not.
    pub device: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_that_a_runtime_asks_for_are_the_cluster_networks() {
        let runtime = CniArgs::parse("IgnoreUnknown=1;IP=10.10.0.9;MAC=02:00:00:00:00:09;A=1");
        let runtime = runtime.unwrap();
        let mut attachment = Attachment::for_tests(r#"{"cniVersion":"1.0.0","type":"bridge"}"#);
        let args = |attachment: &Attachment| attachment.args(&runtime).unwrap().to_string();
        assert_eq!(args(&attachment), "IgnoreUnknown=1;A=1");
        attachment.extra_args = vec![("IP".to_owned(), "10.1.0.7/24".to_owned())];
        assert_eq!(args(&attachment), "IgnoreUnknown=1;A=1;IP=10.1.0.7/24");
        attachment.extra_args.clear();
        attachment.is_cluster = true;
        assert_eq!(args(&attachment), runtime.to_string());
    }
}
