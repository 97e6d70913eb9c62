//! A PF on `pci-pf-stub`, whose VFs no network driver takes.

use device_info::PciAddress;

use crate::case::Stop;
use crate::rig::{DriverBinding, Vfs, command, sysfs};

/// A PF and its VFs without network drivers; as before when dropped.
#[derive(Debug)]
pub(crate) struct PfStub {
    // The order of the fields is the order of removal: the VFs, their probing, the PF's driver.
    vfs: Vfs,
    _probing: NoProbing,
    _driver: DriverBinding,
}

impl PfStub {
    pub(crate) fn make(pf: PciAddress, count: usize) -> Result<Self, Stop> {
        command("modprobe", &["pci-pf-stub"])?;
        let driver = DriverBinding::to(pf, "pci-pf-stub")?;
        let probing = NoProbing::on(pf)?;
        Ok(Self {
            vfs: Vfs::make_bare(pf, count)?,
            _probing: probing,
            _driver: driver,
        })
    }

    /// Returns the PCI address of VF `index`.
    pub(crate) fn vf(&self, index: usize) -> Result<PciAddress, Stop> {
        self.vfs
            .addresses()
            .get(index)
            .copied()
            .ok_or_else(|| Stop::failed(format!("VF {index} does not exist")))
    }
}

#[derive(Debug)]
struct NoProbing {
    pf: PciAddress,
}

impl NoProbing {
    fn on(pf: PciAddress) -> Result<Self, Stop> {
        sysfs::write(sysfs::function(pf).join("sriov_drivers_autoprobe"), "0")?;
        Ok(Self { pf })
    }
}

impl Drop for NoProbing {
    fn drop(&mut self) {
        // The check of traces after each case finds what stays.
        let _ = sysfs::write(
            sysfs::function(self.pf).join("sriov_drivers_autoprobe"),
            "1",
        );
    }
}
