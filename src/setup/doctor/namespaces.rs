//! Finds network namespaces of pods that have interfaces and no record.

use super::journal::JournalProblem;
use super::{Check, Diagnosis};
use crate::journal::survey::Surveyed;
use crate::kernel::{ContainerNetns, container_namespaces};
use crate::setup::HostPaths;
use crate::setup::manifest::Manifest;

/// Finds those created since Jackfield was installed. The runtime called it for each of them, so their
/// records were lost.
pub(super) fn look(paths: &HostPaths, records: &[Surveyed], diagnosis: &mut Diagnosis) {
    let manifest = Manifest::read(paths).ok().flatten();
    let installed = manifest.map(|manifest| manifest.installed);
    let Some(installed) = installed.filter(|seconds| *seconds > 0) else {
        return;
    };
    let is_on_record = |netns: &ContainerNetns| {
        let id = netns.id.to_string();
        let path = format!("/{}", netns.name);
        records.iter().any(|record| {
            let header = &record.sandbox.header;
            header.netns_id == id || header.netns.ends_with(&path)
        })
    };
    let is_lost = |netns: &ContainerNetns| {
        u64::try_from(netns.made).is_ok_and(|made| made > installed)
            && !netns.interfaces.is_empty()
            && !is_on_record(netns)
    };
    let lost: Vec<ContainerNetns> = container_namespaces().into_iter().filter(is_lost).collect();
    if lost.is_empty() {
        return;
    }
    let names = lost.iter().map(|netns| {
        let interfaces = netns.interfaces.join(", ");
        format!("{} ({interfaces})", netns.name)
    });
    let names = names.collect();
    let problem = JournalProblem::LostNamespaces { names };
    diagnosis.find(Check::Journal, "/run/netns", problem);
}
