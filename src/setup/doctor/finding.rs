//! What a look at the node brings to light.

use std::fmt;

use serde::Serialize;

use crate::cluster::{CheckFigure, Examination};

/// What was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// What this process may do.
    Privileges,
    /// The node configuration.
    Configuration,
    /// What was installed, and who else writes there.
    Installation,
    /// The agent, the API server or the folder that stands for them.
    Cluster,
    /// The plugins of every network.
    Programs,
    /// kubelet's word about devices, and RDMA.
    Devices,
    /// What is on record, against the kernel.
    Journal,
    /// What is still to be detached, and to be told.
    Owed,
    /// What Multus left.
    Multus,
}

impl Check {
    /// All of them, in the order in which they look.
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

/// How many findings of one check are kept: a cluster may have thousands of definitions that cannot be read.
const MOST: usize = 1000;

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Who found it.
    pub check: Check,
    /// What it is about: a file, a network, a pod.
    pub about: String,
    /// What is wrong.
    pub finding: String,
    /// What helps.
    pub remedy: String,
}

/// What was found out about a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// The release that looked.
    pub version: String,
    /// The node.
    pub node: String,
    /// What is well, a line for whatever was looked at.
    pub fine: Vec<Fine>,
    /// What is not.
    pub findings: Vec<Finding>,
    /// What pods have that no other may have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Held>,
}

/// A device, MAC or GUID, and the pod that has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Held {
    /// What it is.
    pub what: String,
    /// The layer-2 network on which no other pod may have it; none for a device.
    pub segment: Option<String>,
    /// The pod, where the runtime named one.
    pub pod: Option<String>,
    /// What the runtime calls the sandbox.
    pub container: String,
    /// The network.
    pub network: String,
    /// The interface in the pod.
    pub interface: String,
}

/// Something that is as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fine {
    /// Who looked.
    pub check: Check,
    /// At what.
    pub what: String,
}

impl Diagnosis {
    pub(super) fn new(node: &str) -> Diagnosis {
        Diagnosis {
            version: super::super::version().to_string(),
            node: node.to_owned(),
            fine: Vec::new(),
            findings: Vec::new(),
            held: Vec::new(),
        }
    }

    pub(super) fn find(
        &mut self,
        check: Check,
        about: impl fmt::Display,
        finding: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let finding = Finding {
            check,
            about: about.to_string(),
            finding: finding.into(),
            remedy: remedy.into(),
        };
        let of_check = self.findings.iter().filter(|it| it.check == check);
        match of_check.count() {
            0..MOST => self.findings.push(finding),
            MOST => self.findings.push(Finding {
                finding: format!("there are more than {MOST} of these; the others are left out"),
                remedy: "correct these, then look again".to_owned(),
                ..finding
            }),
            _ => {}
        }
    }

    /// An error whose line ends in its remedy, as all of ours do.
    pub(super) fn error(&mut self, check: Check, about: impl fmt::Display, line: &str) {
        let about = about.to_string();
        let line = line.strip_prefix(&format!("{about}: ")).unwrap_or(line);
        let parts = line.rsplit_once("; ").or_else(|| line.rsplit_once(": "));
        let (finding, remedy) = parts.unwrap_or((line, "look at it"));
        self.find(check, about, finding, remedy);
    }

    pub(super) fn fine(&mut self, check: Check, what: impl Into<String>) {
        let what = what.into();
        self.fine.push(Fine { check, what });
    }

    /// How much each check has found so far.
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

    /// Whether a check has found nothing so far.
    pub(super) fn is_fine(&self, check: Check) -> bool {
        self.findings.iter().all(|finding| finding.check != check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_end_with_a_line_about_the_others() {
        let mut diagnosis = Diagnosis::new("n");
        for _ in 0..1500 {
            diagnosis.find(Check::Cluster, "a", "b", "c");
        }
        assert_eq!(diagnosis.findings.len(), 1001);
        assert!(diagnosis.findings[1000].finding.contains("left out"));
        diagnosis.find(Check::Journal, "a", "b", "c");
        assert!(!diagnosis.is_fine(Check::Journal), "those of others count");
    }

    #[test]
    fn an_errors_line_is_taken_apart_into_finding_and_remedy() {
        let mut diagnosis = Diagnosis::new("n");
        diagnosis.error(Check::Journal, "/a", "/a: full; really; free space there");
        diagnosis.error(Check::Journal, "/b", "no word");
        diagnosis.error(Check::Journal, "/c", "key verify is x: use y");
        let found: Vec<(&str, &str)> = diagnosis
            .findings
            .iter()
            .map(|it| (it.finding.as_str(), it.remedy.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("full; really", "free space there"),
                ("no word", "look at it"),
                ("key verify is x", "use y"),
            ]
        );
        assert!(!diagnosis.is_fine(Check::Journal) && diagnosis.is_fine(Check::Owed));
    }
    #[test]
    fn every_check_counts_its_findings_and_those_without_any_are_named_too() {
        let mut diagnosis = Diagnosis::new("n");
        diagnosis.error(Check::Owed, "/a", "a");
        diagnosis.error(Check::Owed, "/b", "b");
        let checks = diagnosis.examination().checks;
        let of = |name: &str| checks.iter().find(|it| it.check == name).unwrap().findings;
        assert_eq!((of("owed"), of("journal"), of("privileges")), (2, 0, 0));
    }
}
