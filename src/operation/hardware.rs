//! The devices of the node, as ADD, CHECK and DEL look at them: which are there, what their files
//! say, which one an interface is.

use std::path::Path;

use device_info::{
    CompletionError, Device, DeviceInfo, DeviceInfoDir, DeviceKind, Devlink, Facts, Sysfs,
    VdpaDriver, WireDeviceInfo, complete,
};
use serde_json::Value;

use super::Failure;
use crate::allocation::AllocatedDevice;
use crate::kernel::{Link, Netlink, PodLinks};
use crate::plan::{Attachment, Reason};
use crate::request::NodeConfig;
use crate::verify::{Finding, Weight, What};

/// How many links below an interface are looked at: a VLAN on a macvlan on a VF has two.
const DEEPEST: usize = 4;

/// What an attachment's device is, once its plugins have run.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// `device-info` of network-status (NPWG 1.3 §5.3.7).
    pub(super) device_info: Option<Value>,
    /// Whether a program drives it, so that the pod need not have an interface for it.
    pub(super) in_user_space: bool,
}

/// The node's devices.
pub(super) struct Hardware<'a> {
    node: &'a NodeConfig,
    sysfs: Sysfs,
}

impl<'a> Hardware<'a> {
    /// Those below `sysfsRoot`, with the device nodes of the directory `dev` beside it.
    pub(super) fn of(node: &'a NodeConfig) -> Hardware<'a> {
        let dev = node
            .sysfs_root
            .parent()
            .unwrap_or(Path::new("/"))
            .join("dev");
        Hardware {
            node,
            sysfs: Sysfs::at(&node.sysfs_root, dev),
        }
    }

    /// Looks whether an attachment's device can be used, before anything runs, and notes the
    /// driver that it is bound to.
    pub(super) fn inspect(&self, attachment: &mut Attachment) -> Result<(), Reason> {
        let Some(device) = &mut attachment.device else {
            return Ok(());
        };
        let (id, resource) = (&device.id, &device.resource);
        let named = format!("device {id} of resource {resource}");
        let root = self.node.sysfs_root.display();
        let Some(found) = self.sysfs.device(id) else {
            if device.pci().is_none() {
                // The device plugin's own form: nothing can be said of it.
                return Ok(());
            }
            return Err(Reason::Devices(format!(
                "{named} is not there: {root}/bus/pci/devices has no {id}; its PF was reset or the \
                 device was taken out, so restart the device plugin and recreate the pod"
            )));
        };
        let (driver, wanted) = match &found {
            Device::Pci(function) => (function.driver(), function.driver_override()),
            Device::Vdpa(vdpa) => (vdpa.driver().map(|driver| driver.to_string()), None),
            Device::Subfunction(subfunction) => (subfunction.driver(), None),
        };
        let Some(driver) = driver else {
            return Err(Reason::Devices(format!(
                "{named} is bound to no driver; bind it to the one that its device plugin expects \
                 and recreate the pod"
            )));
        };
        if let Some(wanted) = wanted.filter(|wanted| *wanted != driver) {
            return Err(Reason::Devices(format!(
                "{named} is bound to driver {driver}, and its driver_override is {wanted}; bind it \
                 to {wanted} and recreate the pod"
            )));
        }
        device.driver = Some(driver);
        let device = device.clone();
        self.of_device_plugin(&device).map(drop)
    }

    /// What the device plugin wrote of a device, completed and held against the machine.
    fn of_device_plugin(&self, device: &AllocatedDevice) -> Result<Option<DeviceInfo>, Reason> {
        let given = self
            .files()
            .read_dp(&device.resource, &device.id)
            .map_err(|cause| Reason::DeviceInfo(cause.to_string()))?;
        self.completed(given, Some(device))
            .map_err(|cause| Reason::DeviceInfo(cause.to_string()))
    }

    fn completed(
        &self,
        given: Option<WireDeviceInfo>,
        device: Option<&AllocatedDevice>,
    ) -> Result<Option<DeviceInfo>, CompletionError> {
        let mut devlink = None;
        let mut switches = |handle: &_| {
            let devlink = devlink.get_or_insert_with(|| Devlink::open().ok());
            devlink.as_mut()?.switch(handle)
        };
        let facts = device.and_then(|device| Facts::read(&self.sysfs, &device.id, &mut switches));
        complete(given, facts.as_ref())
    }

    /// Writes what is known of the device where the plugins look for it, right before they run:
    /// some fail on a path without a file (DEVINFO 1.1.0 §4.2.1, §5.1.1).
    pub(super) fn write_file(&self, attachment: &Attachment) -> Result<(), Failure> {
        let Some(path) = &attachment.device_info_file else {
            return Ok(());
        };
        let failed = |cause: String| Failure::DeviceFile {
            place: attachment.place(),
            cause,
        };
        let files = files_of(path);
        let name = files
            .cni_name(path)
            .map_err(|cause| failed(cause.to_string()))?;
        let info = match &attachment.device {
            None => None,
            Some(device) => self
                .of_device_plugin(device)
                .map_err(|reason| attachment.problem(reason))?,
        };
        match info {
            Some(info) => files.write_cni(&name, &info),
            // Whatever a crash left there is of another time.
            None => files.prepare_cni().and_then(|()| files.remove_cni(&name)),
        }
        .map_err(|cause| failed(cause.to_string()))
    }

    /// Takes the attachment's file away (DEVINFO 1.1.0 §4.2.1: when DELETE is called).
    pub(super) fn remove_file(attachment: &Attachment) -> Result<(), Failure> {
        let Some(path) = &attachment.device_info_file else {
            return Ok(());
        };
        let files = files_of(path);
        let removed = files
            .cni_name(path)
            .and_then(|name| files.remove_cni(&name));
        removed.map_err(|cause| Failure::DeviceFile {
            place: attachment.place(),
            cause: cause.to_string(),
        })
    }

    /// What the attachment's file says now, completed and held against the machine: nothing else
    /// may be told of a device (DEVINFO 1.1.0 §6.1.1).
    pub(super) fn told(&self, attachment: &Attachment) -> Result<Told, Failure> {
        let Some(path) = &attachment.device_info_file else {
            return Ok(Told::default());
        };
        let refused = |cause: String| Failure::DeviceInfo {
            place: attachment.place(),
            cause,
        };
        let files = files_of(path);
        let given = files
            .cni_name(path)
            .and_then(|name| files.read_cni(&name))
            .map_err(|cause| refused(cause.to_string()))?;
        let info = self
            .completed(given, attachment.device.as_ref())
            .map_err(|cause| refused(cause.to_string()))?;
        let mut told = Told {
            in_user_space: attachment
                .device
                .as_ref()
                .is_some_and(|device| self.is_in_user_space(device)),
            device_info: None,
        };
        if let Some(info) = info {
            info.check_socket()
                .map_err(|cause| refused(cause.to_string()))?;
            told.in_user_space |=
                matches!(info.kind(), DeviceKind::VhostUser(_) | DeviceKind::Memif(_));
            let value = serde_json::to_value(&info).map_err(|cause| refused(cause.to_string()))?;
            told.device_info = Some(value);
        }
        Ok(told)
    }

    fn is_in_user_space(&self, device: &AllocatedDevice) -> bool {
        match self.sysfs.device(&device.id) {
            Some(Device::Vdpa(vdpa)) => vdpa.driver() == Some(VdpaDriver::Vhost),
            Some(Device::Pci(function)) => {
                let facts = || Facts::read(&self.sysfs, &device.id, &mut |_| None);
                let is_vhost = || {
                    let vdpa = facts().and_then(|facts| facts.vdpa);
                    vdpa.is_some_and(|vdpa| vdpa.driver == Some(VdpaDriver::Vhost))
                };
                function
                    .driver()
                    .is_some_and(|driver| drives_user_space(&driver))
                    || is_vhost()
            }
            Some(Device::Subfunction(_)) | None => false,
        }
    }

    /// The findings on a device itself: still bound as it was, and to be opened where a program
    /// opens it.
    pub(super) fn findings(&self, attachment: &Attachment) -> Vec<Finding> {
        let Some(device) = &attachment.device else {
            return Vec::new();
        };
        let Some(expected) = &device.driver else {
            return Vec::new();
        };
        let id = device.id.clone();
        let (found, can_be_opened) = match self.sysfs.device(&id) {
            None => (None, true),
            Some(Device::Pci(function)) => {
                let vfio = function.vfio();
                let opened = |vfio: device_info::Vfio| vfio.path.or(vfio.device_path).is_some();
                (function.driver(), vfio.is_none_or(opened))
            }
            Some(Device::Vdpa(vdpa)) => {
                let driver = vdpa.driver();
                let opened = driver != Some(VdpaDriver::Vhost) || vdpa.path().is_some();
                (driver.map(|driver| driver.to_string()), opened)
            }
            Some(Device::Subfunction(subfunction)) => (subfunction.driver(), true),
        };
        let what = if found.as_ref() != Some(expected) {
            What::Driver {
                device: id,
                expected: expected.clone(),
                found,
            }
        } else if !can_be_opened {
            What::NoCharacterDevice {
                device: id,
                driver: expected.clone(),
            }
        } else {
            return Vec::new();
        };
        vec![Finding {
            interface: attachment.ifname.clone(),
            what,
            weight: Weight::Requested,
        }]
    }

    /// The device that has to be proven of an attachment's interface: none where the identifier
    /// is of the device plugin's own form, so that nothing can be compared.
    pub(super) fn expected<'d>(&self, attachment: &'d Attachment) -> Option<&'d str> {
        let device = attachment.device.as_ref()?;
        device.driver.as_ref().map(|_| device.id.as_str())
    }

    /// The names of the device that `link` of a pod is: the kernel's own of its parent, and what
    /// that one stands for; of what has no parent, those of the link that it stands on.
    pub(super) fn names(&self, link: &Link, links: &mut dyn PodLinks) -> Vec<String> {
        let mut at = link.clone();
        let mut host: Option<Netlink> = None;
        for _ in 0..DEEPEST {
            if let Some(name) = &at.parent_name {
                return self.names_of(at.parent_bus.as_deref().unwrap_or("pci"), name);
            }
            let Some(lower) = at.lower.filter(|lower| *lower != at.index) else {
                break;
            };
            let in_pod = at.lower_netns.is_none() && host.is_none();
            let below = if in_pod {
                links.link_at(lower)
            } else {
                if host.is_none() {
                    host = Netlink::here().ok();
                }
                host.as_mut().map_or(Ok(None), |host| host.link_at(lower))
            };
            match below {
                Ok(Some(below)) => at = below,
                Ok(None) | Err(_) => break,
            }
        }
        Vec::new()
    }

    fn names_of(&self, bus: &str, name: &str) -> Vec<String> {
        let identity = self.sysfs.identity(bus, name);
        let mut names = vec![name.to_owned()];
        // A subfunction is not the PCI function that it is a part of.
        let pci = identity.pci.filter(|_| identity.auxiliary.is_none());
        for more in identity
            .vdpa
            .into_iter()
            .chain(pci.map(|pci| pci.to_string()))
        {
            if !names.contains(&more) {
                names.push(more);
            }
        }
        names
    }

    fn files(&self) -> DeviceInfoDir {
        DeviceInfoDir::at(&self.node.dev_info_dir)
    }
}

/// The directories that a file on record is in, wherever the configuration has them by now.
fn files_of(path: &Path) -> DeviceInfoDir {
    let base = path.parent().and_then(Path::parent);
    DeviceInfoDir::at(base.unwrap_or(Path::new("/")))
}

fn drives_user_space(driver: &str) -> bool {
    driver.contains("vfio") || driver.contains("uio")
}
