//! RDMA devices on PCI functions, by the kernel module `ib_stub`: a stub that carries no traffic.

use device_info::PciAddress;

use crate::case::Stop;
use crate::rig::{Bound, child, command, sysfs};

const CONTROL: &str = "/sys/module/ib_stub/parameters/control";

/// What the stub's port speaks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LinkLayer {
    /// InfiniBand: the kernel's IPoIB makes an interface with a 20-byte address on it.
    InfiniBand,
    /// RoCE, on the network interface that the function has.
    Roce,
}

/// An RDMA device on a PCI function, gone when dropped.
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

    /// Whether it refuses to set other GUIDs for the VFs of its function.
    pub(crate) fn keeps_guids(&self, keeps: bool) -> Result<(), Stop> {
        let verb = if keeps { "keep" } else { "let" };
        Ok(sysfs::write(CONTROL, &format!("{verb} {}", self.function))?)
    }

    /// One on a function that is bound to the stub as to a driver: a VF has the GUIDs that its PF has
    /// set for it, whenever it is bound.
    pub(crate) fn bind(function: PciAddress) -> Result<BoundStub, Stop> {
        command("modprobe", &["ib_stub"])?;
        command("modprobe", &["ib_ipoib"])?;
        let bound = Bound::to(function, "ib_stub")?;
        Ok(BoundStub {
            function,
            _bound: bound,
        })
    }

    /// The RDMA device's name.
    pub(crate) fn device(&self) -> Result<String, Stop> {
        child(&sysfs::function(self.function).join("infiniband"), "ibstub")
    }

    /// The IPoIB interface above it.
    pub(crate) fn netdev(&self) -> Result<String, Stop> {
        child(&sysfs::function(self.function).join("net"), "ib")
    }
}

/// An RDMA device whose driver the stub is; the function is on its own again when dropped.
#[derive(Debug)]
pub(crate) struct BoundStub {
    function: PciAddress,
    _bound: Bound,
}

impl BoundStub {
    /// The RDMA device's name.
    pub(crate) fn device(&self) -> Result<String, Stop> {
        child(&sysfs::function(self.function).join("infiniband"), "ibstub")
    }
}

impl Drop for IbStub {
    fn drop(&mut self) {
        // What stays is found by the traces that every case is checked for.
        let _ = sysfs::write(CONTROL, &format!("del {}", self.function));
    }
}
