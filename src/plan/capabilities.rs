//! Passes a pod's requests to the plugins: by capability, by `args` or by CNI_ARGS (NPWG 1.3 §4.1.2.1).

use serde_json::value::{RawValue, to_raw_value};

use super::problem::ConfigurationProblem;
use super::{Attachment, Reason};
use crate::cluster::Answer;
use crate::cni::RawObject;
use crate::npwg::selection::MAX_IPS;
use crate::npwg::{Dialect, RequestedIp, Selection};
use crate::request::{NodeConfig, Undeclared};

/// The rules of one ADD.
pub(super) struct Rules<'a> {
    pub(super) config: &'a NodeConfig,
    pub(super) answer: &'a Answer,
}

impl Rules<'_> {
    /// Puts the requests of `selection` into `attachment`.
    pub(super) fn apply(
        &self,
        selection: &Selection,
        attachment: &mut Attachment,
    ) -> Result<(), Reason> {
        attachment
            .default_route
            .clone_from(&selection.default_route);
        attachment.cni_args.clone_from(&selection.cni_args);
        attachment.requested.ips = self.addresses(selection, attachment)?;
        attachment.requested.mac = selection.mac;
        attachment.requested.guid = selection.infiniband_guid;
        attachment.requested.device.clone_from(&selection.device_id);
        let requests = selection
            .capability_args()
            .map_err(ConfigurationProblem::CapabilityArgs)?;
        for (capability, value) in requests.iter() {
            match declared_key(capability) {
                Some(key) => self.pass(key, capability, value, attachment)?,
                None => attachment.capability_args.set(capability, value.to_owned()),
            }
        }
        if selection.ips.is_empty() && !attachment.requested.ips.is_empty() {
            let ips: Vec<String> = attachment
                .requested
                .ips
                .iter()
                .map(ToString::to_string)
                .collect();
            attachment.capability_args.set("ips", raw(&ips));
        }
        check_args(attachment).map_err(Reason::from)
    }

    /// The addresses that the pod requests: those of the annotation, or those of the claim if a plugin
    /// declares the capability (NPWG 1.3 §4.1.2.1.11: others ignore the claim).
    fn addresses(
        &self,
        selection: &Selection,
        attachment: &Attachment,
    ) -> Result<Vec<RequestedIp>, Reason> {
        let Some(claim) = &selection.ipam_claim else {
            return Ok(selection.ips.clone());
        };
        if !selection.ips.is_empty() {
            return Err(Reason::TwoAddressSources(claim.clone()));
        }
        if !attachment.config.declares("ips") {
            return Ok(Vec::new());
        }
        match self.answer.claim(claim) {
            Some(Ok(claim)) if claim.ips.len() > MAX_IPS => {
                Err(ConfigurationProblem::ClaimTooLarge {
                    claim: claim.object.clone(),
                    count: claim.ips.len(),
                })
            }
            Some(Ok(claim)) => Ok(claim.ips.clone()),
            Some(Err(report)) => Err(ConfigurationProblem::ClaimNotFound {
                report: report.clone(),
            }),
            None => Err(ConfigurationProblem::ClaimNotLookedUp(claim.clone())),
        }
        .map_err(Reason::from)
    }

    /// Passes one request to the plugins that declare its capability, or as `undeclared` requires.
    fn pass(
        &self,
        key: &'static str,
        capability: &str,
        value: &RawValue,
        attachment: &mut Attachment,
    ) -> Result<(), Reason> {
        let is_address = matches!(key, "ips" | "mac");
        if is_address && self.config.dialect == Dialect::V1_0 {
            into_cni_args(key, value, attachment);
            into_variable(key, attachment);
            return Ok(());
        }
        // As Multus does, even beside the capability: some plugins read nothing else.
        let by_variables = self.config.undeclared == Undeclared::Args;
        let is_declared = attachment.config.declares(capability);
        if is_address && (by_variables || attachment.is_cluster && !is_declared) {
            into_variable(key, attachment);
        } else if !is_declared {
            return Err(undeclared(key, attachment));
        }
        if is_declared {
            attachment.capability_args.set(capability, value.to_owned());
        }
        Ok(())
    }
}

/// The reason against a request whose capability no plugin declares.
fn undeclared(key: &'static str, attachment: &Attachment) -> Reason {
    let plugins = attachment.config.plugins().iter();
    let capability = match key {
        "infiniband-guid" => "infinibandGUID",
        key => key,
    };
    Reason::Undeclared {
        key,
        capability,
        plugins: plugins.map(|plugin| plugin.plugin_type().clone()).collect(),
    }
}

/// The annotation's key for a capability that a plugin must declare.
fn declared_key(capability: &str) -> Option<&'static str> {
    match capability {
        "ips" => Some("ips"),
        "mac" => Some("mac"),
        "portMappings" => Some("portMappings"),
        "bandwidth" => Some("bandwidth"),
        "infinibandGUID" => Some("infiniband-guid"),
        _ => None,
    }
}

/// Adds `IP=` or `MAC=` to CNI_ARGS.
fn into_variable(key: &str, attachment: &mut Attachment) {
    let requested = &attachment.requested;
    let (variable, text) = match key {
        "ips" => {
            let ips: Vec<String> = requested.ips.iter().map(ToString::to_string).collect();
            ("IP", ips.join(","))
        }
        _ => {
            let mac = requested.mac.as_ref().map(ToString::to_string);
            ("MAC", mac.unwrap_or_default())
        }
    };
    attachment.extra_args.push((variable.to_owned(), text));
}

/// Adds a key to `args.cni` (NPWG 1.0 §4.1.2.1.3.2), unless the pod's own `cni-args` have it.
fn into_cni_args(key: &str, value: &RawValue, attachment: &mut Attachment) {
    let args = attachment.cni_args.get_or_insert_with(RawObject::default);
    if args.get(key).is_none() {
        args.set(key, value.to_owned());
    }
}

/// Checks that every plugin's own `args` leave room for the pod's.
fn check_args(attachment: &Attachment) -> Result<(), ConfigurationProblem> {
    let Some(pods) = &attachment.cni_args else {
        return Ok(());
    };
    for plugin in attachment.config.plugins() {
        plugin
            .check_args(pods)
            .map_err(|error| ConfigurationProblem::Args {
                plugin: plugin.plugin_type().clone(),
                error,
            })?;
    }
    Ok(())
}

pub(super) fn raw<T: serde::Serialize + ?Sized>(value: &T) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
