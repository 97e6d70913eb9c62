//! Lists the attachments that use devices of this node, according to the records.

use device_info::PciAddress;
use serde::Serialize;

use super::{Journal, JournalError, Sandbox};
use crate::allocation::AllocatedDevice;
use crate::cluster::PodName;
use crate::cni::{ContainerId, InterfaceName};

/// An attachment that has a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceUser {
    /// The device, with its resource and its driver at the time of the ADD.
    pub device: AllocatedDevice,
    /// The pod, if the runtime named one.
    pub pod: Option<PodName>,
    /// The container ID of the sandbox.
    pub container: ContainerId,
    /// The network: `namespace/definition`, or the CNI name of a network without a definition.
    pub network: String,
    /// The interface in the pod.
    pub interface: InterfaceName,
    /// The path of the network namespace.
    pub netns: String,
    /// Whether the ADD completed.
    pub complete: bool,
}

impl DeviceUser {
    /// Returns the attachments of one sandbox that have a device and are not detached, in the order
    /// of attaching.
    pub fn of(sandbox: &Sandbox) -> Vec<DeviceUser> {
        let header = &sandbox.header;
        let progress = sandbox.progress.iter();
        let attached = header.attachments.iter().zip(progress);
        attached
            .filter(|(_, progress)| !progress.detached)
            .filter_map(|(attachment, _)| {
                Some(DeviceUser {
                    device: attachment.device.clone()?,
                    pod: header.pod.clone(),
                    container: header.container.clone(),
                    network: attachment.label.clone(),
                    interface: attachment.ifname.clone(),
                    netns: header.netns.clone(),
                    complete: sandbox.complete,
                })
            })
            .collect()
    }

    /// Returns the address of the device, if it is a PCI function.
    pub fn pci(&self) -> Option<PciAddress> {
        self.device.pci()
    }
}

impl Journal {
    /// Returns every recorded attachment that has a device and is not detached, sorted by device.
    /// Skips damaged records. Changes nothing, so the caller needs only read access to the journal.
    ///
    /// # Errors
    /// Code 109 if the journal exists and cannot be read.
    pub fn device_users(&self) -> Result<Vec<DeviceUser>, JournalError> {
        let users = self.readable()?.flat_map(|it| DeviceUser::of(&it));
        let mut users: Vec<DeviceUser> = users.collect();
        users.sort_by_cached_key(|it| (it.pci(), it.device.id.clone()));
        Ok(users)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::journal::{Header, Key, Step};
    use crate::plan::Attachment;

    fn attachment(ifname: &str, device: Option<&str>) -> Attachment {
        let config = r#"{"cniVersion":"1.0.0","name":"n","type":"sriov"}"#;
        let device = device.map(|id| AllocatedDevice {
            id: id.to_owned(),
            resource: "intel.com/sriov".to_owned(),
            driver: Some("igbvf".to_owned()),
            origin: None,
            claim: None,
        });
        Attachment {
            label: format!("demo/{ifname}"),
            ifname: ifname.parse().unwrap(),
            device,
            ..Attachment::for_tests(config)
        }
    }

    fn begin(
        journal: &Journal,
        container: &str,
        attachments: Vec<Attachment>,
    ) -> crate::journal::Entry {
        let key = Key {
            container: container.parse().unwrap(),
            ifname: "eth0".parse().unwrap(),
        };
        let pod = PodName {
            namespace: "demo".to_owned(),
            name: container.to_owned(),
            uid: None,
        };
        let header = Header {
            pod: Some(pod),
            ..Header::new(&key, attachments)
        };
        journal.begin(&header).unwrap()
    }

    #[test]
    fn every_device_on_record_is_listed_with_its_user() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(dir.path());
        assert_eq!(journal.device_users().unwrap(), []);
        let vfs = vec![
            attachment("eth0", None),
            attachment("net1", Some("0000:01:10.2")),
            attachment("net2", Some("0000:01:11.0")),
        ];
        let mut entry = begin(&journal, "b", vfs);
        begin(
            &journal,
            "a",
            vec![attachment("net1", Some("0000:01:10.0"))],
        );
        fs::write(dir.path().join("sandboxes/c@eth0"), "no record").unwrap();
        let told = |journal: &Journal| -> Vec<String> {
            let users = journal.device_users().unwrap();
            let line = |user: &DeviceUser| {
                let pod = user.pod.as_ref().unwrap();
                format!(
                    "{} {} {} {}",
                    user.device.id, pod, user.network, user.interface
                )
            };
            users.iter().map(line).collect()
        };
        let expected = [
            "0000:01:10.0 demo/a demo/net1 net1",
            "0000:01:10.2 demo/b demo/net1 net1",
        ];
        assert_eq!(told(&journal)[..2], expected);
        assert_eq!(told(&journal).len(), 3);
        entry.write(&[Step::Started(1), Step::Detached(1)]).unwrap();
        assert_eq!(told(&journal).len(), 2, "detached devices have no user");
        assert!(dir.path().join("sandboxes/c@eth0").exists());
    }
}
