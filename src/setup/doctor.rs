//! `doctor`: is the node well? It looks at everything, changes nothing, and says what helps.
//!
//! ```text
//! configuration ▶ installation ▶ cluster ▶ programs ▶ devices ▶ journal ▶ owed ▶ Multus' cache
//! ```
//!
//! Each looks for itself: half of the node being broken keeps nobody from looking at the rest.

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

pub use finding::{Check, Diagnosis, Finding, Held};

use super::HostPaths;
use crate::kernel::capabilities;
use crate::operation::Context;
use crate::plugin::with_host;

/// How long all questions may take together.
const LIMIT: Duration = Duration::from_secs(60);

/// What is looked at.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directories.
    pub paths: HostPaths,
    /// The node configuration, where it is not the one that the runtime reads.
    pub conf: Option<PathBuf>,
    /// Directories with CNI plugins, besides `binDir`.
    pub cni_path: String,
    /// What the cluster calls this node.
    pub node: String,
    /// Whether somebody said so; else it is the host's name, which need not be the node's.
    pub is_node_told: bool,
}

/// Looks at the node.
pub fn doctor(options: &Options) -> Diagnosis {
    let mut diagnosis = Diagnosis::new(&options.node);
    if let Err(error) = capabilities::require() {
        diagnosis.error(Check::Privileges, "this process", &error.to_string());
    }
    let found = configuration::read(options, &mut diagnosis);
    installation::look(options, &mut diagnosis);
    let Some(found) = found else {
        return diagnosis;
    };
    let request = &found.request;
    let looked = with_host(&request.config, |host| {
        let context = Context::new(host, request, LIMIT);
        let census = cluster::look(&context, options, &mut diagnosis);
        let networks = if found.is_whole {
            programs::look(&context, census.as_ref(), &mut diagnosis)
        } else {
            Vec::new()
        };
        devices::look(&context, &networks, &mut diagnosis);
        journal::look(&context, &found.file, &options.paths, &mut diagnosis);
        owed::look(&context, census.as_ref(), &mut diagnosis);
        multus::look(&context, &mut diagnosis);
        host.cluster.examined(diagnosis.examination());
        Ok(())
    });
    if let Err(failure) = looked {
        diagnosis.error(Check::Privileges, "this process", &failure.to_string());
    }
    diagnosis
}
