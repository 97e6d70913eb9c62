//! A node with a fake kernel and a network card that uses the driver `igb`. The card has two VFs. A
//! test can make the fake kernel refuse a request, or react to a setting as a driver does.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use std::time::Instant;

use device_info::fixtures;

use crate::allocation::AllocatedDevice;
use crate::baseline::DeviceState;
use crate::boot::boot_id;
use crate::cluster::{Answer, Census, Cluster, ClusterError, Publication, Question};
use crate::cni::RawObject;
use crate::delegate::{DelegateCall, DelegateError, DelegateExec, Ours};
use crate::journal::{Exclusive, Header, Journal, Key, Sandbox, Turn, Unrestored};
use crate::kernel::fake::FakeDevices;
use crate::kernel::{DeviceLinks, Link, PodNetns, VfState, VfVlan};
use crate::operation::devices::functions::prove;
use crate::operation::devices::restore::{baseline, restore};
use crate::operation::{Context, Failure, Host, Stopwatch};
use crate::plan::Attachment;
use crate::request::{Call, Request};

pub(super) const VF: &str = "0000:01:10.0";
pub(super) const OWN: [u8; 6] = [0xda, 0x49, 0xc2, 0x64, 4, 0x38];
pub(super) const PODS: [u8; 6] = [2, 0x11, 0x22, 0x33, 0x44, 0x55];
pub(super) const PF_LINK: u32 = 2;
pub(super) const VF_LINK: u32 = 4;

struct Nobody;

impl Cluster for Nobody {
    fn ask(&self, _: &Question, _: Instant) -> Result<Answer, ClusterError> {
        Ok(Answer::default())
    }

    fn census(&self, _: &str, _: bool) -> Result<Census, ClusterError> {
        Ok(Census::default())
    }

    fn publish(&self, _: &Publication, _: Instant) -> Result<(), ClusterError> {
        Ok(())
    }
}

impl DelegateExec for Nobody {
    fn exec(&self, _: &DelegateCall<'_>) -> Result<Vec<u8>, DelegateError> {
        Ok(Vec::new())
    }
}

/// A node with a fake kernel, the card, and a sandbox that has the card's first VF.
pub(super) struct Lab {
    pub(super) dir: tempfile::TempDir,
    pub(super) kernel: Rc<RefCell<FakeDevices>>,
    /// The boot ID in the record.
    pub(super) boot: String,
}

/// The outcome of a restoration.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) notes: Vec<String>,
    /// The failures that a retry may resolve.
    pub(super) owed: Vec<String>,
}

impl Outcome {
    /// Asserts that there is no note and no owed failure.
    #[track_caller]
    pub(super) fn assert_silent(&self) {
        let Outcome { notes, owed } = self;
        assert!(notes.is_empty() && owed.is_empty(), "{self:?}");
    }

    /// Asserts that the first note contains `words` and that there is no owed failure.
    #[track_caller]
    pub(super) fn assert_says(&self, words: &str) {
        assert!(self.notes[0].contains(words), "{self:?}");
        assert_eq!(self.owed, [""; 0]);
    }

    /// Asserts that the first owed failure contains `words`.
    #[track_caller]
    pub(super) fn assert_owes(&self, words: &str) {
        assert!(self.owed[0].contains(words), "{self:?}");
    }
}

impl Lab {
    pub(super) fn new() -> Lab {
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

    pub(super) fn vf_directory(&self) -> PathBuf {
        let devices = self.dir.path().join("sys/bus/pci/devices");
        devices.join(VF).canonicalize().unwrap()
    }

    pub(super) fn kernel(&self, change: impl FnOnce(&mut FakeDevices)) {
        change(&mut self.kernel.borrow_mut());
    }

    pub(super) fn function(&self, change: impl FnOnce(&mut VfState)) {
        self.kernel(|kernel| change(&mut kernel.functions.get_mut(&PF_LINK).unwrap()[0]));
    }

    pub(super) fn link(&self, change: impl FnOnce(&mut Link)) {
        self.kernel(|kernel| {
            let mut links = kernel.links.iter_mut();
            change(links.find(|link| link.index == VF_LINK).unwrap());
        });
    }

    /// Attaches the VF, runs `plugin` as the delegate, and restores the VF.
    pub(super) fn after(&self, plugin: impl FnOnce(&Lab)) -> Outcome {
        self.with(plugin, |_| ())
    }

    /// Reads the baseline, as an ADD does, for another sandbox with the same VF. Returns the
    /// baseline, or the failure if the ADD would refuse the VF.
    pub(super) fn next(&self, attachment: Attachment) -> Result<Vec<DeviceState>, Failure> {
        self.in_context(|context| {
            let mut header = header(&self.boot);
            let device = header.attachments.remove(0).device;
            header.container = "c2".parse().unwrap();
            header.attachments.push(Attachment {
                device,
                ..attachment
            });
            baseline(context, &header, &header.attachments)
        })
    }

    /// Verifies the settings that the definition of `attachment` requests for the VF. Returns the
    /// messages of the warnings, or the failure.
    pub(super) fn proven(&self, attachment: Attachment) -> Result<Vec<String>, String> {
        let device = header(&self.boot).attachments.remove(0).device;
        let attachment = Attachment {
            device,
            ..attachment
        };
        let events = self.in_context(|context| prove(context, [&attachment].into_iter()));
        match events {
            Ok(events) => Ok(events.into_iter().map(|event| event.message).collect()),
            Err(failure) => Err(failure.to_string()),
        }
    }

    fn in_context<T>(&self, act: impl FnOnce(&Context<'_>) -> T) -> T {
        let journal = Journal::new(&self.dir.path().join("journal"));
        let kernel = Rc::clone(&self.kernel);
        let devices = move |netns: Option<&PodNetns>| {
            assert!(netns.is_none(), "the pod's namespace is gone");
            let links: Box<dyn DeviceLinks> = Box::new(Rc::clone(&kernel));
            Ok(links)
        };
        let node = Host {
            cluster: &Nobody,
            exec: &Nobody,
            links: &|_| unreachable!("the pod's namespace is gone"),
            devices: &devices,
            start_worker: &|_, _, _| unreachable!("a restoration starts no process"),
            journal,
            lock_dir: self.dir.path().join("locks"),
            ours: Ours::this_process().unwrap(),
            stopwatch: &Stopwatch::default(),
        };
        let request = request(self.dir.path());
        act(&Context::new(&node, &request, Duration::from_millis(200)))
    }

    pub(super) fn with(
        &self,
        plugin: impl FnOnce(&Lab),
        meanwhile: impl FnOnce(&Journal),
    ) -> Outcome {
        self.in_context(|context| self.restored(context, plugin, meanwhile))
    }

    fn restored(
        &self,
        context: &Context<'_>,
        plugin: impl FnOnce(&Lab),
        meanwhile: impl FnOnce(&Journal),
    ) -> Outcome {
        let journal = &context.host.journal;
        let header = header(&self.boot);
        journal.begin(&header).unwrap();
        let turn = Turn::take(&context.host.lock_dir, Instant::now()).unwrap();
        assert!(
            journal
                .take(&header.key(), &device(), &turn)
                .unwrap()
                .is_none()
        );
        let baseline = baseline(context, &header, &header.attachments).unwrap();
        assert_eq!(baseline.len(), 1);
        let mut sandbox = Sandbox::planned(header);
        sandbox.baseline = baseline;
        sandbox.progress[0].started = true;
        plugin(self);
        self.kernel.borrow_mut().changes.clear();
        meanwhile(journal);
        let owed = restore(context, &sandbox, &[0]);
        Outcome {
            notes: context.notes().iter().map(ToString::to_string).collect(),
            owed: owed.iter().map(ToString::to_string).collect(),
        }
    }

    /// Returns the journal's entry for the VF, if Jackfield could not restore the VF.
    pub(super) fn kept(&self) -> Option<Unrestored> {
        let journal = Journal::new(&self.dir.path().join("journal"));
        journal.unrestored(VF.parse().unwrap())
    }

    pub(super) fn changes(&self) -> Vec<String> {
        self.kernel.borrow().changes.clone()
    }
}

pub(super) fn device() -> Exclusive {
    Exclusive::Device(VF.parse().unwrap())
}

pub(super) fn header(boot: &str) -> Header {
    let attachment = Attachment {
        device: Some(AllocatedDevice {
            id: VF.to_owned(),
            resource: "intel.com/sriov".to_owned(),
            driver: Some("igbvf".to_owned()),
            origin: None,
            claim: None,
        }),
        ..Attachment::for_tests(r#"{"cniVersion":"1.0.0","name":"n","type":"sriov"}"#)
    };
    let key = Key {
        container: "c1".parse().unwrap(),
        ifname: "eth0".parse().unwrap(),
    };
    let attachments = vec![attachment];
    Header {
        boot: boot.to_owned(),
        netns: "/gone".to_owned(),
        ..Header::new(&key, attachments)
    }
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
    let conf = RawObject::parse(conf.to_string().as_bytes()).unwrap();
    Request::new(call, conf).unwrap()
}
