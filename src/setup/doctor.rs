//! `doctor`: checks the node, and names a remedy for each finding. `doctor` makes only one change:
//! it sets the mode of `journalDir` to 0700, if this directory contains only folders of the journal
//! and other users cannot write to it.
//!
//! ```text
//! privileges ▶ configuration ▶ installation ▶ cluster ▶ programs ▶ devices ▶ journal ▶ owed
//!            ▶ Multus' cache
//! ```
//!
//! A finding of one check does not prevent the other checks, with two exceptions:
//! - If the configuration is missing or invalid, `doctor` skips `programs`. The checks from
//!   `cluster` on then use the first usable paths of these: the paths in the installer's copy of the
//!   configuration, the paths in the invalid configuration, the default paths.
//! - If none of these paths are usable, or if `with_host` fails, `doctor` skips all checks after
//!   `installation`.

mod cluster;
mod configuration;
mod devices;
mod finding;
mod installation;
mod journal;
mod multus;
mod namespaces;
mod owed;
mod programs;

use std::path::PathBuf;
use std::time::Duration;

use finding::Findings;
pub use finding::{Check, Diagnosis, ExclusiveUse, Finding};

use super::HostPaths;
use crate::kernel::capabilities;
use crate::operation::Context;
use crate::plugin::with_host;

/// The total time limit for all checks after `installation`.
const LIMIT: Duration = Duration::from_secs(60);

/// The maximum number of pods or namespaces that one finding names.
const NAMED: usize = 5;

/// What to check.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directories.
    pub paths: HostPaths,
    /// The file of the node configuration; `None` for the file that the runtime reads.
    pub conf: Option<PathBuf>,
    /// Directories with CNI plugins, besides `binDir`.
    pub cni_path: String,
    /// This node's name in the cluster.
    pub node: String,
    /// Whether the administrator gave the name. Otherwise `node` is the host's name, which may
    /// differ from the node's name.
    pub is_node_given: bool,
}

/// The remedy if this process cannot examine the node, usually because it has too few privileges.
const AS_ROOT: &str = "run `doctor` as root on the node itself";

/// Checks the node.
pub fn doctor(options: &Options) -> Diagnosis {
    let mut diagnosis = Diagnosis::new(&options.node);
    if let Err(error) = capabilities::require() {
        let mut findings = diagnosis.of(Check::Privileges);
        findings.add("this process", error, AS_ROOT);
    }
    let configuration = configuration::read(options, diagnosis.of(Check::Configuration));
    installation::look(options, diagnosis.of(Check::Installation));
    let Some(configuration) = configuration else {
        return diagnosis;
    };
    let request = &configuration.request;
    let outcome = with_host(&request.config, |host| {
        let context = Context::new(host, request, LIMIT);
        let census = cluster::look(&context, options, diagnosis.of(Check::Cluster));
        let networks = if configuration.is_whole {
            programs::look(&context, census.as_ref(), diagnosis.of(Check::Programs))
        } else {
            Vec::new()
        };
        devices::look(&context, &networks, diagnosis.of(Check::Devices));
        let (file, paths) = (&configuration.file, &options.paths);
        journal::look(&context, file, paths, diagnosis.of(Check::Journal));
        owed::look(&context, census.as_ref(), diagnosis.of(Check::Owed));
        multus::look(&context, diagnosis.of(Check::Multus));
        host.cluster.examined(diagnosis.examination());
        Ok(())
    });
    if let Err(failure) = outcome {
        let mut findings = diagnosis.of(Check::Privileges);
        findings.add("this process", failure, AS_ROOT);
    }
    diagnosis
}

/// Returns the first [`NAMED`] of `names` as a list, and the number of the remaining names.
fn first_few(names: &[String]) -> String {
    let named = names.get(..NAMED).unwrap_or(names).join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_names_are_listed_and_the_others_counted() {
        let names: Vec<String> = (1..=7).map(|number| format!("pod {number}")).collect();
        let few = "pod 1, pod 2, pod 3, pod 4, pod 5";
        assert_eq!(first_few(&names[..5]), few);
        assert_eq!(first_few(&names), format!("{few} and 2 more"));
    }
}
