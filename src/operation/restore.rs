//! A device goes back as it came: what the plugins left otherwise is put right once they are done.
//!
//! Only in the boot in which it was attached, and only while nobody else has the device: a late
//! DEL must not touch what is another pod's by now. What the kernel or a driver cannot do is said
//! and not owed; what may work later stays owed with the record.

mod home;
mod left;
mod refused;

use std::time::{Duration, Instant};

use device_info::PciAddress;

use super::hardware::{Hardware, States};
use super::{Context, Failure};
use crate::baseline::{Comparison, DeviceState, Repair, compare};
use crate::boot::boot_id;
use crate::journal::{Exclusive, Header, Sandbox};
use crate::kernel::{DeviceLinks, KernelError, LinkChange};
use home::bring_home;
use refused::{Refused, forgive, open};

/// How often a device is put right before it is left as it is. Drivers take one setting for a
/// reason to change another: igb shows what a VF sets for itself as if the administrator had.
const ROUNDS: usize = 3;
/// How long an interface is waited for that the kernel is still bringing home from a namespace
/// which is gone, and a device that is busy.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is looked.
const PAUSE: Duration = Duration::from_millis(10);

/// Reads the devices of a sandbox before anything runs, for its record.
///
/// # Errors
/// When the kernel does not answer, and code 104 for a device that no plugin could take.
pub(super) fn baseline(
    context: &Context<'_>,
    header: &Header,
) -> Result<Vec<DeviceState>, Failure> {
    let addresses = addresses(header, |_| true);
    if addresses.is_empty() {
        return Ok(Vec::new());
    }
    let mut links = (context.node.devices)(None)?;
    let hardware = Hardware::of(&context.request.node);
    let states = hardware.states(&addresses, links.as_mut())?;
    for remark in states.remarks {
        context.note(&format!(
            "{remark}; its functions cannot be put back as they are"
        ));
    }
    hardware.are_at_home(&header.attachments, &states.devices)?;
    Ok(states.devices)
}

/// Puts the devices of a sandbox back as they were, those of the attachments in `detached` and of
/// others that have nothing attached any more. What failed and may work later comes back.
pub(super) fn restore(
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
        detached.contains(&index) || progress.is_none_or(|progress| !progress.is_owed())
    };
    let key = header.key();
    let is_ours =
        |address: &PciAddress| context.node.journal.has(&key, &Exclusive::Device(*address));
    let free: Vec<PciAddress> = addresses(header, is_free)
        .into_iter()
        .filter(is_ours)
        .collect();
    let before = sandbox.baseline.iter();
    let before: Vec<&DeviceState> = before.filter(|it| free.contains(&it.device)).collect();
    if before.is_empty() {
        return Vec::new();
    }
    let restoring = Restoring {
        context,
        hardware: Hardware::of(&context.request.node),
        header,
        before,
    };
    restoring.run().unwrap_or_else(|cause| vec![cause.into()])
}

/// The PCI devices of the attachments that `of` names by their place.
fn addresses(header: &Header, of: impl Fn(usize) -> bool) -> Vec<PciAddress> {
    let attachments = header.attachments.iter().enumerate();
    attachments
        .filter(|(index, _)| of(*index))
        .filter_map(|(_, attachment)| attachment.device.as_ref()?.pci())
        .collect()
}

struct Restoring<'a> {
    context: &'a Context<'a>,
    hardware: Hardware<'a>,
    header: &'a Header,
    before: Vec<&'a DeviceState>,
}

impl<'a> Restoring<'a> {
    fn run(self) -> Result<Vec<Failure>, KernelError> {
        let mut links = (self.context.node.devices)(None)?;
        let mut owed = bring_home(self.context, &self.hardware, self.header, &self.before);
        let until = self.context.deadline.min(Instant::now() + PATIENCE);
        let mut now = self.settled(links.as_mut(), until)?;
        let mut refused: Vec<Refused<'a>> = Vec::new();
        let mut rounds = 0;
        loop {
            let left = self.compare(&now);
            let open = open(&left, &refused);
            if open.is_empty() && Instant::now() < until && forgive(&mut refused) {
                // A device that is busy for a moment, as after its driver's reset.
                std::thread::sleep(PAUSE);
                continue;
            }
            if open.is_empty() || rounds == ROUNDS {
                owed.extend(left::tell(self.context, &left, &refused));
                owed.extend(left::tell_unknown(self.context, &self.before, &now));
                return Ok(owed);
            }
            let before = refused.len();
            let tried = open.len();
            for (device, repair) in open {
                if let Err(cause) = self.apply(device, &repair, links.as_mut()) {
                    refused.push(Refused {
                        device,
                        repair,
                        cause,
                    });
                }
            }
            if refused.len() - before < tried {
                rounds += 1;
                now = self.read(links.as_mut())?;
            }
        }
    }

    fn read(&self, links: &mut dyn DeviceLinks) -> Result<States, KernelError> {
        let addresses: Vec<PciAddress> = self.before.iter().map(|it| it.device).collect();
        self.hardware.states(&addresses, links)
    }

    /// The devices, once the kernel has brought home those whose namespace is gone.
    fn settled(&self, links: &mut dyn DeviceLinks, until: Instant) -> Result<States, KernelError> {
        loop {
            let is_late = Instant::now() >= until;
            if is_late || !self.before.iter().any(|it| self.hardware.is_away(it)) {
                return self.read(links);
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn compare(&self, now: &States) -> Vec<(&'a DeviceState, Comparison)> {
        let mut compared = Vec::new();
        for &before in &self.before {
            let is = now.devices.iter().find(|is| is.device == before.device);
            let comparison = match is {
                Some(is) => compare(before, is),
                None => Comparison {
                    remarks: vec!["it is gone: nothing of it is put back".to_owned()],
                    ..Comparison::default()
                },
            };
            compared.push((before, comparison));
        }
        compared
    }

    fn apply(
        &self,
        before: &DeviceState,
        repair: &Repair,
        links: &mut dyn DeviceLinks,
    ) -> Result<(), KernelError> {
        match repair {
            Repair::Function(setting) => {
                let (Some(physical), Some(vf)) = (before.physical, &before.function) else {
                    return Ok(());
                };
                match self.hardware.interface_of(physical, links)? {
                    Some(pf) => links.set_virtual_function(pf.index, vf.index, *setting),
                    None => Ok(()),
                }
            }
            Repair::Netdev(change) => {
                let Some(link) = self.hardware.interface_of(before.device, links)? else {
                    return Ok(());
                };
                if link.up && matches!(change, LinkChange::Name(_)) {
                    links.change_link(link.index, &LinkChange::Down)?;
                }
                links.change_link(link.index, change)
            }
        }
    }
}

fn failure(before: &DeviceState, what: &str, cause: &KernelError) -> Failure {
    Failure::Restoring {
        device: before.to_string(),
        what: what.to_owned(),
        cause: cause.to_string(),
    }
}

#[cfg(test)]
mod tests;
