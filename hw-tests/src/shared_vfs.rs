//! The VFs that cases share.

use crate::case::{Case, Stop};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{Vfs, sysfs};

/// The number of VFs that the suite creates.
const COUNT: usize = 2;

/// A set of VFs that exists while consecutive cases use it. The kernel takes about two seconds to
/// create and remove one, mostly asleep.
#[derive(Debug, Default)]
pub(crate) struct SharedVfs {
    vfs: Option<Vfs>,
}

impl SharedVfs {
    /// Puts the case's VFs into `node`. They stay for the next case that needs them, unless this
    /// case takes the only PF for itself.
    pub(crate) fn ready(&mut self, case: &Case, node: &mut Node) -> Result<(), Stop> {
        if !case.needs.iter().copied().any(uses_vfs) {
            if case.needs.contains(&Feature::IpoibStub) && node.pfs.len() == 1 {
                self.vfs = None;
                node.vfs = Vec::new();
            }
            return Ok(());
        }
        if self.vfs.is_none() {
            let pf = node.pf()?;
            let total = sysfs::read(sysfs::function(pf).join("sriov_totalvfs"))?;
            self.vfs = Some(Vfs::make(pf, COUNT.min(total.parse()?))?);
        }
        node.vfs = self
            .vfs
            .iter()
            .flat_map(|vfs| vfs.addresses().iter().copied())
            .collect();
        Ok(())
    }
}

const fn uses_vfs(feature: Feature) -> bool {
    matches!(
        feature,
        Feature::Sriov
            | Feature::Vfio
            | Feature::VfioNoiommu
            | Feature::RdmaShared
            | Feature::RdmaExclusive
    )
}
