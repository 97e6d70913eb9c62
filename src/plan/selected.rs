//! Plans the networks that the pod selects by annotation.

use super::planner::Planner;
use super::problem::NamedIn;
use super::{Attachment, PlanError, PlanRemark, PlanWarning, Reason, restrictions};
use crate::cni::InterfaceName;
use crate::npwg::{DEFAULT_NETWORK_ANNOTATION, NETWORKS_ANNOTATION, Selection, SelectionError};

impl Planner<'_> {
    /// Adds remarks about effects that the author of the default-network annotation may not expect.
    pub(super) fn remark_on(&mut self, selection: &Selection) {
        let inputs = &self.inputs;
        let text = inputs.annotations.default_network.as_deref();
        let network = &selection.network;
        let remarks = &mut self.plan.remarks;
        remarks.push(PlanRemark::Replaced {
            network: network.clone(),
            cluster: inputs.config.cluster_network.label().to_owned(),
        });
        if !text.is_some_and(|text| text.contains(network.namespace())) {
            remarks.push(PlanRemark::MultusNamespace(network.clone()));
        }
        if let Some(interface) = &selection.interface {
            remarks.push(PlanRemark::InterfaceIgnored {
                interface: interface.clone(),
                ifname: inputs.ifname.clone(),
            });
        }
    }

    pub(super) fn default_network_annotation(&mut self) -> Option<Selection> {
        let text = self.inputs.annotations.default_network.as_ref()?;
        let config = self.inputs.config;
        let selection =
            Selection::parse_default_network(text, &config.multus_namespace, config.dialect);
        let invalid = |error| self.invalid(DEFAULT_NETWORK_ANNOTATION, error);
        selection.map_err(invalid).ok()
    }

    /// Reads the pod's selections. Returns an empty list if the pod is unknown, or if the
    /// annotation is missing or invalid. The planner reads the selections before it generates
    /// interface names, so that it can avoid the names in the annotation.
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
        let invalid = |error| self.invalid(NETWORKS_ANNOTATION, error);
        let Ok(selections) = selections.map_err(invalid) else {
            return Vec::new();
        };
        let before = self.inputs.catalog.further.len() + self.defaults().len();
        self.last = self.position + before + selections.len();
        let interfaces = selections.iter().map(|it| it.interface.clone());
        self.requested = interfaces.flatten().collect();
        selections
    }

    pub(super) fn selected_network(&mut self, selection: &Selection) {
        if !selection.unknown_keys.is_empty() {
            self.plan.warnings.push(PlanWarning::UnknownKeys {
                network: selection.network.clone(),
                keys: selection.unknown_keys.clone(),
            });
        }
        let own_name = selection.interface.clone();
        let ifname = own_name.unwrap_or_else(|| self.next_ifname());
        let attachment = self.selected(selection, ifname, false);
        self.take(attachment);
    }

    /// Plans a network that the pod selects.
    ///
    /// Isolation and policy also apply to Multus' default-network annotation, which replaces the
    /// cluster network. The only exception: for this annotation, isolation allows the definitions
    /// of `multusNamespace`.
    ///
    /// The planner checks isolation before it looks up the definition. Otherwise a message could
    /// reveal the contents of a namespace that the pod may not use.
    pub(super) fn selected(
        &self,
        selection: &Selection,
        ifname: InterfaceName,
        is_cluster: bool,
    ) -> Result<Attachment, PlanError> {
        let config = self.inputs.config;
        let object = &selection.network;
        let blame = |reason: Reason| reason.at(&object.to_string(), Some(ifname.as_str()));
        let is_exempt = is_cluster && object.namespace() == config.multus_namespace;
        if let Some(pod) = self.inputs.pod.filter(|_| !is_exempt) {
            restrictions::isolation(config, &pod.namespace, object)
                .map_err(|restriction| blame(restriction.into()))?;
        }
        let found = self.inputs.catalog.selected(object);
        let network =
            found.map_err(|error| blame(Reason::not_found(&error, NamedIn::Annotation)))?;
        let attachment = self.attachment(network, ifname.clone(), Some(selection), is_cluster)?;
        if let Some(pod) = self.inputs.pod {
            let (network, args) = (&attachment.config, attachment.cni_args.as_ref());
            let mut cluster = self.plan.attachments.iter().filter(|it| it.is_cluster);
            let mut check_name =
                |it| restrictions::check_name(config, &pod.namespace, it, &attachment);
            restrictions::check(config, &pod.namespace, object, network, args)
                .and_then(|()| cluster.try_for_each(&mut check_name))
                .map_err(|restriction| blame(restriction.into()))?;
        }
        Ok(attachment)
    }

    /// Adds a warning that an invalid annotation is ignored (NPWG 1.3 §4.1.2.1). If
    /// `invalidAnnotation` is `fail`, adds a problem instead.
    fn invalid(&mut self, key: &'static str, error: SelectionError) {
        let warning = PlanWarning::IgnoredAnnotation { key, error };
        if self.inputs.config.fail_invalid_annotation {
            self.plan.problems.extend(warning.ignored());
        } else {
            self.plan.warnings.push(warning);
        }
    }
}
