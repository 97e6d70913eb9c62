//! Removes random files and directories from the sysfs of fake machines, and then reads the
//! machines. The readers must not panic or hang. If a reader cannot find out a value, it must
//! return no value instead of a wrong one.

use proptest::prelude::*;

use crate::sysfs::cost;
use crate::{Capture, Facts, Inventory, fixtures};

fn machines() -> Vec<(Capture, Vec<&'static str>)> {
    vec![
        (
            fixtures::igb_vfio(),
            vec!["0000:01:10.0", "0000:01:10.2", "0000:01:00.0"],
        ),
        (fixtures::unverified_e810(3), vec!["0000:a2:01.1"]),
        (
            fixtures::unverified_connectx6(3),
            vec!["0000:3b:00.3", "0000:3b:00.0"],
        ),
        (
            fixtures::unverified_bluefield2(),
            vec!["mlx5_core.sf.2", "0000:03:00.0"],
        ),
        (fixtures::vdpasim(), vec!["vdpasim0", "vdpasim1"]),
        (fixtures::vp_vdpa_virtio(), vec!["vdpapci0", "0000:03:00.0"]),
        (fixtures::ipoib(), vec!["0000:02:10.0"]),
    ]
}

/// Returns whether every fact in `cut` is also in `whole`. `whole` describes a device on a complete
/// machine, `cut` the same device after the test has removed files of the machine.
fn claims_nothing_else(cut: &Facts, whole: &Facts) -> bool {
    fn known<T: PartialEq>(cut: &Option<T>, whole: &Option<T>) -> bool {
        cut.is_none() || cut == whole
    }
    let vdpa = match (&cut.vdpa, &whole.vdpa) {
        (Some(cut), Some(whole)) => {
            cut.parent_device == whole.parent_device
                && known(&cut.driver, &whole.driver)
                && known(&cut.path, &whole.path)
        }
        (Some(_), None) => false,
        (None, _) => true,
    };
    vdpa && known(&cut.pci_address, &whole.pci_address)
        && known(&cut.pf_pci_address, &whole.pf_pci_address)
        && known(&cut.vhost_net, &whole.vhost_net)
        && known(&cut.representor_device, &whole.representor_device)
        && cut
            .rdma_devices
            .iter()
            .all(|name| whole.rdma_devices.contains(name))
}

/// Returns the paths of all files and directories that the test may remove.
fn places(capture: &Capture) -> Vec<String> {
    let mut places: Vec<String> = capture
        .lines()
        .filter(|line| !line.starts_with("/dev/"))
        .filter_map(|line| {
            line.split([' '])
                .next()
                .map(|path| path.trim_end_matches('/').to_owned())
        })
        .flat_map(|path| {
            let parts: Vec<&str> = path.split('/').collect();
            (1..=parts.len())
                .map(|length| {
                    parts
                        .iter()
                        .take(length)
                        .copied()
                        .collect::<Vec<_>>()
                        .join("/")
                })
                .collect::<Vec<_>>()
        })
        .collect();
    places.sort();
    places.dedup();
    places
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn an_incomplete_machine_has_fewer_facts_and_no_wrong_ones(
        which in 0_usize..7,
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 1..6),
        spoiled in proptest::collection::vec((any::<prop::sample::Index>(), "[ -~]{0,20}"), 0..2),
    ) {
        let (capture, ids) = machines().swap_remove(which);
        let whole_directory = tempfile::tempdir().unwrap();
        let whole = capture.build(whole_directory.path()).unwrap();
        let places = places(&capture);
        let mut cut = capture.clone();
        for place in &cuts {
            let place: &String = place.get(&places);
            cut.remove(place);
        }
        let directory = tempfile::tempdir().unwrap();
        let sysfs = cut.build(directory.path()).unwrap();
        for id in &ids {
            let whole = Facts::read(&whole, id, &mut |_| None).unwrap();
            if let Some(cut) = Facts::read(&sysfs, id, &mut |_| None) {
                prop_assert!(
                    claims_nothing_else(&cut, &whole),
                    "{cut:#?} has facts that are not in {whole:#?}"
                );
            }
        }
        // With invalid content, the readers may return anything, but must not hang or panic.
        for (place, text) in &spoiled {
            let path = sysfs.root().join(place.get(&places));
            if path.is_file() {
                std::fs::write(path, text).unwrap();
            }
        }
        let (inventory, calls) = cost::of(|| Inventory::read(&sysfs, &mut |_| None));
        prop_assert!(calls < 2000, "{calls}");
        for remark in &inventory.remarks {
            prop_assert!(!remark.contains('\n'), "{remark}");
        }
        let _ = Capture::read(&sysfs, None);
    }

    #[test]
    fn no_identifier_leads_out_of_sysfs(id in "[./a-z0-9:_\\-\\x00]{0,24}|.{0,24}") {
        let directory = tempfile::tempdir().unwrap();
        let sysfs = fixtures::vduse().build(directory.path()).unwrap();
        if let Some(facts) = Facts::read(&sysfs, &id, &mut |_| None) {
            prop_assert_eq!(facts.id.as_str(), "vd0");
        }
        let _ = sysfs.identity(&id, &id);
        prop_assert!(sysfs.rdma_device(&id).is_none());
    }
}
