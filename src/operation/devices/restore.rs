//! After the plugins have detached devices, restores the devices to their state before ADD.
//!
//! Jackfield restores a device only if the node has not rebooted since ADD and the device is still
//! reserved for the sandbox. Without these two conditions, a late DEL could change a device that
//! another pod uses.
//!
//! A repair restores one value of a device, for example the MTU of its interface. If a failed
//! repair may succeed later, the repair is owed: DEL fails, and a retry repeats the repair. If the
//! kernel refuses a repair for good, or if a driver undoes it, DEL succeeds, so that the pod can be
//! deleted. The journal then records the device as unrestored. Before a delegate attaches the
//! device again, Jackfield retries the repair.

mod address;
mod again;
mod home;
mod left;
mod rebind;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use device_info::PciAddress;

use super::hardware::{FunctionError, Hardware, States};
use crate::baseline::{Comparison, DeviceState, Repair, Replacement, compare};
use crate::boot::boot_id;
use crate::clock;
use crate::journal::{Exclusive, Header, Sandbox, Unrestored};
use crate::kernel::{DeviceLinks, KernelError, LinkChange};
use crate::operation::{Context, Failure, Note};
use crate::plan::Attachment;
use crate::verify::sriov_plugins;
use left::{Left, Refused, forgive, open};

/// The maximum number of rounds of repairs. A round tries each remaining repair once. Rounds in
/// which every repair fails do not count. One round is not always enough, because some drivers
/// change another setting during a repair. For example, when Jackfield restores the MAC of a VF's
/// interface, igb also changes the MAC that is set for the VF on the physical function.
const ROUNDS: usize = 4;
/// How long to wait for a busy device, or for an interface that the kernel is still moving back
/// from a deleted namespace.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Reads the state of the devices of `attachments` before any delegate runs. The record of the
/// sandbox keeps this state, the baseline, so that DEL can restore it. For a device that the
/// journal lists as unrestored, retries the repairs and returns the original state from the
/// journal, not the current state. So the baseline contains no leftovers of the previous pod.
///
/// # Errors
/// - Code 104 if the plugins cannot attach a device, for example because its interface is in
///   another network namespace ([`Hardware::are_at_home`]).
/// - Code 104 if a device still has the MAC, GUID or VLAN of its previous pod, and neither the new
///   pod's request nor the network's definition replaces this value ([`again::settle`]).
/// - If the kernel does not answer, or if the journal cannot be written.
pub(in crate::operation) fn baseline(
    context: &Context<'_>,
    header: &Header,
    attachments: &[Attachment],
) -> Result<Vec<DeviceState>, Failure> {
    let addresses: Vec<PciAddress> = attachments.iter().filter_map(Attachment::pci).collect();
    let mut configs = attachments.iter().map(|it| &it.config);
    if addresses.is_empty() && configs.all(|config| sriov_plugins(config).next().is_none()) {
        return Ok(Vec::new());
    }
    let hardware = Hardware::of(&context.request.config);
    let mut states = States::default();
    if !addresses.is_empty() {
        states = hardware.states(&addresses, (context.host.devices)(None)?.as_mut())?;
        again::settle(context, header, &mut states.devices)?;
    }
    for error in states.unreadable.values() {
        context.note(Note::UnknownFunction(Arc::clone(error)));
    }
    hardware.are_at_home(attachments, &states)?;
    Ok(states.devices)
}

/// Restores the device of every attachment that is detached or was never started. `detached` lists
/// the attachments that this call has detached, because `sandbox` does not show them as detached
/// yet. Returns the failures that a retry may resolve.
pub(in crate::operation) fn restore(
    context: &Context<'_>,
    sandbox: &Sandbox,
    detached: &[usize],
) -> Vec<Failure> {
    let header = &sandbox.header;
    if sandbox.baseline.is_empty() || header.boot != boot_id() {
        return Vec::new();
    }
    let is_free = |index: usize| {
        let progress = sandbox.progress.get(index);
        detached.contains(&index) || progress.is_none_or(|progress| !progress.may_be_attached())
    };
    let (key, journal) = (header.key(), &context.host.journal);
    let free = header.attachments.iter().enumerate();
    let free = free.filter(|(index, _)| is_free(*index));
    let free: Vec<PciAddress> = free.filter_map(|(_, it)| it.pci()).collect();
    let mut before = Vec::new();
    let baseline = sandbox.baseline.iter();
    for state in baseline.filter(|it| free.contains(&it.device)) {
        match journal.has(&key, &Exclusive::Device(state.device)) {
            Ok(true) => before.push(state),
            Ok(false) => {}
            // Report this failure. If `restore` ignored the failure, the DEL would succeed and the
            // device's baseline would be lost with the record.
            Err(cause) => return vec![cause.into()],
        }
    }
    if before.is_empty() {
        return Vec::new();
    }
    match Restoring::new(context, header, before.clone()).run() {
        Ok(left) => keep(context, header, &before, left),
        Err(cause) => vec![cause.into()],
    }
}

/// Records a device of `before` as unrestored if one of its repairs has failed for good. Also
/// records a device whose driver has changed, if Jackfield does not restore the driver. Removes the
/// remaining devices of `before` from the journal's list of unrestored devices. Returns the
/// failures that a retry may resolve.
fn keep(
    context: &Context<'_>,
    header: &Header,
    before: &[&DeviceState],
    mut left: Left<'_>,
) -> Vec<Failure> {
    let journal = &context.host.journal;
    let mut owed = std::mem::take(&mut left.owed);
    for &device in before {
        let causes = left.note_causes(context, device);
        if causes.is_empty() {
            journal.forget_unrestored(device.device);
            continue;
        }
        let kept = Unrestored::new(device.clone(), header.pod.clone(), causes);
        if let Err(cause) = journal.keep_unrestored(&kept) {
            owed.push(cause.into());
        }
    }
    owed
}

struct Restoring<'a> {
    context: &'a Context<'a>,
    hardware: Hardware<'a>,
    header: &'a Header,
    before: Vec<&'a DeviceState>,
}

impl<'a> Restoring<'a> {
    fn new(context: &'a Context<'a>, header: &'a Header, before: Vec<&'a DeviceState>) -> Self {
        Restoring {
            context,
            hardware: Hardware::of(&context.request.config),
            header,
            before,
        }
    }

    fn run(self) -> Result<Left<'a>, KernelError> {
        let mut links = (self.context.host.devices)(None)?;
        let owed = self.bring_home();
        let until = self.context.deadline.min(clock::now() + PATIENCE);
        // The kernel may still be moving the interfaces back from deleted namespaces.
        while clock::now() < until && self.before.iter().any(|it| self.hardware.is_away(it)) {
            clock::sleep(PAUSE);
        }
        let addresses: Vec<PciAddress> = self.before.iter().map(|it| it.device).collect();
        let mut now = self.hardware.states(&addresses, links.as_mut())?;
        let mut refused: Vec<Refused<'a>> = Vec::new();
        let mut rounds = 0;
        loop {
            let compared = self.compare(&now);
            let open = open(&compared, &refused);
            let may_wait = rounds < ROUNDS && clock::now() < until;
            if open.is_empty() && may_wait && forgive(&mut refused) {
                // The device may be busy for a moment, for example after a reset by its driver.
                clock::sleep(PAUSE);
                continue;
            }
            if open.is_empty() || rounds == ROUNDS {
                return Ok(Left::of(self.context, owed, &compared, &refused, &now));
            }
            let before = refused.len();
            let tried = open.len();
            for (device, repair) in open {
                if let Err(cause) = self.apply(device, &repair, links.as_mut()) {
                    refused.push(Refused {
                        device,
                        repair,
                        cause: Arc::new(cause),
                    });
                }
            }
            if refused.len() - before < tried {
                rounds += 1;
            }
            // Read the state even after a refusal, because a refused repair may have changed
            // something.
            now = self.hardware.states(&addresses, links.as_mut())?;
        }
    }

    fn compare(&self, now: &States) -> Vec<(&'a DeviceState, Comparison)> {
        let compared = self.before.iter().map(|&before| {
            let comparison = match now.of(before.device) {
                Some(is) => compare(before, is),
                None => Comparison {
                    replacement: Some(Replacement::Missing),
                    ..Comparison::default()
                },
            };
            (before, comparison)
        });
        compared.collect()
    }

    fn apply(
        &self,
        before: &DeviceState,
        repair: &Repair,
        links: &mut dyn DeviceLinks,
    ) -> Result<(), KernelError> {
        let change = match repair {
            Repair::Function(setting) => {
                let (Some(physical), Some(vf)) = (before.physical, &before.function) else {
                    return Ok(());
                };
                let Some(pf) = self.hardware.interface_of(physical, links)? else {
                    return Ok(());
                };
                let set = links.set_virtual_function(pf.index, vf.index, *setting);
                if set.is_err()
                    && let Some(own) = before.own_guid(*setting)
                {
                    // The repair sets a GUID to zero, but the driver refuses zero. Set the GUID
                    // that the VF's interface had before the ADD, so that the VF does not keep the
                    // pod's GUID. The repair still counts as failed, so return the first error.
                    links.set_virtual_function(pf.index, vf.index, own)?;
                }
                return set;
            }
            Repair::Rebind { driver, .. } => return self.rebind(before, driver, links),
            Repair::Netdev(change) => change,
        };
        let Some(link) = self.hardware.interface_of(before.device, links)? else {
            return Ok(());
        };
        if let LinkChange::Address(address) = change {
            return self.give_address(before, link, address, links);
        }
        if link.up && matches!(change, LinkChange::Name(_)) {
            links.change_link(link.index, &LinkChange::Down)?;
        }
        links.change_link(link.index, change)
    }
}

fn failure(before: &DeviceState, what: impl fmt::Display, cause: RestoreError) -> Failure {
    Failure::Restoring {
        device: before.to_string(),
        what: what.to_string(),
        cause,
    }
}

/// Why a device could not be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The kernel refused the change.
    #[error(transparent)]
    Kernel(#[from] Arc<KernelError>),
    /// The physical function does not report its VFs.
    #[error(transparent)]
    Function(#[from] Arc<FunctionError>),
    /// The interface is in no network namespace that Jackfield can find.
    #[error("no known network namespace has the interface; see `jackfield doctor`")]
    NoNamespace,
}

#[cfg(test)]
mod tests;
