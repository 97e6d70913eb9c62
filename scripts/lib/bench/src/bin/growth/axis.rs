//! What grows on a node or in its cluster, and how each call may grow with it.

use crate::call::Verb;
use crate::fit::Growth;

/// Something that a node or a cluster has few or many of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    /// Pods on the node: records in the journal, and network namespaces.
    Pods,
    /// Further networks of the measured pod.
    Networks,
    /// Definitions in the cluster, whose API server an agent watches.
    Definitions,
    /// Failed detachments that wait for their retry, on a node with 1,000 pods.
    Owed,
    /// Virtual functions of the physical function that the measured pod has one of.
    VirtualFunctions,
    /// Addresses, and as many routes, on another interface of the measured pod.
    Routes,
}

impl Axis {
    /// All of them, in the order of the report.
    pub(crate) const ALL: [Axis; 6] = [
        Axis::Pods,
        Axis::Networks,
        Axis::Definitions,
        Axis::Owed,
        Axis::VirtualFunctions,
        Axis::Routes,
    ];

    /// The name in the list of figures, and in paths.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Axis::Pods => "pods",
            Axis::Networks => "networks",
            Axis::Definitions => "definitions",
            Axis::Owed => "owed",
            Axis::VirtualFunctions => "vfs",
            Axis::Routes => "routes",
        }
    }

    /// The name for people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Axis::Pods => "pods on the node",
            Axis::Networks => "networks of the pod",
            Axis::Definitions => "definitions in the cluster",
            Axis::Owed => "owed detachments",
            Axis::VirtualFunctions => "VFs of the PF",
            Axis::Routes => "routes and addresses in the pod",
        }
    }

    /// The numbers that are measured.
    pub(crate) fn points(self) -> &'static [usize] {
        match self {
            Axis::Pods => &[10, 30, 100, 300, 1_000],
            Axis::Networks => &[1, 4, 16, 64],
            Axis::Definitions => &[10, 100, 1_000, 10_000],
            Axis::Owed | Axis::Routes => &[1, 10, 100, 1_000],
            Axis::VirtualFunctions => &[8, 32, 128, 256],
        }
    }

    /// How a call may grow at most.
    ///
    /// GC and `doctor` read the whole journal. `doctor` also lists the interfaces of every pod, the
    /// definitions, and the devices of the node. DEL and STATUS look for a retry that is due. Every
    /// call but STATUS works on each network of a pod. STATUS reads the folder of manifests, which
    /// has a definition for each of these networks. Nothing else may grow.
    pub(crate) fn allowed(self, verb: Verb) -> Growth {
        let is_linear = match self {
            Axis::Pods => matches!(verb, Verb::Gc | Verb::Doctor),
            Axis::Owed => !matches!(verb, Verb::Add | Verb::Check),
            Axis::Networks => true,
            Axis::Definitions | Axis::VirtualFunctions => verb == Verb::Doctor,
            Axis::Routes => false,
        };
        match is_linear {
            true => Growth::Linear,
            false => Growth::Flat,
        }
    }
}
