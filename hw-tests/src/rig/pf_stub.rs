//! A PF on `pci-pf-stub`: it makes VFs that no network driver takes.

use device_info::PciAddress;

use crate::case::Stop;
use crate::rig::{Bound, Vfs, command, sysfs};

/// A PF without a network driver, and its VFs without any; as before when dropped.
#[derive(Debug)]
pub(crate) struct PfStub {
    // In the order in which they are unmade: VFs first, then their probing, then the PF's driver.
    vfs: Vfs,
    _probing: NoProbing,
    _driver: Bound,
}

impl PfStub {
    pub(crate) fn make(pf: PciAddress, count: usize) -> Result<Self, Stop> {
        command("modprobe", &["pci-pf-stub"])?;
        let driver = Bound::to(pf, "pci-pf-stub")?;
        let probing = NoProbing::on(pf)?;
        Ok(Self {
            vfs: Vfs::make_bare(pf, count)?,
            _probing: probing,
            _driver: driver,
        })
    }

    /// The PCI address of VF `index`.
    pub(crate) fn vf(&self, index: usize) -> Result<PciAddress, Stop> {
        self.vfs
            .addresses()
            .get(index)
            .copied()
            .ok_or_else(|| Stop::failed(format!("no VF {index} was made")))
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
        // What stays is found by the traces that every case is checked for.
        let _ = sysfs::write(
            sysfs::function(self.pf).join("sriov_drivers_autoprobe"),
            "1",
        );
    }
}
