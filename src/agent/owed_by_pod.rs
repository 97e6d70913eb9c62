//! The owed writes by pod. Only the names of the files are in memory, since a directory may hold more
//! than fits there. Files are read one at a time.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::PathBuf;

use tokio::task::yield_now;
use tracing::warn;

use crate::cluster::{OwedWrites, PodName, Publication, owed_writes};

/// How many bytes of publications are kept in memory while the disk takes none.
const MAX_IN_MEMORY: usize = 4 << 20;

/// A file, in the order of their age: those of earlier boots first.
type Order = (bool, String);

/// The owed writes.
#[derive(Debug)]
pub(super) struct OwedByPod {
    owed: OwedWrites,
    pods: RefCell<BTreeMap<PodName, BTreeSet<Order>>>,
    /// Every file that was read, with its pod; `None` for those that cannot be read and for those of
    /// another release.
    files_read: RefCell<HashMap<String, Option<(PodName, bool)>>>,
    /// Publications that the disk did not take. They are lost with the agent.
    in_memory: RefCell<BTreeMap<PodName, PublicationInMemory>>,
}

/// There is no room in memory for another publication.
#[derive(Debug, thiserror::Error)]
#[error(
    "the agent keeps {bytes} bytes in memory for want of space in {}, and takes no more than \
     {MAX_IN_MEMORY}; free space there",
    dir.display()
)]
pub(super) struct MemoryFull {
    bytes: usize,
    dir: PathBuf,
}

/// A publication that the disk did not take.
#[derive(Debug, Clone, PartialEq)]
struct PublicationInMemory {
    publication: Publication,
    period: String,
    size: usize,
}

/// Everything that is owed for one pod.
#[derive(Debug, PartialEq)]
pub(super) struct DuePublication {
    pub(super) publication: Publication,
    /// The period of the newest part.
    pub(super) period: String,
    files: Vec<Order>,
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

    /// Lists the files and reads new ones. Other tasks may run between two files.
    ///
    /// # Errors
    /// When the directory was removed from the node while it is mounted here.
    pub(super) async fn look(&self) -> io::Result<()> {
        if self.owed.is_removed() {
            let cause = "it was removed from the node while it was mounted here";
            return Err(io::Error::new(io::ErrorKind::NotFound, cause));
        }
        let names = match self.owed.create_dir().and_then(|()| self.owed.names()) {
            Ok(names) => names,
            Err(error) => {
                let dir = self.owed.dir().display();
                warn!("owed writes: {dir}: {error}; make it readable to root");
                return Ok(());
            }
        };
        let mut before = self.files_read.take();
        for name in names {
            let known = before.remove(&name);
            if known.is_none() {
                yield_now().await;
            }
            let known = known.unwrap_or_else(|| self.take_in(&name));
            self.files_read.borrow_mut().insert(name, known);
        }
        for (name, known) in before {
            if let Some((pod, of_this_boot)) = known {
                self.drop_file(&pod, &(of_this_boot, name));
            }
        }
        Ok(())
    }

    fn take_in(&self, name: &str) -> Option<(PodName, bool)> {
        match self.owed.read(name) {
            Ok(write) => {
                let write = write?;
                let pod = write.publication.pod().clone();
                let mut pods = self.pods.borrow_mut();
                let files = pods.entry(pod.clone()).or_default();
                files.insert((write.of_this_boot, write.file));
                Some((pod, write.of_this_boot))
            }
            Err(cause) => {
                let path = self.owed.dir().join(name).display().to_string();
                match self.owed.put_aside(name) {
                    Ok(aside) => warn!(
                        "cannot read owed write {path}: {cause}; it is put aside as {}",
                        aside.display()
                    ),
                    Err(error) => warn!(
                        "cannot read owed write {path}: {cause}; it cannot be put aside: {error}"
                    ),
                }
                None
            }
        }
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

    /// The pods with owed writes.
    pub(super) fn pods(&self) -> BTreeSet<PodName> {
        let (files, memory) = (self.pods.borrow(), self.in_memory.borrow());
        files.keys().chain(memory.keys()).cloned().collect()
    }

    /// How many writes are owed.
    pub(super) fn len(&self) -> usize {
        let files = self.pods.borrow();
        files.values().map(BTreeSet::len).sum::<usize>() + self.in_memory.borrow().len()
    }

    /// Everything that is owed for a pod, as one publication; `None` where nothing is owed any more.
    pub(super) async fn of(&self, pod: &PodName) -> Option<DuePublication> {
        let files: Vec<Order> = {
            let pods = self.pods.borrow();
            pods.get(pod).into_iter().flatten().cloned().collect()
        };
        let from_memory = self.in_memory.borrow().get(pod).cloned();
        let (mut publication, mut period) = match from_memory.clone() {
            Some(kept) => (Some(kept.publication), Some(kept.period)),
            None => (None, None),
        };
        for (_, file) in files.iter().rev() {
            yield_now().await;
            // The publication of a missing file is part of a newer one.
            let Ok(Some(write)) = self.owed.read(file) else {
                continue;
            };
            period = period.or_else(|| Some(write.period()));
            publication = Some(match publication {
                Some(newer) => newer.after(write.publication),
                None => write.publication,
            });
        }
        if publication.is_none() {
            files.iter().for_each(|file| self.drop_file(pod, file));
        }
        Some(DuePublication {
            publication: publication?,
            period: period?,
            files,
            from_memory,
        })
    }

    /// Drops a publication that is written, or whose pod is gone.
    pub(super) fn made(&self, due: &DuePublication) {
        let pod = due.publication.pod();
        let mut memory = self.in_memory.borrow_mut();
        if due.from_memory.is_some() && memory.get(pod) == due.from_memory.as_ref() {
            memory.remove(pod);
        }
        for file in &due.files {
            match self.owed.forget(&file.1) {
                Ok(()) => self.drop_file(pod, file),
                // The agent publishes it again, which changes nothing: the status is the same by now,
                // and the events have the same names.
                Err(error) => warn!(
                    "cannot remove owed write {}: {error}; make it writable to root",
                    file.1
                ),
            }
        }
    }

    /// Keeps a publication in memory that the disk did not take.
    ///
    /// # Errors
    /// When there is no room for it.
    pub(super) fn keep(&self, publication: Publication) -> Result<(), MemoryFull> {
        let pod = publication.pod().clone();
        let mut memory = self.in_memory.borrow_mut();
        let publication = match memory.get(&pod) {
            Some(earlier) => publication.after(earlier.publication.clone()),
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
        let period = owed_writes::period_now();
        memory.insert(
            pod,
            PublicationInMemory {
                publication,
                period,
                size,
            },
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests;
