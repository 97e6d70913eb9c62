//! The ways in which the virtual machine is booted: one, but for what is fixed at boot.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::feature::Feature;

/// A set of boot-time settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Boot {
    /// With a virtual IOMMU, RDMA devices shared among network namespaces, as Linux comes.
    Usual,
    /// Without an IOMMU, each RDMA device in one network namespace.
    Exclusive,
}

impl Boot {
    pub(crate) const ALL: [Self; 2] = [Self::Usual, Self::Exclusive];

    /// The first boot that has what the case needs.
    pub(crate) fn of(case: &Case) -> Self {
        let of_the_other = [Feature::RdmaExclusive, Feature::VfioNoiommu];
        if case.needs.iter().any(|need| of_the_other.contains(need)) {
            Self::Exclusive
        } else {
            Self::Usual
        }
    }

    /// Whether the machine has an IOMMU.
    pub(super) const fn has_iommu(self) -> bool {
        matches!(self, Self::Usual)
    }

    /// Commands before the first case: the drivers of what the machine has, and the settings that
    /// cannot be changed later.
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
    fn no_case_needs_what_no_boot_has() {
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
