//! Carries out an ADD: attaches one network after another. Before each change, ADD records in the
//! journal what it is about to do.

use std::borrow::Cow;
use std::time::Instant;

use super::{Added, KEPT_FOR_UNWINDING};
use crate::cluster::{ClusterError, Event, Phase, Publication};
use crate::cni::CniResult;
use crate::delegate::Binaries;
use crate::journal::{Entry, Sandbox, Step};
use crate::kernel::{PodLinks, PodNetns};
use crate::npwg::StatusEntry;
use crate::operation::delegates::Delegates;
use crate::operation::detach::{self, Detachment};
use crate::operation::devices::{functions, hardware::Hardware};
use crate::operation::prepare::Prepared;
use crate::operation::proof::{self, Shown};
use crate::operation::{Context, Failure, Note, default_route, network_status};
use crate::plan::Attachment;
use crate::verify::Masters;

/// An ADD in progress.
pub(super) struct Adding<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) netns: &'a PodNetns,
    pub(super) links: &'a mut dyn PodLinks,
    /// The record of the sandbox, open for further steps.
    pub(super) entry: Entry,
    /// The sandbox as recorded so far.
    pub(super) sandbox: Sandbox,
    /// The `prevResult`, if the runtime calls Jackfield as part of a chain.
    pub(super) previous: Option<CniResult>,
    /// The events for the pod's owner.
    pub(super) events: Vec<Event>,
    /// What network-status reports about each verified attachment in addition to its result.
    pub(super) shown: Vec<Shown>,
}

impl Adding<'_> {
    /// Attaches and verifies every network of the plan, and publishes the network-status.
    ///
    /// # Errors
    /// The first failure. The caller must then [roll back](Adding::unwind) the ADD.
    pub(super) fn attach_all(&mut self, prepared: &Prepared) -> Result<Added, Failure> {
        if !self.sandbox.baseline.is_empty() {
            let step = Step::Baseline(Cow::Borrowed(&self.sandbox.baseline));
            self.entry.write(&[step]).map_err(Failure::JournalStep)?;
        }
        let time = self.context.sparing(KEPT_FOR_UNWINDING);
        for (index, (attachment, binaries)) in prepared.attachments.iter().enumerate() {
            self.step(&[Step::Started(index)])?;
            self.sandbox.progress[index].started = true;
            let attached = self.attach(&time, index, attachment, binaries);
            let stopwatch = self.context.host.stopwatch;
            stopwatch.attachment(&attachment.label, attached.is_ok());
            attached?;
        }
        // One check covers all attachments, because a physical function reports all of its VFs in
        // one answer.
        let warnings = functions::prove(self.context, prepared.attachments())?;
        self.warn(warnings);
        // Replace the default routes last, because each network may add default routes that must be
        // replaced too.
        for (index, attachment) in prepared.attachments().enumerate() {
            self.route(index, attachment)?;
        }
        let mut results = default_route::answered(&self.sandbox);
        let addresses = self.context.request.config.status_addresses;
        let status = network_status::entries(&self.sandbox, &results, &self.shown, addresses);
        // Record `Complete` before publishing. Otherwise an ADD that is already published could
        // still fail because its last step cannot be recorded.
        self.step(&[Step::Complete])?;
        self.publish(prepared, &status)?;
        let result = results.first_mut().and_then(Option::take);
        let result = result.unwrap_or_default();
        Ok(Added { result, status })
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
            // The result of the plugins that the runtime called before Jackfield (CNI 1.1.0 §2
            // ADD).
            true => self.previous.clone(),
            // Plugins of the auxiliary chain are written for chaining and need a `prevResult`.
            false => attachment.is_auxiliary.then(CniResult::default),
        };
        let container = &self.sandbox.header.container;
        let runtime = &self.context.request.call.args;
        let netns = Some(self.netns.path());
        let delegates = Delegates::new(time, attachment, binaries, container, netns, runtime)?;
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

    /// Verifies the attachment. This runs before the plugins of the next attachment, because those
    /// plugins may enslave this interface.
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
        let since = Instant::now();
        let change = default_route::plan(gateways, &attachment.ifname, self.links)?;
        self.step(&[Step::Routes(index, Cow::Borrowed(&change))])?;
        self.sandbox.progress[index].routes = change.clone();
        let applied = default_route::apply(&change, attachment, self.links);
        self.context.host.stopwatch.spent(Phase::Routes, since);
        applied
    }

    fn publish(&mut self, prepared: &Prepared, status: &[StatusEntry]) -> Result<(), Failure> {
        let Some(pod) = &prepared.pod else {
            return Ok(());
        };
        self.events.push(network_status::added(&self.sandbox));
        let status = Some(status.to_vec());
        let events = std::mem::take(&mut self.events);
        let publication = Publication::new(pod.clone(), status, events);
        let host = self.context.host;
        let until = self.context.sparing(KEPT_FOR_UNWINDING).deadline;
        let publish = || host.cluster.publish(&publication, until);
        match host.stopwatch.during(Phase::Publish, publish) {
            Err(error @ ClusterError::Event(_)) => self.context.note(Note::Tolerated(error.into())),
            published => published?,
        }
        Ok(())
    }

    fn step(&mut self, steps: &[Step<'_>]) -> Result<(), Failure> {
        let stopwatch = self.context.host.stopwatch;
        let written = stopwatch.during(Phase::Journal, || self.entry.write(steps));
        written.map_err(Failure::JournalStep)
    }

    /// Detaches everything that was attached. Returns `cause`, extended by the failures to detach.
    pub(super) fn unwind(self, cause: Failure) -> Failure {
        let detached = detach::detach(self.context, self.sandbox, Detachment::Unwinding);
        cause.after_cleanup(detached)
    }
}
