//! Passes a pod's requests to the plugins: as capability arguments, in `args.cni`, or in CNI_ARGS
//! (NPWG 1.3 §4.1.2.1).

use serde_json::value::RawValue;

use super::problem::ConfigurationProblem;
use super::{Attachment, Planner, Reason, Requested};
use crate::cni::RawObject;
use crate::cni::json::raw;
use crate::npwg::selection::MAX_IPS;
use crate::npwg::{Dialect, RequestedIp, Selection};
use crate::request::Undeclared;

impl Planner<'_> {
    /// Puts the requests of `selection` into `attachment`.
    pub(super) fn pass_requests(
        &self,
        selection: &Selection,
        attachment: &mut Attachment,
    ) -> Result<(), Reason> {
        attachment.default_route = selection.default_route.clone();
        attachment.cni_args = selection.cni_args.clone();
        attachment.requested = Requested {
            ips: self.addresses(selection, attachment)?,
            mac: selection.mac,
            guid: selection.infiniband_guid,
            device: selection.device_id.clone(),
        };
        for (capability, value) in selection.capability_args().iter() {
            self.pass(capability, value, attachment)?;
        }
        let ips = &attachment.requested.ips;
        if selection.ips.is_empty() && !ips.is_empty() {
            attachment.capability_args.set("ips", raw(ips));
        }
        check_args(attachment)
    }

    /// Returns the addresses that the pod requests in `ips` or by an IPAMClaim. Ignores the claim
    /// if no plugin declares the capability `ips` (NPWG 1.3 §4.1.2.1.11).
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
        let problem = match self.inputs.answer.claim(claim) {
            Some(Ok(claim)) if claim.ips.len() <= MAX_IPS => return Ok(claim.ips.clone()),
            Some(Ok(claim)) => ConfigurationProblem::ClaimTooLarge {
                claim: claim.object.clone(),
                count: claim.ips.len(),
            },
            Some(Err(report)) => ConfigurationProblem::ClaimNotFound(report.clone()),
            None => ConfigurationProblem::ClaimNotLookedUp(claim.clone()),
        };
        Err(problem.into())
    }

    /// Passes one request to the plugins that declare its capability. If no plugin declares the
    /// capability, the request is an error. In three cases, addresses (`ips` and `mac`) follow
    /// other rules:
    ///
    /// - With `npwgVersion: 1.0`, addresses go into `args.cni` and CNI_ARGS, and nowhere else.
    /// - With `undeclared: args`, addresses go into CNI_ARGS, and also to plugins that declare the
    ///   capability.
    /// - For the cluster network, addresses go into CNI_ARGS if no plugin declares the capability.
    fn pass(
        &self,
        capability: &str,
        value: &RawValue,
        attachment: &mut Attachment,
    ) -> Result<(), Reason> {
        let config = self.inputs.config;
        let is_address = matches!(capability, "ips" | "mac");
        if is_address && config.dialect == Dialect::V1_0 {
            into_cni_args(capability, value, attachment);
            into_variable(capability, attachment);
            return Ok(());
        }
        // Some plugins declare the capability but read only CNI_ARGS. So `undeclared: args` sets
        // `IP` or `MAC` in CNI_ARGS for every plugin, as Multus does.
        let by_variables = config.undeclared == Undeclared::Args;
        let is_declared = attachment.config.declares(capability);
        if is_address && (by_variables || attachment.is_cluster && !is_declared) {
            into_variable(capability, attachment);
        } else if !is_declared {
            let plugins = attachment.config.plugins().iter();
            return Err(Reason::Undeclared {
                capability: capability.to_owned(),
                plugins: plugins.map(|plugin| plugin.plugin_type().clone()).collect(),
            });
        }
        if is_declared {
            attachment.capability_args.set(capability, value.to_owned());
        }
        Ok(())
    }
}

/// Adds `IP=` or `MAC=` to CNI_ARGS.
fn into_variable(capability: &str, attachment: &mut Attachment) {
    let requested = &attachment.requested;
    let ips: Vec<String> = requested.ips.iter().map(ToString::to_string).collect();
    let mac = requested.mac.map(|mac| mac.to_string());
    let (variable, text) = match capability {
        "ips" => ("IP", ips.join(",")),
        _ => ("MAC", mac.unwrap_or_default()),
    };
    attachment.extra_args.push((variable.to_owned(), text));
}

/// Adds a key to the arguments that the plugins get in `args.cni` (NPWG 1.0 §4.1.2.1.3.2). If the
/// pod's annotation already sets the key in `cni-args`, keeps the pod's value.
fn into_cni_args(key: &str, value: &RawValue, attachment: &mut Attachment) {
    let args = attachment.cni_args.get_or_insert_with(RawObject::default);
    if args.get(key).is_none() {
        args.set(key, value.to_owned());
    }
}

/// Checks that the pod's `cni-args` can be merged into the `args` of every plugin.
fn check_args(attachment: &Attachment) -> Result<(), Reason> {
    let Some(pods) = &attachment.cni_args else {
        return Ok(());
    };
    for plugin in attachment.config.plugins() {
        let checked = plugin.check_args(pods);
        checked.map_err(|error| ConfigurationProblem::Args {
            plugin: plugin.plugin_type().clone(),
            error,
        })?;
    }
    Ok(())
}
