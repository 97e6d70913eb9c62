//! Why a node could not be set up, kept or cleared: one line each.

use std::io;
use std::path::{Path, PathBuf};

/// What stands in the way. Whatever it is, the node has the network that it had.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A file or directory.
    #[error("{}: {what}: {cause}; {remedy}", path.display())]
    Io {
        /// The path, as this process sees it.
        path: PathBuf,
        /// What could not be done.
        what: &'static str,
        /// Why.
        cause: io::Error,
        /// What helps.
        remedy: &'static str,
    },
    /// The runtime's directory is not there.
    #[error("{} does not exist; name the directory that the container runtime reads with --conf-dir, or make it", dir.display())]
    NoConfDir {
        /// The directory.
        dir: PathBuf,
    },
    /// Somebody else installs at this moment.
    #[error("{}: another jackfield install or uninstall is at work there; end it first (install --watch runs as long as its pod)", dir.display())]
    Busy {
        /// The directory.
        dir: PathBuf,
    },
    /// No network to stand in front of.
    #[error("no configuration of the cluster network in {} within {waited}{hint}; install the cluster's network, or name its directory with --cluster-conf-dir; nothing was written", dir.display())]
    NoClusterNetwork {
        /// The directory.
        dir: PathBuf,
        /// How long it was waited for.
        waited: String,
        /// What is there instead.
        hint: String,
    },
    /// Multus is there and nobody said to take over.
    #[error("{} is the configuration of Multus; take it over with install --from-multus, or remove it", file.display())]
    Multus {
        /// Its file.
        file: PathBuf,
    },
    /// There is no Multus to take over from.
    #[error("no configuration of Multus in {}; leave --from-multus out, or name the directory that the runtime reads with --conf-dir", dir.display())]
    NoMultus {
        /// The directory.
        dir: PathBuf,
    },
    /// The runtime takes another network than Multus'.
    #[error("{} comes before {}, so Multus is not what the runtime uses; rename or remove whichever is not meant, then run it again", first.display(), multus.display())]
    MultusNotFirst {
        /// The file that the runtime takes.
        first: PathBuf,
        /// Multus'.
        multus: PathBuf,
    },
    /// Multus' configuration cannot be read.
    #[error("{}: {cause}; correct it, Multus goes on as it is", file.display())]
    MultusConf {
        /// Its file.
        file: PathBuf,
        /// Why.
        cause: String,
    },
    /// The dry run says that pods would fail.
    #[error(
        "{count} of this node's pods would fail with jackfield and Multus stays; correct what is listed, or take over all the same with --force"
    )]
    DryRun {
        /// How many.
        count: usize,
    },
    /// The dry run cannot be made.
    #[error(
        "whether pods would fail cannot be found out, so Multus stays: {cause}; or take over all the same with --force"
    )]
    NoDryRun {
        /// Why, with the remedy.
        cause: String,
    },
    /// Somebody's file sorts before every name that we may have.
    #[error("{} comes before every name that jackfield's configuration may have; rename it, or let the runtime read a directory of its own (--conf-dir, --cluster-conf-dir)", file.display())]
    NotFirst {
        /// The file.
        file: PathBuf,
    },
    /// The configuration to install is none.
    #[error("{file}: {cause}; correct it")]
    Conf {
        /// Where it comes from.
        file: String,
        /// Why.
        cause: String,
    },
    /// A newer binary is there.
    #[error("{} is jackfield {installed} and this is {ours}, an older one that may not read its journal; use an image of {installed} or newer, or go back with --allow-downgrade", path.display())]
    Downgrade {
        /// The binary.
        path: PathBuf,
        /// Its version.
        installed: semver::Version,
        /// Ours.
        ours: semver::Version,
    },
    /// A binary for another machine.
    #[error("this jackfield is for {ours}, and {} on this node is for {theirs}; use the image for {theirs}", path.display())]
    OtherMachine {
        /// A plugin of the node.
        path: PathBuf,
        /// What it is for.
        theirs: String,
        /// What we are for.
        ours: String,
    },
    /// Somebody undoes what is repaired.
    #[error("{what}; repaired 3 times within 10 minutes, so this is left alone now: {remedy}")]
    GivenUp {
        /// What was found again.
        what: String,
        /// What helps.
        remedy: String,
    },
    /// The manifest of the installation cannot be read.
    #[error("{}: {cause}; put the file back, or put what before/ beside it keeps back where it was and remove that folder, then install again", file.display())]
    Manifest {
        /// Its file.
        file: PathBuf,
        /// Why.
        cause: String,
    },
    /// An installation whose manifest is gone had replaced something.
    #[error("{} was replaced by an installation whose manifest is gone; put it back where it was and remove {}, then run this again", kept.display(), folder.display())]
    NoManifest {
        /// The only copy of it.
        kept: PathBuf,
        /// Where the manifest was.
        folder: PathBuf,
    },
    /// Pods' records would be looked for elsewhere.
    #[error("journalDir is to be {}, and {count} sandboxes are on record in {}; leave it as it is until their pods are gone", to.display(), from.display())]
    JournalMoved {
        /// Where they are.
        from: PathBuf,
        /// Where they would be looked for.
        to: PathBuf,
        /// How many.
        count: usize,
    },
    /// Watching the directories failed.
    #[error("watching {}: {cause}; raise fs.inotify.max_user_instances and max_user_watches", dir.display())]
    Watch {
        /// The directory.
        dir: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// Not everything could be taken away yet.
    #[error("{0}")]
    NotYet(String),
}

impl SetupError {
    /// A failure of the file system, with the remedy that its kind calls for.
    pub(super) fn io(path: &Path, what: &'static str, cause: io::Error) -> SetupError {
        use io::ErrorKind::{NotFound, PermissionDenied, ReadOnlyFilesystem, StorageFull};
        let remedy = match cause.kind() {
            StorageFull => "nothing was changed: free space there and run it again",
            ReadOnlyFilesystem | PermissionDenied => {
                "nothing was changed: make it writable for this process and run it again"
            }
            NotFound => "make it, or name the right directory",
            _ => "look at the file system",
        };
        SetupError::Io {
            path: path.to_owned(),
            what,
            cause,
            remedy,
        }
    }
}
