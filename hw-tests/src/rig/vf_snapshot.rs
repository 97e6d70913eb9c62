//! A VF as the suite found it, to compare with after a pod had it.

use device_info::PciAddress;

use crate::case::{Outcome, Stop, present, same};
use crate::rig::{Link, LinkVf, netdev, pf_of, until, vf_number};

/// A VF's interface and its settings on the PF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VfSnapshot {
    address: PciAddress,
    /// The interface's name and address on the host.
    pub(crate) interface: (String, String),
    /// Its settings on the PF.
    pub(crate) on_pf: LinkVf,
}

impl VfSnapshot {
    pub(crate) fn read(address: PciAddress) -> Result<Self, Stop> {
        let name = netdev(address)?;
        let link = Link::show(None, &name)?;
        let (pf, number) = pf_and_number(address)?;
        Ok(Self {
            address,
            interface: (name, link.address),
            on_pf: LinkVf::of(&pf, number)?,
        })
    }

    /// Checks that the VF is as before. Gives the kernel time to bring its interface back.
    pub(crate) fn is_back(&self) -> Outcome {
        // The comparison below reports what it is instead.
        let _ = until("its own name", || {
            let now = Self::read(self.address).ok()?;
            (now.interface.0 == self.interface.0).then_some(())
        });
        same("the VF afterwards", &Self::read(self.address)?, self)
    }
}

/// Returns the interface of a VF's PF, and the VF's number.
pub(crate) fn pf_and_number(vf: PciAddress) -> Result<(String, u32), Stop> {
    let pf = present(format!("{vf}'s PF"), pf_of(vf))?;
    let number = present(format!("{vf}'s number"), vf_number(pf, vf))?;
    Ok((netdev(pf)?, number))
}
