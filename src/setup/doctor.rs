//! `doctor`: checks the node, changes nothing, and names a remedy for each finding.
//!
//! ```text
//! configuration ▶ installation ▶ cluster ▶ programs ▶ devices ▶ journal ▶ owed ▶ Multus' cache
//! ```
//!
//! The checks are independent: a broken half of the node does not hide the other half.

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

pub use finding::{Check, Diagnosis, ExclusiveUse, Finding};

use super::HostPaths;
use crate::diagnostic::Problem;
use crate::kernel::{KernelError, capabilities};
use crate::operation::{Context, Failure};
use crate::plugin::with_host;

/// How long all checks may take together.
const LIMIT: Duration = Duration::from_secs(60);

/// What to check.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directories.
    pub paths: HostPaths,
    /// The node configuration, where it is not the one that the runtime reads.
    pub conf: Option<PathBuf>,
    /// Directories with CNI plugins, besides `binDir`.
    pub cni_path: String,
    /// This node's name in the cluster.
    pub node: String,
    /// Whether the name was given. Otherwise it is the host's name, which may differ.
    pub is_node_given: bool,
}

/// Why this process cannot examine a node.
#[derive(Debug)]
enum ProcessProblem {
    /// It lacks capabilities.
    Capabilities(KernelError),
    /// It lacks something of its host.
    Host(Failure),
}

impl Problem for ProcessProblem {
    fn words(&self) -> String {
        match self {
            ProcessProblem::Capabilities(cause) => cause.to_string(),
            ProcessProblem::Host(cause) => cause.to_string(),
        }
    }

    fn remedy(&self) -> Option<String> {
        Some("run doctor as root on the node itself".to_owned())
    }
}

/// Checks the node.
pub fn doctor(options: &Options) -> Diagnosis {
    let mut diagnosis = Diagnosis::new(&options.node);
    if let Err(error) = capabilities::require() {
        let problem = ProcessProblem::Capabilities(error);
        diagnosis.find(Check::Privileges, "this process", problem);
    }
    let configuration = configuration::read(options, &mut diagnosis);
    installation::look(options, &mut diagnosis);
    let Some(configuration) = configuration else {
        return diagnosis;
    };
    let request = &configuration.request;
    let outcome = with_host(&request.config, |host| {
        let context = Context::new(host, request, LIMIT);
        let census = cluster::look(&context, options, &mut diagnosis);
        let networks = if configuration.is_whole {
            programs::look(&context, census.as_ref(), &mut diagnosis)
        } else {
            Vec::new()
        };
        devices::look(&context, &networks, &mut diagnosis);
        journal::look(
            &context,
            &configuration.file,
            &options.paths,
            &mut diagnosis,
        );
        owed::look(&context, census.as_ref(), &mut diagnosis);
        multus::look(&context, &mut diagnosis);
        host.cluster.examined(diagnosis.examination());
        Ok(())
    });
    if let Err(failure) = outcome {
        let problem = ProcessProblem::Host(failure);
        diagnosis.find(Check::Privileges, "this process", problem);
    }
    diagnosis
}
