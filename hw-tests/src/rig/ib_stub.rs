//! RDMA devices on PCI functions from the kernel module `ib_stub`, a stub that carries no traffic.

use device_info::PciAddress;

use crate::case::Stop;
use crate::rig::{DriverBinding, child, command, sysfs};

const CONTROL: &str = "/sys/module/ib_stub/parameters/control";

/// The link layer of the stub's port.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LinkLayer {
    /// InfiniBand: the kernel's IPoIB creates an interface with a 20-byte address on it.
    InfiniBand,
    /// RoCE, on the function's network interface.
    Roce,
}

/// An RDMA device on a PCI function, removed when dropped.
#[derive(Debug)]
pub(crate) struct IbStub {
    function: PciAddress,
}

impl IbStub {
    pub(crate) fn add(function: PciAddress, layer: LinkLayer) -> Result<Self, Stop> {
        command("modprobe", &["ib_stub"])?;
        command("modprobe", &["ib_ipoib"])?;
        let layer = match layer {
            LinkLayer::InfiniBand => "ib",
            LinkLayer::Roce => "roce",
        };
        sysfs::write(CONTROL, &format!("add {function} {layer}"))?;
        Ok(Self { function })
    }

    /// Sets whether it refuses to change the GUIDs of its function's VFs.
    pub(crate) fn keeps_guids(&self, keeps: bool) -> Result<(), Stop> {
        let verb = if keeps { "keep" } else { "let" };
        Ok(sysfs::write(CONTROL, &format!("{verb} {}", self.function))?)
    }

    /// Binds a function to the stub as its driver. A VF then has the GUIDs that its PF has set for
    /// it at each bind.
    pub(crate) fn bind(function: PciAddress) -> Result<BoundStub, Stop> {
        command("modprobe", &["ib_stub"])?;
        command("modprobe", &["ib_ipoib"])?;
        let bound = DriverBinding::to(function, "ib_stub")?;
        Ok(BoundStub {
            function,
            _bound: bound,
        })
    }

    /// Returns the RDMA device's name.
    pub(crate) fn device(&self) -> Result<String, Stop> {
        child(&sysfs::function(self.function).join("infiniband"), "ibstub")
    }

    /// Returns the IPoIB interface above it.
    pub(crate) fn netdev(&self) -> Result<String, Stop> {
        child(&sysfs::function(self.function).join("net"), "ib")
    }
}

/// An RDMA device with the stub as its driver. The function is back on its own driver when dropped.
#[derive(Debug)]
pub(crate) struct BoundStub {
    function: PciAddress,
    _bound: DriverBinding,
}

impl BoundStub {
    /// Returns the RDMA device's name.
    pub(crate) fn device(&self) -> Result<String, Stop> {
        child(&sysfs::function(self.function).join("infiniband"), "ibstub")
    }
}

impl Drop for IbStub {
    fn drop(&mut self) {
        // The check of traces after each case finds what stays.
        let _ = sysfs::write(CONTROL, &format!("del {}", self.function));
    }
}
