//! Tests that each reader makes a bounded number of system calls. The benchmark
//! `benches/devices.rs` measures the time instead.

use super::machine;
use crate::sysfs::cost;
use crate::{Facts, Inventory, fixtures};

/// The maximum number of system calls for reading one function, not counting a search in sysfs for
/// the function's representor.
const ONE_FUNCTION: usize = 60;
/// The maximum number of system calls for each function of an inventory, on average.
const EACH_FUNCTION: usize = 40;

#[test]
fn reading_one_vf_costs_the_same_however_many_vfs_exist() {
    let cost_of = |vfs: u32| {
        let e810 = machine(&fixtures::unverified_e810(vfs));
        let (facts, calls) = cost::of(|| Facts::read(&e810.sysfs, "0000:a2:02.1", &mut |_| None));
        assert!(facts.unwrap().pf_pci_address.is_some());
        calls
    };
    let (few, many) = (cost_of(16), cost_of(256));
    assert_eq!(few, many);
    assert!(many <= ONE_FUNCTION, "{many}");
}

#[test]
fn devlink_keeps_the_cost_of_reading_one_vf_constant() {
    let cost_of = |vfs: u32| {
        let capture = fixtures::unverified_connectx6(vfs);
        let mlx = machine(&capture);
        let (facts, calls) = cost::of(|| {
            Facts::read(&mlx.sysfs, "0000:3b:00.7", &mut |handle| {
                capture.switch(handle).cloned()
            })
        });
        assert!(facts.unwrap().representor_device.is_some());
        calls
    };
    let (few, many) = (cost_of(16), cost_of(256));
    assert_eq!(few, many);
    assert!(many <= ONE_FUNCTION, "{many}");
}

#[test]
fn without_devlink_a_search_for_a_representor_reads_each_port_once() {
    let mlx = machine(&fixtures::unverified_connectx6(256));
    let (facts, calls) = cost::of(|| Facts::read(&mlx.sysfs, "0000:3b:00.7", &mut |_| None));
    assert!(facts.unwrap().representor_device.is_some());
    assert!(calls <= ONE_FUNCTION + 3 * 257, "{calls}");
}

#[test]
fn an_inventory_makes_a_bounded_number_of_calls_per_function() {
    for capture in [
        fixtures::unverified_e810(256),
        fixtures::unverified_connectx6(256),
    ] {
        let machine = machine(&capture);
        let (inventory, calls) = cost::of(|| {
            Inventory::read(&machine.sysfs, &mut |handle| {
                capture.switch(handle).cloned()
            })
        });
        assert_eq!(inventory.physical_functions.first().unwrap().vfs.len(), 256);
        assert!(
            calls <= 257 * EACH_FUNCTION,
            "{} calls per function",
            calls / 257
        );
        // Without devlink, the crate reads the table of ports once, not for each function.
        let (_, calls) = cost::of(|| Inventory::read(&machine.sysfs, &mut |_| None));
        assert!(
            calls <= 257 * (EACH_FUNCTION + 9),
            "{} calls per function",
            calls / 257
        );
    }
}
