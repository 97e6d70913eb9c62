//! What happens to a running pod: CHECK, a change of its annotation, and disturbances from outside.

use std::sync::Arc;

use super::call::{Job, Outcome, run};
use super::workload::{AGAIN, Life};
use crate::cni::{InterfaceName, Verb};
use crate::journal::Key;
use crate::operation::Work;

impl Life<'_> {
    /// Simulates what happens to a running pod.
    pub(super) fn use_sandbox(&self, uid: &str, container: &str) {
        let netns = self.world(|world| world.sandboxes[container].netns.clone());
        let key = Key {
            container: container.parse().unwrap(),
            ifname: InterfaceName::first(),
        };
        let mut has_changed = false;
        for _ in 0..self.sim.below(4) {
            self.sleep(3000);
            match self.sim.below(5) {
                0 | 1 => {
                    let outcome = self.call(Verb::Check, container, Some(&netns));
                    self.judge_check(container, &outcome, has_changed);
                }
                2 => {
                    has_changed = true;
                    self.world(|world| world.reselected.insert(container.to_owned()));
                    let has_device = self.world(|world| world.pods[uid].wants_device);
                    let networks = self.networks(has_device && self.chance(70));
                    self.sim.say(|| format!("pod {uid} now selects {networks}"));
                    self.world(|world| {
                        let pod = world.pods.get_mut(uid).unwrap();
                        pod.stale = std::mem::replace(&mut pod.networks, networks);
                    });
                    if self.chance(50) {
                        run(self.sim, self.task, &Job::Worker(Work::Change, key.clone()));
                    }
                }
                _ => self.disturb(container, &netns),
            }
        }
    }

    fn judge_check(&self, container: &str, outcome: &Outcome, has_changed: bool) {
        let view = self.world(|world| world.sandboxes[container].clone());
        if let Outcome::Failure(code, message) = outcome
            && self.sim.conditions.are_clean()
            && view.attached_since.is_some()
            && !view.is_disturbed
            && !(has_changed && *code == AGAIN)
        {
            let rule = format!("{container}: CHECK failed without a fault: {code} {message}");
            self.world(|world| world.breaks(rule));
        }
    }

    /// Sometimes simulates that something other than Jackfield changes the pod's network.
    fn disturb(&self, container: &str, netns: &str) {
        if !self.chance(self.sim.conditions.disturbances) {
            return;
        }
        self.view(container, |view| {
            view.is_disturbed = true;
            view.attached_since = None;
        });
        let choice = self.sim.below(3);
        let place = Arc::clone(&self.sim.place);
        self.sim
            .say(|| format!("{container} is disturbed: {choice}"));
        let mut world = self.sim.world();
        match (choice, world.netns.get_mut(netns)) {
            (0, _) => world.remove_netns(&place, netns),
            (1, Some(there)) => {
                let last = there.links.last().map(|it| it.link.index);
                there.retain_links(|it| Some(it.link.index) != last);
            }
            (_, Some(there)) => {
                if let Some(first) = there.links.first_mut() {
                    let name = std::mem::replace(&mut first.link.name, "renamed0".to_owned());
                    let hops = there.routes.iter_mut().flat_map(|it| &mut it.next_hops);
                    for hop in hops.filter(|it| it.interface.as_ref() == Some(&name)) {
                        hop.interface = Some("renamed0".to_owned());
                    }
                }
            }
            _ => {}
        }
    }
}
