//! Tests of restoring a VF that plugins have changed. If a repair fails for good, the DEL reports
//! the failure and succeeds. If a repair may succeed later, the repair is owed: the DEL fails, and
//! a retry repeats the repair. Also tests the verification of VF settings on the same fake node.

mod lab;

use std::path::Path;
use std::time::Instant;

use nix::libc;

use crate::boot::boot_id;
use crate::journal::{Key, Turn};
use crate::kernel::fake::Guard;
use crate::kernel::{VfRates, VfState};
use crate::npwg::RequestedMac;
use crate::plan::Attachment;
use lab::{Lab, OWN, PF_LINK, PODS, VF, VF_LINK, device, header};

/// Leaves the VF as sriov-cni does after a DEL without a network namespace. The interface still has
/// the pod's name and MAC. The administrator's address (set on the physical function) is the VF's
/// own MAC.
fn left_by_sriov_cni(lab: &Lab) {
    lab.function(|vf| vf.mac = Some(OWN.into()));
    lab.kernel(|kernel| kernel.rename(VF_LINK, "net1"));
    lab.link(|link| link.address = PODS.to_vec());
}

#[test]
fn an_unchanged_vf_costs_only_two_queries() {
    let lab = Lab::new();
    let outcome = lab.with(|_| (), |_| ());
    assert_eq!(lab.changes(), [""; 0]);
    outcome.assert_silent();
    assert_eq!(lab.kernel.borrow().questions, 2, "one before, one after");
}

#[test]
fn leftovers_of_sriov_cni_are_repaired() {
    let lab = Lab::new();
    let outcome = lab.after(left_by_sriov_cni);
    outcome.assert_silent();
    let kernel = lab.kernel.borrow();
    let link = kernel
        .links
        .iter()
        .find(|link| link.index == VF_LINK)
        .unwrap();
    assert_eq!(
        (link.name.as_str(), link.address.as_slice()),
        ("eth2", &OWN[..])
    );
    assert_eq!(kernel.functions[&PF_LINK][0].mac, Some([0; 6].into()));
}

/// Creates a node with an igb whose physical function was up when the VFs were created. Such an igb
/// reports the VFs' own addresses as if the administrator had set them. `guard` says when the igb
/// refuses to change the address of the VF's interface. The `guard` applies only after the
/// administrator has really set an address.
fn real_igb(guard: Guard) -> Lab {
    let lab = Lab::new();
    lab.function(|vf| vf.mac = Some(OWN.into()));
    lab.kernel(|kernel| {
        kernel.own_address_becomes_admins = Some((VF_LINK, PF_LINK, 0));
        kernel.guard = guard;
    });
    lab
}

/// Leaves the VF on the igb of [`real_igb`] as sriov-cni does. sriov-cni has set the
/// administrator's address, so the `guard` applies.
fn left_on_real_igb(lab: &Lab) {
    left_by_sriov_cni(lab);
    lab.kernel(|kernel| kernel.is_given = true);
}

fn assert_is_back(lab: &Lab) {
    let kernel = lab.kernel.borrow();
    let mut links = kernel.links.iter();
    let link = links.find(|link| link.index == VF_LINK).unwrap();
    assert_eq!(link.address, OWN);
    let vf = &kernel.functions[&PF_LINK][0];
    assert_eq!((vf.mac, vf.trust), (Some(OWN.into()), Some(false)));
}

#[test]
fn a_refused_address_is_restored_while_the_vf_is_trusted() {
    let lab = real_igb(Guard::Untrusted);
    lab.after(left_on_real_igb).assert_silent();
    assert_is_back(&lab);
    assert!(lab.changes().contains(&"trust on".to_owned()));
}

#[test]
fn a_refused_address_is_restored_after_clearing_the_administrators_address() {
    let lab = real_igb(Guard::All);
    lab.after(left_on_real_igb).assert_silent();
    assert_is_back(&lab);
}

#[test]
fn a_refused_address_is_restored_through_the_physical_function() {
    let lab = real_igb(Guard::All);
    lab.kernel(|kernel| {
        kernel.asks_anew = true;
        let zero = "mac 00:00:00:00:00:00".to_owned();
        kernel.refuses = vec![
            (zero, libc::EINVAL),
            ("trust on".to_owned(), libc::EOPNOTSUPP),
        ];
    });
    lab.after(left_on_real_igb).assert_silent();
    assert_is_back(&lab);
    let changes = lab.changes();
    assert_eq!(changes[changes.len() - 2..], ["up", "down"]);
}

/// Creates a node with an igb on which no workaround restores the address of a VF. An earlier pod
/// has left the VF unrestored.
fn stubborn_igb() -> Lab {
    let lab = real_igb(Guard::All);
    lab.kernel(|kernel| kernel.ignores.push("mac 00:00:00:00:00:00".to_owned()));
    let outcome = lab.after(|lab| {
        left_on_real_igb(lab);
        lab.kernel(|kernel| kernel.rename(VF_LINK, "eth2"));
    });
    outcome.assert_says("hardware address da:49:c2:64:04:38 cannot be restored");
    lab
}

fn plain(keys: &str) -> Attachment {
    let config = format!(r#"{{"cniVersion":"1.0.0","name":"n","type":"sriov"{keys}}}"#);
    Attachment::for_tests(&config)
}

#[test]
fn an_unrestored_vf_is_recorded_and_refused_to_the_next_pod() {
    let lab = stubborn_igb();
    let kept = lab.kept().unwrap();
    assert_eq!(kept.before.netdev.unwrap().address, OWN);
    assert!(
        kept.causes[0].contains("cannot be restored"),
        "{:?}",
        kept.causes
    );
    let refused = lab.next(plain("")).unwrap_err();
    let line = refused.to_string();
    assert_eq!(refused.code(), 104, "{line}");
    for part in [
        "demo/n (net1)",
        VF,
        "still has the hardware address",
        "request a MAC",
        "unbind",
    ] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    assert!(lab.kept().is_some());
}

#[test]
fn an_unrestored_vf_is_accepted_for_a_pod_with_a_mac_of_its_own() {
    let lab = stubborn_igb();
    let with_mac = plain(r#","mac":"02:00:00:00:00:07""#);
    let baseline = lab.next(with_mac).unwrap();
    let address = &baseline[0].netdev.as_ref().unwrap().address;
    assert_eq!(address, &OWN, "the baseline has the VF's own address");
    let mut asking = plain("");
    asking.requested.mac = Some(RequestedMac::Ethernet("02:00:00:00:00:07".parse().unwrap()));
    lab.next(asking).unwrap();
    assert!(lab.kept().is_some(), "the VF is still unrestored");
}

#[test]
fn a_vf_that_the_next_add_restores_is_no_longer_on_record() {
    let lab = stubborn_igb();
    lab.kernel(|kernel| kernel.guard = Guard::Open);
    let baseline = lab.next(plain("")).unwrap();
    assert_eq!(baseline[0].netdev.as_ref().unwrap().address, OWN);
    assert!(lab.kept().is_none());
    assert_is_back(&lab);
}

#[test]
fn a_leftover_that_is_no_network_identity_does_not_block_the_next_pod() {
    let lab = Lab::new();
    lab.kernel(|kernel| kernel.ignores.push("trust off".to_owned()));
    lab.after(|lab| lab.function(|vf| vf.trust = Some(true)));
    let baseline = lab.next(plain("")).unwrap();
    let trust = baseline[0].function.unwrap().trust;
    assert_eq!(
        trust,
        Some(false),
        "a leftover must not become the baseline"
    );
    assert!(lab.kept().is_some());
    lab.kernel(|kernel| kernel.ignores.clear());
    lab.next(plain("")).unwrap();
    assert!(lab.kept().is_none());
}

/// When Jackfield restores the address of the VF's interface, igb reports that address as the
/// administrator's address. So Jackfield must clear the administrator's address a second time.
#[test]
fn a_repair_that_another_repair_undoes_is_repeated() {
    let lab = Lab::new();
    lab.kernel(|kernel| kernel.own_address_becomes_admins = Some((VF_LINK, PF_LINK, 0)));
    let outcome = lab.after(left_by_sriov_cni);
    outcome.assert_silent();
    assert_eq!(
        lab.kernel.borrow().functions[&PF_LINK][0].mac,
        Some([0; 6].into())
    );
}

#[test]
fn a_repair_that_a_driver_ignores_is_reported_and_not_owed() {
    let lab = Lab::new();
    lab.kernel(|kernel| kernel.ignores.push("trust off".to_owned()));
    let outcome = lab.after(|lab| lab.function(|vf| vf.trust = Some(true)));
    outcome.assert_says("device 0000:01:10.0 (VF 0 of 0000:01:00.0): trust off was set, but");
}

#[test]
fn an_unsupported_repair_is_reported_and_not_owed() {
    let lab = Lab::new();
    lab.kernel(|kernel| {
        kernel
            .refuses
            .push(("trust off".to_owned(), libc::EOPNOTSUPP))
    });
    let outcome = lab.after(|lab| {
        lab.function(|vf| {
            vf.trust = Some(true);
            vf.spoof_check = Some(false);
        });
    });
    outcome.assert_says("trust off cannot be restored");
    assert_eq!(
        lab.changes(),
        ["spoofchk on"],
        "a failed repair does not prevent the others"
    );
}

#[test]
fn a_repair_that_may_succeed_later_is_owed() {
    let lab = Lab::new();
    lab.kernel(|kernel| kernel.refuses.push(("trust off".to_owned(), libc::EBUSY)));
    let outcome = lab.after(|lab| lab.function(|vf| vf.trust = Some(true)));
    assert_eq!(outcome.notes, [""; 0]);
    outcome
        .assert_owes("device 0000:01:10.0 (VF 0 of 0000:01:00.0): trust off could not be restored");
}

#[test]
fn a_vf_that_the_kernel_renamed_gets_its_old_name_back() {
    let lab = Lab::new();
    let outcome = lab.after(|lab| lab.kernel(|kernel| kernel.rename(VF_LINK, "dev4")));
    outcome.assert_silent();
    assert_eq!(lab.changes(), ["name eth2"]);
}

#[test]
fn rates_that_the_driver_refuses_are_reported() {
    let lab = Lab::new();
    let rates = |vf: &mut VfState, max| vf.rates = Some(VfRates { min: 0, max });
    lab.function(|vf| rates(vf, 0));
    let refused = "min_tx_rate 0 max_tx_rate 0".to_owned();
    lab.kernel(|kernel| kernel.refuses.push((refused, libc::EINVAL)));
    let outcome = lab.after(|lab| lab.function(|vf| rates(vf, 100)));
    outcome.assert_says("max_tx_rate 0 cannot be restored");
}

#[test]
fn a_name_that_another_interface_has_is_reported() {
    let lab = Lab::new();
    lab.kernel(|kernel| kernel.refuses.push(("name eth2".to_owned(), libc::EEXIST)));
    let outcome = lab.after(|lab| lab.kernel(|kernel| kernel.rename(VF_LINK, "dev4")));
    outcome.assert_says("name eth2 cannot be restored");
}

#[test]
fn an_interface_that_is_up_is_set_down_before_it_is_renamed() {
    let lab = Lab::new();
    lab.after(|lab| {
        lab.kernel(|kernel| kernel.rename(VF_LINK, "net1"));
        lab.link(|link| link.up = true);
    });
    assert_eq!(lab.changes(), ["down", "name eth2"]);
}

#[test]
fn a_repair_is_owed_if_the_interface_is_not_found() {
    let lab = Lab::new();
    let outcome = lab.after(|lab| {
        std::fs::remove_dir_all(lab.vf_directory().join("net/eth2")).unwrap();
    });
    outcome.assert_owes("interface eth2 could not be restored");
}

#[test]
fn settings_of_a_vf_on_vfio_pci_are_restored_on_its_physical_function() {
    let lab = Lab::new();
    let vf = lab.vf_directory();
    std::fs::remove_dir_all(vf.join("net")).unwrap();
    std::fs::remove_file(vf.join("driver")).unwrap();
    std::os::unix::fs::symlink("../../../../bus/pci/drivers/vfio-pci", vf.join("driver")).unwrap();
    let outcome = lab.after(|lab| lab.function(|vf| vf.trust = Some(true)));
    outcome.assert_silent();
    assert_eq!(lab.changes(), ["trust off"]);
}

#[test]
fn a_device_of_another_boot_is_not_changed() {
    let mut lab = Lab::new();
    lab.boot = "another".to_owned();
    let outcome = lab.after(left_by_sriov_cni);
    assert_eq!(lab.changes(), [""; 0]);
    outcome.assert_silent();
}

#[test]
fn a_device_that_another_pod_has_is_not_changed() {
    let lab = Lab::new();
    lab.with(left_by_sriov_cni, |journal| {
        let header = header(&boot_id());
        journal.give_back(&header.key(), &header.attachments);
        let other = Key {
            container: "c2".parse().unwrap(),
            ifname: "eth0".parse().unwrap(),
        };
        let locks = tempfile::tempdir().unwrap();
        let turn = Turn::take(locks.path(), Instant::now()).unwrap();
        assert!(journal.take(&other, &device(), &turn).unwrap().is_none());
    });
    assert_eq!(lab.changes(), [""; 0]);
}

#[test]
fn a_recreated_vf_is_reported_and_not_changed() {
    let lab = Lab::new();
    let outcome = lab.after(|lab| {
        left_by_sriov_cni(lab);
        // Setting `sriov_numvfs` to 0 and back recreates the VF: same address, new directory.
        let (vf, old) = (lab.vf_directory(), lab.dir.path().join("old"));
        std::fs::rename(&vf, &old).unwrap();
        copy(&old, &vf);
    });
    assert_eq!(lab.changes(), [""; 0]);
    assert!(
        outcome.notes[0].contains("it was recreated after"),
        "{outcome:?}"
    );
}

#[test]
fn a_missing_vf_is_reported_and_not_owed() {
    let lab = Lab::new();
    let outcome = lab.after(|lab| {
        let link = lab.dir.path().join("sys/bus/pci/devices").join(VF);
        std::fs::remove_file(link).unwrap();
    });
    outcome.assert_says("it is missing");
}

#[test]
fn a_physical_function_that_did_not_answer_the_add_blocks_no_repair() {
    let lab = Lab::new();
    lab.kernel(|kernel| kernel.silent.push(PF_LINK));
    let outcome = lab.after(|lab| lab.kernel(|kernel| kernel.rename(VF_LINK, "net1")));
    outcome.assert_says("physical function 0000:01:00.0: ");
    assert_eq!(lab.changes(), ["name eth2"]);
}

#[test]
fn settings_are_owed_if_the_physical_function_stops_answering() {
    let lab = Lab::new();
    let outcome = lab.after(|lab| lab.kernel(|kernel| kernel.silent.push(PF_LINK)));
    outcome.assert_owes(
        "its settings on the physical function could not be restored: physical function",
    );
}

#[test]
fn a_physical_function_without_an_interface_is_reported() {
    let lab = Lab::new();
    let outcome = lab.after(|lab| {
        let net = lab.dir.path().join("sys/bus/pci/devices/0000:01:00.0/net");
        std::fs::remove_dir_all(net).unwrap();
    });
    outcome.assert_says("no longer reports this VF");
}

#[test]
fn a_repair_of_a_briefly_busy_device_is_retried() {
    let lab = Lab::new();
    lab.kernel(|kernel| {
        kernel.refuses.push(("trust off".to_owned(), libc::EAGAIN));
        kernel.relents_after = Some(3);
    });
    let outcome = lab.after(|lab| lab.function(|vf| vf.trust = Some(true)));
    outcome.assert_silent();
    assert_eq!(lab.changes(), ["trust off"]);
}

/// Copies a directory of the fake sysfs, and keeps the symlinks.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&from, &to);
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(&from).unwrap(), &to).unwrap();
        } else {
            std::fs::copy(&from, &to).unwrap();
        }
    }
}

/// If the repair were not owed, the DEL would succeed without restoring the device, and would
/// forget the device's earlier state.
#[test]
fn a_repair_is_owed_if_the_reservation_is_unreadable() {
    let lab = Lab::new();
    let link = lab.dir.path().join("journal/exclusive");
    let link = link.join(format!("device-{VF}"));
    let outcome = lab.with(
        |lab| lab.function(|vf| vf.trust = Some(true)),
        |_| {
            std::fs::remove_file(&link).unwrap();
            std::fs::write(&link, "").unwrap();
        },
    );
    outcome.assert_owes("cannot be read");
}

#[test]
fn settings_that_the_physical_function_hides_are_only_a_warning() {
    let keys = r#","vlan":7"#;
    let lab = Lab::new();
    let failure = lab.proven(plain(keys)).unwrap_err();
    assert!(
        failure.contains(r#"vlan is "vlan 0" instead of "vlan 7""#),
        "{failure}"
    );
    lab.kernel(|kernel| kernel.silent.push(PF_LINK));
    let [warning] = &lab.proven(plain(keys)).unwrap()[..] else {
        panic!("one warning");
    };
    let words =
        "cannot read its settings on its physical function: physical function 0000:01:00.0: ";
    assert!(warning.contains(words), "{warning}");
    lab.kernel(|kernel| {
        kernel.silent.clear();
        kernel.functions.clear();
    });
    let [warning] = &lab.proven(plain(keys)).unwrap()[..] else {
        panic!("one warning");
    };
    assert!(
        warning.contains("its driver does not report virtual functions"),
        "{warning}"
    );
}
