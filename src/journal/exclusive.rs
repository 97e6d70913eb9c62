//! Resources that only one sandbox may have. A PCI device is exclusive on the node. A hardware
//! address or a GUID is exclusive on its layer-2 segment.
//!
//! ```text
//! exclusive/device-0000:01:10.0                   ─▶ the file name of the holder's record
//! exclusive/mac-02:00:00:00:00:01@<segment>
//! exclusive/guid-02:00:00:00:00:00:00:01@<segment>
//! exclusive/mac-02:00:00:00:00:01                 from the previous release, without a segment
//! ```
//!
//! `<segment>` is a hash, because the name of a segment may be too long for a file name.
//!
//! Each reservation is a symbolic link. The kernel creates a link and sets its target in one step,
//! and one `readlink` finds the holder. A link to a missing or damaged record, or to a record
//! without the resource, reserves nothing.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use device_info::{Guid, PciAddress};
use ring::digest::{SHA256, digest};

use super::files::entries;
use super::steps::{Header, Sandbox};
use super::{Journal, JournalError, Key, RecordError, Turn};
use crate::disk;
use crate::npwg::RequestedMac;
use crate::plan::{Attachment, Segment};
use crate::private_dir;
use crate::regular_file::found;

/// The folder of the links.
const FOLDER: &str = "exclusive";
/// The number of bytes of a segment's hash in a file name.
const HASH: usize = 16;

/// A resource that only one sandbox may have. The segment is `None` in a record of the previous
/// release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exclusive {
    /// A PCI device.
    Device(PciAddress),
    /// A hardware address that a pod requests.
    Mac(RequestedMac, Option<Segment>),
    /// A GUID that a pod requests.
    Guid(Guid, Option<Segment>),
}

impl Exclusive {
    /// The exclusive resources of an attachment.
    pub fn of(attachment: &Attachment) -> Vec<Exclusive> {
        let segment = || attachment.segment.clone();
        let device = attachment.pci().map(Exclusive::Device).into_iter();
        let macs = attachment.macs();
        let macs = macs.map(|mac| Exclusive::Mac(mac, segment()));
        let guids = attachment.guids();
        let guids = guids.map(|guid| Exclusive::Guid(guid, segment()));
        device.chain(macs).chain(guids).collect()
    }

    /// The segment on which the resource is exclusive. `None` for a device, which is exclusive on
    /// the node. Also `None` for a resource in a record of the previous release.
    pub fn segment(&self) -> Option<&Segment> {
        match self {
            Exclusive::Device(_) => None,
            Exclusive::Mac(_, segment) | Exclusive::Guid(_, segment) => segment.as_ref(),
        }
    }

    /// The MAC or GUID without its segment, as the previous release reserved it. `None` for a
    /// device.
    pub fn without_segment(&self) -> Option<Exclusive> {
        match self {
            Exclusive::Device(_) => None,
            Exclusive::Mac(mac, _) => Some(Exclusive::Mac(*mac, None)),
            Exclusive::Guid(guid, _) => Some(Exclusive::Guid(*guid, None)),
        }
    }

    /// The name of the link, such as `mac-02:00:00:00:00:01`. If the resource has a segment, `@`
    /// and a hash of the segment follow.
    fn file_name(&self) -> String {
        let mut name = match self {
            Exclusive::Device(address) => format!("device-{address}"),
            Exclusive::Mac(mac, _) => format!("mac-{mac}"),
            Exclusive::Guid(guid, _) => format!("guid-{guid}"),
        };
        if let Some(segment) = self.segment() {
            let hash = digest(&SHA256, segment.as_str().as_bytes());
            name.push('@');
            for byte in hash.as_ref().iter().take(HASH) {
                name.push_str(&format!("{byte:02x}"));
            }
        }
        name
    }

    fn is_of(&self, header: &Header) -> bool {
        let mut attachments = header.attachments.iter();
        attachments.any(|attachment| Exclusive::of(attachment).contains(self))
    }
}

impl fmt::Display for Exclusive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exclusive::Device(address) => write!(f, "device {address}"),
            Exclusive::Mac(mac, _) => write!(f, "MAC {mac}"),
            Exclusive::Guid(guid, _) => write!(f, "GUID {guid}"),
        }
    }
}

impl Journal {
    /// Reserves `what` for the sandbox `key`, which already has a record. If a different sandbox
    /// holds `what`, reserves nothing and returns that sandbox.
    ///
    /// The caller holds the [`Turn`], the permission to reserve resources. So no other process
    /// replaces the link after this call has read it.
    ///
    /// # Errors
    /// Code 109 if the link cannot be read or written, or if an I/O error prevents reading the
    /// holder's record.
    pub fn take(
        &self,
        key: &Key,
        what: &Exclusive,
        _turn: &Turn,
    ) -> Result<Option<Box<Sandbox>>, JournalError> {
        let link = self.link(what);
        let failed = |cause: io::Error| JournalError::io("cannot be written", &link, cause);
        let own = key.file_name();
        match found(disk::read_link(&link)).map_err(failed)? {
            Some(name) if name == Path::new(&own) => return Ok(None),
            Some(name) => {
                if let Some(holder) = self.holder(&name, what)? {
                    return Ok(Some(holder));
                }
                disk::remove(&link).map_err(failed)?;
            }
            None => {}
        }
        private_dir::or_create(&self.dir.join(FOLDER), || disk::link(&own, &link))
            .map_err(failed)?;
        Ok(None)
    }

    /// Releases the exclusive resources of these attachments of the sandbox `key`. The caller then
    /// removes the attachments from the record of the sandbox.
    pub fn give_back<'a>(&self, key: &Key, attachments: impl IntoIterator<Item = &'a Attachment>) {
        for what in attachments.into_iter().flat_map(Exclusive::of) {
            if self.has(key, &what).unwrap_or(false) {
                // Ignore a failure, because the link reserves nothing once the caller has changed
                // the record.
                let _ = disk::remove(&self.link(&what));
            }
        }
    }

    /// Whether any link points to a record that does not exist. Such a link reserves nothing.
    pub fn has_stale_links(&self) -> bool {
        self.stale_links().next().is_some()
    }

    /// Removes every link to a record that does not exist.
    ///
    /// The caller holds the [`Turn`], so no other process replaces a link after this call has read
    /// it.
    pub fn sweep_links(&self, _turn: &Turn) {
        for link in self.stale_links() {
            let _ = disk::remove(&link);
        }
    }

    fn stale_links(&self) -> impl Iterator<Item = PathBuf> {
        let links = entries(&self.dir.join(FOLDER)).unwrap_or_default();
        let links = links.into_iter().map(|entry| entry.path());
        links.filter(|link| {
            let record = disk::read_link(link).map(|name| self.sandboxes().join(name));
            record.is_ok_and(|record| matches!(found(fs::symlink_metadata(record)), Ok(None)))
        })
    }

    /// Whether the link of `what` points to the record of the sandbox `key`.
    ///
    /// # Errors
    /// Code 109 if the link cannot be read.
    pub fn has(&self, key: &Key, what: &Exclusive) -> Result<bool, JournalError> {
        let holder = self.link_target(what)?;
        Ok(holder.is_some_and(|name| name == Path::new(&key.file_name())))
    }

    /// Returns the sandbox that holds `what`. Returns `None` if no sandbox holds `what`, or if
    /// `key` holds it.
    ///
    /// # Errors
    /// Code 109 if the link cannot be read, or if an I/O error prevents reading the holder's
    /// record.
    pub fn other_holder(
        &self,
        key: &Key,
        what: &Exclusive,
    ) -> Result<Option<Box<Sandbox>>, JournalError> {
        match self.link_target(what)? {
            Some(name) if name != Path::new(&key.file_name()) => self.holder(&name, what),
            _ => Ok(None),
        }
    }

    /// Returns the file name of the record to which the link of `what` points.
    fn link_target(&self, what: &Exclusive) -> Result<Option<PathBuf>, JournalError> {
        let link = self.link(what);
        let target = found(disk::read_link(&link));
        target.map_err(|cause| JournalError::io("cannot be read", &link, cause))
    }

    /// Returns the sandbox with the record `name`, if that record contains `what`.
    fn holder(&self, name: &Path, what: &Exclusive) -> Result<Option<Box<Sandbox>>, JournalError> {
        let path = self.sandboxes().join(name);
        match Sandbox::read(&path) {
            Ok(sandbox) => Ok(what.is_of(&sandbox.header).then(|| Box::new(sandbox))),
            Err(RecordError::Io(cause)) if cause.kind() != io::ErrorKind::NotFound => {
                Err(JournalError::io("cannot be read", &path, cause))
            }
            Err(_) => Ok(None),
        }
    }

    fn link(&self, what: &Exclusive) -> PathBuf {
        self.dir.join(FOLDER).join(what.file_name())
    }
}

#[cfg(test)]
mod tests;
