//! What goes wrong with a pod.

use std::time::Duration;

use fastrand::Rng;

use super::selection::Selection;

/// How an ADD of a delegate goes wrong. Those after `Killed` are lies: the delegate succeeds, but not as
/// it says.
const ON_ADD: [&str; 7] = [
    "fails", "hangs", "killed", "no-link", "wrong", "silent", "garbage",
];
/// How a DEL of a delegate goes wrong.
const ON_DEL: [&str; 3] = ["fails", "hangs", "killed"];
/// What the faults of the plugin are called in the report.
pub(super) const PLUGIN_KILLED: &str = "plugin killed";
pub(super) const NETNS_DELETED: &str = "netns deleted";
pub(super) const ADD_AND_DEL: &str = "ADD and DEL at once";
pub(super) const TWO_DELS: &str = "two DELs at once";
/// A plugin takes tens of milliseconds.
const SOON: u64 = 60;

/// A fault of one call.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// Kills the plugin after this time.
    PluginKilled(Duration),
    /// Deletes the pod's network namespace after this time.
    NetnsDeleted(Duration),
    /// ADD and DEL at once: the other one comes after this time. Beside a DEL, the ADD is of the next
    /// sandbox of the same pod.
    AddAndDel(Duration),
    /// The delegate of an interface misbehaves.
    Delegate(DelegateFault),
}

/// A fault of the small delegate.
#[derive(Debug, Clone)]
pub(super) struct DelegateFault {
    pub(super) verb: &'static str,
    pub(super) interface: String,
    pub(super) kind: &'static str,
}

impl Fault {
    /// A fault of the ADD of a new pod.
    pub(super) fn of_add(random: &mut Rng, selections: &[Selection]) -> Fault {
        Fault::draw(random, selections, "ADD")
    }

    /// A fault of a DEL.
    pub(super) fn of_del(random: &mut Rng, selections: &[Selection]) -> Fault {
        Fault::draw(random, selections, "DEL")
    }

    fn draw(random: &mut Rng, selections: &[Selection], verb: &'static str) -> Fault {
        let soon = Duration::from_millis(random.u64(0..SOON));
        match random.u8(0..10) {
            0..3 => Fault::PluginKilled(soon),
            3 => Fault::NetnsDeleted(soon),
            4 => Fault::AddAndDel(soon),
            _ => Fault::Delegate(DelegateFault::draw(random, selections, verb)),
        }
    }
}

impl DelegateFault {
    fn draw(random: &mut Rng, selections: &[Selection], verb: &'static str) -> DelegateFault {
        let further = selections.iter().enumerate();
        let further = further.filter(|(_, selection)| selection.is_small());
        let mut interfaces = vec!["eth0".to_owned()];
        interfaces.extend(further.map(|(place, selection)| selection.interface_at(place)));
        let interface = random.choice(interfaces);
        let interface = interface.unwrap_or_default();
        let kind = match (verb, interface.as_str()) {
            ("DEL", _) => random.choice(ON_DEL),
            // What the cluster network's plugin says wrongly is a warning only.
            (_, "eth0") => random.choice([ON_ADD[0], ON_ADD[1], ON_ADD[2], ON_ADD[5], ON_ADD[6]]),
            _ => random.choice(ON_ADD),
        };
        DelegateFault {
            verb,
            interface,
            kind: kind.unwrap_or_default(),
        }
    }

    /// A fault of a network that a running pod gets.
    pub(super) fn of_change(random: &mut Rng, interface: &str) -> DelegateFault {
        DelegateFault {
            verb: "ADD",
            interface: interface.to_owned(),
            kind: random.choice(ON_ADD).unwrap_or_default(),
        }
    }

    /// What it is called in the report.
    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            "fails" => "delegate fails",
            "hangs" => "delegate hangs",
            "killed" => "delegate killed",
            _ => "delegate lies",
        }
    }
}
