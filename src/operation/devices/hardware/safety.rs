//! Refuses an attachment in these cases, even if kubelet allocated its device to the pod:
//!
//! - The device is the node's own uplink.
//! - The device has a driver for user-space programs, and the kernel or another pod uses another
//!   function of the device's IOMMU group.
//! - A plugin would move an RDMA device into the pod, but the kernel shares RDMA devices among all
//!   network namespaces.

use device_info::{PciAddress, PciFunction};

use super::{DeviceProblem, GroupMember, Hardware, HostLinks, drives_user_space};
use crate::allocation::AllocatedDevice;
use crate::cluster::PodName;
use crate::journal::{Exclusive, Journal, Key};
use crate::plan::{Attachment, Reason};

/// The file below the root of sysfs that shows whether ib_core shares RDMA devices among network
/// namespaces.
const RDMA_MODE: &str = "module/ib_core/parameters/netns_mode";

/// The sandbox that claims a device.
pub(in crate::operation) struct Claimant<'a> {
    /// The journal, to find the sandboxes that hold other devices.
    pub(in crate::operation) journal: &'a Journal,
    /// The key of the sandbox.
    pub(in crate::operation) key: &'a Key,
    /// The pod of the sandbox.
    pub(in crate::operation) pod: Option<&'a PodName>,
    /// The PCI devices of all attachments in the plan.
    pub(in crate::operation) devices: &'a [PciAddress],
}

impl Hardware<'_> {
    /// Refuses the attachment in the cases that the documentation of this module lists.
    ///
    /// # Errors
    /// A reason that names the refused device or plugin, and contains the remedy. The reason also
    /// names the file or interface that shows the problem. If Jackfield cannot read the inputs of a
    /// check, the check succeeds.
    pub(in crate::operation) fn can_be_given(
        &self,
        attachment: &Attachment,
        claim: &Claimant<'_>,
        host: &mut HostLinks<'_>,
    ) -> Result<(), Reason> {
        self.rdma_mode(attachment)?;
        let Some(device) = &attachment.device else {
            return Ok(());
        };
        let function = device.pci().and_then(|pci| self.sysfs.pci_function(pci));
        let Some(function) = function else {
            return Ok(());
        };
        let own = host
            .links()
            .and_then(|links| self.interface_of(function.address(), links));
        if let Ok(Some(own)) = own
            && let Ok(Some(carried)) = host.carried(own.index)
        {
            return Err(DeviceProblem::CutsNodeOff(device.clone(), carried).into());
        }
        let shared = self.shares_group(device, &function, claim);
        shared.map_or(Ok(()), |problem| Err(problem.into()))
    }

    /// Returns a problem if `function` has a driver for user-space programs and another function of
    /// its IOMMU group is in use. In this case, a program could not open `function`.
    fn shares_group(
        &self,
        device: &AllocatedDevice,
        function: &PciFunction,
        claim: &Claimant<'_>,
    ) -> Option<DeviceProblem> {
        function.driver().filter(|it| drives_user_space(it))?;
        let group = function.iommu_group()?;
        let directory = format!(
            "{}/kernel/iommu_groups/{group}/devices",
            self.sysfs.root().display()
        );
        for address in function.iommu_group_members() {
            let member = || GroupMember {
                number: group,
                address,
                directory: directory.clone(),
            };
            if claim.devices.contains(&address) {
                continue;
            }
            // VFIO opens a group even if the group contains bridges with a bridge driver, or
            // functions without a driver.
            let is_bridge = |it: &PciFunction| it.class().is_some_and(|class| class >> 16 == 0x06);
            let other = self.sysfs.pci_function(address);
            let driver = other.filter(|it| !is_bridge(it)).and_then(|it| it.driver());
            let Some(driver) = driver else { continue };
            let is_idle = drives_user_space(&driver) || driver == "pci-stub";
            if !is_idle {
                return Some(DeviceProblem::GroupInUse(device.clone(), member(), driver));
            }
            let what = Exclusive::Device(address);
            if let Ok(Some(holder)) = claim.journal.other_holder(claim.key, &what) {
                let holder = holder.header.named_for(claim.pod);
                let holder = holder.unwrap_or_else(|| "a pod of another namespace".to_owned());
                return Some(DeviceProblem::GroupHeld(device.clone(), member(), holder));
            }
        }
        None
    }

    /// If a plugin moves RDMA devices, checks that ib_core is not in shared mode. In shared mode,
    /// ib_core refuses to move RDMA devices.
    fn rdma_mode(&self, attachment: &Attachment) -> Result<(), Reason> {
        let mover = attachment.config.plugins().iter().find(|plugin| {
            let isolates = || plugin.body().read::<bool>("rdmaIsolation").ok().flatten();
            plugin.plugin_type().as_str() == "rdma" || isolates() == Some(true)
        });
        let Some(mover) = mover else { return Ok(()) };
        let file = self.sysfs.root().join(RDMA_MODE);
        let mode = std::fs::read_to_string(&file).unwrap_or_default();
        if !matches!(mode.trim(), "Y" | "1") {
            return Ok(());
        }
        Err(DeviceProblem::SharedRdma {
            plugin: mover.plugin_type().clone(),
            file,
            mode: mode.trim().to_owned(),
        }
        .into())
    }
}

#[cfg(test)]
mod tests;
