//! Virtual functions of a PF.

use device_info::PciAddress;

use crate::case::Stop;
use crate::rig::{LinkUp, sysfs, until};

/// VFs of a PF, removed when dropped.
#[derive(Debug)]
pub(crate) struct Vfs {
    pf: PciAddress,
    addresses: Vec<PciAddress>,
    _up: Option<LinkUp>,
}

impl Vfs {
    /// Sets the PF's interface up and creates VFs, as on a node. Waits until each VF has its
    /// network interface. A PF that is up answers its VFs and guards the addresses that it sets.
    pub(crate) fn make(pf: PciAddress, count: usize) -> Result<Self, Stop> {
        let up = LinkUp::make(netdev(pf)?)?;
        let mut vfs = Self::make_below_down(pf, count)?;
        vfs._up = Some(up);
        Ok(vfs)
    }

    /// As [`Self::make`], with the PF's interface down.
    pub(crate) fn make_below_down(pf: PciAddress, count: usize) -> Result<Self, Stop> {
        let vfs = Self::make_bare(pf, count)?;
        for vf in &vfs.addresses {
            netdev(*vf)?;
        }
        Ok(vfs)
    }

    /// Creates VFs, whether or not a driver takes them.
    pub(crate) fn make_bare(pf: PciAddress, count: usize) -> Result<Self, Stop> {
        let function = sysfs::function(pf);
        sysfs::write(function.join("sriov_numvfs"), &count.to_string())?;
        // From here on, a drop removes the VFs.
        let mut vfs = Self {
            pf,
            addresses: Vec::new(),
            _up: None,
        };
        for index in 0..count {
            let address = until(&format!("{pf}: virtfn{index}"), || {
                sysfs::link(function.join(format!("virtfn{index}")))
            })?;
            vfs.addresses.push(address.parse()?);
        }
        Ok(vfs)
    }

    /// Returns all VFs by index.
    pub(crate) fn addresses(&self) -> &[PciAddress] {
        &self.addresses
    }
}

/// Waits for the network interface of a function and returns its name.
pub(crate) fn netdev(function: PciAddress) -> Result<String, Stop> {
    until(&format!("{function}: a network interface"), || {
        sysfs::names(sysfs::function(function).join("net")).pop()
    })
}

/// Returns the PF of a VF; `None` for any other function.
pub(crate) fn pf_of(vf: PciAddress) -> Option<PciAddress> {
    sysfs::link(sysfs::function(vf).join("physfn"))?
        .parse()
        .ok()
}

/// Returns the number of a VF.
pub(crate) fn vf_number(pf: PciAddress, vf: PciAddress) -> Option<u32> {
    let (folder, wanted) = (sysfs::function(pf), vf.to_string());
    sysfs::names(&folder)
        .iter()
        .filter(|name| sysfs::link(folder.join(name)).as_ref() == Some(&wanted))
        .find_map(|name| name.strip_prefix("virtfn")?.parse().ok())
}

impl Drop for Vfs {
    fn drop(&mut self) {
        // The check of traces after each case finds what stays.
        let _ = sysfs::write(sysfs::function(self.pf).join("sriov_numvfs"), "0");
    }
}
