//! The boots of the virtual machine, which differ in settings that are fixed at boot.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::feature::Feature;

/// A set of boot-time settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Boot {
    /// With a virtual IOMMU, and with RDMA devices shared among network namespaces, as Linux
    /// defaults to.
    Usual,
    /// Without an IOMMU, each RDMA device in one network namespace.
    Exclusive,
}

impl Boot {
    pub(crate) const ALL: [Self; 2] = [Self::Usual, Self::Exclusive];

    /// Returns the first boot that has what the case needs.
    pub(crate) fn of(case: &Case) -> Self {
        let of_the_other = [Feature::RdmaExclusive, Feature::VfioNoiommu];
        if case.needs.iter().any(|need| of_the_other.contains(need)) {
            Self::Exclusive
        } else {
            Self::Usual
        }
    }

    /// Returns whether the machine has an IOMMU.
    pub(super) const fn has_iommu(self) -> bool {
        matches!(self, Self::Usual)
    }

    /// Returns the commands before the first case: they load the machine's drivers and make the
    /// settings that cannot change later.
    pub(crate) const fn commands(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Usual => &[
                &["modprobe", "igb"],
                &["modprobe", "igbvf"],
                &["modprobe", "virtio_net"],
            ],
            Self::Exclusive => &[
                &["modprobe", "ib_core", "netns_mode=0"],
                &[
                    "insmod",
                    "/lib/noiommu/vfio.ko",
                    "enable_unsafe_noiommu_mode=1",
                ],
                &["modprobe", "igb"],
                &["modprobe", "igbvf"],
                &["modprobe", "virtio_net"],
            ],
        }
    }
}

impl fmt::Display for Boot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Usual => "IOMMU, RDMA shared",
            Self::Exclusive => "no IOMMU, RDMA exclusive",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases;

    #[test]
    fn every_case_has_a_boot_with_what_it_needs() {
        for case in cases::all() {
            let lacking: &[Feature] = match Boot::of(&case) {
                Boot::Usual => &[Feature::RdmaExclusive, Feature::VfioNoiommu],
                Boot::Exclusive => &[Feature::RdmaShared, Feature::Vfio],
            };
            assert!(
                case.needs.iter().all(|need| !lacking.contains(need)),
                "{}",
                case.name
            );
        }
    }
}
