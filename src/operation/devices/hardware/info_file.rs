//! The device-info file of an attachment. Jackfield writes the file before the plugins run, to
//! describe the device to them. The plugins may change the file. Jackfield reads the file after the
//! plugins have run, and removes it when the attachment is detached (Device Information
//! Specification, DEVINFO 1.1.0 §4.2, §5.1, §6.1).

use std::error::Error;
use std::path::Path;

use device_info::{
    CniFileName, CompletionError, DeviceInfo, DeviceInfoDir, DeviceKind, Devlink, Facts,
    StoreError, WireDeviceInfo, complete,
};
use serde_json::Value;

use super::Hardware;
use crate::allocation::AllocatedDevice;
use crate::diagnostic::SharedError;
use crate::operation::Failure;
use crate::plan::{Attachment, Reason};

/// Why Jackfield cannot publish the device-info of a device. For example, the file cannot be read,
/// contradicts the hardware, or contains the path of a missing socket.
pub type InfoFileError = Box<dyn Error + Send + Sync>;

/// What Jackfield knows about an attachment's device after the plugins have run.
#[derive(Debug, Default)]
pub(in crate::operation) struct Told {
    /// The `device-info` of network-status (NPWG 1.3 §5.3.7).
    pub(in crate::operation) device_info: Option<Value>,
    /// Whether a user-space program drives the device. Such a device has no interface in the pod.
    pub(in crate::operation) in_user_space: bool,
}

impl Hardware<'_> {
    /// Checks that the device plugin's device-info does not contradict the hardware.
    pub(super) fn check_device_plugin(&self, device: &AllocatedDevice) -> Result<(), Reason> {
        let given = self.device_plugins_file(device)?;
        let completed = self.completed(given, Some(device)).map(drop);
        completed.map_err(|error| Reason::DeviceInfo(SharedError::new(error)))
    }

    /// Returns the device-info for the CNI plugins. If the device plugin wrote a file, returns the
    /// content of that file unchanged: DEVINFO 1.1.0 §5.1.2 forbids additions before the CNI
    /// plugins have run. Otherwise builds the device-info from the hardware.
    fn for_plugins(&self, device: &AllocatedDevice) -> Result<Option<DeviceInfo>, Reason> {
        let given = self.device_plugins_file(device)?;
        let info = match given {
            Some(given) => complete(Some(given), None),
            None => self.completed(None, Some(device)),
        };
        info.map_err(|error| Reason::DeviceInfo(SharedError::new(error)))
    }

    fn device_plugins_file(
        &self,
        device: &AllocatedDevice,
    ) -> Result<Option<WireDeviceInfo>, Reason> {
        let files = DeviceInfoDir::at(&self.config.dev_info_dir);
        let file = files.read_dp(&device.resource, &device.id);
        file.map_err(|cause| match cause {
            StoreError::Name { .. } => Reason::UnusableDevice(SharedError::new(cause)),
            _ => Reason::DeviceInfo(SharedError::new(cause)),
        })
    }

    fn completed(
        &self,
        given: Option<WireDeviceInfo>,
        device: Option<&AllocatedDevice>,
    ) -> Result<Option<DeviceInfo>, CompletionError> {
        let mut devlink = None;
        let mut switches = |handle: &_| {
            let devlink = devlink.get_or_insert_with(|| Devlink::open().ok());
            devlink.as_mut()?.switch(handle)
        };
        let facts = device.and_then(|device| Facts::read(&self.sysfs, &device.id, &mut switches));
        complete(given, facts.as_ref())
    }

    /// Writes the device-info right before the plugins run, to the path that Jackfield passes to
    /// them. Some plugins fail if this file is missing (DEVINFO 1.1.0 §4.2.1, §5.1.1). If the
    /// attachment has no device-info, removes any file at the path instead.
    pub(in crate::operation) fn write_file(&self, attachment: &Attachment) -> Result<(), Failure> {
        let failed = |cause| Failure::DeviceFile(attachment.place(), Box::new(cause));
        let Some((files, name)) = file_of(attachment).map_err(failed)? else {
            return Ok(());
        };
        let device = attachment.device.as_ref();
        let info = device.map_or(Ok(None), |device| self.for_plugins(device));
        let info = info.map_err(|reason| attachment.problem(reason))?;
        match info {
            Some(info) => files.write_cni(&name, &info),
            // A crash during an earlier ADD may have left a file at this path.
            None => files.prepare_cni().and_then(|()| files.remove_cni(&name)),
        }
        .map_err(failed)
    }

    /// Removes the attachment's device-info file, as DEVINFO 1.1.0 §4.2.1 requires on DEL.
    pub(in crate::operation) fn remove_file(attachment: &Attachment) -> Result<(), Failure> {
        let removed = file_of(attachment).and_then(|file| match file {
            Some((files, name)) => files.remove_cni(&name),
            None => Ok(()),
        });
        removed.map_err(|cause| Failure::DeviceFile(attachment.place(), Box::new(cause)))
    }

    /// Reads the attachment's device-info file. Completes the content with facts about the
    /// hardware, and checks that the content does not contradict these facts. Jackfield may publish
    /// only the completed device-info (DEVINFO 1.1.0 §6.1.1).
    pub(in crate::operation) fn told(&self, attachment: &Attachment) -> Result<Told, Failure> {
        self.read_info(attachment)
            .map_err(|cause| Failure::DeviceInfo(attachment.place(), cause))
    }

    fn read_info(&self, attachment: &Attachment) -> Result<Told, InfoFileError> {
        let Some((files, name)) = file_of(attachment)? else {
            return Ok(Told::default());
        };
        let device = attachment.device.as_ref();
        let info = self.completed(files.read_cni(&name)?, device)?;
        let mut told = Told {
            in_user_space: device.is_some_and(|device| self.is_in_user_space(device)),
            device_info: None,
        };
        if let Some(info) = info {
            info.check_socket()?;
            told.in_user_space |=
                matches!(info.kind(), DeviceKind::VhostUser(_) | DeviceKind::Memif(_));
            told.device_info = Some(serde_json::to_value(&info)?);
        }
        Ok(told)
    }
}

/// Returns the device-info directories, and the name of the attachment's file in them. Returns
/// `None` if the attachment has no file. Derives the directories from the recorded path, because
/// the configuration may have changed since ADD.
fn file_of(attachment: &Attachment) -> Result<Option<(DeviceInfoDir, CniFileName)>, StoreError> {
    let Some(path) = &attachment.device_info_file else {
        return Ok(None);
    };
    let base = path.parent().and_then(Path::parent);
    let files = DeviceInfoDir::at(base.unwrap_or(Path::new("/")));
    let name = files.cni_name(path)?;
    Ok(Some((files, name)))
}
