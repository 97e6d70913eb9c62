//! Finds pods' network namespaces that have interfaces but no record.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;

use super::Findings;
use crate::journal::survey::Surveyed;
use crate::kernel::{ContainerNetns, container_namespaces};
use crate::setup::HostPaths;
use crate::setup::manifest::Manifest;

/// Reports namespaces that have no record and are newer than the installation of Jackfield. Omits
/// older namespaces, because the runtime may have called another plugin for them.
pub(super) fn look(paths: &HostPaths, records: &[Surveyed], findings: &mut Findings<'_>) {
    let manifest = Manifest::read(paths).ok().flatten();
    let installed = manifest.map(|manifest| manifest.installed);
    let Some(installed) = installed.filter(|seconds| *seconds > 0) else {
        return;
    };
    let headers = || records.iter().map(|record| &record.sandbox.header);
    let ids: HashSet<&str> = headers().map(|it| it.netns_id.as_str()).collect();
    let names = headers().filter_map(|it| Path::new(&it.netns).file_name());
    let names: HashSet<&OsStr> = names.collect();
    let is_on_record = |netns: &ContainerNetns| {
        ids.contains(netns.id.to_string().as_str()) || names.contains(OsStr::new(&netns.name))
    };
    let is_lost = |netns: &ContainerNetns| {
        u64::try_from(netns.made).is_ok_and(|made| made > installed)
            && !netns.interfaces.is_empty()
            && !is_on_record(netns)
    };
    let lost = container_namespaces().into_iter().filter(is_lost);
    let lost = lost.map(|netns| format!("{} ({})", netns.name, netns.interfaces.join(", ")));
    let lost: Vec<String> = lost.collect();
    if !lost.is_empty() {
        let remedy = "recreate the pods; never delete journalDir, the directory of the records";
        let problem = format!(
            "{} network namespaces of pods have interfaces but no record, because the records were \
             lost or another program attached the pods: {}",
            lost.len(),
            super::first_few(&lost)
        );
        findings.add("/run/netns", problem, remedy);
    }
}
