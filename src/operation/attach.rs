//! Attaches the networks of a new pod, or further networks of a running pod, one after another.
//! Before each attachment and each change of routes, writes a step to the journal.

use std::borrow::Cow;

use super::delegates::Delegates;
use super::devices::{functions, hardware::Hardware};
use super::prepare::Prepared;
use super::proof::{self, Shown};
use super::{Context, Failure, default_route};
use crate::clock;
use crate::cluster::{Event, Phase};
use crate::cni::CniResult;
use crate::delegate::Binaries;
use crate::journal::{Entry, Sandbox, Step};
use crate::kernel::{PodLinks, PodNetns};
use crate::plan::{Attachment, Reason};
use crate::verify::Masters;

/// An ADD reserves 1/`KEPT_FOR_DETACHING` of the remaining time for a rollback. So does a change of
/// a running pod's networks.
pub(super) const KEPT_FOR_DETACHING: u32 = 4;

/// Refuses an attachment if the network namespace already has a link with the interface name of the
/// attachment (NPWG 1.3 §4.1.2.1.5). Alternative names of links count too. Skips attachments for
/// which `may_be_there` returns true.
pub(super) fn check_free(
    prepared: &Prepared,
    links: &mut dyn PodLinks,
    may_be_there: impl Fn(&Attachment) -> bool,
) -> Result<(), Failure> {
    for attachment in prepared.attachments() {
        if !may_be_there(attachment) && links.link(&attachment.ifname)?.is_some() {
            let reason = Reason::InterfaceExists(attachment.ifname.clone());
            return Err(attachment.problem(reason).into());
        }
    }
    Ok(())
}

/// The state while the networks of a pod are being attached.
pub(super) struct Attaching<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) netns: &'a PodNetns,
    pub(super) links: &'a mut dyn PodLinks,
    /// The record of the sandbox, open for further steps.
    pub(super) entry: Entry,
    /// The sandbox as recorded so far.
    pub(super) sandbox: Sandbox,
    /// The `prevResult`, if the runtime calls Jackfield as part of a chain.
    pub(super) previous: Option<CniResult>,
    /// The events for the pod.
    pub(super) events: Vec<Event>,
    /// For each verified attachment, what network-status reports in addition to the result.
    pub(super) shown: Vec<Shown>,
}

impl Attaching<'_> {
    /// Attaches and verifies the networks of the plan, and sets the requested default routes. The
    /// indices of these networks in the record begin with `first`.
    ///
    /// # Errors
    /// The first failure. The caller must then detach the attachments that this function started.
    pub(super) fn attach_networks(
        &mut self,
        prepared: &Prepared,
        first: usize,
    ) -> Result<(), Failure> {
        if !self.sandbox.baseline.is_empty() {
            let step = Step::Baseline(Cow::Borrowed(&self.sandbox.baseline));
            self.entry.write(&[step])?;
        }
        let time = self.context.sparing(KEPT_FOR_DETACHING);
        for (index, (attachment, binaries)) in (first..).zip(&prepared.attachments) {
            self.step(&[Step::Started(index)])?;
            self.sandbox.progress[index].started = true;
            let attached = self.attach(&time, index, attachment, binaries);
            let stopwatch = self.context.host.stopwatch;
            stopwatch.attachment(&attachment.label, attached.is_ok());
            attached?;
        }
        // Check the VFs of all attachments together, so that Jackfield asks the kernel only once
        // for each physical function. The kernel's answer describes all VFs of a physical function.
        let warnings = functions::prove(self.context, prepared.attachments())?;
        self.warn(warnings);
        // Replace the default routes last, because each network may add default routes that must be
        // replaced too.
        for (index, attachment) in (first..).zip(prepared.attachments()) {
            self.route(index, attachment)?;
        }
        self.remove_added_routes(first)
    }

    /// Makes one attachment and verifies it.
    fn attach(
        &mut self,
        time: &Context<'_>,
        index: usize,
        attachment: &Attachment,
        binaries: &Binaries,
    ) -> Result<(), Failure> {
        if attachment.device_info_file.is_some() {
            Hardware::of(&self.context.request.config).write_file(attachment)?;
        }
        let previous = match attachment.is_cluster {
            // The runtime may have called other plugins before Jackfield. Pass on their result (CNI
            // 1.1.0 §2 ADD).
            true => self.previous.clone(),
            // The first plugin of the auxiliary chain (`auxiliaryCNIChainName`) expects a
            // `prevResult`. The chain has no earlier plugin, so pass an empty `prevResult`.
            false => attachment.is_auxiliary.then(CniResult::default),
        };
        let (header, netns) = (&self.sandbox.header, Some(self.netns.path()));
        let delegates = Delegates::new(time, header, attachment, binaries, netns)?;
        let added = delegates.add(previous);
        if let Err(Failure::Delegate(_, cause)) = &added {
            self.sandbox.progress[index].failed_at = Some(cause.index);
        }
        let result = added?;
        self.step(&[Step::Attached(index, Cow::Borrowed(&result))])?;
        if attachment.is_cluster {
            result.fits(self.context.request.config.version)?;
        }
        self.sandbox.progress[index].result = Some(result);
        let stopwatch = self.context.host.stopwatch;
        stopwatch.during(Phase::Verify, || self.prove(index, attachment))
    }

    /// Verifies the attachment. The caller must verify each attachment before it runs the plugins
    /// of the next one. Those plugins may, for example, add this attachment's interface to a bond,
    /// and a bond may change the hardware addresses of its members.
    fn prove(&mut self, index: usize, attachment: &Attachment) -> Result<(), Failure> {
        let result = self.sandbox.progress[index].result.as_ref();
        let config = &self.context.request.config;
        let until = self.context.deadline;
        let proof = proof::prove(config, attachment, result, Masters::Any, self.links, until)?;
        self.warn(proof.warnings);
        self.shown.push(proof.shown);
        Ok(())
    }

    fn warn(&mut self, warnings: Vec<Event>) {
        self.context.note_warnings(&warnings);
        self.events.extend(warnings);
    }

    fn route(&mut self, index: usize, attachment: &Attachment) -> Result<(), Failure> {
        let Some(gateways) = &attachment.default_route else {
            return Ok(());
        };
        let since = clock::now();
        let change = default_route::plan(gateways, &attachment.ifname, self.links)?;
        self.step(&[Step::Routes(index, Cow::Borrowed(&change))])?;
        self.sandbox.progress[index].routes = change.clone();
        let applied = default_route::apply(&change, attachment, self.links);
        self.context.host.stopwatch.spent(Phase::Routes, since);
        applied
    }

    /// If an older attachment (with an index below `first`) has replaced the pod's default routes,
    /// removes the default routes that the new networks have added. In an ADD, there are no older
    /// attachments.
    fn remove_added_routes(&mut self, first: usize) -> Result<(), Failure> {
        let attachments = &self.sandbox.header.attachments;
        let mut kept = attachments.iter().zip(&self.sandbox.progress).take(first);
        let taker = kept
            .position(|(it, progress)| progress.may_be_attached() && it.default_route.is_some());
        let Some(index) = taker else { return Ok(()) };
        let gateways = attachments[index].default_route.clone().unwrap_or_default();
        let mut change = self.sandbox.progress[index].routes.clone();
        let added = default_route::added_since(&change, &gateways, self.links)?;
        if added.is_empty() {
            return Ok(());
        }
        change.removed.extend_from_slice(&added);
        self.step(&[Step::Routes(index, Cow::Borrowed(&change))])?;
        self.sandbox.progress[index].routes = change;
        for route in &added {
            self.links.remove_default_route(route)?;
        }
        Ok(())
    }

    pub(super) fn step(&mut self, steps: &[Step<'_>]) -> Result<(), Failure> {
        let stopwatch = self.context.host.stopwatch;
        Ok(stopwatch.during(Phase::Journal, || self.entry.write(steps))?)
    }
}
