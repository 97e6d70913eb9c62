//! What can be wrong with the source of pods and definitions.

use crate::cluster::ClusterError;
use crate::diagnostic::Problem;

/// What is wrong with the source of pods and definitions.
#[derive(Debug)]
pub(super) enum ClusterProblem {
    /// It does not answer.
    NoAnswer(ClusterError),
    /// An object cannot be read; the agent's description.
    BrokenObject(String),
    /// The agent is another node's.
    OtherNode { theirs: String, ours: String },
    /// The agent is of another release.
    OtherRelease { theirs: String, ours: String },
    /// The API server does not answer the agent; the agent's description.
    ApiUnreachable(String),
    /// The agent has no list of pods and definitions yet.
    NotListed,
}

impl Problem for ClusterProblem {
    fn words(&self) -> String {
        match self {
            ClusterProblem::NoAnswer(cause) => cause.words(),
            ClusterProblem::BrokenObject(line) | ClusterProblem::ApiUnreachable(line) => {
                line.clone()
            }
            ClusterProblem::OtherNode { theirs, ours } => {
                format!("the agent knows the pods of node {theirs}, and this is {ours}")
            }
            ClusterProblem::OtherRelease { theirs, ours } => {
                format!("the agent is of release {theirs}, and this is {ours}")
            }
            ClusterProblem::NotListed => {
                "the agent has not been able to list pods and definitions since it started"
                    .to_owned()
            }
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            ClusterProblem::NoAnswer(cause) => {
                let remedy = "correct manifestDir, agentSocket or kubeconfig";
                return cause.remedy().or_else(|| Some(remedy.to_owned()));
            }
            ClusterProblem::BrokenObject(_) => "correct the object; no pod can use it",
            ClusterProblem::OtherNode { theirs, ours } => {
                return Some(format!(
                    "start the agent with --node {ours} (its NODE_NAME); or give --node {theirs} \
                     here, if that is this node"
                ));
            }
            ClusterProblem::OtherRelease { .. } => {
                "bring both to one release, unless an upgrade is under way"
            }
            ClusterProblem::ApiUnreachable(_) => {
                "see in the agent's log why the API server does not answer it"
            }
            ClusterProblem::NotListed => {
                "look into the agent's log; the API server, its token or deploy/rbac.yaml is the \
                 reason"
            }
        };
        Some(remedy.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::line;

    #[test]
    fn problems_have_their_words() {
        let (theirs, ours) = (|| "a".to_owned(), || "b".to_owned());
        for (problem, expected) in [
            (
                ClusterProblem::OtherNode {
                    theirs: theirs(),
                    ours: ours(),
                },
                "the agent knows the pods of node a, and this is b; start the agent with --node b \
                 (its NODE_NAME); or give --node a here, if that is this node",
            ),
            (
                ClusterProblem::OtherRelease {
                    theirs: theirs(),
                    ours: ours(),
                },
                "the agent is of release a, and this is b; bring both to one release, unless an \
                 upgrade is under way",
            ),
            (
                ClusterProblem::BrokenObject("a.yaml: torn".to_owned()),
                "a.yaml: torn; correct the object; no pod can use it",
            ),
        ] {
            assert_eq!(line(&problem), expected);
        }
    }
}
