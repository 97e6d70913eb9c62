//! One call of a simulated plugin. The work of a call has two halves.

use std::time::Duration;

use serde_json::Value;

use super::machine::Process;
use super::plugins;
use super::world::World;
use crate::cni::{self, Verb};
use crate::delegate::DelegateCall;

/// A half of the work of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    First,
    Second,
}

/// One call of a plugin.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) verb: Verb,
    pub(super) plugin: String,
    pub(super) network: String,
    pub(super) container: String,
    pub(super) ifname: String,
    pub(super) netns: Option<String>,
    pub(super) conf: Value,
    /// When the plugin's caller, a Jackfield process, ran its first delegate for the container.
    pub(super) begun: Duration,
    /// When the plugin's caller began.
    pub(super) process_began: Duration,
    /// Whether the first half is done.
    pub(super) is_half_done: bool,
    /// Whether the plugin forgets to restore the device.
    pub(super) is_sloppy: bool,
}

impl Work {
    pub(super) fn of(process: &Process, call: &DelegateCall<'_>) -> Work {
        let conf: Value = serde_json::from_str(call.stdin).unwrap();
        let plugin = call.binary.path().file_name().unwrap();
        let attachment = call.attachment;
        let container = attachment.map_or("", |it| it.container_id.as_str());
        let netns = attachment.and_then(|it| it.netns);
        let netns = netns.and_then(|path| path.rsplit('/').next());
        Work {
            verb: call.verb,
            plugin: plugin.to_str().unwrap().to_owned(),
            network: conf["name"].as_str().unwrap().to_owned(),
            container: container.to_owned(),
            ifname: attachment.map_or("", |it| it.ifname.as_str()).to_owned(),
            netns: netns.map(str::to_owned),
            begun: process.begun(container),
            process_began: process.began,
            conf,
            is_half_done: false,
            is_sloppy: process.sim.happens(1, 4),
        }
    }

    /// The parts that are not done.
    pub(super) fn rest(&self) -> &'static [Part] {
        match self.is_half_done {
            true => &[Part::Second],
            false => &[Part::First, Part::Second],
        }
    }

    /// Does a part of the work.
    pub(super) fn apply(&self, world: &mut World, part: Part) -> Result<(), cni::Error> {
        if self.verb == Verb::Add {
            let deleted = world.deleted.get(&self.container);
            if deleted.is_some_and(|deleted| *deleted > self.begun) {
                let (container, network) = (&self.container, &self.network);
                world.breaks(format!(
                    "{container}: a delegate attached {network} after a DEL had succeeded"
                ));
            }
        }
        plugins::apply(self, world, part)
    }

    /// Decides what becomes of the plugin after its caller was killed.
    pub(super) fn outlive(self, process: &Process) {
        let sim = &process.sim;
        match sim.below(4) {
            0 => {}
            1 => drop(self.apply(&mut sim.world(), self.rest()[0])),
            2 => {
                let mut world = sim.world();
                for part in self.rest() {
                    let _ = self.apply(&mut world, *part);
                }
            }
            _ => return process.leave_orphan(self),
        }
        sim.world().delegates.remove(&self.container);
    }
}
