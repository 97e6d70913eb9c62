//! RDMA devices on PCI functions, by the kernel module `ib_stub`: a stub that carries no traffic.

use device_info::PciAddress;

use crate::case::Stop;
use crate::rig::{child, command, sysfs};

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

    /// The RDMA device's name.
    pub(crate) fn device(&self) -> Result<String, Stop> {
        child(&sysfs::function(self.function).join("infiniband"), "ibstub")
    }

    /// The IPoIB interface above it.
    pub(crate) fn netdev(&self) -> Result<String, Stop> {
        child(&sysfs::function(self.function).join("net"), "ib")
    }
}

impl Drop for IbStub {
    fn drop(&mut self) {
        // What stays is found by the traces that every case is checked for.
        let _ = sysfs::write(CONTROL, &format!("del {}", self.function));
    }
}
