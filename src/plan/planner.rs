//! Plans the networks of a pod, one after the other.

use std::cell::Cell;
use std::time::Instant;

use super::attachment::Attachment;
use super::network::read;
use super::problem::{ConfigurationProblem, NamedIn};
use super::{
    Inputs, MAX_CAPABILITIES, MAX_CONFIGURATIONS, Plan, PlanError, Reason, capabilities,
    restrictions,
};
use crate::cluster::{Network, NetworkError};
use crate::cni::{InterfaceName, NetworkConfig};
use crate::npwg::Selection;

/// An unfinished plan.
pub(super) struct Planner<'a> {
    pub(super) inputs: Inputs<'a>,
    pub(super) plan: Plan,
    /// How many networks come before the next one, attachable or not.
    pub(super) position: usize,
    /// The interface names that the pod requests.
    pub(super) requested: Vec<InterfaceName>,
    /// How many networks there are up to the last that the pod selects, including the
    /// administrator's before them.
    pub(super) last: usize,
    /// The size of the configurations read so far, in bytes.
    bytes: Cell<usize>,
}

impl<'a> Planner<'a> {
    /// An empty plan.
    pub(super) fn new(inputs: Inputs<'a>) -> Planner<'a> {
        Planner {
            inputs,
            plan: Plan {
                attachments: Vec::new(),
                warnings: Vec::new(),
                remarks: Vec::new(),
                problems: Vec::new(),
            },
            position: 0,
            requested: Vec::new(),
            last: 0,
            bytes: Cell::default(),
        }
    }

    /// Adds an attachment to the plan, or the reason against it.
    pub(super) fn take(&mut self, attachment: Result<Attachment, PlanError>) {
        self.position += 1;
        match attachment {
            Ok(attachment) => self.plan.attachments.push(attachment),
            Err(problem) => self.plan.problems.push(problem),
        }
    }

    pub(super) fn cluster_network(&mut self) {
        let attachment = match self.default_network_annotation() {
            Some(selection) => {
                self.remark_on(&selection);
                self.replaced_cluster_network(&selection)
            }
            None => self.own_cluster_network(),
        };
        let runtime_config = std::mem::take(&mut self.inputs.runtime_config);
        self.take(attachment.map(|mut attachment| {
            let requested = std::mem::replace(&mut attachment.capability_args, runtime_config);
            for (name, value) in requested.iter() {
                attachment.capability_args.set(name, value.to_owned());
            }
            attachment
        }));
    }

    pub(super) fn own_cluster_network(&self) -> Result<Attachment, PlanError> {
        let ifname = self.inputs.ifname;
        let network = self.inputs.catalog.cluster.as_ref().map_err(|report| {
            let label = self.inputs.config.cluster_network.label();
            not_found(report, NamedIn::ClusterNetwork).at(label, Some(ifname.as_str()))
        })?;
        self.administrators(network, ifname.clone(), true)
    }

    pub(super) fn further_delegates(&mut self) {
        let catalog = self.inputs.catalog;
        for network in &catalog.further {
            let attachment = self.administrators(network, self.next_ifname(), false);
            self.take(attachment);
        }
    }

    /// The administrator's chain for every pod. It runs on its own, so that it cannot break the cluster
    /// network. It makes no interface, so its interface name gives way to all others.
    pub(super) fn auxiliary_chain(&mut self) {
        let Some(found) = &self.inputs.catalog.auxiliary else {
            return;
        };
        let ifname = self.next_ifname();
        let attachment = match found {
            Ok(network) => self.administrators(network, ifname, false),
            Err(report) => Err(not_found(&report, NamedIn::AuxiliaryChain)
                .at("auxiliaryCNIChainName", Some(ifname.as_str()))),
        };
        self.take(attachment.map(|attachment| Attachment {
            is_auxiliary: true,
            ..attachment
        }));
    }

    /// `defaultNetworks`, unless the pod is in one of `systemNamespaces`.
    pub(super) fn defaults(&self) -> &'a [(String, Result<Network, NetworkError>)] {
        let system = &self.inputs.config.system_namespaces;
        match self.inputs.pod {
            Some(pod) if !system.contains(&pod.namespace) => &self.inputs.catalog.defaults,
            _ => &[],
        }
    }

    pub(super) fn default_networks(&mut self) {
        for (name, found) in self.defaults() {
            let ifname = self.next_ifname();
            let network = found.as_ref().map_err(|report| {
                not_found(report, NamedIn::DefaultNetworks).at(name, Some(ifname.as_str()))
            });
            let attachment =
                network.and_then(|network| self.administrators(network, ifname, false));
            self.take(attachment);
        }
    }

    /// A network that the node configuration names, wherever its configuration comes from.
    fn administrators(
        &self,
        network: &Network,
        ifname: InterfaceName,
        is_cluster: bool,
    ) -> Result<Attachment, PlanError> {
        let attachment = self.attachment(network, ifname, None, is_cluster)?;
        restrictions::check_node(self.inputs.config, &attachment.config)
            .map_err(|restriction| attachment.problem(restriction.into()))?;
        Ok(attachment)
    }

    pub(super) fn attachment(
        &self,
        network: &Network,
        ifname: InterfaceName,
        selection: Option<&Selection>,
        is_cluster: bool,
    ) -> Result<Attachment, PlanError> {
        let blame = |reason: Reason| reason.at(&network.place(), Some(ifname.as_str()));
        self.within_limits(network).map_err(blame)?;
        let (name, config) = read(network).map_err(blame)?;
        check_capabilities(network, &config).map_err(|problem| blame(problem.into()))?;
        let label = network
            .object
            .as_ref()
            .map_or_else(|| name.to_string(), ToString::to_string);
        let mut attachment = Attachment {
            is_cluster,
            resource: network.resource.clone(),
            ..Attachment::bare(label, ifname.clone(), name, config)
        };
        if let Some(selection) = selection {
            let rules = capabilities::Rules {
                config: self.inputs.config,
                answer: self.inputs.answer,
            };
            rules
                .apply(selection, &mut attachment)
                .map_err(|reason| attachment.problem(reason))?;
        }
        Ok(attachment)
    }

    /// Checks that there are time and room for one more network.
    fn within_limits(&self, network: &Network) -> Result<(), Reason> {
        if Instant::now() >= self.inputs.until {
            return Err(Reason::NoTime);
        }
        let bytes = self.bytes.get() + network.text.len();
        if bytes > MAX_CONFIGURATIONS {
            return Err(ConfigurationProblem::TooLarge {
                origin: network.origin.clone(),
                bytes,
            }
            .into());
        }
        self.bytes.set(bytes);
        Ok(())
    }

    /// `net1`, `net2`, … by position; if another attachment has the name or the pod requests it, the
    /// next free one (NPWG 1.3 §4.2.1: unique).
    pub(super) fn next_ifname(&self) -> InterfaceName {
        let is_taken = |name: &InterfaceName| {
            let mut attachments = self.plan.attachments.iter();
            self.requested.contains(name) || attachments.any(|other| other.ifname == *name)
        };
        let by_position = InterfaceName::numbered("net", self.position);
        if !is_taken(&by_position) {
            return by_position;
        }
        (self.position.max(self.last)..)
            .map(|number| InterfaceName::numbered("net", number))
            .find(|name| !is_taken(name))
            .unwrap_or(by_position)
    }

    /// Refuses two interfaces with one address on one network. On two networks they are allowed, for
    /// bonds.
    pub(super) fn check_hardware_addresses(&mut self) {
        let attachments = &self.plan.attachments;
        for (index, attachment) in attachments.iter().enumerate() {
            let requested = &attachment.requested;
            let same = |other: &&Attachment| {
                let theirs = &other.requested;
                let mac = requested.mac.is_some() && requested.mac == theirs.mac;
                let guid = requested.guid.is_some() && requested.guid == theirs.guid;
                other.label == attachment.label && (mac || guid)
            };
            if let Some(other) = attachments[..index].iter().find(same) {
                let reason = Reason::HardwareAddressUsed {
                    ifname: other.ifname.clone(),
                };
                self.plan.problems.push(attachment.problem(reason));
            }
        }
    }

    pub(super) fn check_interface_names(&mut self) {
        let attachments = &self.plan.attachments;
        for (index, attachment) in attachments.iter().enumerate() {
            let same = |other: &&Attachment| other.ifname == attachment.ifname;
            if let Some(other) = attachments[..index].iter().find(same) {
                let reason = Reason::InterfaceUsed {
                    ifname: attachment.ifname.clone(),
                    network: other.label.clone(),
                };
                self.plan.problems.push(attachment.problem(reason));
            }
        }
    }
}

/// The reason against a network that the cluster could not find.
pub(super) fn not_found(report: &impl ToString, named_in: NamedIn) -> Reason {
    let report = report.to_string();
    ConfigurationProblem::NotFound { report, named_in }.into()
}

/// Checks the limit here and not in the parser, so that an attachment that an earlier release
/// recorded with more capabilities can still be detached.
fn check_capabilities(
    network: &Network,
    config: &NetworkConfig,
) -> Result<(), ConfigurationProblem> {
    for plugin in config.plugins() {
        let count = plugin.capabilities().count();
        if count > MAX_CAPABILITIES {
            return Err(ConfigurationProblem::TooManyCapabilities {
                origin: network.origin.clone(),
                plugin: plugin.plugin_type().clone(),
                count,
            });
        }
    }
    Ok(())
}
