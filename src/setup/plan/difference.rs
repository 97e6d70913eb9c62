//! Finds how the runtime's directory differs from the installer's plan for this directory
//! ([`InstallPlan`](super::InstallPlan)).

use std::sync::Arc;

use super::NodeDirectories;
use crate::setup::conf::OurConf;
use crate::setup::directory::Kind;
use crate::setup::manifest::Manifest;
use crate::setup::problem::Drift;

/// Returns the first difference between the runtime's directory and the installer's plan. In the
/// plan, the first file of the directory has the name `name` and contains Jackfield's configuration
/// `conf`.
pub(super) fn find(
    manifest: Option<&Manifest>,
    directories: &NodeDirectories,
    conf: &OurConf,
    name: &str,
) -> Option<Drift> {
    let runtime = &directories.runtime;
    let Some((current_name, current)) = runtime.ours() else {
        let file = manifest.map_or_else(|| runtime.file(name), |manifest| manifest.conf.clone());
        let now = runtime.kind_of(file.file_name().unwrap_or_default());
        return Some(match (&directories.renamed, now) {
            (Some((to, _)), _) => Drift::Renamed {
                to: to.clone(),
                file,
            },
            (None, Some(Kind::Broken(cause))) => Drift::Damaged(file, Arc::clone(cause)),
            (None, Some(_)) => Drift::Overwritten(file),
            (None, None) => Drift::Missing(file),
        });
    };
    let first = runtime.first().map_or(name, |first| first.name.as_str());
    if current_name != name || first != name {
        return Some(Drift::NotFirst {
            first: runtime.file(first),
            ours: current_name.to_owned(),
        });
    }
    if current == conf {
        return None;
    }
    let (wanted, current) = (conf.cluster_network(), current.cluster_network());
    Some(if wanted == current {
        Drift::OtherContent(runtime.file(name))
    } else {
        Drift::OtherNetwork { wanted, current }
    })
}
