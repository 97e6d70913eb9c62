//! A device goes back as it came: what the plugins left otherwise is put right once they are done.
//!
//! Only in the boot in which it was attached, and only while nobody else has the device: a late
//! DEL must not touch what is another pod's by now. What the kernel or a driver cannot do is said
//! and not owed; what may work later stays owed with the record.

use std::path::Path;
use std::time::{Duration, Instant};

use device_info::PciAddress;

use super::hardware::{Hardware, States};
use super::{Context, Failure};
use crate::baseline::{Comparison, DeviceState, Repair, compare};
use crate::boot::boot_id;
use crate::journal::{Exclusive, Header, Sandbox};
use crate::kernel::{DeviceLinks, KernelError, LinkChange, PodNetns};

/// How often a device is put right before it is left as it is. Drivers take one setting for a
/// reason to change another: igb shows what a VF sets for itself as if the administrator had.
const ROUNDS: usize = 3;
/// How long an interface is waited for that the kernel is still bringing home from a namespace
/// which is gone, and a device that is busy.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is looked.
const PAUSE: Duration = Duration::from_millis(10);

/// Reads the devices of a sandbox before anything runs, for its record.
pub(super) fn baseline(
    context: &Context<'_>,
    header: &Header,
) -> Result<Vec<DeviceState>, KernelError> {
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
        |address: &PciAddress| context.node.journal.has(&key, Exclusive::Device(*address));
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
        owed: Vec::new(),
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
    owed: Vec<Failure>,
}

/// What was tried and refused, so that it is not tried again.
struct Refused<'a> {
    device: &'a DeviceState,
    repair: Repair,
    cause: KernelError,
}

impl<'a> Restoring<'a> {
    fn run(mut self) -> Result<Vec<Failure>, KernelError> {
        let mut links = (self.context.node.devices)(None)?;
        self.bring_home();
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
                self.tell(left, &refused);
                self.tell_unknown(&now);
                return Ok(self.owed);
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

    /// A plugin that left a device's interface in the pod's namespace would have it lost with that.
    fn bring_home(&mut self) {
        let Ok(netns) = PodNetns::open(Path::new(&self.header.netns)) else {
            return;
        };
        if netns.id().to_string() != self.header.netns_id || netns.is_ours().unwrap_or(true) {
            return;
        }
        let Ok(mut links) = (self.context.node.devices)(Some(&netns)) else {
            return;
        };
        for &before in &self.before {
            let Some(netdev) = &before.netdev else {
                continue;
            };
            if !self.hardware.is_away(before) {
                continue;
            }
            let address = before.device.to_string();
            let found = links.device_links().unwrap_or_default();
            let mut found = found
                .into_iter()
                .filter(|link| link.parent_name.as_deref() == Some(address.as_str()));
            let Some(link) = found.next() else { continue };
            let _ = links.change_link(link.index, &LinkChange::Down);
            if let Err(cause) = send_home(links.as_mut(), link.index, &netdev.name) {
                self.owed.push(failure(before, "its interface", &cause));
            }
        }
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

    /// Settings on a physical function that could be read before and cannot now.
    fn tell_unknown(&mut self, now: &States) {
        for &before in &self.before {
            let is = now.devices.iter().find(|is| is.device == before.device);
            let is_unknown =
                is.is_some_and(|is| is.function.is_none() && is.generation == before.generation);
            if before.function.is_none() || !is_unknown {
                continue;
            }
            match now.remarks.first() {
                Some(cause) => self.owed.push(Failure::Restoring {
                    device: before.to_string(),
                    what: "what its physical function has set".to_owned(),
                    cause: cause.clone(),
                }),
                None => self.context.note(&format!(
                    "{before}: its physical function says nothing of it any more: nothing is put \
                     back there"
                )),
            }
        }
    }

    /// What stays otherwise is said, or owed.
    fn tell(&mut self, left: Vec<(&DeviceState, Comparison)>, refused: &[Refused<'_>]) {
        for (before, comparison) in left {
            for remark in &comparison.remarks {
                self.context.note(&format!("{before}: {remark}"));
            }
            if comparison.lacks_interface {
                let name = before.netdev.as_ref().map_or("", |netdev| &netdev.name);
                self.owed.push(Failure::Restoring {
                    device: before.to_string(),
                    what: format!("interface {name}"),
                    cause: "it is in no network namespace that is known; see jackfield doctor"
                        .to_owned(),
                });
            }
            for repair in &comparison.repairs {
                let cause = refused
                    .iter()
                    .find(|it| it.device == before && it.repair == *repair);
                match cause {
                    Some(it) if may_work_later(&it.cause) => {
                        self.owed
                            .push(failure(before, &repair.to_string(), &it.cause));
                    }
                    Some(it) => self.context.note(&format!(
                        "{before}: {repair} cannot be put back: {}",
                        it.cause
                    )),
                    None => self.context.note(&format!(
                        "{before}: {repair} was put back, and its driver changed it again; set it \
                         by hand"
                    )),
                }
            }
        }
    }
}

/// The repairs that are still to be made and were not refused.
fn open<'a>(
    left: &[(&'a DeviceState, Comparison)],
    refused: &[Refused<'a>],
) -> Vec<(&'a DeviceState, Repair)> {
    let all = left.iter().flat_map(|(before, comparison)| {
        let repairs = comparison.repairs.iter().cloned();
        repairs.map(|repair| (*before, repair))
    });
    let is_open = |(before, repair): &(&DeviceState, Repair)| {
        let is_it = |it: &Refused<'_>| it.device == *before && it.repair == *repair;
        !refused.iter().any(is_it)
    };
    all.filter(is_open).collect()
}

/// Lets those be tried again that may work now; whether there are any.
fn forgive(refused: &mut Vec<Refused<'_>>) -> bool {
    let before = refused.len();
    refused.retain(|it| !may_work_later(&it.cause));
    refused.len() < before
}

fn failure(before: &DeviceState, what: &str, cause: &KernelError) -> Failure {
    Failure::Restoring {
        device: before.to_string(),
        what: what.to_owned(),
        cause: cause.to_string(),
    }
}

/// Moves an interface to the host's namespace, under its name or, where somebody has that by now,
/// one that the kernel chooses. The kernel moves first and renames then, so an error says little.
fn send_home(links: &mut dyn DeviceLinks, index: u32, name: &str) -> Result<(), KernelError> {
    let home = |name: &str| LinkChange::Home(name.to_owned());
    let Err(refused) = links.change_link(index, &home(name)) else {
        return Ok(());
    };
    if links.device_link_at(index)?.is_none() {
        return Ok(());
    }
    links
        .change_link(index, &home("dev%d"))
        .map_err(|_| refused)
}

/// Whether trying again can help: not where the kernel says that it cannot be.
fn may_work_later(cause: &KernelError) -> bool {
    use nix::libc;
    match cause {
        KernelError::Refused { source, .. } => matches!(
            source.raw_os_error(),
            Some(
                libc::EBUSY
                    | libc::EAGAIN
                    | libc::EINTR
                    | libc::ENOMEM
                    | libc::ENOBUFS
                    | libc::EIO
                    | libc::ETIMEDOUT
                    | libc::ENETDOWN
                    | libc::ENODEV
            )
        ),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
