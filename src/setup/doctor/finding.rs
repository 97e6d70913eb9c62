//! The findings of the doctor.

use std::fmt;

use serde::Serialize;

use crate::cluster::{CheckFigure, Examination};
use crate::diagnostic::Problem;
use crate::journal::{Exclusive, Sandbox};

/// A check of the doctor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// The privileges of this process.
    Privileges,
    /// The node configuration.
    Configuration,
    /// The installed files, and whether other programs have changed them.
    Installation,
    /// The agent, the API server, or the folder that replaces both.
    Cluster,
    /// The plugins of every network.
    Programs,
    /// Kubelet's records of devices, the devices themselves, and RDMA.
    Devices,
    /// The records of the journal, compared with the kernel.
    Journal,
    /// Failed detachments that Jackfield retries, and publications that the API server has not
    /// received.
    Owed,
    /// Multus' cache.
    Multus,
}

impl Check {
    /// All checks, in the order in which they run.
    const ALL: [Check; 9] = [
        Check::Privileges,
        Check::Configuration,
        Check::Installation,
        Check::Cluster,
        Check::Programs,
        Check::Devices,
        Check::Journal,
        Check::Owed,
        Check::Multus,
    ];
}

/// Writes the name of the check.
impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The maximum number of findings per check. If a check has more findings, an additional last
/// finding says that the others are omitted. The number is limited, because a cluster may have
/// thousands of unreadable definitions.
const MOST: usize = 1000;

/// A problem that a check found.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// The check.
    pub check: Check,
    /// The file, network or pod that has the problem.
    pub about: String,
    /// What is wrong.
    pub finding: String,
    /// What to do; empty if there is no remedy.
    pub remedy: String,
}

/// The outcome of all checks.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    /// The release of this doctor.
    pub version: String,
    /// The node.
    pub node: String,
    /// The checks that found no problem.
    pub fine: Vec<Fine>,
    /// The problems.
    pub findings: Vec<Finding>,
    /// The devices and addresses that only one pod may have, and the pods that have them.
    #[serde(rename = "held", skip_serializing_if = "Vec::is_empty")]
    pub exclusive_uses: Vec<ExclusiveUse>,
}

/// A device, MAC or GUID, and the pod that has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExclusiveUse {
    /// The device, MAC or GUID.
    pub what: String,
    /// The layer-2 network on which only one pod may have this MAC or GUID. `None` for a device, or
    /// if an older release wrote the sandbox's record.
    pub segment: Option<String>,
    /// The pod, if the runtime named a pod.
    pub pod: Option<String>,
    /// The runtime's ID of the sandbox.
    pub container: String,
    /// The network.
    pub network: String,
    /// The interface in the pod.
    pub interface: String,
}

/// A check that found no problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fine {
    /// The check.
    pub check: Check,
    /// What the check examined.
    pub what: String,
}

impl Diagnosis {
    pub(super) fn new(node: &str) -> Diagnosis {
        Diagnosis {
            version: super::super::version().to_string(),
            node: node.to_owned(),
            fine: Vec::new(),
            findings: Vec::new(),
            exclusive_uses: Vec::new(),
        }
    }

    /// The findings of one check.
    pub(super) fn of(&mut self, check: Check) -> Findings<'_> {
        let diagnosis = self;
        Findings { check, diagnosis }
    }

    /// The number of findings of each check so far.
    pub(super) fn examination(&self) -> Examination {
        let figure = |check: Check| CheckFigure {
            check: check.to_string().into(),
            findings: self.count(check) as u64,
        };
        Examination {
            checks: Check::ALL.map(figure).into(),
        }
    }

    fn count(&self, check: Check) -> usize {
        let findings = self.findings.iter();
        findings.filter(|finding| finding.check == check).count()
    }
}

/// The findings of one check.
pub(super) struct Findings<'a> {
    check: Check,
    diagnosis: &'a mut Diagnosis,
}

impl Findings<'_> {
    /// Adds a problem.
    pub(super) fn add_problem(&mut self, about: impl fmt::Display, problem: &dyn Problem) {
        let remedy = problem.remedy().unwrap_or_default();
        self.add(about, problem.words(), remedy);
    }

    /// Adds a problem and its remedy. If the check already has [`MOST`] findings, instead adds the
    /// last finding, which says that the others are omitted.
    pub(super) fn add(
        &mut self,
        about: impl fmt::Display,
        wrong: impl fmt::Display,
        remedy: impl fmt::Display,
    ) {
        let (wrong, remedy) = match self.diagnosis.count(self.check) {
            0..MOST => (wrong.to_string(), remedy.to_string()),
            MOST => (
                format!("this check has more than {MOST} findings, and the others are omitted"),
                "correct these, then run `doctor` again".to_owned(),
            ),
            _ => return,
        };
        self.diagnosis.findings.push(Finding {
            check: self.check,
            about: about.to_string(),
            finding: wrong,
            remedy,
        });
    }

    /// If the check has no findings, notes what the check examined.
    pub(super) fn fine(&mut self, what: impl Into<String>) {
        let check = self.check;
        if self.diagnosis.count(check) == 0 {
            let what = what.into();
            self.diagnosis.fine.push(Fine { check, what });
        }
    }

    /// Whether the check `check` has findings.
    pub(super) fn has_any_of(&self, check: Check) -> bool {
        self.diagnosis.count(check) > 0
    }

    /// Adds an entry to [`Diagnosis::exclusive_uses`] for each device, MAC and GUID that only this
    /// sandbox may have. An ADD of another pod fails if the ADD needs one of them. If the two pods
    /// are in different namespaces, the error of that ADD does not name this sandbox's pod. The
    /// administrator finds the pod in `exclusive_uses`.
    pub(super) fn add_uses(&mut self, sandbox: &Sandbox) {
        let header = &sandbox.header;
        for attachment in &header.attachments {
            let uses = Exclusive::of(attachment).into_iter();
            let uses = uses.map(|what| ExclusiveUse {
                what: what.to_string(),
                segment: what.segment().map(ToString::to_string),
                pod: header.pod.as_ref().map(ToString::to_string),
                container: header.container.to_string(),
                network: attachment.label.clone(),
                interface: attachment.ifname.to_string(),
            });
            self.diagnosis.exclusive_uses.extend(uses);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Full;

    impl Problem for Full {
        fn words(&self) -> String {
            "the disk is full; really".to_owned()
        }

        fn remedy(&self) -> Option<String> {
            Some("free space there".to_owned())
        }
    }

    #[test]
    fn the_last_finding_says_that_others_are_omitted() {
        let mut diagnosis = Diagnosis::new("n");
        for _ in 0..1500 {
            diagnosis.of(Check::Cluster).add_problem("a", &Full);
        }
        assert_eq!(diagnosis.findings.len(), 1001);
        assert!(diagnosis.findings[1000].finding.contains("omitted"));
        diagnosis.of(Check::Journal).add_problem("a", &Full);
        assert_eq!(
            diagnosis.count(Check::Journal),
            1,
            "each check has its own limit"
        );
    }

    #[test]
    fn a_finding_keeps_its_json_keys() {
        let mut diagnosis = Diagnosis::new("n");
        diagnosis.of(Check::Journal).add_problem("/a", &Full);
        assert_eq!(
            serde_json::to_string(&diagnosis.findings).unwrap(),
            r#"[{"check":"journal","about":"/a","finding":"the disk is full; really","remedy":"free space there"}]"#
        );
        diagnosis.of(Check::Journal).fine("all");
        diagnosis.of(Check::Owed).fine("nothing");
        assert_eq!(
            diagnosis.fine.len(),
            1,
            "the check `journal` has a finding, so it is not fine"
        );
        assert_eq!(diagnosis.fine[0].check, Check::Owed);
    }

    #[test]
    fn a_check_without_findings_reports_zero() {
        let mut diagnosis = Diagnosis::new("n");
        diagnosis.of(Check::Owed).add_problem("/a", &Full);
        diagnosis.of(Check::Owed).add_problem("/b", &Full);
        let checks = diagnosis.examination().checks;
        let of = |name: &str| checks.iter().find(|it| it.check == name).unwrap().findings;
        assert_eq!((of("owed"), of("journal"), of("privileges")), (2, 0, 0));
    }
}
