//! The segments (layer-2 networks) of a pod's attachments. A MAC or GUID must be unique on its
//! segment.

use super::super::Context;
use super::super::devices::hardware::Hardware;
use crate::plan::{Attachment, Plan, Reason};

/// Sets the segment of every attachment that requests a MAC or GUID. The pod already has the
/// attachments in `kept`.
pub(super) fn find(context: &Context<'_>, kept: &[Attachment], attachments: &mut [Attachment]) {
    let hardware = Hardware::of(&context.request.config);
    for index in 0..attachments.len() {
        let (earlier, rest) = attachments.split_at_mut(index);
        if let [attachment, ..] = rest
            && (attachment.macs().next().is_some() || attachment.guids().next().is_some())
        {
            let earlier: Vec<&Attachment> = kept.iter().chain(&*earlier).collect();
            attachment.segment = Some(hardware.segment(attachment, &earlier));
        }
    }
}

/// Checks that no two networks of the pod request the same MAC or GUID on one segment. Does not
/// compare attachments of the same network with each other, because the planner has already
/// compared their `mac` and `infiniband-guid`. The pod already has the attachments in `kept`.
pub(super) fn check(kept: &[Attachment], plan: &mut Plan) {
    let mut problems = Vec::new();
    for (index, attachment) in plan.attachments.iter().enumerate() {
        let shares_address = |other: &&Attachment| {
            let is_on_segment = attachment.segment.is_some() && other.segment == attachment.segment;
            let has_mac = |mac| other.macs().any(|it| it == mac);
            let has_guid = |guid| other.guids().any(|it| it == guid);
            is_on_segment
                && other.label != attachment.label
                && (attachment.macs().any(has_mac) || attachment.guids().any(has_guid))
        };
        let mut earlier = kept.iter().chain(&plan.attachments[..index]);
        let other = earlier.find(shares_address);
        let used = other.map(|other| Reason::HardwareAddressUsed(other.ifname.clone()));
        problems.extend(used.map(|reason| attachment.problem(reason)));
    }
    plan.problems.extend(problems);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npwg::{Dialect, RequestedMac};
    use crate::plan::Segment;

    #[test]
    fn two_networks_of_a_pod_share_no_mac_on_one_segment() {
        let network = |label: &str, bridge: &str, mac: &str| {
            let mut attachment = Attachment::for_tests(r#"{"cniVersion":"1.0.0","type":"bridge"}"#);
            label.clone_into(&mut attachment.label);
            attachment.requested.mac = RequestedMac::parse(mac, Dialect::default()).ok();
            attachment.segment = Some(Segment::bridge(bridge, 0));
            attachment
        };
        let (one, other) = ("02:00:00:00:00:01", "02:00:00:00:00:02");
        for (bridge, mac, refused) in [("br0", one, 1), ("br1", one, 0), ("br0", other, 0)] {
            let first = network("demo/a", "br0", one);
            let second = network("demo/b", bridge, mac);
            let mut of_new_pod = Plan {
                attachments: vec![first.clone(), second.clone()],
                ..Plan::default()
            };
            check(&[], &mut of_new_pod);
            assert_eq!(of_new_pod.problems.len(), refused, "{bridge} {mac}");
            let mut of_change = Plan {
                attachments: vec![second],
                ..Plan::default()
            };
            check(&[first], &mut of_change);
            assert_eq!(of_change.problems.len(), refused, "{bridge} {mac}");
        }
    }
}
