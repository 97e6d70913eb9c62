//! What happens after the fault: a runtime detaches the sandbox, or an administrator repeats the
//! command.

use crate::cell::{Met, Place};
use crate::lab::{Lab, is_left_to_gc};
use crate::table::call::{Call, Verb};
use crate::table::cell::Cell;
use crate::table::faults::{Event, Kind};
use crate::table::stories::End;

impl Cell<Place> {
    /// Does what the runtime or the administrator does afterwards, and looks at everything.
    pub(crate) fn clean_up(&self, lab: &Lab, met: &Met) -> Vec<String> {
        if self.story.end == End::Uninstalled {
            let mut findings = Vec::new();
            for verb in [self.story.walked, Verb::Uninstall] {
                findings.extend(lab.attempt(Call::of(verb)).err());
            }
            findings.extend(lab.leftovers(false));
            return findings;
        }
        let findings = match met.done.status.success() && self.story.settles && self.promises() {
            true => lab.leftovers(false),
            false => self.detach(lab, met),
        };
        let may_leave_files = matches!(
            self.fault.kind,
            Kind::Kill | Kind::KillAtSomeTime | Kind::Errno(..) | Kind::PowerLoss(_)
        );
        let is_left_to_gc = |finding: &String| is_left_to_gc(finding);
        if findings.is_empty() || !may_leave_files || !findings.iter().all(is_left_to_gc) {
            return findings;
        }
        let collected = lab.attempt(Call::of(Verb::Gc)).err();
        collected.into_iter().chain(lab.leftovers(false)).collect()
    }

    /// Detaches the sandbox as a runtime does, and looks at everything.
    fn detach(&self, lab: &Lab, met: &Met) -> Vec<String> {
        let mut call = self.cleaning();
        let mut findings = Vec::new();
        if met.lost_header {
            if call.verb == Verb::Gc {
                // GC cannot know what a lost header listed. The runtime's DEL asks the cluster.
                findings.extend(lab.attempt(call).err());
                call.verb = Verb::Del;
            }
            findings.extend(lab.attempt(call).err());
            lab.empty_quarantine();
        } else {
            if !call.with_netns {
                lab.delete_netns();
            }
            findings.extend(lab.attempt(call).err());
        }
        let is_renamed = matches!(self.fault.kind, Kind::Meanwhile(Event::PodLinksRenamed));
        if is_renamed {
            // No plugin finds a link without its name. The link ends with its namespace.
            lab.delete_netns();
        }
        let has_worker = self.story.end == End::DetachedBesideWorker;
        findings.extend(lab.leftovers(!call.with_netns || is_renamed || has_worker));
        findings
    }

    /// Whether a success of the walked call is a promise in spite of the fault.
    fn promises(&self) -> bool {
        match self.fault.kind {
            // A GC skips a record that it cannot read. The next GC detaches that sandbox.
            Kind::Errno(..) => self.story.walked != Verb::Gc,
            Kind::Delegate(_) | Kind::BootClockAhead(_) | Kind::Cluster(_) => true,
            Kind::Meanwhile(event) => {
                matches!(event, Event::UplinkRenamed | Event::ClockSet(_))
            }
            Kind::Kill | Kind::KillAtSomeTime | Kind::KillBesideSleeper | Kind::PowerLoss(_) => {
                false
            }
        }
    }

    /// The call that cleans up: DEL with and without a namespace, and GC, in turn.
    fn cleaning(&self) -> Call {
        let number = self.number();
        // A GC waits only a second for a worker.
        let collects = number % 3 == 2 && self.story.end == End::Detached;
        let is_gone = matches!(
            self.fault.kind,
            Kind::PowerLoss(_) | Kind::Meanwhile(Event::NetnsDeleted)
        );
        Call {
            verb: if collects { Verb::Gc } else { Verb::Del },
            with_netns: !is_gone && number.is_multiple_of(2),
        }
    }
}
