//! Prints the network hardware of this machine, or of the sysfs at ROOT: `devices [ROOT]`.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

use device_info::{Devlink, Inventory, Sysfs};

fn main() {
    let sysfs = match std::env::args().nth(1) {
        Some(root) => Sysfs::at(root, "/dev"),
        None => Sysfs::host(),
    };
    let mut devlink = Devlink::open().ok();
    let inventory = Inventory::read(&sysfs, &mut |device| devlink.as_mut()?.switch(device));
    for pf in &inventory.physical_functions {
        let function = &pf.function;
        println!(
            "{} {:?} {:?}, {} VFs",
            function.address,
            function.driver,
            function.netdev,
            pf.vfs.len()
        );
        for vf in &pf.vfs {
            println!(
                "  {} {} {:?}",
                vf.index, vf.function.address, vf.function.netdev
            );
        }
    }
    for function in &inventory.functions {
        println!(
            "{} {:?} {:?}",
            function.address, function.driver, function.netdev
        );
    }
    for device in &inventory.vdpa {
        println!("vdpa {} {:?} {:?}", device.name, device.driver, device.path);
    }
    for device in &inventory.rdma {
        println!(
            "rdma {} {:?} {:?}",
            device.name, device.pci_address, device.node_guid
        );
    }
}
