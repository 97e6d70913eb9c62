//! What this machine reports about an allocated device.

use crate::device::Device;
use crate::devlink::DevlinkHandle;
use crate::pci_address::PciAddress;
use crate::pci_function::PciFunction;
use crate::switch::Switch;
use crate::sysfs::Sysfs;
use crate::vdpa::{VdpaDevice, VdpaDriver};

/// What sysfs and devlink report about one allocated device, in the terms of the Device Information
/// Specification (`DEVINFO 1.1.0`).
///
/// `None` means that the device lacks the value, or that this machine does not report the value.
///
/// [`complete`](crate::complete) compares these facts with device information in JSON. It adds
/// missing keys, and refuses values that contradict the facts. If a fact is `None`, `complete`
/// neither adds nor checks the fact's key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The identifier that kubelet allocated.
    pub id: String,
    /// The address of the PCI function. For a vDPA device, the address of the PCI function behind
    /// the device. `None` for a subfunction, which is only a part of a PCI function.
    pub pci_address: Option<PciAddress>,
    /// The physical function of a virtual function. For a subfunction, the PCI function that
    /// contains the subfunction.
    pub pf_pci_address: Option<PciAddress>,
    /// `/dev/vhost-net`, if the function has a user-space driver. A DPDK program can exchange
    /// packets with the kernel through this device node.
    pub vhost_net: Option<String>,
    /// The device's RDMA devices, except those in another network namespace.
    pub rdma_devices: Vec<String>,
    /// The device's representor.
    pub representor_device: Option<String>,
    /// The vDPA device. `None` for a PCI function with no vDPA device or with more than one.
    pub vdpa: Option<VdpaFacts>,
}

/// The facts about a vDPA device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VdpaFacts {
    /// The name on the vDPA bus.
    pub parent_device: String,
    /// The driver: `vhost` if a program uses the device, `virtio` if this kernel uses the device.
    pub driver: Option<VdpaDriver>,
    /// The path of the device: its character device for `vhost`, its directory in sysfs for
    /// `virtio`.
    pub path: Option<String>,
}

impl Facts {
    /// Reads the facts about the device with this identifier; `None` if this machine does not have
    /// the device.
    ///
    /// `switches` returns the switch of a physical function
    /// ([`Devlink::switch`](crate::Devlink::switch)). `read` looks up the representor in this
    /// switch. If `switches` returns `None`, `read` looks up the representor in sysfs.
    #[must_use]
    pub fn read(
        sysfs: &Sysfs,
        id: &str,
        switches: &mut dyn FnMut(&DevlinkHandle) -> Option<Switch>,
    ) -> Option<Self> {
        let mut facts = match sysfs.device(id)? {
            Device::Pci(function) => {
                let mut facts = Self::of_function(&function, switches);
                let mut below = sysfs.vdpa_devices_below(function.entry()).into_iter();
                if let (Some(only), None) = (below.next(), below.next()) {
                    facts.vdpa = Some(VdpaFacts::of(&only));
                }
                facts
            }
            Device::Vdpa(device) => {
                let function = device
                    .pci_address()
                    .and_then(|address| sysfs.pci_function(address));
                let mut facts = function
                    .map(|function| Self::of_function(&function, switches))
                    .unwrap_or_default();
                facts.vdpa = Some(VdpaFacts::of(&device));
                facts
            }
            Device::Subfunction(subfunction) => {
                let parent = subfunction.parent_address();
                let switch = parent.and_then(|parent| switches(&parent.into()));
                Self {
                    pf_pci_address: parent,
                    rdma_devices: subfunction.rdma_devices(),
                    representor_device: subfunction.representor(switch.as_ref()),
                    ..Self::default()
                }
            }
        };
        id.clone_into(&mut facts.id);
        Some(facts)
    }

    fn of_function(
        function: &PciFunction,
        switches: &mut dyn FnMut(&DevlinkHandle) -> Option<Switch>,
    ) -> Self {
        let physical = function.physfn();
        let representor_device = physical.and_then(|physical| {
            let switch = switches(&physical.into());
            function.representor(switch.as_ref())
        });
        let user_space = function
            .driver()
            .is_some_and(|driver| driver.contains("vfio") || driver.contains("uio"));
        Self {
            id: String::new(),
            pci_address: Some(function.address()),
            pf_pci_address: physical,
            vhost_net: user_space
                .then(|| function.entry().sysfs().vhost_net())
                .flatten(),
            rdma_devices: function.rdma_devices(),
            representor_device,
            vdpa: None,
        }
    }
}

impl VdpaFacts {
    fn of(device: &VdpaDevice) -> Self {
        Self {
            parent_device: device.name().to_owned(),
            driver: device.driver(),
            path: device.path(),
        }
    }
}
