//! Tells which pod has which device. The table, the JSON document and the picture of
//! `jackfield devices` show this.

use device_info::Function;
use serde::Serialize;

use crate::journal::DeviceUser;
use crate::operation::devices::orphans::Orphan;

/// The pods that have devices, and the orphaned devices.
#[derive(Debug, Default, Serialize)]
pub(super) struct Usage {
    /// The devices that pods have.
    pub(super) users: Vec<User>,
    /// VFs that belong to no pod and lack the interface that their kernel driver should create.
    pub(super) orphans: Vec<Orphan>,
}

/// A device, and the pod that uses the device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct User {
    /// The device: its PCI address, or its name on another bus.
    pub(super) device: String,
    /// `namespace/name`, if the runtime named a pod.
    pub(super) pod: Option<String>,
    /// The runtime's ID of the sandbox.
    pub(super) container: String,
    /// The network: `namespace/definition`, or its CNI name if it has no definition.
    pub(super) network: String,
    /// The interface in the pod.
    pub(super) interface: String,
}

impl From<DeviceUser> for User {
    fn from(user: DeviceUser) -> Self {
        User {
            device: user.device.id,
            pod: user.pod.map(|pod| pod.to_string()),
            container: user.container.to_string(),
            network: user.network,
            interface: user.interface.to_string(),
        }
    }
}

impl User {
    /// Returns the pod's name, or the sandbox's ID if the runtime named no pod.
    pub(super) fn name(&self) -> &str {
        self.pod.as_deref().unwrap_or(&self.container)
    }
}

/// The owner of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Owner<'a> {
    /// The device has no owner.
    #[default]
    Free,
    /// A pod has the device.
    Pod(&'a User),
    /// No pod has the device, and its interface is missing.
    Orphan,
}

impl Usage {
    /// Returns the owner of the device with this name.
    pub(super) fn of(&self, device: &str) -> Owner<'_> {
        let user = self.users.iter().find(|user| user.device == device);
        let mut orphans = self.orphans.iter();
        match user {
            Some(user) => Owner::Pod(user),
            None if orphans.any(|it| it.address.to_string() == device) => Owner::Orphan,
            None => Owner::Free,
        }
    }

    /// Returns the owner of a function. A pod that has one of the function's vDPA devices also owns
    /// the function.
    pub(super) fn of_function(&self, function: &Function) -> Owner<'_> {
        let own = [function.address.to_string()].into_iter();
        let names = own.chain(function.vdpa.iter().cloned());
        let mut owners = names.map(|name| self.of(&name));
        let owner = owners.find(|owner| *owner != Owner::Free);
        owner.unwrap_or_default()
    }

    /// Returns the text of a table cell.
    pub(super) fn cell(owner: Owner<'_>) -> String {
        match owner {
            Owner::Free => "-".to_owned(),
            Owner::Orphan => "orphan".to_owned(),
            Owner::Pod(user) => format!("{} {} ({})", user.name(), user.interface, user.network),
        }
    }
}

/// The kind of driver of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum DriverKind {
    /// A kernel driver, which creates a network interface.
    #[default]
    Kernel,
    /// A driver for user-space programs: VFIO or UIO.
    Program,
    /// The driver of a PCI function that has vDPA devices. Also the driver of a vDPA device that
    /// belongs to no PCI function.
    Vdpa,
    /// No driver is bound.
    Nothing,
}

impl DriverKind {
    /// Returns the kind of a PCI function's driver.
    pub(super) fn of(function: &Function) -> DriverKind {
        match &function.driver {
            None => DriverKind::Nothing,
            Some(_) if !function.vdpa.is_empty() => DriverKind::Vdpa,
            Some(it) if it.contains("vfio") || it.contains("uio") => DriverKind::Program,
            Some(_) => DriverKind::Kernel,
        }
    }
}
