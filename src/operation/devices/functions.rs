//! Compares the settings of VFs with the settings that definitions and pods request. The physical
//! functions report the actual settings. [`prove`] asks each physical function only once. ADD and a
//! change of a running pod call [`prove`] after they have attached the last network. CHECK calls
//! [`prove`] after it has verified the attachments.

use device_info::PciAddress;

use super::hardware::Hardware;
use crate::cluster::Event;
use crate::diagnostic::SharedError;
use crate::operation::proof::tolerated;
use crate::operation::{Context, Failure};
use crate::plan::Attachment;
use crate::request::Strictness;
use crate::verify::{Finding, HiddenFunction, IntendedFunction, Mismatch, Weight};

/// Compares the settings that `attachments` request for their VFs with the settings that the
/// physical functions report. Asks physical functions only if an attachment requests such settings.
/// If the key `verify` of the node configuration is `off`, checks nothing. With `warn`, returns the
/// findings as warnings. With `strict`, a finding is an error, but a physical function that does
/// not report a VF causes only a warning.
///
/// # Errors
/// - [`Failure::Verification`] for the first attachment with findings that the key `verify` does
///   not allow.
/// - [`Failure::Kernel`] if the links of the host cannot be read.
pub(in crate::operation) fn prove<'a>(
    context: &Context<'_>,
    attachments: impl Iterator<Item = &'a Attachment>,
) -> Result<Vec<Event>, Failure> {
    let config = &context.request.config;
    if config.verify == Strictness::Off {
        return Ok(Vec::new());
    }
    let hardware = Hardware::of(config);
    let set: Vec<(&Attachment, PciAddress, IntendedFunction)> = attachments
        .filter_map(|attachment| {
            let address = attachment.pci()?;
            let set = IntendedFunction::of(&attachment.config, &attachment.requested);
            let is_set = !set.is_empty() && hardware.is_virtual_function(address);
            is_set.then_some((attachment, address, set))
        })
        .collect();
    if set.is_empty() {
        return Ok(Vec::new());
    }
    let addresses: Vec<PciAddress> = set.iter().map(|(_, address, _)| *address).collect();
    let states = hardware.states(&addresses, (context.host.devices)(None)?.as_mut())?;
    let mut warnings = Vec::new();
    for (attachment, address, set) in set {
        let device = address.to_string();
        let (mismatches, weight) = match states.of(address).and_then(|state| state.function) {
            Some(function) => (set.judge(&device, &function), Weight::Requested),
            None => {
                let error = states.error_of(address).cloned().map(SharedError::new);
                let reason = error.map_or(HiddenFunction::NotReported, HiddenFunction::Unreadable);
                let hidden = Mismatch::HiddenFunction { device, reason };
                (vec![hidden], Weight::Warning)
            }
        };
        let findings = mismatches.into_iter();
        let findings = findings.map(|it| Finding::new(&attachment.ifname, it, weight));
        let strictness = config.verify;
        let allowed = tolerated(attachment, findings.collect(), strictness, strictness)?;
        warnings.extend(allowed);
    }
    Ok(warnings)
}
