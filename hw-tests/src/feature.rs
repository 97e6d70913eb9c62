//! What a case needs of its machine.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A property of a machine that some cases need.
///
/// A machine without it skips those cases and prints why. With `--require` the skip is a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Feature {
    /// A physical function with SR-IOV.
    Sriov,
    /// `vfio-pci` behind an IOMMU.
    Vfio,
    /// `vfio-pci` without an IOMMU, which an administrator must allow.
    VfioNoiommu,
    /// The kernel's vDPA simulator: devices without a PCI function.
    VdpaSim,
    /// vDPA devices in user space.
    Vduse,
    /// A virtio PCI function as the parent of a vDPA device.
    VpVdpa,
    /// netdevsim: devlink ports and representors in switchdev mode.
    Switchdev,
    /// Soft RoCE with RDMA devices that every network namespace sees.
    RdmaShared,
    /// Soft RoCE with RDMA devices that belong to one network namespace each.
    RdmaExclusive,
    /// The stub of an RDMA device on a PCI function, with the kernel's IPoIB above it.
    IpoibStub,
    /// Jackfield's binary and the CNI reference plugins, to attach pods.
    Pods,
    /// Bonds in pods.
    Bond,
    /// DPDK's `dpdk-testpmd`, which serves vhost-user and memif sockets.
    Dpdk,
    /// The virtual machine: for cases that check this program itself.
    Guest,
}

impl Feature {
    pub(crate) const ALL: [Self; 14] = [
        Self::Sriov,
        Self::Vfio,
        Self::VfioNoiommu,
        Self::VdpaSim,
        Self::Vduse,
        Self::VpVdpa,
        Self::Switchdev,
        Self::RdmaShared,
        Self::RdmaExclusive,
        Self::IpoibStub,
        Self::Pods,
        Self::Bond,
        Self::Dpdk,
        Self::Guest,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Sriov => "sriov",
            Self::Vfio => "vfio",
            Self::VfioNoiommu => "vfio-noiommu",
            Self::VdpaSim => "vdpa-sim",
            Self::Vduse => "vduse",
            Self::VpVdpa => "vp-vdpa",
            Self::Switchdev => "switchdev",
            Self::RdmaShared => "rdma-shared",
            Self::RdmaExclusive => "rdma-exclusive",
            Self::IpoibStub => "ipoib-stub",
            Self::Pods => "pods",
            Self::Bond => "bond",
            Self::Dpdk => "dpdk",
            Self::Guest => "guest",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word of `--require`: a feature, or a group of features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requirement(Vec<Feature>);

impl Requirement {
    /// Returns the features of the word.
    pub(crate) fn features(&self) -> &[Feature] {
        &self.0
    }
}

impl FromStr for Requirement {
    type Err = UnknownFeature;

    fn from_str(word: &str) -> Result<Self, UnknownFeature> {
        let features = match word {
            "all" => Feature::ALL.to_vec(),
            "vdpa" => vec![Feature::VdpaSim, Feature::Vduse, Feature::VpVdpa],
            "rdma" => vec![Feature::RdmaShared, Feature::RdmaExclusive],
            name => Feature::ALL
                .into_iter()
                .filter(|feature| feature.name() == name)
                .collect(),
        };
        if features.is_empty() {
            return Err(UnknownFeature(word.to_owned()));
        }
        Ok(Self(features))
    }
}

/// A word that is neither a feature nor a group.
#[derive(Debug, thiserror::Error)]
#[error("unknown feature '{0}'; use one of all, vdpa, rdma, {names}", names = Feature::ALL.map(Feature::name).join(", "))]
pub(crate) struct UnknownFeature(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_is_required_by_its_own_name() {
        for feature in Feature::ALL {
            let requirement: Requirement = feature.to_string().parse().unwrap();
            assert_eq!(requirement.features(), [feature]);
        }
    }

    #[test]
    fn a_group_contains_its_features() {
        let vdpa: Requirement = "vdpa".parse().unwrap();
        assert_eq!(
            vdpa.features(),
            [Feature::VdpaSim, Feature::Vduse, Feature::VpVdpa]
        );
        let all: Requirement = "all".parse().unwrap();
        assert_eq!(all.features(), Feature::ALL);
    }

    #[test]
    fn an_unknown_feature_is_refused_with_the_known_ones() {
        let error = "gpu".parse::<Requirement>().unwrap_err().to_string();
        assert!(
            error.contains("'gpu'") && error.contains("switchdev"),
            "{error}"
        );
    }
}
