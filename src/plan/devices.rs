//! Assigns devices to attachments and passes the devices to the plugins.

use std::path::PathBuf;

use device_info::{CniFileName, DeviceInfoDir};

use super::{Attachment, Inputs, Planner, Reason};
use crate::allocation::{AllocatedDevice, Wish, assign};
use crate::cni::json::raw;
use crate::diagnostic::SharedError;
use crate::npwg::ObjectRef;

/// The capabilities that pass a device and its device-info file to plugins (DEVINFO 1.1.0 §5.1.1).
const DEVICE_ID: &str = "deviceID";
const DEVICE_INFO_FILE: &str = "CNIDeviceInfoFile";

impl Planner<'_> {
    /// Assigns a device to each attachment that needs one, including the attachment of the cluster
    /// network. No two attachments get the same device. An attachment that already exists keeps its
    /// device.
    pub(super) fn devices(&mut self) {
        let attachments = self.plan.attachments.iter().enumerate();
        let wishes = attachments.map(|(index, attachment)| {
            if index < self.kept {
                let device = attachment.device.as_ref();
                return Wish {
                    resource: device.map(|device| &*device.resource),
                    device: device.map(|device| &*device.id),
                };
            }
            Wish {
                resource: attachment.resource.as_deref(),
                device: attachment.requested.device.as_deref(),
            }
        });
        let wishes: Vec<Wish<'_>> = wishes.collect();
        let devices = assign(self.inputs.allocation, &wishes);
        let planned = self.plan.attachments.iter_mut().zip(devices);
        for (attachment, device) in planned.skip(self.kept) {
            let device = device.map_err(Reason::from);
            let passed = device.and_then(|device| pass_device(&self.inputs, attachment, device));
            if let Err(reason) = passed {
                self.plan.problems.push(attachment.problem(reason));
            }
        }
    }
}

/// Passes the device to the plugins of an attachment in two ways:
///
/// - Adds the keys `deviceID` and `pciBusID` to the configuration of every plugin, as Multus does.
/// - Passes the capability arguments `deviceID` (the device) and `CNIDeviceInfoFile` (the path of
///   the device-info file), each to the plugins that declare the capability.
///
/// An attachment without a device gets only `CNIDeviceInfoFile`, so that its plugins can write the
/// device-info file.
fn pass_device(
    inputs: &Inputs<'_>,
    attachment: &mut Attachment,
    device: Option<AllocatedDevice>,
) -> Result<(), Reason> {
    let wants_file = attachment.config.declares(DEVICE_INFO_FILE);
    if device.is_none() && !wants_file {
        return Ok(());
    }
    let file = info_file(inputs, attachment)?;
    let Some(text) = file.to_str() else {
        return Err(Reason::DeviceInfoDir(inputs.config.dev_info_dir.clone()));
    };
    let args = &mut attachment.capability_args;
    args.set(DEVICE_INFO_FILE, raw(text));
    attachment.device_info_file = Some(file);
    if let Some(device) = device {
        let id = raw(&device.id);
        args.set(DEVICE_ID, id.clone());
        attachment.inject.push((DEVICE_ID.to_owned(), id.clone()));
        attachment.inject.push(("pciBusID".to_owned(), id));
        attachment.device = Some(device);
    }
    Ok(())
}

/// Returns the path of the attachment's device-info file. No other attachment on the node has this
/// path.
fn info_file(inputs: &Inputs<'_>, attachment: &Attachment) -> Result<PathBuf, Reason> {
    let config = inputs.config;
    let object = attachment.label.parse::<ObjectRef>().ok();
    let (namespace, name) = match &object {
        Some(object) => (object.namespace(), object.name()),
        None => (
            config.multus_namespace.as_str(),
            attachment.network.as_str(),
        ),
    };
    let (container, ifname) = (inputs.container.as_str(), attachment.ifname.as_str());
    let file = CniFileName::of_attachment(namespace, name, container, ifname)
        .map_err(|error| Reason::UnusableDevice(SharedError::new(error)))?;
    Ok(DeviceInfoDir::at(&config.dev_info_dir).cni_path(&file))
}
