//! The owed writes of each pod: the statuses and events that the API server does not have yet.
//! Plugins leave the owed writes as files in a directory.
//!
//! The agent keeps only the name of each file in memory, because the directory may contain more
//! than fits into memory. The agent reads one file at a time.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::path::PathBuf;

use tokio::task::yield_now;
use tracing::warn;

use crate::cluster::owed_writes::OwedWrite;
use crate::cluster::{OwedWrites, PodName, Publication};

/// The limit of the memory for owed writes that plugins could not write to disk, in bytes.
const MAX_IN_MEMORY: usize = 4 << 20;

/// The key that sorts files by age. The first field is whether the file is from this boot. The
/// second field is the file name, which begins with the time since boot.
type Order = (bool, String);

/// The owed writes.
#[derive(Debug)]
pub(super) struct OwedByPod {
    owed: OwedWrites,
    pods: RefCell<BTreeMap<PodName, BTreeSet<Order>>>,
    /// The names of all files that the agent has tried to read. Some of them are unreadable or have
    /// the format of a different release.
    files_read: RefCell<HashSet<String>>,
    /// Publications that plugins could not write to disk. They are lost when the agent ends.
    in_memory: RefCell<BTreeMap<PodName, PublicationInMemory>>,
}

/// The publications in memory leave no room for a further publication.
#[derive(Debug, thiserror::Error)]
#[error(
    "the agent keeps statuses and events in memory, because plugins cannot write to {}; the agent \
     has no room for more ({bytes} of {MAX_IN_MEMORY} bytes are used); make that directory \
     writable for root, and free space there",
    dir.display()
)]
pub(super) struct MemoryFull {
    bytes: usize,
    dir: PathBuf,
}

/// A publication that a plugin could not write to disk.
#[derive(Debug, Clone, PartialEq)]
struct PublicationInMemory {
    write: OwedWrite,
    /// The size of the publication as JSON, in bytes.
    size: usize,
}

/// The owed writes of one pod, merged into one publication.
#[derive(Debug, PartialEq)]
pub(super) struct DuePublication {
    pub(super) publication: Publication,
    /// Names the 10-minute period in which the newest write was made. Equal events in one period
    /// count as one event.
    pub(super) period: String,
    files: BTreeSet<Order>,
    from_memory: Option<PublicationInMemory>,
}

impl OwedByPod {
    pub(super) fn new(owed: OwedWrites) -> OwedByPod {
        OwedByPod {
            owed,
            pods: RefCell::default(),
            files_read: RefCell::default(),
            in_memory: RefCell::default(),
        }
    }

    /// Lists the directory and reads the new files. Renames a file that cannot be read. Before each
    /// read, lets other tasks of the agent run.
    ///
    /// # Errors
    /// If another process removed the directory from the node while the agent's container mounts
    /// the directory.
    pub(super) async fn look(&self) -> io::Result<()> {
        if self.owed.is_removed() {
            let cause = "removed from the node while mounted in the agent's container";
            return Err(io::Error::new(io::ErrorKind::NotFound, cause));
        }
        let names = match self.owed.create_dir().and_then(|()| self.owed.names()) {
            Ok(names) => HashSet::from_iter(names),
            Err(error) => {
                let dir = self.owed.dir().display();
                warn!(
                    "cannot list the files in {dir}: {error}; make the directory readable for root"
                );
                return Ok(());
            }
        };
        self.pods.borrow_mut().retain(|_, files| {
            files.retain(|(_, name)| names.contains(name));
            !files.is_empty()
        });
        let files_read = self.files_read.take();
        for name in names.difference(&files_read) {
            yield_now().await;
            if let Some(write) = self.load(name) {
                let mut pods = self.pods.borrow_mut();
                let files = pods.entry(write.publication.pod().clone()).or_default();
                files.insert((write.is_of_this_boot(), write.file));
            }
        }
        *self.files_read.borrow_mut() = names;
        Ok(())
    }

    /// Reads a file. Returns `None` if a plugin has removed the file, or if the file has the format
    /// of a different release. Renames a file that cannot be read, and returns `None`.
    fn load(&self, name: &str) -> Option<OwedWrite> {
        let cause = match self.owed.read(name) {
            Ok(write) => return write,
            Err(cause) => cause,
        };
        let path = self.owed.dir().join(name).display().to_string();
        let renamed = match self.owed.put_aside(name) {
            Ok(aside) => format!("the agent renamed the file to {}", aside.display()),
            Err(error) => format!("the agent cannot rename the file: {error}"),
        };
        warn!("cannot read the status and events in {path}: {cause}; {renamed}");
        None
    }

    fn drop_file(&self, pod: &PodName, file: &Order) {
        let mut pods = self.pods.borrow_mut();
        if let Some(files) = pods.get_mut(pod) {
            files.remove(file);
            if files.is_empty() {
                pods.remove(pod);
            }
        }
    }

    /// Returns the pods with owed writes.
    pub(super) fn pods(&self) -> BTreeSet<PodName> {
        let (files, memory) = (self.pods.borrow(), self.in_memory.borrow());
        files.keys().chain(memory.keys()).cloned().collect()
    }

    /// Returns the number of owed writes.
    pub(super) fn len(&self) -> usize {
        let files = self.pods.borrow();
        files.values().map(BTreeSet::len).sum::<usize>() + self.in_memory.borrow().len()
    }

    /// Merges the owed writes of a pod into one publication. Returns `None` if the pod has no owed
    /// writes.
    pub(super) async fn of(&self, pod: &PodName) -> Option<DuePublication> {
        let files = self.pods.borrow().get(pod).cloned().unwrap_or_default();
        let from_memory = self.in_memory.borrow().get(pod).cloned();
        let in_memory = from_memory.as_ref().map(|kept| &kept.write);
        let mut order = files.clone();
        order.extend(in_memory.map(|write| (true, write.file.clone())));
        let mut newest: Option<(Publication, String)> = None;
        for (_, name) in order.iter().rev() {
            yield_now().await;
            let kept = in_memory.filter(|write| write.file == *name).cloned();
            let Some(write) = kept.or_else(|| self.load(name)) else {
                continue;
            };
            let period = write.period();
            newest = Some(match newest {
                Some((newer, period)) => (newer.after(write.publication), period),
                None => (write.publication, period),
            });
        }
        let Some((publication, period)) = newest else {
            files.iter().for_each(|file| self.drop_file(pod, file));
            return None;
        };
        Some(DuePublication {
            publication,
            period,
            files,
            from_memory,
        })
    }

    /// Removes a finished publication from disk and from memory. A publication is finished when the
    /// API server has it, or when the pod is gone.
    pub(super) fn made(&self, due: &DuePublication) {
        let pod = due.publication.pod();
        let mut memory = self.in_memory.borrow_mut();
        if due.from_memory.is_some() && memory.get(pod) == due.from_memory.as_ref() {
            memory.remove(pod);
        }
        for file in &due.files {
            match self.owed.forget(&file.1) {
                Ok(()) => self.drop_file(pod, file),
                // The agent will publish this write again. The second publication changes nothing,
                // because the status is the same and the events have the same names.
                Err(error) => warn!(
                    "cannot remove the file {} from journalDir/publish/: {error}; make that \
                     directory writable for root",
                    file.1
                ),
            }
        }
    }

    /// Keeps a publication in memory, because the plugin could not write it to disk.
    ///
    /// # Errors
    /// If the publication does not fit into the memory for publications.
    pub(super) fn keep(&self, publication: Publication) -> Result<(), MemoryFull> {
        let pod = publication.pod().clone();
        let mut memory = self.in_memory.borrow_mut();
        let earlier = memory.get(&pod).map(|kept| kept.write.publication.clone());
        let publication = match earlier {
            Some(earlier) => publication.after(earlier),
            None => publication,
        };
        let others = memory.iter().filter(|(other, _)| **other != pod);
        let bytes: usize = others.map(|(_, kept)| kept.size).sum();
        let size = serde_json::to_string(&publication).map_or(0, |text| text.len());
        if bytes + size > MAX_IN_MEMORY {
            return Err(MemoryFull {
                bytes,
                dir: self.owed.dir().to_owned(),
            });
        }
        let kept = PublicationInMemory {
            write: OwedWrite::in_memory(publication),
            size,
        };
        memory.insert(pod, kept);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
