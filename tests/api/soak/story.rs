//! What happens to one pod.

use std::time::Duration;

use fastrand::Rng;

use super::fault::{DelegateFault, Fault};
use super::selection::Selection;

/// The longest pause between two acts.
const LONGEST_PAUSE: u64 = 200;

/// Everything that the runtime, the user and the faults do to one pod. The seed and the pod's number
/// decide it, whatever the other pods do.
#[derive(Debug)]
pub(super) struct Story {
    pub(super) number: u32,
    pub(super) networks: Vec<Selection>,
    /// Whether the runtime passes the pod's annotations on.
    pub(super) passes_annotations: bool,
    /// What goes wrong with the first ADD.
    pub(super) add: Option<Fault>,
    /// While the pod runs.
    pub(super) acts: Vec<Act>,
    pub(super) end: End,
    /// What goes wrong with the first DEL.
    pub(super) del: Option<Fault>,
    /// Whether the runtime passes a network namespace to DEL.
    pub(super) del_has_netns: bool,
}

/// Something that happens to a running pod.
#[derive(Debug)]
pub(super) enum Act {
    Pause(Duration),
    Check,
    Status,
    /// The annotation changes.
    Change {
        networks: Vec<Selection>,
        /// What goes wrong with a new network.
        fault: Option<DelegateFault>,
        /// Whether the pod goes on only when it has these networks.
        is_awaited: bool,
        /// When the process of the change is killed.
        killed_after: Option<Duration>,
    },
}

/// How a pod ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Its object is deleted first, as by force.
    ObjectFirst,
    /// Its object is deleted after the DEL, as kubelet does.
    ObjectLast,
    /// The runtime never calls DEL: the next GC detaches it.
    Forgotten,
}

impl Story {
    /// The story of the pod with this number.
    pub(super) fn of(seed: u64, number: u32) -> Story {
        let mut random =
            Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(number));
        let networks = Selection::of_new_pod(&mut random, number);
        let add = is_one_in(&mut random, 3).then(|| Fault::of_add(&mut random, &networks));
        let mut story = Story {
            number,
            passes_annotations: random.bool(),
            add,
            acts: Vec::new(),
            end: End::ObjectLast,
            del: None,
            del_has_netns: !is_one_in(&mut random, 4),
            networks,
        };
        story.live(&mut random);
        story.end = match random.u8(0..10) {
            0 => End::Forgotten,
            1..4 => End::ObjectFirst,
            _ => End::ObjectLast,
        };
        let last = story.last_networks();
        story.del = is_one_in(&mut random, 4).then(|| Fault::of_del(&mut random, &last));
        story
    }

    fn live(&mut self, random: &mut Rng) {
        for act in 0..random.usize(0..4) {
            self.acts.push(pause(random));
            let act = match random.u8(0..8) {
                0..3 => Act::Check,
                3 => Act::Status,
                _ => self.change(random, act),
            };
            self.acts.push(act);
        }
        self.acts.push(pause(random));
    }

    fn change(&self, random: &mut Rng, number: usize) -> Act {
        let before = self.last_networks();
        let networks = Selection::changed(&before, random, self.number, number);
        let new = networks.iter().filter(|it| it.is_small());
        let new = new.filter(|it| !before.contains(it));
        let new: Vec<&str> = new.filter_map(|it| it.interface.as_deref()).collect();
        let fault = random.choice(new).filter(|_| is_one_in(random, 4));
        let fault = fault.map(|interface| DelegateFault::of_change(random, interface));
        let soon = Duration::from_millis(random.u64(0..60));
        Act::Change {
            networks,
            fault,
            is_awaited: random.bool(),
            killed_after: is_one_in(random, 6).then_some(soon),
        }
    }

    /// What the pod selects at its end.
    fn last_networks(&self) -> Vec<Selection> {
        let changes = self.acts.iter().rev();
        let mut changes = changes.filter_map(|act| match act {
            Act::Change { networks, .. } => Some(networks),
            _ => None,
        });
        changes.next().unwrap_or(&self.networks).clone()
    }
}

fn pause(random: &mut Rng) -> Act {
    Act::Pause(Duration::from_millis(random.u64(0..LONGEST_PAUSE)))
}

fn is_one_in(random: &mut Rng, times: u8) -> bool {
    random.u8(0..times) == 0
}
