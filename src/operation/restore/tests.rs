//! What is put back, by the tree of an igb with two VFs and a kernel that is made up: faults can be
//! put into it, and what a driver answers a setting with.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use device_info::fixtures;
use nix::libc;

use super::*;
use crate::allocation::AllocatedDevice;
use crate::cluster::{Answer, Census, Cluster, ClusterError, Publication, Question};
use crate::delegate::{Call as Delegate, CallError, DelegateExec, Ours};
use crate::journal::{Journal, Key};
use crate::kernel::fake::FakeDevices;
use crate::kernel::{Link, VfRates, VfState, VfVlan};
use crate::operation::{Node, Stopwatch};
use crate::plan::Attachment;
use crate::request::{Call, Request};

const VF: &str = "0000:01:10.0";
const OWN: [u8; 6] = [0xda, 0x49, 0xc2, 0x64, 4, 0x38];
const PODS: [u8; 6] = [2, 0x11, 0x22, 0x33, 0x44, 0x55];
const PF_LINK: u32 = 2;
const VF_LINK: u32 = 4;

struct Nobody;

impl Cluster for Nobody {
    fn ask(&self, _: &Question) -> Result<Answer, ClusterError> {
        Ok(Answer::default())
    }

    fn census(&self, _: &str) -> Result<Census, ClusterError> {
        Ok(Census::default())
    }

    fn publish(&self, _: &Publication) -> Result<(), ClusterError> {
        Ok(())
    }
}

impl DelegateExec for Nobody {
    fn exec(&self, _: &Delegate<'_>) -> Result<Vec<u8>, CallError> {
        Ok(Vec::new())
    }
}

/// A node with an igb, a sandbox that has its first VF, and a kernel.
struct Lab {
    dir: tempfile::TempDir,
    kernel: Rc<RefCell<FakeDevices>>,
    /// Which boot the record is of.
    boot: String,
}

/// What became of it.
#[derive(Debug, Default)]
struct Outcome {
    notes: Vec<String>,
    owed: Vec<String>,
}

impl Lab {
    fn new() -> Lab {
        let dir = tempfile::tempdir().unwrap();
        fixtures::igb().build(dir.path()).unwrap();
        let link = |index, name: &str, address: &[u8]| Link {
            index,
            name: name.to_owned(),
            address: address.to_vec(),
            mtu: 1500,
            arp_type: 1,
            ..Link::default()
        };
        let function = |index| VfState {
            index,
            mac: Some([0; 6].into()),
            vlan: Some(VfVlan::default()),
            spoof_check: Some(true),
            trust: Some(false),
            ..VfState::default()
        };
        let kernel = FakeDevices {
            links: vec![
                link(PF_LINK, "eth0", &[2, 0, 0, 0, 0, 1]),
                link(VF_LINK, "eth2", &OWN),
                link(5, "eth3", &[2, 0, 0, 0, 0, 3]),
            ],
            functions: [(PF_LINK, vec![function(0), function(1)])].into(),
            sysfs: Some(dir.path().join("sys")),
            ..FakeDevices::default()
        };
        Lab {
            dir,
            kernel: Rc::new(RefCell::new(kernel)),
            boot: boot_id(),
        }
    }

    fn vf_directory(&self) -> PathBuf {
        let devices = self.dir.path().join("sys/bus/pci/devices");
        devices.join(VF).canonicalize().unwrap()
    }

    fn kernel(&self, change: impl FnOnce(&mut FakeDevices)) {
        change(&mut self.kernel.borrow_mut());
    }

    fn function(&self, change: impl FnOnce(&mut VfState)) {
        self.kernel(|kernel| change(&mut kernel.functions.get_mut(&PF_LINK).unwrap()[0]));
    }

    fn link(&self, change: impl FnOnce(&mut Link)) {
        self.kernel(|kernel| {
            let mut links = kernel.links.iter_mut();
            change(links.find(|link| link.index == VF_LINK).unwrap());
        });
    }

    /// Attaches the VF, lets a plugin do what `plugin` does, and puts it back.
    fn after(&self, plugin: impl FnOnce(&Lab)) -> Outcome {
        self.with(plugin, |_| ())
    }

    fn with(&self, plugin: impl FnOnce(&Lab), meanwhile: impl FnOnce(&Journal)) -> Outcome {
        let journal = Journal::new(&self.dir.path().join("journal"));
        let kernel = Rc::clone(&self.kernel);
        let devices = move |netns: Option<&PodNetns>| {
            assert!(netns.is_none(), "the pod's namespace is gone");
            let links: Box<dyn DeviceLinks> = Box::new(Rc::clone(&kernel));
            Ok(links)
        };
        let node = Node {
            cluster: &Nobody,
            exec: &Nobody,
            links: &|_| unreachable!("the pod's namespace is gone"),
            devices: &devices,
            journal: journal.clone(),
            lock_dir: self.dir.path().join("locks"),
            ours: Ours::this_process().unwrap(),
            stopwatch: &Stopwatch::default(),
        };
        let request = request(self.dir.path());
        let context = Context::new(&node, &request, Duration::from_millis(200));
        let header = header(&self.boot);
        journal.begin(&header).unwrap();
        assert!(journal.take(&header.key(), device()).unwrap().is_none());
        let baseline = super::baseline(&context, &header).unwrap();
        assert_eq!(baseline.len(), 1);
        let mut sandbox = Sandbox::planned(header);
        sandbox.baseline = baseline;
        sandbox.progress[0].started = true;
        plugin(self);
        self.kernel.borrow_mut().changes.clear();
        meanwhile(&journal);
        let owed = restore(&context, &sandbox, &[0]);
        Outcome {
            notes: context.notes(),
            owed: owed.iter().map(ToString::to_string).collect(),
        }
    }

    fn changes(&self) -> Vec<String> {
        self.kernel.borrow().changes.clone()
    }
}

fn device() -> Exclusive {
    Exclusive::Device(VF.parse().unwrap())
}

fn header(boot: &str) -> Header {
    let attachment = Attachment {
        device: Some(AllocatedDevice {
            id: VF.to_owned(),
            resource: "intel.com/sriov".to_owned(),
            driver: Some("igbvf".to_owned()),
            origin: None,
        }),
        ..Attachment::for_tests(r#"{"cniVersion":"1.0.0","name":"n","type":"sriov"}"#)
    };
    let key = Key {
        container: "c1".parse().unwrap(),
        ifname: "eth0".parse().unwrap(),
    };
    let text = String::new;
    let attachments = vec![attachment];
    Header::new(
        boot.to_owned(),
        &key,
        "/gone".to_owned(),
        text(),
        text(),
        None,
        attachments,
    )
}

fn request(dir: &Path) -> Request {
    let conf = serde_json::json!({
        "cniVersion": "1.0.0", "name": "jackfield", "type": "jackfield", "manifestDir": "/m",
        "delegates": [{"cniVersion": "1.0.0", "name": "cluster", "type": "bridge"}],
        "sysfsRoot": dir.join("sys"),
    });
    let variable = |name: &str| match name {
        "CNI_COMMAND" => Some("DEL".to_owned()),
        "CNI_CONTAINERID" => Some("c1".to_owned()),
        "CNI_IFNAME" => Some("eth0".to_owned()),
        "CNI_PATH" => Some("/opt/cni/bin".to_owned()),
        _ => None,
    };
    let call = Call::read(variable).unwrap();
    Request::parse(call, conf.to_string().as_bytes()).unwrap()
}

/// What sriov-cni leaves after a DEL whose namespace was gone: the VF's own MAC as the
/// administrator's, and the pod's name and MAC on the interface.
fn left_by_sriov_cni(lab: &Lab) {
    lab.function(|vf| vf.mac = Some(OWN.into()));
    lab.kernel(|kernel| kernel.rename(VF_LINK, "net1"));
    lab.link(|link| link.address = PODS.to_vec());
}

#[test]
fn a_device_that_is_as_it_came_costs_one_question() {
    let lab = Lab::new();
    let outcome = lab.with(|_| (), |_| ());
    assert_eq!(lab.changes(), [""; 0]);
    assert_eq!((outcome.notes.len(), outcome.owed.len()), (0, 0));
    assert_eq!(lab.kernel.borrow().questions, 2, "one before, one after");
}

#[test]
fn what_sriov_cni_leaves_is_put_right() {
    let lab = Lab::new();
    let outcome = lab.after(left_by_sriov_cni);
    assert_eq!(
        (outcome.notes.len(), outcome.owed.len()),
        (0, 0),
        "{outcome:?}"
    );
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

/// igb shows the address that a VF gives itself as if the administrator had given it.
#[test]
fn igb_that_answers_one_repair_by_undoing_another_is_asked_again() {
    let lab = Lab::new();
    lab.kernel(|kernel| kernel.own_address_becomes_admins = Some((VF_LINK, PF_LINK, 0)));
    let outcome = lab.after(left_by_sriov_cni);
    assert_eq!(
        (outcome.notes.len(), outcome.owed.len()),
        (0, 0),
        "{outcome:?}"
    );
    assert_eq!(
        lab.kernel.borrow().functions[&PF_LINK][0].mac,
        Some([0; 6].into())
    );
}

#[test]
fn what_a_driver_never_takes_back_is_said_once_and_not_owed() {
    let lab = Lab::new();
    lab.kernel(|kernel| kernel.ignores.push("trust off".to_owned()));
    let outcome = lab.after(|lab| lab.function(|vf| vf.trust = Some(true)));
    assert_eq!(outcome.owed, [""; 0]);
    let line = "device 0000:01:10.0 (VF 0 of 0000:01:00.0): trust off was put back";
    assert!(outcome.notes[0].starts_with(line), "{outcome:?}");
}

#[test]
fn igb_what_it_does_not_support_is_said_and_not_owed() {
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
    assert_eq!(outcome.owed, [""; 0]);
    assert!(
        outcome.notes[0].contains("trust off cannot be put back"),
        "{outcome:?}"
    );
    assert_eq!(
        lab.changes(),
        ["spoofchk on"],
        "one that fails keeps no other from it"
    );
}

#[test]
fn what_may_work_later_is_owed() {
    let lab = Lab::new();
    lab.kernel(|kernel| kernel.refuses.push(("trust off".to_owned(), libc::EBUSY)));
    let outcome = lab.after(|lab| lab.function(|vf| vf.trust = Some(true)));
    assert_eq!(outcome.notes, [""; 0]);
    let line = "device 0000:01:10.0 (VF 0 of 0000:01:00.0): trust off could not be put back";
    assert!(outcome.owed[0].starts_with(line), "{outcome:?}");
}

#[test]
fn igb_a_vf_that_came_home_under_the_kernels_name_gets_its_own() {
    let lab = Lab::new();
    let outcome = lab.after(|lab| lab.kernel(|kernel| kernel.rename(VF_LINK, "dev4")));
    assert_eq!(
        (outcome.notes.len(), outcome.owed.len()),
        (0, 0),
        "{outcome:?}"
    );
    assert_eq!(lab.changes(), ["name eth2"]);
}

#[test]
fn igb_whose_physical_function_is_down_refuses_rates_and_that_is_said() {
    let lab = Lab::new();
    let rates = |vf: &mut VfState, max| vf.rates = Some(VfRates { min: 0, max });
    lab.function(|vf| rates(vf, 0));
    let refused = "min_tx_rate 0 max_tx_rate 0".to_owned();
    lab.kernel(|kernel| kernel.refuses.push((refused, libc::EINVAL)));
    let outcome = lab.after(|lab| lab.function(|vf| rates(vf, 100)));
    assert_eq!(outcome.owed, [""; 0]);
    assert!(
        outcome.notes[0].contains("max_tx_rate 0 cannot be put back"),
        "{outcome:?}"
    );
}

#[test]
fn a_name_that_somebody_else_has_by_now_is_said() {
    let lab = Lab::new();
    lab.kernel(|kernel| kernel.refuses.push(("name eth2".to_owned(), libc::EEXIST)));
    let outcome = lab.after(|lab| lab.kernel(|kernel| kernel.rename(VF_LINK, "dev4")));
    assert_eq!(outcome.owed, [""; 0]);
    assert!(
        outcome.notes[0].contains("name eth2 cannot be put back"),
        "{outcome:?}"
    );
}

#[test]
fn an_interface_that_is_up_goes_down_for_its_name() {
    let lab = Lab::new();
    lab.after(|lab| {
        lab.kernel(|kernel| kernel.rename(VF_LINK, "net1"));
        lab.link(|link| link.up = true);
    });
    assert_eq!(lab.changes(), ["down", "name eth2"]);
}

#[test]
fn an_interface_that_is_in_no_namespace_is_owed() {
    let lab = Lab::new();
    let outcome = lab.after(|lab| {
        std::fs::remove_dir_all(lab.vf_directory().join("net/eth2")).unwrap();
    });
    assert!(
        outcome.owed[0].contains("interface eth2 could not be put back"),
        "{outcome:?}"
    );
}

#[test]
fn a_vf_on_vfio_pci_is_put_right_on_its_physical_function() {
    let lab = Lab::new();
    let vf = lab.vf_directory();
    std::fs::remove_dir_all(vf.join("net")).unwrap();
    std::fs::remove_file(vf.join("driver")).unwrap();
    std::os::unix::fs::symlink("../../../../bus/pci/drivers/vfio-pci", vf.join("driver")).unwrap();
    let outcome = lab.after(|lab| lab.function(|vf| vf.trust = Some(true)));
    assert_eq!(
        (outcome.notes.len(), outcome.owed.len()),
        (0, 0),
        "{outcome:?}"
    );
    assert_eq!(lab.changes(), ["trust off"]);
}

#[test]
fn nothing_of_another_boot_is_touched() {
    let mut lab = Lab::new();
    lab.boot = "another".to_owned();
    let outcome = lab.after(left_by_sriov_cni);
    assert_eq!(lab.changes(), [""; 0]);
    assert_eq!((outcome.notes.len(), outcome.owed.len()), (0, 0));
}

#[test]
fn nothing_that_another_pod_has_by_now_is_touched() {
    let lab = Lab::new();
    lab.with(left_by_sriov_cni, |journal| {
        journal.give_back(&header(&boot_id()));
        let other = Key {
            container: "c2".parse().unwrap(),
            ifname: "eth0".parse().unwrap(),
        };
        assert!(journal.take(&other, device()).unwrap().is_none());
    });
    assert_eq!(lab.changes(), [""; 0]);
}

#[test]
fn a_vf_that_its_pf_made_anew_is_left_as_it_is_and_that_is_said() {
    let lab = Lab::new();
    let outcome = lab.after(|lab| {
        left_by_sriov_cni(lab);
        // sriov_numvfs went through 0: the same address, another directory.
        let (vf, old) = (lab.vf_directory(), lab.dir.path().join("old"));
        std::fs::rename(&vf, &old).unwrap();
        copy(&old, &vf);
    });
    assert_eq!(lab.changes(), [""; 0]);
    assert!(outcome.notes[0].contains("made anew"), "{outcome:?}");
}

#[test]
fn a_vf_that_is_gone_owes_nothing() {
    let lab = Lab::new();
    let outcome = lab.after(|lab| {
        let link = lab.dir.path().join("sys/bus/pci/devices").join(VF);
        std::fs::remove_file(link).unwrap();
    });
    assert_eq!(outcome.owed, [""; 0]);
    assert!(outcome.notes[0].contains("it is gone"), "{outcome:?}");
}

#[test]
fn a_physical_function_that_did_not_answer_before_is_told_and_holds_nothing_up() {
    let lab = Lab::new();
    lab.kernel(|kernel| kernel.silent.push(PF_LINK));
    let outcome = lab.after(|lab| lab.kernel(|kernel| kernel.rename(VF_LINK, "net1")));
    assert!(
        outcome.notes[0].contains("physical function 0000:01:00.0: "),
        "{outcome:?}"
    );
    assert_eq!(outcome.owed, [""; 0]);
    assert_eq!(lab.changes(), ["name eth2"]);
}

#[test]
fn a_physical_function_that_does_not_answer_now_is_owed_its_functions_settings() {
    let lab = Lab::new();
    let outcome = lab.after(|lab| lab.kernel(|kernel| kernel.silent.push(PF_LINK)));
    let line = "what its physical function has set could not be put back: physical function";
    assert!(outcome.owed[0].contains(line), "{outcome:?}");
}

#[test]
fn a_physical_function_that_a_program_has_by_now_is_said() {
    let lab = Lab::new();
    let outcome = lab.after(|lab| {
        let net = lab.dir.path().join("sys/bus/pci/devices/0000:01:00.0/net");
        std::fs::remove_dir_all(net).unwrap();
    });
    assert_eq!(outcome.owed, [""; 0]);
    assert!(
        outcome.notes[0].contains("says nothing of it any more"),
        "{outcome:?}"
    );
}

#[test]
fn a_device_that_is_busy_for_a_moment_is_tried_again() {
    let lab = Lab::new();
    lab.kernel(|kernel| {
        kernel.refuses.push(("trust off".to_owned(), libc::EAGAIN));
        kernel.relents_after = Some(3);
    });
    let outcome = lab.after(|lab| lab.function(|vf| vf.trust = Some(true)));
    assert_eq!(
        (outcome.notes.len(), outcome.owed.len()),
        (0, 0),
        "{outcome:?}"
    );
    assert_eq!(lab.changes(), ["trust off"]);
}

/// A directory of links and files, as sysfs has them.
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
