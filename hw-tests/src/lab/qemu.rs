//! QEMU's command line: the machine and its devices.

use std::path::Path;
use std::process::Command;

use device_info::PciAddress;

use crate::lab::boot::Boot;
use crate::lab::machine::CONSOLE;
use crate::lab::mount::Mount;
use crate::lab::setup::Images;
use crate::node::Node;

/// The addresses that the kernel gives to the functions behind the root ports.
const PFS: [&str; 2] = ["0000:01:00.0", "0000:02:00.0"];
const VIRTIO: &str = "0000:03:00.0";

/// Returns the devices that the suite may use.
pub(super) fn node() -> Node {
    let addresses = |texts: &[&str]| {
        texts
            .iter()
            .filter_map(|text| text.parse::<PciAddress>().ok())
            .collect()
    };
    Node {
        pfs: addresses(&PFS),
        virtio: addresses(&[VIRTIO]),
        is_guest: true,
        ..Node::default()
    }
}

/// Returns the command that runs the machine until it switches itself off.
///
/// `runner` holds the suite's binary, and `out` receives the guest's files.
pub(super) fn command(
    images: &Images,
    boot: Boot,
    runner: &Path,
    out: &Path,
    mounts: &[Mount],
) -> Command {
    // The machine dies with this process, however it ends.
    let mut qemu = Command::new("setpriv");
    qemu.args(["--pdeathsig", "KILL", "--", "qemu-system-x86_64"]);
    qemu.args(["-nodefaults", "-no-user-config", "-no-reboot"]);
    qemu.args(["-display", "none", "-smp", "2", "-m", "768"]);
    // Interrupt remapping needs the I/O APIC in user space.
    qemu.args(["-machine", "q35,kernel-irqchip=split"]);
    qemu.args(["-accel", "tcg,thread=multi", "-cpu", "max"]);
    qemu.arg("-kernel").arg(&images.kernel);
    qemu.arg("-initrd").arg(&images.initramfs);
    qemu.arg("-append").arg(kernel_command_line(boot, mounts));
    qemu.arg("-serial")
        .arg(format!("file:{}", out.join(CONSOLE).display()));
    // The suite's devices come first. Later devices get the remaining slots.
    devices(&mut qemu, boot);
    share(&mut qemu, "runner", runner, true);
    share(&mut qemu, "out", out, false);
    for mount in mounts {
        share(&mut qemu, &mount.tag, &mount.folder, true);
    }
    qemu
}

fn kernel_command_line(boot: Boot, mounts: &[Mount]) -> String {
    let iommu = if boot.has_iommu() {
        "intel_iommu=on iommu=nopt"
    } else {
        "intel_iommu=off"
    };
    let tags: Vec<&str> = mounts.iter().map(|mount| mount.tag.as_str()).collect();
    // Switches off what only costs time under emulation: mitigations, timer checks, audit.
    format!(
        "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off nokaslr tsc=reliable \
         no_timer_check random.trust_cpu=on audit=0 selinux=0 apparmor=0 {iommu} \
         jackfield.mounts={}",
        tags.join(",")
    )
}

fn share(qemu: &mut Command, tag: &str, folder: &Path, read_only: bool) {
    let mode = if read_only { ",readonly=on" } else { "" };
    qemu.arg("-fsdev").arg(format!(
        "local,id=share-{tag},path={},security_model=none{mode}",
        folder.display()
    ));
    qemu.arg("-device")
        .arg(format!("virtio-9p-pci,fsdev=share-{tag},mount_tag={tag}"));
}

/// Adds two igb functions with seven VFs each and a virtio function, on one wire. Each is behind
/// its own root port, where ARI leaves room for VFs.
fn devices(qemu: &mut Command, boot: Boot) {
    if boot.has_iommu() {
        qemu.args(["-device", "intel-iommu,intremap=on,caching-mode=on"]);
    }
    for port in 0..3 {
        let several = if port == 0 { ",multifunction=on" } else { "" };
        qemu.arg("-device").arg(format!(
            "pcie-root-port,id=port{port},slot={slot},chassis={slot},addr=4.{port},io-reserve=0{several}",
            slot = port + 1,
        ));
        qemu.arg("-netdev")
            .arg(format!("hubport,id=wire{port},hubid=0"));
    }
    for port in 0..2 {
        qemu.arg("-device").arg(format!(
            "igb,bus=port{port},netdev=wire{port},mac=52:54:00:aa:00:0{}",
            port + 1
        ));
    }
    let translated = if boot.has_iommu() {
        ",iommu_platform=on"
    } else {
        ""
    };
    qemu.arg("-device").arg(format!(
        "virtio-net-pci,bus=port2,netdev=wire2,mac=52:54:00:aa:00:03,disable-legacy=on,romfile={translated}"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suites_devices_are_addresses() {
        let node = node();
        assert_eq!(node.pfs.len(), PFS.len());
        assert_eq!(node.virtio.len(), 1);
    }

    #[test]
    fn the_machine_is_always_emulated() {
        let images = Images {
            kernel: "/k".into(),
            initramfs: "/i".into(),
            dpdk: "/d".into(),
        };
        for boot in Boot::ALL {
            let command = command(&images, boot, Path::new("/r"), Path::new("/o"), &[]);
            let words: Vec<_> = command.get_args().collect();
            assert!(words.contains(&"tcg,thread=multi".as_ref()));
            assert_eq!(
                words
                    .iter()
                    .any(|word| word.to_string_lossy().starts_with("intel-iommu")),
                boot.has_iommu()
            );
        }
    }
}
