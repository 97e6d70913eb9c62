//! Prints what a run will touch, before it starts.

use std::io::{self, Write};

use crate::bare_metal::state::State;
use crate::bare_metal::{BareMetalError, candidates};
use crate::case::Case;
use crate::feature::Feature;

/// Prints the plan.
pub(super) fn show(states: &[(State, bool)], cases: &[Case]) -> Result<(), BareMetalError> {
    let mut out = io::stdout().lock();
    writeln!(out, "functions of this machine with SR-IOV:")?;
    candidates(&mut out)?;
    let features: Vec<Feature> = Feature::ALL
        .into_iter()
        .filter(|feature| cases.iter().any(|case| case.needs.contains(feature)))
        .collect();
    writeln!(out, "this run of {} cases touches:", cases.len())?;
    for (state, is_pf) in states {
        let what = if *is_pf {
            "its VFs are created and removed; they move to network namespaces and to vfio-pci and come back"
        } else {
            "its driver releases it and gets it back"
        };
        writeln!(out, "  {state}: {what}")?;
    }
    if states.is_empty() {
        writeln!(out, "  no function, since none was named")?;
    }
    for feature in features {
        if let Some(what) = besides(feature) {
            writeln!(out, "  {feature}: {what}")?;
        }
    }
    writeln!(
        out,
        "  kernel modules that it loads stay loaded; network namespaces named hwt-… are created and removed"
    )?;
    Ok(())
}

/// Returns what a feature changes besides the named functions.
const fn besides(feature: Feature) -> Option<&'static str> {
    match feature {
        Feature::Sriov | Feature::Vfio | Feature::VfioNoiommu | Feature::Guest => None,
        Feature::Pods => Some(
            "the binary under test attaches VFs to pods; their cluster, journal and device files are in a folder below the temporary directory",
        ),
        Feature::Bond => Some("bonds are created and removed in the pods' network namespaces"),
        Feature::Dpdk => Some("dpdk-testpmd runs without hugepages and without PCI devices"),
        Feature::VdpaSim | Feature::Vduse | Feature::VpVdpa => {
            Some("devices named hwt-… on the vDPA bus are created and removed")
        }
        Feature::Switchdev => {
            Some("a netdevsim device with its network interfaces is created and removed")
        }
        Feature::RdmaShared | Feature::RdmaExclusive => Some(
            "RDMA devices named hwt-… on the VFs are created and removed; the system's mode stays",
        ),
        Feature::IpoibStub => Some(
            "the last PF moves to pci-pf-stub and comes back; only if the module ib_stub exists",
        ),
    }
}
