//! The cases, one file per kind of device.

use crate::case::Case;

mod bare_metal;
mod capture;
mod device_info;
mod fixtures;
mod ipoib_stub;
mod netdevsim;
mod noiommu;
mod pod_bond;
mod pod_given_back;
mod pod_ipoib;
mod pod_rdma;
mod pod_socket;
mod pod_switchdev;
mod pod_vdpa;
mod pod_vf;
mod rdma_exclusive;
mod rxe;
mod sriov;
mod vdpa_sim;
mod vduse;
mod vfio;
mod vp_vdpa;

/// Returns all cases in the order in which they run. Cases that share VFs are adjacent.
pub(crate) fn all() -> Vec<Case> {
    [
        sriov::CASES,
        vfio::CASES,
        pod_vf::CASES,
        pod_bond::CASES,
        pod_given_back::CASES,
        capture::CASES,
        bare_metal::CASES,
        rxe::CASES,
        pod_vdpa::CASES,
        pod_switchdev::CASES,
        pod_socket::CASES,
        vdpa_sim::CASES,
        vduse::CASES,
        vp_vdpa::CASES,
        netdevsim::CASES,
        device_info::CASES,
        fixtures::CASES,
        ipoib_stub::CASES,
        pod_ipoib::CASES,
        noiommu::CASES,
        rdma_exclusive::CASES,
        pod_rdma::CASES,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_case_has_a_group_and_a_name_of_its_own() {
        let all = all();
        let names: BTreeSet<&str> = all.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), all.len());
        for name in names {
            let (group, behaviour) = name.split_once('/').unwrap();
            assert!(!group.is_empty() && !behaviour.is_empty(), "{name}");
        }
    }

    #[test]
    fn every_case_says_what_it_needs() {
        for case in all() {
            assert!(!case.needs.is_empty(), "{}", case.name);
        }
    }
}
