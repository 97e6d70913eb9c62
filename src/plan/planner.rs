//! Plans the networks of a pod one after another.

use std::cell::Cell;

use super::attachment::Attachment;
use super::network::{KnownNetwork, read};
use super::problem::{ConfigurationProblem, NamedIn};
use super::{Inputs, MAX_CAPABILITIES, MAX_CONFIGURATIONS, Plan, PlanError, Reason, restrictions};
use crate::clock;
use crate::cluster::{Network, NetworkError};
use crate::cni::InterfaceName;
use crate::npwg::Selection;

/// An unfinished plan.
pub(super) struct Planner<'a> {
    pub(super) inputs: Inputs<'a>,
    pub(super) plan: Plan,
    /// The number in the next generated interface name. In an ADD, this is the count of the
    /// networks planned so far, including networks with problems.
    pub(super) position: usize,
    /// The interface names that the pod requests.
    pub(super) requested: Vec<InterfaceName>,
    /// If the name `net<position>` is taken, the planner searches for a free name with another
    /// number. The search begins at the larger of `position` and `last`.
    ///
    /// In an ADD of a pod with a valid annotation, `last` is the count of the pod's networks. The
    /// cluster network counts. The auxiliary chain does not count, because the planner plans it
    /// after all networks. The networks have the positions 0 to `last - 1`. The search begins above
    /// all of them, so it never takes the name that a later network gets from its own position. In
    /// an ADD of a pod without a valid annotation, `last` is 0.
    ///
    /// In a change of a running pod's networks, `last` is the value that `position` has at the
    /// beginning. Because `position` only grows, the search always begins at `position`.
    pub(super) last: usize,
    /// In a change of a running pod's networks, the number of attachments that stay as they are.
    /// These attachments come first in the plan.
    pub(super) kept: usize,
    /// The size of the configurations read so far, in bytes.
    bytes: Cell<usize>,
}

impl<'a> Planner<'a> {
    /// Starts with an empty plan.
    pub(super) fn new(inputs: Inputs<'a>) -> Planner<'a> {
        Planner {
            inputs,
            plan: Plan::default(),
            position: 0,
            requested: Vec::new(),
            last: 0,
            kept: 0,
            bytes: Cell::default(),
        }
    }

    /// Adds an attachment, or the problem with the attachment, to the plan.
    pub(super) fn take(&mut self, attachment: Result<Attachment, PlanError>) {
        self.position += 1;
        match attachment {
            Ok(attachment) => self.plan.attachments.push(attachment),
            Err(problem) => self.plan.problems.push(problem),
        }
    }

    pub(super) fn cluster_network(&mut self) {
        let ifname = self.inputs.ifname.clone();
        let attachment = match self.default_network_annotation() {
            Some(selection) => {
                self.remark_on(&selection);
                self.selected(&selection, ifname, true)
            }
            None => {
                let label = self.inputs.config.cluster_network.label();
                let found = self.inputs.catalog.cluster.as_ref();
                self.administrators(label, found, NamedIn::ClusterNetwork, ifname)
            }
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

    pub(super) fn further_delegates(&mut self) {
        let catalog = self.inputs.catalog;
        for network in &catalog.further {
            let attachment = self.unrestricted(network, self.next_ifname(), false);
            self.take(attachment);
        }
    }

    /// Plans the chain of `auxiliaryCNIChainName`, which runs for every pod. The chain is a
    /// separate attachment, so that it cannot break the cluster network. The chain creates no
    /// interface, but its attachment gets an interface name. The caller plans the chain at the
    /// end, so that the chain does not take a name from a network.
    pub(super) fn auxiliary_chain(&mut self) {
        let Some(found) = &self.inputs.catalog.auxiliary else {
            return;
        };
        let (label, named_in) = ("auxiliaryCNIChainName", NamedIn::AuxiliaryChain);
        let attachment = self.administrators(label, found.as_ref(), named_in, self.next_ifname());
        self.take(attachment.map(|attachment| Attachment {
            is_auxiliary: true,
            ..attachment
        }));
    }

    /// Returns the networks of `defaultNetworks`. Returns none if the runtime names no pod, or if
    /// the pod is in one of `systemNamespaces`.
    pub(super) fn defaults(&self) -> &'a [(String, Result<Network, NetworkError>)] {
        let system = &self.inputs.config.system_namespaces;
        match self.inputs.pod {
            Some(pod) if !system.contains(&pod.namespace) => &self.inputs.catalog.defaults,
            _ => &[],
        }
    }

    pub(super) fn default_networks(&mut self) {
        for (name, found) in self.defaults() {
            let (found, ifname) = (found.as_ref(), self.next_ifname());
            let attachment = self.administrators(name, found, NamedIn::DefaultNetworks, ifname);
            self.take(attachment);
        }
    }

    /// Plans a network that the node configuration names. `found` is the network, or why Jackfield
    /// did not find it.
    fn administrators(
        &self,
        label: &str,
        found: Result<&Network, &NetworkError>,
        named_in: NamedIn,
        ifname: InterfaceName,
    ) -> Result<Attachment, PlanError> {
        let network = found
            .map_err(|error| Reason::not_found(error, named_in).at(label, Some(ifname.as_str())))?;
        self.unrestricted(network, ifname, named_in == NamedIn::ClusterNetwork)
    }

    /// Like [`Self::administrators`], but for a network that is already found. Of all restrictions,
    /// checks only `policy.node`.
    fn unrestricted(
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
        let known = self
            .read(network)
            .map_err(|reason| reason.at(&network.place(), Some(ifname.as_str())))?;
        let mut attachment = Attachment {
            is_cluster,
            resource: network.resource.clone(),
            selection: selection.filter(|_| !is_cluster).map(Selection::digest),
            ..Attachment::bare(known.label, ifname, known.name, known.config)
        };
        if let Some(selection) = selection {
            self.pass_requests(selection, &mut attachment)
                .map_err(|reason| attachment.problem(reason))?;
        }
        Ok(attachment)
    }

    /// Reads one more network. Refuses the network if the deadline has passed, if its configuration
    /// is invalid, if a plugin declares more than [`MAX_CAPABILITIES`] capabilities, or if the
    /// configurations read so far exceed [`MAX_CONFIGURATIONS`] bytes.
    fn read(&self, network: &Network) -> Result<KnownNetwork, Reason> {
        if clock::now() >= self.inputs.until {
            return Err(Reason::NoTime);
        }
        let origin = || network.origin.clone();
        let bytes = self.bytes.get() + network.text.len();
        if bytes > MAX_CONFIGURATIONS {
            let origin = origin();
            return Err(ConfigurationProblem::TooLarge { origin, bytes }.into());
        }
        self.bytes.set(bytes);
        let known = read(network)?;
        // The parser does not check this limit. If it did, a DEL would fail for an attachment that
        // an earlier release made with more capabilities.
        for plugin in known.config.plugins() {
            let count = plugin.capabilities().count();
            if count > MAX_CAPABILITIES {
                let (origin, plugin) = (origin(), plugin.plugin_type().clone());
                let problem = ConfigurationProblem::TooManyCapabilities {
                    origin,
                    plugin,
                    count,
                };
                return Err(problem.into());
            }
        }
        Ok(known)
    }

    /// Returns `net` with the number `position`. If an attachment already has this name, or if the
    /// pod requests this name, returns a free name with a higher number, because names must be
    /// unique (NPWG 1.3 §4.2.1).
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

    /// Refuses two interfaces with the same name, and two interfaces on one network with the same
    /// MAC or GUID. Interfaces on different networks may share an address, as the members of a bond
    /// do.
    pub(super) fn check_uniqueness(&mut self) {
        let attachments = &self.plan.attachments;
        for (index, attachment) in attachments.iter().enumerate() {
            let mut earlier = attachments[..index].iter();
            let same_name = earlier.clone().find(|it| it.ifname == attachment.ifname);
            let same_address = earlier.find(|it| {
                it.label == attachment.label && it.requested.shares_address(&attachment.requested)
            });
            let name_used = same_name.map(|other| Reason::InterfaceUsed {
                ifname: attachment.ifname.clone(),
                network: other.label.clone(),
            });
            let address_used =
                same_address.map(|other| Reason::HardwareAddressUsed(other.ifname.clone()));
            let reasons = name_used.into_iter().chain(address_used);
            let problems = reasons.map(|reason| attachment.problem(reason));
            self.plan.problems.extend(problems);
        }
    }
}
