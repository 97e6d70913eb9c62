//! What a run will touch, said before it does.

use std::io::{self, Write};

use crate::bare_metal::state::State;
use crate::bare_metal::{BareMetalError, candidates};
use crate::case::Case;
use crate::feature::Feature;

/// Prints it.
pub(super) fn show(states: &[(State, bool)], cases: &[Case]) -> Result<(), BareMetalError> {
    let mut out = io::stdout().lock();
    writeln!(out, "functions of this machine that make VFs:")?;
    candidates(&mut out)?;
    let features: Vec<Feature> = Feature::ALL
        .into_iter()
        .filter(|feature| cases.iter().any(|case| case.needs.contains(feature)))
        .collect();
    writeln!(out, "this run of {} cases touches:", cases.len())?;
    for (state, is_pf) in states {
        let what = if *is_pf {
            "its VFs are made and unmade; they go to network namespaces and to vfio-pci and come back"
        } else {
            "it is taken from its driver and given back"
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
        "  kernel modules that it loads stay loaded; network namespaces named hwt-… come and go"
    )?;
    Ok(())
}

/// What a feature changes besides the named functions.
const fn besides(feature: Feature) -> Option<&'static str> {
    match feature {
        Feature::Sriov | Feature::Vfio | Feature::VfioNoiommu | Feature::Guest => None,
        Feature::Pods => Some(
            "pods get VFs by the binary under test; their cluster, journal and device files are in a folder below the temporary directory",
        ),
        Feature::Bond => Some("bonds come and go, in the pods' network namespaces"),
        Feature::Dpdk => Some("dpdk-testpmd runs without hugepages and without PCI devices"),
        Feature::VdpaSim | Feature::Vduse | Feature::VpVdpa => {
            Some("devices named hwt-… on the vDPA bus come and go")
        }
        Feature::Switchdev => Some("a netdevsim device with its network interfaces comes and goes"),
        Feature::RdmaShared | Feature::RdmaExclusive => {
            Some("RDMA devices named hwt-… on the VFs come and go; the system's mode stays")
        }
        Feature::IpoibStub => {
            Some("the last PF goes to pci-pf-stub and comes back; only where the module ib_stub is")
        }
    }
}
