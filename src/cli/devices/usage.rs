//! Who uses which device, for a row or a box.

use device_info::Function;
use serde::Serialize;

use crate::journal::DeviceUser;
use crate::operation::devices::orphans::Orphan;

/// The pods that have devices, and the devices that nobody answers for.
#[derive(Debug, Default, Serialize)]
pub(super) struct Usage {
    /// Whose the devices are.
    pub(super) users: Vec<User>,
    /// VFs that are in nobody's hands and yet not on the host.
    pub(super) orphans: Vec<Orphan>,
}

/// A device of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct User {
    /// The device: an address, or a name on its bus.
    pub(super) device: String,
    /// `namespace/name`, where the runtime named a pod.
    pub(super) pod: Option<String>,
    /// What the runtime calls the sandbox.
    pub(super) container: String,
    /// The network, as `namespace/definition`.
    pub(super) network: String,
    /// The interface in the pod.
    pub(super) interface: String,
}

impl From<DeviceUser> for User {
    fn from(user: DeviceUser) -> Self {
        User {
            device: user.device.id,
            pod: user
                .pod
                .map(|pod| format!("{}/{}", pod.namespace, pod.name)),
            container: user.container.to_string(),
            network: user.network,
            interface: user.interface.to_string(),
        }
    }
}

impl User {
    /// The pod, or the sandbox of nobody's pod.
    pub(super) fn name(&self) -> &str {
        self.pod.as_deref().unwrap_or(&self.container)
    }
}

/// Whose a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner<'a> {
    Nobody,
    Pod(&'a User),
    /// Not on the host, and no pod's.
    Lost,
}

impl Usage {
    /// Whose the device of this name is.
    pub(super) fn of(&self, device: &str) -> Owner<'_> {
        if let Some(user) = self.users.iter().find(|user| user.device == device) {
            return Owner::Pod(user);
        }
        let mut orphans = self.orphans.iter();
        if orphans.any(|orphan| orphan.address.to_string() == device) {
            return Owner::Lost;
        }
        Owner::Nobody
    }

    /// Whose a function is: by its own name, or by that of what is made of it.
    pub(super) fn of_function(&self, function: &Function) -> Owner<'_> {
        let own = self.of(&function.address.to_string());
        let made = function.vdpa.iter().map(|name| self.of(name));
        made.fold(own, |owner, other| match owner {
            Owner::Nobody => other,
            known => known,
        })
    }

    /// For a cell of a table.
    pub(super) fn cell(owner: Owner<'_>) -> String {
        match owner {
            Owner::Nobody => "-".to_owned(),
            Owner::Lost => "orphan".to_owned(),
            Owner::Pod(user) => format!("{} {} ({})", user.name(), user.interface, user.network),
        }
    }
}

/// What drives a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driven {
    /// The kernel: it has a network interface.
    Kernel,
    /// A program, through VFIO or UIO.
    Program,
    /// A program or the kernel, through vDPA.
    Vdpa,
    /// Nothing: it is bound to no driver.
    Nothing,
}

impl Driven {
    pub(super) fn of(function: &Function) -> Driven {
        match &function.driver {
            None => Driven::Nothing,
            Some(_) if !function.vdpa.is_empty() => Driven::Vdpa,
            Some(driver) if driver.contains("vfio") || driver.contains("uio") => Driven::Program,
            Some(_) => Driven::Kernel,
        }
    }
}
