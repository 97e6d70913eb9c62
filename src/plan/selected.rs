//! What the pod itself selects by annotation: read, looked up, and allowed.

use super::planner::{Planner, not_found};
use super::problem::NamedIn;
use super::{Attachment, Inputs, PlanError, Reason, restrictions};
use crate::cluster::{Event, Network};
use crate::cni::InterfaceName;
use crate::cni::json::excerpt;
use crate::npwg::{DEFAULT_NETWORK_ANNOTATION, NETWORKS_ANNOTATION, Selection, SelectionError};

impl<'a> Planner<'a> {
    /// Multus' annotation: one network instead of the cluster network, under the same isolation
    /// and policy as any other that a pod names. The definitions of `multusNamespace` are there for it.
    pub(super) fn replaced_cluster_network(
        &self,
        selection: &Selection,
    ) -> Result<Attachment, PlanError> {
        let ifname = self.inputs.ifname.clone();
        if selection.network.namespace() != self.inputs.config.multus_namespace {
            self.isolate(selection, &ifname)?;
        }
        let network = self.definition(selection, &ifname)?;
        let attachment = self.attachment(network, ifname, Some(selection), true)?;
        self.restrict(&attachment, selection)?;
        Ok(attachment)
    }

    /// What the annotation does that its author may not expect.
    pub(super) fn remark_on(&mut self, selection: &Selection) {
        let Inputs {
            config,
            annotations,
            ifname,
            ..
        } = &self.inputs;
        let text = annotations.default_network.as_deref().unwrap_or_default();
        let network = &selection.network;
        let mut remarks = vec![format!(
            "annotation {DEFAULT_NETWORK_ANNOTATION}: {network} is attached instead of clusterNetwork {}",
            config.cluster_network.label()
        )];
        if !text.contains(network.namespace()) {
            remarks.push(format!(
                "annotation {DEFAULT_NETWORK_ANNOTATION}: {} has no namespace, so it is looked up in \
                 multusNamespace {}, not in the pod's",
                network.name(),
                config.multus_namespace
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

    pub(super) fn default_network_annotation(&mut self) -> Option<Selection> {
        let text = self.inputs.annotations.default_network.as_ref()?;
        let config = self.inputs.config;
        match Selection::parse_default_network(text, &config.multus_namespace, config.dialect) {
            Ok(selection) => Some(selection),
            Err(error) => {
                self.invalid(DEFAULT_NETWORK_ANNOTATION, error);
                None
            }
        }
    }

    /// What the pod asks for; nothing where its annotation is invalid. It is read before the
    /// administrator's networks get their names, which make way for those that a pod asks for.
    pub(super) fn selections(&mut self) -> Vec<Selection> {
        let (Some(pod), Some(text)) = (self.inputs.pod, &self.inputs.annotations.networks) else {
            return Vec::new();
        };
        let selections = Selection::parse_list(text, &pod.namespace, self.inputs.config.dialect);
        let selections = selections.and_then(|selections| {
            let is_routed = |attachment: &Attachment| attachment.default_route.is_some();
            let routed = selections.iter().position(|it| it.default_route.is_some());
            match routed.filter(|_| self.plan.attachments.iter().any(is_routed)) {
                Some(index) => Err(SelectionError::DefaultRouteOfBoth(index + 1)),
                None => Ok(selections),
            }
        });
        let selections = match selections {
            Ok(selections) => selections,
            Err(error) => {
                self.invalid(NETWORKS_ANNOTATION, error);
                return Vec::new();
            }
        };
        let before = self.inputs.catalog.further.len() + self.defaults().len();
        self.last = self.position + before + selections.len();
        let interfaces = selections.iter().map(|it| it.interface.clone());
        self.requested = interfaces.flatten().collect();
        selections
    }

    pub(super) fn selected_networks(&mut self, selections: &[Selection]) {
        for selection in selections {
            self.plan.events.extend(unknown_keys(selection));
            let attachment = self.selected(selection);
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
    fn invalid(&mut self, key: &'static str, error: SelectionError) {
        let message = format!("annotation {key} is ignored: {error}");
        let problem = PlanError {
            place: None,
            reason: Box::new(Reason::Annotation { key, error }),
        };
        if self.inputs.config.fail_invalid_annotation {
            return self.plan.problems.push(problem);
        }
        self.plan.ignored.push(problem);
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
            .map_err(|report| {
                not_found(&report, NamedIn::Annotation)
                    .at(&selection.network.to_string(), Some(ifname.as_str()))
            })
    }

    /// Isolation comes before anything is read, so that no message tells a pod what is in a
    /// namespace that it may not use.
    fn isolate(&self, selection: &Selection, ifname: &InterfaceName) -> Result<(), PlanError> {
        let Some(pod) = self.inputs.pod else {
            return Ok(());
        };
        restrictions::isolation(self.inputs.config, &pod.namespace, &selection.network).map_err(
            |restriction| {
                Reason::from(restriction).at(&selection.network.to_string(), Some(ifname.as_str()))
            },
        )
    }

    fn restrict(&self, attachment: &Attachment, selection: &Selection) -> Result<(), PlanError> {
        let Some(pod) = self.inputs.pod else {
            return Ok(());
        };
        let (config, namespace) = (self.inputs.config, &pod.namespace);
        restrictions::check(
            config,
            namespace,
            &selection.network,
            &attachment.config,
            attachment.cni_args.as_ref(),
        )
        .and_then(|()| {
            let mut cluster = self.plan.attachments.iter().filter(|it| it.is_cluster);
            cluster.try_for_each(|it| restrictions::check_name(config, namespace, it, attachment))
        })
        .map_err(|restriction| attachment.problem(restriction.into()))
    }
}

/// How many unknown keys an event names.
const NAMED_KEYS: usize = 5;

/// One event about all keys of a network that are unknown: there may be thousands.
fn unknown_keys(selection: &Selection) -> Option<Event> {
    let keys = &selection.unknown_keys;
    let named = keys.iter().take(NAMED_KEYS);
    let named: Vec<String> = named.map(|key| format!("{:?}", excerpt(key))).collect();
    let list = named.join(", ");
    let list = match keys.len() {
        0 => return None,
        1 => format!("key {list} is"),
        all if all > NAMED_KEYS => format!("keys {list} and {} more are", all - NAMED_KEYS),
        _ => format!("keys {list} are"),
    };
    let network = &selection.network;
    let message =
        format!("annotation {NETWORKS_ANNOTATION}: network {network}: {list} unknown and ignored");
    Some(Event::warning("UnknownKey", message))
}
