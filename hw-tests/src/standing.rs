//! The VFs that cases share.

use crate::case::{Case, Stop};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{Vfs, sysfs};

/// How many VFs the suite makes.
const COUNT: usize = 2;

/// A set of VFs that stands while consecutive cases use it: making and unmaking one takes the
/// kernel about two seconds, most of which it sleeps.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    vfs: Option<Vfs>,
}

impl Standing {
    /// Gives the case its VFs in `node`. They stay for the next one that wants them, unless this
    /// one takes the only PF for itself.
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
