//! The findings of a look at the node.

use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::cluster::{CheckFigure, Examination};
use crate::diagnostic::{Diagnostic, Problem, Severity};

/// A check of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// The privileges of this process.
    Privileges,
    /// The node configuration.
    Configuration,
    /// The installed files, and other programs that change them.
    Installation,
    /// The agent, the API server, or the folder in place of them.
    Cluster,
    /// The plugins of every network.
    Programs,
    /// Kubelet's records of devices, and RDMA.
    Devices,
    /// The records, compared with the kernel.
    Journal,
    /// Owed detachments, and owed writes to the API server.
    Owed,
    /// Multus' cache.
    Multus,
}

impl Check {
    /// All checks, in their order.
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

    const fn as_str(self) -> &'static str {
        match self {
            Check::Privileges => "privileges",
            Check::Configuration => "configuration",
            Check::Installation => "installation",
            Check::Cluster => "cluster",
            Check::Programs => "programs",
            Check::Devices => "devices",
            Check::Journal => "journal",
            Check::Owed => "owed",
            Check::Multus => "multus",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The most findings of one check: a cluster may have thousands of unreadable definitions.
const MOST: usize = 1000;

/// A problem that a check found.
#[derive(Debug)]
pub struct Finding {
    /// The check.
    pub check: Check,
    /// The problem and its place: a file, a network, a pod.
    pub diagnostic: Diagnostic,
}

/// The keys `check`, `about`, `finding` and `remedy`.
impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Diagnostic { place, problem, .. } = &self.diagnostic;
        let mut keys = serializer.serialize_struct("Finding", 4)?;
        keys.serialize_field("check", &self.check)?;
        keys.serialize_field("about", place)?;
        keys.serialize_field("finding", &problem.words())?;
        keys.serialize_field("remedy", &problem.remedy().unwrap_or_default())?;
        keys.end()
    }
}

/// Stands for the findings beyond [`MOST`].
#[derive(Debug)]
struct TooMany;

impl Problem for TooMany {
    fn words(&self) -> String {
        format!("there are more than {MOST} of these, and the others are left out")
    }

    fn remedy(&self) -> Option<String> {
        Some("correct these, then look again".to_owned())
    }
}

/// The outcome of a look at the node.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    /// The release that looked.
    pub version: String,
    /// The node.
    pub node: String,
    /// What is as it should be.
    pub fine: Vec<Fine>,
    /// What is not.
    pub findings: Vec<Finding>,
    /// The devices and addresses that belong to one pod only.
    #[serde(rename = "held", skip_serializing_if = "Vec::is_empty")]
    pub exclusive_uses: Vec<ExclusiveUse>,
}

/// A device, MAC or GUID, and the pod that has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExclusiveUse {
    /// The device, MAC or GUID.
    pub what: String,
    /// The layer-2 network on which only one pod may have it; `None` for a device.
    pub segment: Option<String>,
    /// The pod, where the runtime named one.
    pub pod: Option<String>,
    /// The runtime's ID of the sandbox.
    pub container: String,
    /// The network.
    pub network: String,
    /// The interface in the pod.
    pub interface: String,
}

/// What a check found to be as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fine {
    /// The check.
    pub check: Check,
    /// What it looked at.
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

    /// Adds a finding, as long as the check has fewer than [`MOST`].
    pub(super) fn find(
        &mut self,
        check: Check,
        place: impl fmt::Display,
        problem: impl Problem + 'static,
    ) {
        let of_check = self.findings.iter().filter(|it| it.check == check);
        let diagnostic = match of_check.count() {
            0..MOST => Diagnostic::new(Severity::Warning, place, problem),
            MOST => Diagnostic::new(Severity::Warning, place, TooMany),
            _ => return,
        };
        self.findings.push(Finding { check, diagnostic });
    }

    pub(super) fn fine(&mut self, check: Check, what: impl Into<String>) {
        let what = what.into();
        self.fine.push(Fine { check, what });
    }

    /// The number of findings of each check so far.
    pub(super) fn examination(&self) -> Examination {
        let figure = |check: Check| {
            let found = self
                .findings
                .iter()
                .filter(|finding| finding.check == check);
            CheckFigure {
                check: check.as_str().into(),
                findings: found.count() as u64,
            }
        };
        Examination {
            checks: Check::ALL.map(figure).into(),
        }
    }

    /// Whether a check has no finding so far.
    pub(super) fn is_fine(&self, check: Check) -> bool {
        self.findings.iter().all(|finding| finding.check != check)
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
    fn findings_end_with_one_about_the_others() {
        let mut diagnosis = Diagnosis::new("n");
        for _ in 0..1500 {
            diagnosis.find(Check::Cluster, "a", Full);
        }
        assert_eq!(diagnosis.findings.len(), 1001);
        let last = &diagnosis.findings[1000].diagnostic;
        assert!(last.problem.words().contains("left out"));
        diagnosis.find(Check::Journal, "a", Full);
        assert!(
            !diagnosis.is_fine(Check::Journal),
            "each check has its own count"
        );
    }

    #[test]
    fn a_finding_keeps_its_keys() {
        let mut diagnosis = Diagnosis::new("n");
        diagnosis.find(Check::Journal, "/a", Full);
        assert_eq!(
            serde_json::to_string(&diagnosis.findings).unwrap(),
            r#"[{"check":"journal","about":"/a","finding":"the disk is full; really","remedy":"free space there"}]"#
        );
        assert!(!diagnosis.is_fine(Check::Journal) && diagnosis.is_fine(Check::Owed));
    }

    #[test]
    fn every_check_counts_its_findings_even_if_there_are_none() {
        let mut diagnosis = Diagnosis::new("n");
        diagnosis.find(Check::Owed, "/a", Full);
        diagnosis.find(Check::Owed, "/b", Full);
        let checks = diagnosis.examination().checks;
        let of = |name: &str| checks.iter().find(|it| it.check == name).unwrap().findings;
        assert_eq!((of("owed"), of("journal"), of("privileges")), (2, 0, 0));
    }
}
