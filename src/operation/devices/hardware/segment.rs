//! Finds the layer-2 segment that an attachment joins on this node.

use std::fs;

use device_info::{Device, PciAddress};

use super::Hardware;
use crate::plan::{AttachPoint, Attachment, Segment};

/// The file with the IPv4 routes of this network namespace. The first line has headings. Each
/// further line is a route, and begins with the name of the route's interface.
const ROUTES: &str = "/proc/self/net/route";

impl Hardware<'_> {
    /// Returns the segment of `attachment`, which depends on the attachment's [`AttachPoint`]. The
    /// attach point may be an interface of an earlier attachment. `earlier` contains the preceding
    /// attachments of the same pod.
    ///
    /// A VF shares one wire with the interface of its physical function, so both join the same
    /// segment. A macvlan on that interface joins the same segment too.
    pub(in crate::operation) fn segment(
        &self,
        attachment: &Attachment,
        earlier: &[&Attachment],
    ) -> Segment {
        let own = || Segment::network(&attachment.label);
        match AttachPoint::of(attachment) {
            AttachPoint::Bridge { name, vlan } => Segment::bridge(name.as_str(), vlan),
            AttachPoint::Interface { name, vlan } => {
                let name = name.map_or_else(default_route, |name| Some(name.to_string()));
                name.map_or_else(own, |name| self.of_interface(&name).in_vlan(vlan))
            }
            AttachPoint::InPod { name, vlan } => {
                let place = earlier.iter().position(|other| other.ifname == name);
                place.map_or_else(own, |place| {
                    let below = self.segment(earlier[place], &earlier[..place]);
                    below.in_vlan(vlan)
                })
            }
            AttachPoint::Device(id) => self.of_device(&id),
            AttachPoint::Unknown => own(),
        }
    }

    fn of_interface(&self, name: &str) -> Segment {
        // The entry of a hardware interface is a symlink to `…/0000:01:00.0/net/eth0`.
        let entry = self.sysfs.root().join("class/net").join(name);
        let target = fs::read_link(entry).ok();
        let device = target
            .as_deref()
            .and_then(|target| target.parent()?.parent()?.file_name());
        let function = device.and_then(|device| device.to_str()?.parse().ok());
        function.map_or_else(|| Segment::interface(name), |function| self.port(function))
    }

    fn of_device(&self, id: &str) -> Segment {
        let function = match self.sysfs.device(id) {
            Some(Device::Pci(function)) => Some(function.address()),
            Some(Device::Subfunction(subfunction)) => subfunction.parent_address(),
            Some(Device::Vdpa(vdpa)) => vdpa.pci_address(),
            None => id.parse().ok(),
        };
        function.map_or_else(|| Segment::device(id), |function| self.port(function))
    }

    /// Returns the segment of the port that a function uses. A VF uses the port of its physical
    /// function.
    fn port(&self, function: PciAddress) -> Segment {
        let known = self.sysfs.pci_function(function);
        let physical = known.and_then(|function| function.physfn());
        Segment::device(physical.unwrap_or(function))
    }
}

/// Returns the interface of the IPv4 default route. Plugins use that interface if their
/// configuration has no `master`.
fn default_route() -> Option<String> {
    let routes = fs::read_to_string(ROUTES).ok()?;
    routes.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (interface, destination) = (fields.next()?, fields.next()?);
        let mask = fields.nth(5)?;
        (destination == "00000000" && mask == "00000000").then(|| interface.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use device_info::fixtures;

    use super::super::tests::node;
    use super::*;
    use crate::allocation::AllocatedDevice;

    const PF: &str = "device 0000:01:00.0";

    fn attachment(ifname: &str, device: Option<&str>, config: &str) -> Attachment {
        let config = format!(r#"{{"cniVersion":"1.0.0","name":"n",{config}}}"#);
        Attachment {
            ifname: ifname.parse().unwrap(),
            device: device.map(|id| AllocatedDevice {
                id: id.to_owned(),
                resource: "r".to_owned(),
                driver: None,
                origin: None,
                claim: None,
            }),
            ..Attachment::for_tests(&config)
        }
    }

    /// Returns the segments of a pod's attachments on a machine with an Intel igb.
    fn segments(attachments: &[Attachment]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        fixtures::igb().build(dir.path()).unwrap();
        let node = node(dir.path());
        let hardware = Hardware::of(&node);
        let attachments: Vec<&Attachment> = attachments.iter().collect();
        let mut segments = Vec::new();
        for (index, attachment) in attachments.iter().enumerate() {
            let segment = hardware.segment(attachment, &attachments[..index]);
            segments.push(segment.to_string());
        }
        segments
    }

    #[test]
    fn virtual_functions_of_one_physical_function_share_its_port() {
        let sriov = r#""type":"sriov""#;
        let found = segments(&[
            attachment("net1", Some("0000:01:10.0"), sriov),
            attachment("net2", Some("0000:01:10.2"), sriov),
            attachment("net3", Some("made-up"), sriov),
            attachment("net4", None, sriov),
        ]);
        assert_eq!(found, [PF, PF, "device made-up", "network demo/n"]);
    }

    #[test]
    fn a_software_interface_and_each_vlan_on_it_are_different_segments() {
        let found = segments(&[
            attachment("net1", None, r#""type":"macvlan","master":"dummy0""#),
            attachment(
                "net2",
                None,
                r#""type":"vlan","master":"dummy0","vlanId":7"#,
            ),
            attachment("net3", None, r#""type":"bridge","bridge":"br0""#),
            attachment("net4", None, r#""type":"bridge","bridge":"br0","vlan":7"#),
        ]);
        let expected = [
            "interface dummy0",
            "interface dummy0 VLAN 7",
            "bridge br0",
            "bridge br0 VLAN 7",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_interface_in_the_pod_has_the_segment_of_its_attachment() {
        let on = |below: &str| {
            format!(r#""type":"vlan","master":"{below}","linkInContainer":true,"vlanId":7"#)
        };
        let found = segments(&[
            attachment("net1", Some("0000:01:10.0"), r#""type":"sriov""#),
            attachment("net2", None, &on("net1")),
            attachment("net3", None, &on("net3")),
        ]);
        assert_eq!(found, [PF, &format!("{PF} VLAN 7"), "network demo/n"]);
    }

    #[test]
    fn the_interface_of_a_physical_function_has_the_segment_of_its_port() {
        let dir = tempfile::tempdir().unwrap();
        fixtures::igb().build(dir.path()).unwrap();
        let netdevs = dir.path().join("sys/bus/pci/devices/0000:01:00.0/net");
        let mut names = fs::read_dir(netdevs).unwrap();
        let name = names.next().unwrap().unwrap().file_name();
        let config = format!(r#""type":"macvlan","master":{name:?}"#);
        assert_eq!(segments(&[attachment("net1", None, &config)]), [PF]);
    }
}
