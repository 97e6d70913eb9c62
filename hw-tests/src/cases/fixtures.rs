//! The fixtures match what the kernel shows.

use device_info::{Capture, Devlink, Sysfs, fixtures};

use crate::case::{Case, Outcome, Stop, present};
use crate::feature::Feature;
use crate::node::Node;
use crate::normal::NormalForm;
use crate::rig::{
    DriverBinding, IbStub, LinkLayer, Netdevsim, PfStub, Rxe, Vdpa, Vduse, netdev, until,
};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "fixtures/igb",
        needs: &[Feature::Guest, Feature::Sriov, Feature::Vfio],
        run: igb,
    },
    Case {
        name: "fixtures/igb_vfio",
        needs: &[Feature::Guest, Feature::Vfio],
        run: igb_vfio,
    },
    Case {
        name: "fixtures/noiommu",
        needs: &[Feature::Guest, Feature::VfioNoiommu],
        run: noiommu,
    },
    Case {
        name: "fixtures/rxe",
        needs: &[Feature::RdmaShared],
        run: rxe,
    },
    Case {
        name: "fixtures/ipoib",
        needs: &[Feature::Guest, Feature::IpoibStub],
        run: ipoib,
    },
    Case {
        name: "fixtures/vdpasim",
        needs: &[Feature::VdpaSim],
        run: vdpasim,
    },
    Case {
        name: "fixtures/vduse",
        needs: &[Feature::Vduse],
        run: vduse,
    },
    Case {
        name: "fixtures/vp_vdpa",
        needs: &[Feature::Guest, Feature::VpVdpa],
        run: vp_vdpa,
    },
    Case {
        name: "fixtures/netdevsim",
        needs: &[Feature::Switchdev],
        run: netdevsim,
    },
];

/// Captures this machine.
fn here() -> Result<Capture, Stop> {
    Ok(Capture::read(&Sysfs::host(), Some(&mut Devlink::open()?)))
}

/// Fails with the lines in which the machine differs from the fixture.
fn equal(
    fixture: &Capture,
    devices: &[&str],
    names: &[(&str, &str)],
    here: &Capture,
    at: &[&str],
) -> Outcome {
    let expected = NormalForm::of(fixture, devices);
    let found = NormalForm::of(here, at).renamed(names);
    match found.difference(&expected) {
        None => Ok(()),
        Some(lines) => Err(Stop::failed(format!(
            "the machine (+) is not the fixture (-):\n{lines}"
        ))),
    }
}

const IGB: [&str; 3] = [
    "devices/pci0000:00/0000:00:04.0/0000:01:00.0",
    "devices/pci0000:00/0000:00:04.0/0000:01:10.0",
    "devices/pci0000:00/0000:00:04.0/0000:01:10.2",
];

fn igb(_: &Node) -> Outcome {
    equal(&fixtures::igb(), &IGB, &[], &here()?, &IGB)
}

fn igb_vfio(node: &Node) -> Outcome {
    let vf = node.vf(0)?;
    let bound = DriverBinding::to(vf, "vfio-pci")?;
    let here = here()?;
    drop(bound);
    netdev(vf)?;
    equal(&fixtures::igb_vfio(), &IGB, &[], &here, &IGB)
}

fn noiommu(node: &Node) -> Outcome {
    let vf = node.vf(0)?;
    let bound = DriverBinding::to(vf, "vfio-pci")?;
    let here = here()?;
    drop(bound);
    netdev(vf)?;
    equal(&fixtures::igb_noiommu(), &IGB, &[], &here, &IGB)
}

fn rxe(node: &Node) -> Outcome {
    let interface = netdev(node.vf(0)?)?;
    let _rxe = Rxe::add("hwt-rxe", &interface)?;
    equal(
        &fixtures::rxe(),
        &["devices/virtual/infiniband/rxe0"],
        &[
            ("hwt-rxe", "rxe0"),
            (&format!("parent = {interface}"), "parent = eth2"),
        ],
        &here()?,
        &["devices/virtual/infiniband/hwt-rxe"],
    )
}

fn ipoib(node: &Node) -> Outcome {
    let pf = node.spare_pf()?;
    let driver = PfStub::make(pf, 2)?;
    let mut stubs = Vec::new();
    for function in [pf, driver.vf(0)?, driver.vf(1)?] {
        let stub = IbStub::add(function, LinkLayer::InfiniBand)?;
        stub.netdev()?;
        stubs.push(stub);
    }
    let mut names = Vec::new();
    for (number, stub) in stubs.iter().enumerate() {
        names.push((stub.device()?, format!("mlx5_{number}")));
    }
    let names: Vec<(&str, &str)> = names
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    let at = [
        "devices/pci0000:00/0000:00:04.1/0000:02:00.0",
        "devices/pci0000:00/0000:00:04.1/0000:02:10.0",
        "devices/pci0000:00/0000:00:04.1/0000:02:10.2",
    ];
    equal(&fixtures::ipoib(), &at, &names, &here()?, &at)
}

fn vdpasim(_: &Node) -> Outcome {
    let vhost = Vdpa::add("hwt-sim0", "vdpasim_net")?;
    let virtio = Vdpa::add("hwt-sim1", "vdpasim_net")?;
    vhost.bind("vhost_vdpa")?;
    vhost.child("vhost-vdpa-")?;
    virtio.bind("virtio_vdpa")?;
    virtio.child("virtio")?;
    equal(
        &fixtures::vdpasim(),
        &["devices/vdpasim0", "devices/vdpasim1"],
        &[("hwt-sim", "vdpasim")],
        &here()?,
        &["devices/hwt-sim0", "devices/hwt-sim1"],
    )
}

fn vduse(_: &Node) -> Outcome {
    let vduse = Vduse::add("hwt-vduse")?;
    vduse.vdpa().bind("virtio_vdpa")?;
    vduse.vdpa().child("virtio")?;
    equal(
        &fixtures::vduse(),
        &["devices/virtual/vduse/vd0/vd0"],
        &[("hwt-vduse", "vd0")],
        &here()?,
        &["devices/virtual/vduse/hwt-vduse/hwt-vduse"],
    )
}

fn vp_vdpa(node: &Node) -> Outcome {
    let address = node.virtio()?;
    let bound = DriverBinding::to(address, "vp-vdpa")?;
    let vdpa = Vdpa::add("hwt-vp", &format!("pci/{address}"))?;
    let at = ["devices/pci0000:00/0000:00:04.2/0000:03:00.0"];
    let names = [("hwt-vp", "vdpapci0")];
    vdpa.bind("vhost_vdpa")?;
    vdpa.child("vhost-vdpa-")?;
    let vhost = here()?;
    vdpa.bind("virtio_vdpa")?;
    let function = crate::rig::sysfs::function(address);
    until("the interface of the virtio device", || {
        let virtio = crate::rig::child(&function, "virtio").ok()?;
        let net = function.join(virtio).join("net");
        crate::rig::sysfs::names(net).pop()
    })?;
    let virtio = here()?;
    drop(vdpa);
    drop(bound);
    let outcomes = [
        equal(&fixtures::vp_vdpa_vhost(), &at, &names, &vhost, &at),
        equal(&fixtures::vp_vdpa_virtio(), &at, &names, &virtio, &at),
    ];
    outcomes.into_iter().collect()
}

fn netdevsim(_: &Node) -> Outcome {
    let device = Netdevsim::add(4_711, 2)?;
    device.make_vfs(3)?;
    device.set_mode("switchdev")?;
    until("the representors", || {
        (device.netdevs().len() == 5).then_some(())
    })?;
    let here = here()?;
    present("its switch", here.switch(device.handle()))?;
    equal(
        &fixtures::netdevsim(),
        &["devices/netdevsim10"],
        &[("netdevsim4711", "netdevsim10")],
        &here,
        &["devices/netdevsim4711"],
    )
}
