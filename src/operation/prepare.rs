//! Prepares an ADD: determines everything that can be determined before the first delegate runs.
//! ADD executes the result, and `explain` prints it.

mod segments;

use std::time::Duration;

use device_info::PciAddress;

use super::devices::hardware::{Claimant, Hardware, HostLinks};
use super::inquiry::{self, Inquiry};
use super::pod_facts::PodFacts;
use super::{Context, Failure, networks};
use crate::allocation::Allocation;
use crate::clock;
use crate::cluster::{self, Event, Phase, PodName, Question};
use crate::delegate::Binaries;
use crate::diagnostic::SharedError;
use crate::journal::{Header, Key};
use crate::npwg::NetworksDigest;
use crate::plan::{Attachment, Plan, PlanError, PlanWarning, Reason};
use crate::verify::IntendedFunction;

/// A plan with the programs of its plugins.
#[derive(Debug, Default)]
pub struct Prepared {
    /// The pod, if the runtime passes one in `CNI_ARGS`.
    pub pod: Option<PodName>,
    /// The digest of the annotation that selects the pod's networks.
    pub networks: NetworksDigest,
    /// The attachments in the order in which the ADD attaches them, each with the programs of its
    /// plugins.
    pub attachments: Vec<(Attachment, Binaries)>,
    /// Events about the pod.
    pub events: Vec<Event>,
    /// Remarks on decisions that a user may not expect.
    pub remarks: Vec<String>,
    /// The invalid annotations, which Jackfield ignores. The pod starts without the networks that
    /// these annotations select.
    pub ignored: Vec<PlanError>,
    /// All reasons why the ADD would fail.
    pub problems: Vec<PlanError>,
    /// False if the first problem concerns a definition that does not exist or is not usable. The
    /// metrics then omit the network's name.
    pub is_first_known: bool,
}

/// Prepares an ADD. Changes nothing on the node.
///
/// # Errors
/// If the data from the runtime is invalid, if the cluster does not answer, or if the UID of the
/// pod in the cluster differs from the UID in `CNI_ARGS`. Problems of the plan are in
/// [`Prepared::problems`].
pub fn prepare(context: &Context<'_>) -> Result<Prepared, Failure> {
    announce(context)?.prepare()
}

/// An ADD in preparation. If `question` is set, [`announce`] has announced it to the cluster.
pub(super) struct Announced<'a> {
    context: &'a Context<'a>,
    inquiry: Inquiry,
    question: Option<Question>,
}

/// Tells the cluster in advance which question [`Announced::prepare`] will ask. The caller can do
/// other work while the cluster looks up the answer.
///
/// # Errors
/// If the data from the runtime is invalid.
pub(super) fn announce<'a>(context: &'a Context<'a>) -> Result<Announced<'a>, Failure> {
    let inquiry = Inquiry::of(context)?;
    let patience = cluster::AGENT_WAIT.min(context.left() / 2);
    let question = inquiry.question(context, patience);
    if let Some(question) = &question {
        context.host.cluster.announce(question);
    }
    Ok(Announced {
        context,
        inquiry,
        question,
    })
}

impl Announced<'_> {
    /// Prepares the ADD.
    ///
    /// # Errors
    /// Returns the errors of the function [`prepare`].
    pub(super) fn prepare(self) -> Result<Prepared, Failure> {
        let context = self.context;
        let key = context.key()?;
        let answer = inquiry::ask(context, self.question.as_ref(), context.deadline)?;
        self.inquiry.check_identity(&answer)?;
        let facts = PodFacts::of(context, self.inquiry, answer);
        let asked = clock::now();
        let allocation = facts.allocation(context, self.question);
        context.host.stopwatch.spent(Phase::Devices, asked);
        let allocated = clock::now();
        let runtime_config = inquiry::runtime_config(context)?;
        let plan = facts.plan(context, &key, &allocation, runtime_config);
        let prepared = Prepared::of(context, &key, &facts, &allocation, plan, &[]);
        context.host.stopwatch.spent(Phase::Plan, allocated);
        Ok(prepared)
    }
}

/// Prepares a change of a running pod's networks. `header` is the header of the pod's record.
/// Changes nothing on the node.
///
/// # Errors
/// If the data from the runtime is invalid, if the cluster does not answer, or if the UID of the
/// pod in the cluster differs from the UID in `CNI_ARGS`. Problems of the plan are in
/// [`Change::prepared`].
pub(super) fn change(context: &Context<'_>, header: &Header) -> Result<Change, Failure> {
    let inquiry = Inquiry::of(context)?;
    let question = inquiry.question(context, Duration::ZERO);
    let answer = inquiry::ask(context, question.as_ref(), context.deadline)?;
    inquiry.check_identity(&answer)?;
    let facts = PodFacts::of(context, inquiry, answer);
    // Pass no question, so that `PodFacts::allocation` does not wait for kubelet. Kubelet allocated
    // the devices before the pod ran.
    let allocation = facts.allocation(context, None);
    let since = clock::now();
    let difference = facts.difference(context, header, &allocation);
    let (removed, plan) = (difference.removed, difference.plan);
    let recorded = header.attachments.iter().enumerate();
    let kept = recorded.filter(|(index, _)| !removed.contains(index));
    let kept: Vec<Attachment> = kept.map(|(_, attachment)| attachment.clone()).collect();
    let prepared = Prepared::of(context, &header.key(), &facts, &allocation, plan, &kept);
    context.host.stopwatch.spent(Phase::Plan, since);
    Ok(Change {
        removed,
        kept: difference.kept,
        prepared,
    })
}

/// A change of the networks of a running pod.
#[derive(Debug, Default)]
pub struct Change {
    /// The indices of the recorded attachments to detach.
    pub removed: Vec<usize>,
    /// The recorded attachments that the annotation still selects, each with the digest of the
    /// element that selects it.
    pub kept: Vec<(usize, NetworksDigest)>,
    /// The attachments to add.
    pub prepared: Prepared,
}

/// Checks that the SR-IOV plugins accept and correctly read each VF setting in the definition. For
/// example, refuses `"spoofchk": "yes"`, which sriov-cni reads as `off`.
fn check_functions(plan: &mut Plan) {
    for attachment in &plan.attachments {
        if let Err(error) = IntendedFunction::check(&attachment.config) {
            let problem = attachment.problem(Reason::Network(SharedError::new(error)));
            plan.problems.push(problem);
        }
    }
}

/// Checks that every device can be used, and that neither the node nor another pod needs the
/// device.
fn inspect_devices(context: &Context<'_>, key: &Key, pod: Option<&PodName>, plan: &mut Plan) {
    let config = &context.request.config;
    let devices = plan.attachments.iter().filter_map(Attachment::pci);
    let devices: Vec<PciAddress> = devices.collect();
    let claim = Claimant {
        journal: &context.host.journal,
        key,
        pod,
        devices: &devices,
    };
    let hardware = Hardware::of(config);
    let open = || (context.host.devices)(None);
    let mut host = HostLinks::new(&open);
    for attachment in &mut plan.attachments {
        let inspected = hardware
            .inspect(attachment)
            .and_then(|()| hardware.spares_uplinks(attachment, &mut host, context.deadline))
            .and_then(|()| hardware.can_be_given(attachment, &claim, &mut host));
        if let Err(reason) = inspected {
            plan.problems.push(attachment.problem(reason));
        }
    }
}

impl Prepared {
    /// Inspects the devices of a plan and finds the programs of its plugins. The pod already has
    /// the attachments in `kept`.
    fn of(
        context: &Context<'_>,
        key: &Key,
        facts: &PodFacts,
        allocation: &Allocation,
        mut plan: Plan,
        kept: &[Attachment],
    ) -> Prepared {
        check_functions(&mut plan);
        inspect_devices(context, key, facts.pod.as_ref(), &mut plan);
        segments::find(context, kept, &mut plan.attachments);
        segments::check(kept, &mut plan);
        let of_plan = plan.remarks.iter().map(ToString::to_string);
        let of_devices = allocation.remarks.iter().map(ToString::to_string);
        let ignored = plan.warnings.iter().filter_map(PlanWarning::ignored);
        let mut problems = plan.problems;
        let attachments = find_programs(context, plan.attachments, &mut problems);
        let first = problems.first().and_then(|problem| problem.place.as_ref());
        Prepared {
            pod: facts.pod.clone(),
            networks: facts.annotations.digest(),
            attachments,
            events: plan.warnings.iter().map(PlanWarning::event).collect(),
            remarks: of_plan.chain(of_devices).collect(),
            ignored: ignored.collect(),
            is_first_known: first.is_none_or(|place| facts.answer.knows(&place.label)),
            problems,
        }
    }

    /// Returns the attachments in the order in which the ADD attaches them.
    pub fn attachments(&self) -> impl Iterator<Item = &Attachment> {
        self.attachments.iter().map(|(attachment, _)| attachment)
    }
}

/// Finds the programs of all plugins, including IPAM plugins. Returns each attachment with its
/// programs, and adds a problem to `problems` for each missing program.
fn find_programs(
    context: &Context<'_>,
    attachments: Vec<Attachment>,
    problems: &mut Vec<PlanError>,
) -> Vec<(Attachment, Binaries)> {
    let dirs = context.search_path();
    let mut with_programs = Vec::with_capacity(attachments.len());
    for attachment in attachments {
        let (binaries, missing) = networks::programs(context, &dirs, &attachment.config);
        let missing = missing.into_iter().map(SharedError::new);
        problems.extend(missing.map(|error| attachment.problem(Reason::Network(error))));
        with_programs.push((attachment, binaries));
    }
    with_programs
}
