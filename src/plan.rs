//! Everything known about a pod becomes an ordered list of [`Attachment`]s, or the reason why
//! none of them may be attempted.
//!
//! Every rule that can fail before anything runs is here, and nothing here does I/O: `explain`
//! and ADD see the same plan.

pub mod attachment;
mod capabilities;
mod devices;
mod error;
mod restrictions;

pub use attachment::{Attachment, Requested};
pub use error::{Place, PlanError, Reason};

use crate::allocation::Allocation;
use crate::cluster::{Answer, Catalog, Event, Network, PodAnnotations, PodName};
use crate::cni::{CapabilityArgs, ContainerId, InterfaceName, NetworkConfig, NetworkName};
use crate::npwg::{DEFAULT_NETWORK_ANNOTATION, NETWORKS_ANNOTATION, Selection, SelectionError};
use crate::request::NodeConfig;

/// What an ADD will do, in order.
#[derive(Debug)]
pub struct Plan {
    /// The cluster network first (NPWG 1.3 §6.2), then the default networks, then the pod's
    /// selection in its order.
    pub attachments: Vec<Attachment>,
    /// What the pod's owner should know.
    pub events: Vec<Event>,
    /// What surprises people who look at the plan, a line each.
    pub remarks: Vec<String>,
    /// Every reason why the plan must not be carried out; none when it may be.
    pub problems: Vec<PlanError>,
}

/// What a plan is made of.
#[derive(Debug)]
pub struct Inputs<'a> {
    /// The node configuration.
    pub node: &'a NodeConfig,
    /// `CNI_CONTAINERID`.
    pub container: &'a ContainerId,
    /// `CNI_IFNAME`: the cluster network's interface.
    pub ifname: &'a InterfaceName,
    /// The pod, where the runtime names one.
    pub pod: Option<&'a PodName>,
    /// Its annotations.
    pub annotations: &'a PodAnnotations,
    /// What the cluster knows.
    pub answer: &'a Answer,
    /// The networks with their configurations.
    pub catalog: &'a Catalog,
    /// The devices that kubelet gave the pod.
    pub allocation: &'a Allocation,
    /// The runtime's own capability arguments: the cluster network's alone (NPWG 1.3 §7.5).
    pub runtime_config: CapabilityArgs,
}

/// Makes the plan, with every rule that it breaks.
pub fn plan(inputs: Inputs<'_>) -> Plan {
    let mut planner = Planner {
        inputs,
        plan: Plan {
            attachments: Vec::new(),
            events: Vec::new(),
            remarks: Vec::new(),
            problems: Vec::new(),
        },
        position: 0,
    };
    planner.cluster_network();
    planner.further_delegates();
    planner.default_networks();
    planner.selected_networks();
    planner.auxiliary_chain();
    planner.check_interface_names();
    planner.devices();
    planner.plan
}

struct Planner<'a> {
    inputs: Inputs<'a>,
    plan: Plan,
    /// How many networks came before the next one, attachable or not.
    position: usize,
}

impl<'a> Planner<'a> {
    /// Takes an attachment into the plan, or the reason against it.
    fn take(&mut self, attachment: Result<Attachment, PlanError>) {
        self.position += 1;
        match attachment {
            Ok(attachment) => self.plan.attachments.push(attachment),
            Err(problem) => self.plan.problems.push(problem),
        }
    }

    fn cluster_network(&mut self) {
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

    fn own_cluster_network(&self) -> Result<Attachment, PlanError> {
        let ifname = self.inputs.ifname;
        let network = self.inputs.catalog.cluster.as_ref().map_err(|cause| {
            let label = self.inputs.node.cluster_network.label();
            let cause = format!("{cause}; correct clusterNetwork of the node configuration");
            Reason::Network(cause).at(label, Some(ifname.as_str()))
        })?;
        self.attachment(network, ifname.clone(), None, true)
    }

    /// Multus' annotation: one network instead of the cluster network, under the same isolation
    /// and policy as any other that a pod names.
    fn replaced_cluster_network(&self, selection: &Selection) -> Result<Attachment, PlanError> {
        let ifname = self.inputs.ifname.clone();
        self.isolate(selection, &ifname)?;
        let network = self.definition(selection, &ifname)?;
        let attachment = self.attachment(network, ifname, Some(selection), true)?;
        self.restrict(&attachment, selection)?;
        Ok(attachment)
    }

    /// What the annotation does that its author may not expect.
    fn remark_on(&mut self, selection: &Selection) {
        let Inputs {
            node,
            annotations,
            ifname,
            ..
        } = &self.inputs;
        let text = annotations.default_network.as_deref().unwrap_or_default();
        let network = &selection.network;
        let mut remarks = vec![format!(
            "annotation {DEFAULT_NETWORK_ANNOTATION}: {network} is attached instead of clusterNetwork {}",
            node.cluster_network.label()
        )];
        if !text.contains(network.namespace()) {
            remarks.push(format!(
                "annotation {DEFAULT_NETWORK_ANNOTATION}: {} has no namespace, so it is looked up in \
                 multusNamespace {}, not in the pod's",
                network.name(),
                node.multus_namespace
            ));
        }
        if let Some(interface) = &selection.interface {
            remarks.push(format!(
                "annotation {DEFAULT_NETWORK_ANNOTATION}: interface {interface} is ignored, \
                 the runtime names this one: {ifname}"
            ));
        }
        self.plan.remarks.extend(remarks);
    }

    fn default_network_annotation(&mut self) -> Option<Selection> {
        let text = self.inputs.annotations.default_network.as_ref()?;
        let node = self.inputs.node;
        match Selection::parse_default_network(text, &node.multus_namespace, node.dialect) {
            Ok(selection) => Some(selection),
            Err(error) => {
                self.invalid(DEFAULT_NETWORK_ANNOTATION, &error);
                None
            }
        }
    }

    fn further_delegates(&mut self) {
        let catalog = self.inputs.catalog;
        for network in &catalog.further {
            let attachment = self.attachment(network, self.next_ifname(), None, false);
            self.take(attachment);
        }
    }

    /// The administrator's chain for every pod, on its own so that it cannot hamper the cluster
    /// network. Its name in the pod is a formality, so it makes way for everybody else's.
    fn auxiliary_chain(&mut self) {
        let Some(found) = &self.inputs.catalog.auxiliary else {
            return;
        };
        let taken = |name: &InterfaceName| {
            let mut attachments = self.plan.attachments.iter();
            attachments.any(|attachment| attachment.ifname == *name)
        };
        let ifname = (self.position..)
            .map(|number| InterfaceName::numbered("net", number))
            .find(|name| !taken(name))
            .unwrap_or_else(|| self.next_ifname());
        let attachment =
            match found {
                Ok(network) => self.attachment(network, ifname, None, false),
                Err(cause) => Err(Reason::Network(cause.clone())
                    .at("auxiliaryCNIChainName", Some(ifname.as_str()))),
            };
        self.take(attachment.map(|attachment| Attachment {
            is_auxiliary: true,
            ..attachment
        }));
    }

    fn default_networks(&mut self) {
        let Some(pod) = self.inputs.pod else { return };
        if self.inputs.node.system_namespaces.contains(&pod.namespace) {
            return;
        }
        let catalog = self.inputs.catalog;
        for (name, found) in &catalog.defaults {
            let ifname = self.next_ifname();
            let network = found.as_ref().map_err(|cause| {
                let cause = format!("{cause}; correct defaultNetworks of the node configuration");
                Reason::Network(cause).at(name, Some(ifname.as_str()))
            });
            let attachment =
                network.and_then(|network| self.attachment(network, ifname, None, false));
            self.take(attachment);
        }
    }

    fn selected_networks(&mut self) {
        let (Some(pod), Some(text)) = (self.inputs.pod, &self.inputs.annotations.networks) else {
            return;
        };
        let selections = match Selection::parse_list(text, &pod.namespace, self.inputs.node.dialect)
        {
            Ok(selections) => selections,
            Err(error) => return self.invalid(NETWORKS_ANNOTATION, &error),
        };
        for selection in selections {
            for key in &selection.unknown_keys {
                let network = &selection.network;
                let message = format!(
                    "annotation {NETWORKS_ANNOTATION}: network {network}: key {key:?} is unknown and ignored"
                );
                self.plan.events.push(Event::warning("UnknownKey", message));
            }
            let attachment = self.selected(&selection);
            self.take(attachment);
        }
    }

    fn selected(&self, selection: &Selection) -> Result<Attachment, PlanError> {
        let ifname = selection
            .interface
            .clone()
            .unwrap_or_else(|| self.next_ifname());
        self.isolate(selection, &ifname)?;
        let network = self.definition(selection, &ifname)?;
        let attachment = self.attachment(network, ifname, Some(selection), false)?;
        self.restrict(&attachment, selection)?;
        Ok(attachment)
    }

    /// An invalid annotation is ignored, and said (NPWG 1.3 §4.1.2.1), unless the node's
    /// administrator wants such pods refused.
    fn invalid(&mut self, key: &'static str, error: &SelectionError) {
        let cause = error.to_string();
        if self.inputs.node.fail_invalid_annotation {
            let reason = Reason::Annotation { key, cause };
            return self.plan.problems.push(PlanError {
                place: None,
                reason,
            });
        }
        let message = format!("annotation {key} is ignored: {cause}");
        self.plan
            .events
            .push(Event::warning("InvalidAnnotation", message));
    }

    fn definition(
        &self,
        selection: &Selection,
        ifname: &InterfaceName,
    ) -> Result<&'a Network, PlanError> {
        self.inputs
            .catalog
            .selected(&selection.network)
            .map_err(|cause| {
                Reason::Network(format!("{cause}; create it or correct the annotation"))
                    .at(&selection.network.to_string(), Some(ifname.as_str()))
            })
    }

    fn attachment(
        &self,
        network: &Network,
        ifname: InterfaceName,
        selection: Option<&Selection>,
        is_cluster: bool,
    ) -> Result<Attachment, PlanError> {
        let blame = |reason: Reason| reason.at(&network.place(), Some(ifname.as_str()));
        let (name, config) = read(network).map_err(blame)?;
        let label = network
            .object
            .as_ref()
            .map_or_else(|| name.to_string(), ToString::to_string);
        let mut attachment = Attachment {
            label,
            is_cluster,
            ifname: ifname.clone(),
            network: name,
            config,
            capability_args: CapabilityArgs::default(),
            cni_args: None,
            extra_args: Vec::new(),
            inject: Vec::new(),
            resource: network.resource.clone(),
            device: None,
            device_info_file: None,
            requested: Requested::default(),
            default_route: None,
            is_auxiliary: false,
        };
        if let Some(selection) = selection {
            let rules = capabilities::Rules {
                node: self.inputs.node,
                answer: self.inputs.answer,
            };
            rules
                .apply(selection, &mut attachment)
                .map_err(|reason| attachment.problem(reason))?;
        }
        Ok(attachment)
    }

    /// Isolation comes before anything is read, so that no message tells a pod what is in a
    /// namespace that it may not use.
    fn isolate(&self, selection: &Selection, ifname: &InterfaceName) -> Result<(), PlanError> {
        let Some(pod) = self.inputs.pod else {
            return Ok(());
        };
        restrictions::isolation(self.inputs.node, &pod.namespace, &selection.network)
            .map_err(|reason| reason.at(&selection.network.to_string(), Some(ifname.as_str())))
    }

    fn restrict(&self, attachment: &Attachment, selection: &Selection) -> Result<(), PlanError> {
        let Some(pod) = self.inputs.pod else {
            return Ok(());
        };
        restrictions::check(
            self.inputs.node,
            &pod.namespace,
            &selection.network,
            &attachment.config,
            selection.cni_args.as_ref(),
        )
        .map_err(|reason| attachment.problem(reason))
    }

    /// `net1`, `net2`, … by position (NPWG 1.3 §4.2.1).
    fn next_ifname(&self) -> InterfaceName {
        InterfaceName::numbered("net", self.position)
    }

    fn check_interface_names(&mut self) {
        let attachments = &self.plan.attachments;
        for (index, attachment) in attachments.iter().enumerate() {
            let earlier = attachments.iter().take(index);
            if let Some(other) = earlier
                .into_iter()
                .find(|other| other.ifname == attachment.ifname)
            {
                let text = format!(
                    "{} is already used by network {}",
                    attachment.ifname, other.label
                );
                self.plan
                    .problems
                    .push(attachment.problem(Reason::Interface(text)));
            }
        }
    }
}

/// A network's name and its configuration.
///
/// # Errors
/// [`Reason::Network`] when the configuration is invalid, or has no name and no definition that
/// lends it one.
pub fn read(network: &Network) -> Result<(NetworkName, NetworkConfig), Reason> {
    let config = parse(network)?;
    let name = name(network, &config)?;
    Ok((name, config))
}

fn parse(network: &Network) -> Result<NetworkConfig, Reason> {
    NetworkConfig::parse(network.text.as_bytes()).map_err(|cause| {
        let remedy = "; correct the configuration there";
        Reason::Network(format!("{}: {cause}{remedy}", network.origin))
    })
}

/// The configuration's own name, else the definition's (NPWG 1.3 §3.4.2, §3.4.3).
fn name(network: &Network, config: &NetworkConfig) -> Result<NetworkName, Reason> {
    match (config.name(), &network.object) {
        (Some(name), _) => Ok(name.clone()),
        (None, Some(object)) => object
            .name()
            .parse()
            .map_err(|cause| Reason::Network(format!("{}: {cause}", network.origin))),
        (None, None) => Err(Reason::Network(format!(
            "{} has no name; add the key name",
            network.origin
        ))),
    }
}

#[cfg(test)]
mod tests;
