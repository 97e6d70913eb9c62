//! Compares the networks that a running pod selects with the attachments in its record.

use super::planner::Planner;
use super::warning::PlanWarning;
use super::{Attachment, Inputs, Plan};
use crate::cluster::administrators_definitions;
use crate::npwg::{NetworksDigest, Selection};

/// The changes that make the attachments of a running pod match the pod's annotation.
#[derive(Debug, Default)]
pub struct Difference {
    /// The indices of the recorded attachments to detach. The pod selected these attachments
    /// earlier, but no element of the annotation matches them now.
    pub removed: Vec<usize>,
    /// The recorded attachments that the annotation still selects: the index of each, and the
    /// digest of the element that selects it. The caller adds this digest to the record, because a
    /// record of an older release lacks it.
    pub kept: Vec<(usize, NetworksDigest)>,
    /// The plan, which contains only the attachments to add.
    pub plan: Plan,
}

/// Compares the annotation with the `recorded` attachments. The cluster network and the other
/// networks of the node configuration stay as they are. `is_of_older_release` is true for a record
/// that does not say which attachments the pod selected.
///
/// An element of the annotation matches an attachment of the same network with the same requests.
/// The order of the elements does not matter. If the element names an interface, the attachment
/// must have that interface. If the annotation is invalid, the plan contains this problem and no
/// attachments, and nothing changes.
pub fn difference(
    inputs: Inputs<'_>,
    recorded: &[Attachment],
    is_of_older_release: bool,
) -> Difference {
    let administrators = administrators_definitions(inputs.config);
    let is_selected = |attachment: &Attachment| {
        let is_further = !attachment.is_cluster && !attachment.is_auxiliary;
        let is_administrators = || {
            let mut labels = administrators.iter().map(ToString::to_string);
            labels.any(|label| label == attachment.label)
        };
        attachment.selection.is_some() || is_of_older_release && is_further && !is_administrators()
    };
    let mut planner = Planner::new(inputs);
    let fixed = recorded.iter().filter(|it| !is_selected(it)).cloned();
    planner.plan.attachments.extend(fixed);
    let selections = planner.selections();
    let warnings = planner.plan.warnings.iter();
    let ignored = warnings.filter_map(PlanWarning::ignored);
    planner.plan.problems.extend(ignored);
    if !planner.plan.problems.is_empty() {
        planner.plan.attachments.clear();
        return Difference {
            plan: planner.plan,
            ..Difference::default()
        };
    }
    let all = recorded.iter().enumerate();
    let selected: Vec<(usize, &Attachment)> = all.filter(|(_, it)| is_selected(it)).collect();
    let matched = match_all(&selections, &selected);
    let kept = matched.iter().zip(&selections);
    let kept = kept.filter_map(|(index, selection)| Some(((*index)?, selection.digest())));
    let kept: Vec<(usize, NetworksDigest)> = kept.collect();
    let attachments = kept.iter().map(|(index, _)| recorded[*index].clone());
    planner.plan.attachments.extend(attachments);
    planner.kept = planner.plan.attachments.len();
    planner.continue_names(recorded);
    for (selection, found) in selections.iter().zip(&matched) {
        if found.is_none() {
            planner.selected_network(selection);
        }
    }
    planner.check_uniqueness();
    planner.devices();
    planner.plan.attachments.drain(..planner.kept);
    let removed = selected.into_iter().map(|(index, _)| index);
    let removed = removed.filter(|index| !matched.contains(&Some(*index)));
    Difference {
        removed: removed.collect(),
        kept,
        plan: planner.plan,
    }
}

/// For each selection, finds the recorded attachment that matches it, if there is one. Begins with
/// the selections that name an interface.
fn match_all(selections: &[Selection], recorded: &[(usize, &Attachment)]) -> Vec<Option<usize>> {
    let mut matched = vec![None; selections.len()];
    let is_claimed = |attachment: &Attachment| {
        let mut names = selections.iter().filter_map(|it| it.interface.as_ref());
        names.any(|name| *name == attachment.ifname)
    };
    for names_interface in [true, false] {
        for (place, selection) in selections.iter().enumerate() {
            if selection.interface.is_some() != names_interface {
                continue;
            }
            let found = recorded.iter().find(|(index, attachment)| {
                let fits = match &selection.interface {
                    Some(name) => *name == attachment.ifname,
                    None => !is_claimed(attachment),
                };
                fits && !matched.contains(&Some(*index)) && carries_out(attachment, selection)
            });
            matched[place] = found.map(|(index, _)| *index);
        }
    }
    matched
}

/// Whether the attachment was made for the requests of `selection`. Compares digests. If the record
/// has no digest, because an older release wrote it, compares the requests themselves.
fn carries_out(attachment: &Attachment, selection: &Selection) -> bool {
    if let Some(digest) = &attachment.selection {
        return *digest == selection.digest();
    }
    let requested = &attachment.requested;
    attachment.label == selection.network.to_string()
        && (selection.ipam_claim.is_some() || requested.ips == selection.ips)
        && requested.mac == selection.mac
        && requested.guid == selection.infiniband_guid
        && requested.device == selection.device_id
        && attachment.default_route == selection.default_route
}

impl Planner<'_> {
    /// Continues the generated interface names after the highest recorded `net<number>`. Does not
    /// reuse the name of an attachment that is about to be detached, because parts of the
    /// attachment may remain.
    fn continue_names(&mut self, recorded: &[Attachment]) {
        let number = |attachment: &Attachment| {
            let number = attachment.ifname.as_str().strip_prefix("net")?;
            number.parse::<u16>().ok()
        };
        let highest = recorded.iter().filter_map(number).max().unwrap_or(0);
        self.position = usize::from(highest) + 1;
        self.last = self.position;
    }
}
