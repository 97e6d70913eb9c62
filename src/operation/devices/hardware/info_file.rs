//! The device-info file of an attachment, which tells its plugins about the device and in which
//! they report it. Jackfield writes the file before the plugins run, reads it afterwards, and
//! removes it with the attachment (DEVINFO 1.1.0 §4.2, §5.1, §6.1).

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

/// Why the device-info of a device cannot be published: its file cannot be read, it contradicts the
/// machine, or its socket is missing.
pub type InfoFileError = Box<dyn Error + Send + Sync>;

/// What the device-info file says about an attachment's device after its plugins have run.
#[derive(Debug, Default)]
pub(in crate::operation) struct Told {
    /// The `device-info` of network-status (NPWG 1.3 §5.3.7).
    pub(in crate::operation) device_info: Option<Value>,
    /// Whether a program drives the device, so that the pod needs no interface for it.
    pub(in crate::operation) in_user_space: bool,
}

impl Hardware<'_> {
    /// Checks that the device-info that the device plugin wrote does not contradict the machine.
    pub(super) fn check_device_plugin(&self, device: &AllocatedDevice) -> Result<(), Reason> {
        let given = self.device_plugins_file(device)?;
        let completed = self.completed(given, Some(device)).map(drop);
        completed.map_err(|error| Reason::DeviceInfo(SharedError::new(error)))
    }

    /// The device-info for the plugins: the unchanged file of the device plugin, since DEVINFO
    /// 1.1.0 §5.1.2 lets nothing be added before the plugins have run; without such a file, what
    /// the machine shows.
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
        let file = self.files().read_dp(&device.resource, &device.id);
        file.map_err(|cause| match cause {
            StoreError::Name { .. } => Reason::DeviceInfoName(SharedError::new(cause)),
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

    /// Writes the device-info of the device to the path where the plugins look for it, right before
    /// they run. Some plugins fail on a path without a file (DEVINFO 1.1.0 §4.2.1, §5.1.1).
    pub(in crate::operation) fn write_file(&self, attachment: &Attachment) -> Result<(), Failure> {
        let failed = |cause| Failure::DeviceFile(attachment.place(), Box::new(cause));
        let Some((files, name)) = file_of(attachment).map_err(failed)? else {
            return Ok(());
        };
        let info = match &attachment.device {
            None => Ok(None),
            Some(device) => self.for_plugins(device),
        };
        let info = info.map_err(|reason| attachment.problem(reason))?;
        match info {
            Some(info) => files.write_cni(&name, &info),
            // A file that a crash left here is stale.
            None => files.prepare_cni().and_then(|()| files.remove_cni(&name)),
        }
        .map_err(failed)
    }

    /// Removes the attachment's file (DEVINFO 1.1.0 §4.2.1: when DELETE is called).
    pub(in crate::operation) fn remove_file(attachment: &Attachment) -> Result<(), Failure> {
        let removed = file_of(attachment).and_then(|file| match file {
            Some((files, name)) => files.remove_cni(&name),
            None => Ok(()),
        });
        removed.map_err(|cause| Failure::DeviceFile(attachment.place(), Box::new(cause)))
    }

    /// Reads the attachment's file, completes it from the machine and compares it with the machine.
    /// Only this may be published about a device (DEVINFO 1.1.0 §6.1.1).
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

    fn files(&self) -> DeviceInfoDir {
        DeviceInfoDir::at(&self.config.dev_info_dir)
    }
}

/// The device-info directories of an attachment with a file, even if the configuration has changed
/// them since, and the name of the file.
fn file_of(attachment: &Attachment) -> Result<Option<(DeviceInfoDir, CniFileName)>, StoreError> {
    let Some(path) = &attachment.device_info_file else {
        return Ok(None);
    };
    let base = path.parent().and_then(Path::parent);
    let files = DeviceInfoDir::at(base.unwrap_or(Path::new("/")));
    let name = files.cni_name(path)?;
    Ok(Some((files, name)))
}
