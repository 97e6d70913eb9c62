//! The device-info file of an attachment, which tells its plugins about the device and in which
//! they report it. Jackfield writes the file before the plugins run, reads it afterwards, and
//! removes it with the attachment (DEVINFO 1.1.0 §4.2, §5.1, §6.1).

use std::path::Path;

use device_info::{
    CompletionError, DeviceInfo, DeviceInfoDir, DeviceKind, Devlink, Facts, SocketError,
    StoreError, WireDeviceInfo, complete,
};
use serde_json::Value;

use super::Hardware;
use crate::allocation::AllocatedDevice;
use crate::diagnostic::SharedError;
use crate::operation::Failure;
use crate::plan::{Attachment, Reason};

/// What the device-info file says about an attachment's device after its plugins have run.
#[derive(Debug, Default)]
pub(in crate::operation) struct Told {
    /// The `device-info` of network-status (NPWG 1.3 §5.3.7).
    pub(in crate::operation) device_info: Option<Value>,
    /// Whether a program drives the device, so that the pod needs no interface for it.
    pub(in crate::operation) in_user_space: bool,
}

/// Why the device-info of a device cannot be published.
#[derive(Debug, thiserror::Error)]
pub enum InfoFileError {
    /// The file cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file contradicts the machine.
    #[error(transparent)]
    Completion(#[from] CompletionError),
    /// The socket that the file names is missing.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The device-info cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl Hardware<'_> {
    /// The device-info that the device plugin wrote, completed from the machine and compared with
    /// it.
    pub(super) fn of_device_plugin(
        &self,
        device: &AllocatedDevice,
    ) -> Result<Option<DeviceInfo>, Reason> {
        let given = self.device_plugins_file(device)?;
        self.completed(given, Some(device))
            .map_err(|error| Reason::DeviceInfo(SharedError::new(error)))
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
        let Some(path) = &attachment.device_info_file else {
            return Ok(());
        };
        let failed = |cause| Failure::DeviceFile {
            place: attachment.place(),
            cause: Box::new(cause),
        };
        let files = files_of(path);
        let name = files.cni_name(path).map_err(failed)?;
        let info = match &attachment.device {
            None => None,
            Some(device) => self
                .for_plugins(device)
                .map_err(|reason| attachment.problem(reason))?,
        };
        match info {
            Some(info) => files.write_cni(&name, &info),
            // A file that a crash left here is stale.
            None => files.prepare_cni().and_then(|()| files.remove_cni(&name)),
        }
        .map_err(failed)
    }

    /// Removes the attachment's file (DEVINFO 1.1.0 §4.2.1: when DELETE is called).
    pub(in crate::operation) fn remove_file(attachment: &Attachment) -> Result<(), Failure> {
        let Some(path) = &attachment.device_info_file else {
            return Ok(());
        };
        let files = files_of(path);
        let removed = files
            .cni_name(path)
            .and_then(|name| files.remove_cni(&name));
        removed.map_err(|cause| Failure::DeviceFile {
            place: attachment.place(),
            cause: Box::new(cause),
        })
    }

    /// Reads the attachment's file, completes it from the machine and compares it with the machine.
    /// Only this may be published about a device (DEVINFO 1.1.0 §6.1.1).
    pub(in crate::operation) fn told(&self, attachment: &Attachment) -> Result<Told, Failure> {
        let Some(path) = &attachment.device_info_file else {
            return Ok(Told::default());
        };
        self.read_info(path, attachment)
            .map_err(|cause| Failure::DeviceInfo {
                place: attachment.place(),
                cause: Box::new(cause),
            })
    }

    fn read_info(&self, path: &Path, attachment: &Attachment) -> Result<Told, InfoFileError> {
        let files = files_of(path);
        let name = files.cni_name(path)?;
        let info = self.completed(files.read_cni(&name)?, attachment.device.as_ref())?;
        let mut told = Told {
            in_user_space: attachment
                .device
                .as_ref()
                .is_some_and(|device| self.is_in_user_space(device)),
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

/// The device-info directories of a file on record, even if the configuration has changed them
/// since.
fn files_of(path: &Path) -> DeviceInfoDir {
    let base = path.parent().and_then(Path::parent);
    DeviceInfoDir::at(base.unwrap_or(Path::new("/")))
}
