//! Plans the networks that the pod selects by annotation.

use super::planner::{Planner, not_found};
use super::problem::NamedIn;
use super::{Attachment, Inputs, PlanError, PlanRemark, PlanWarning, Reason, restrictions};
use crate::bounded::NAMED;
use crate::cluster::Network;
use crate::cni::InterfaceName;
use crate::cni::json::excerpt;
use crate::npwg::{DEFAULT_NETWORK_ANNOTATION, NETWORKS_ANNOTATION, Selection, SelectionError};

impl<'a> Planner<'a> {
    /// Multus' annotation: one network instead of the cluster network. Isolation and policy apply as to
    /// any other network that a pod names, except that isolation allows definitions of
    /// `multusNamespace`, which exist for this annotation.
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

    /// Remarks on what the annotation's author may not expect.
    pub(super) fn remark_on(&mut self, selection: &Selection) {
        let Inputs {
            config,
            annotations,
            ifname,
            ..
        } = &self.inputs;
        let text = annotations.default_network.as_deref().unwrap_or_default();
        let network = &selection.network;
        let mut remarks = vec![PlanRemark::Replaced {
            network: network.clone(),
            cluster: config.cluster_network.label().to_owned(),
        }];
        if !text.contains(network.namespace()) {
            remarks.push(PlanRemark::MultusNamespace(network.clone()));
        }
        if let Some(interface) = &selection.interface {
            remarks.push(PlanRemark::InterfaceIgnored {
                interface: interface.to_string(),
                ifname: ifname.to_string(),
            });
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

    /// The pod's selections; none if its annotation is invalid. They are read before the administrator's
    /// networks get their interface names, since those give way to the names that a pod requests.
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
            self.plan.warnings.extend(unknown_keys(selection));
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

    /// Ignores an invalid annotation with a warning (NPWG 1.3 §4.1.2.1), unless
    /// `invalidAnnotation` is `fail`.
    fn invalid(&mut self, key: &'static str, error: SelectionError) {
        let warning = PlanWarning::IgnoredAnnotation { key, error };
        if self.inputs.config.fail_invalid_annotation {
            self.plan.problems.extend(warning.ignored());
        } else {
            self.plan.warnings.push(warning);
        }
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

    /// Checks isolation before the definition is looked up, so that no message shows a pod what a
    /// namespace contains that it may not use.
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

/// One warning about all unknown keys of a network, since there may be thousands.
fn unknown_keys(selection: &Selection) -> Option<PlanWarning> {
    let keys = &selection.unknown_keys;
    (!keys.is_empty()).then(|| PlanWarning::UnknownKeys {
        network: selection.network.clone(),
        keys: keys
            .iter()
            .take(NAMED)
            .map(|key| excerpt(key).into_owned())
            .collect(),
        others: keys.len().saturating_sub(NAMED),
    })
}
