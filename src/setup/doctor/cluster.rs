//! Checks the source of pods and definitions: whether it answers, and its release.

use super::{Advised, Findings, Options};
use crate::cluster::{Census, ClusterError};
use crate::diagnostic::Problem;
use crate::operation::Context;
use crate::request::Source;
use crate::setup::version;

/// What is wrong with the source of pods and definitions.
#[derive(Debug, thiserror::Error)]
enum ClusterProblem {
    /// It does not answer.
    #[error("{}", .0.words())]
    NoAnswer(ClusterError),
    /// The agent is another node's.
    #[error("the agent knows the pods of node {theirs}, and this is {ours}")]
    OtherNode { theirs: String, ours: String },
    /// The agent is of another release.
    #[error("the agent is of release {theirs}, and this is {ours}")]
    OtherRelease { theirs: String, ours: String },
}

impl Problem for ClusterProblem {
    fn words(&self) -> String {
        self.to_string()
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            ClusterProblem::NoAnswer(cause) => {
                let remedy = "correct manifestDir, agentSocket or kubeconfig";
                return cause.remedy().or_else(|| Some(remedy.to_owned()));
            }
            ClusterProblem::OtherNode { theirs, ours } => {
                return Some(format!(
                    "start the agent with --node {ours} (its NODE_NAME); or give --node {theirs} \
                     here, if that is this node"
                ));
            }
            ClusterProblem::OtherRelease { .. } => {
                "bring both to one release, unless an upgrade is under way"
            }
        };
        Some(remedy.to_owned())
    }
}

/// Asks for the pods of this node and the definitions.
pub(super) fn look(
    context: &Context<'_>,
    options: &Options,
    mut findings: Findings<'_>,
) -> Option<Census> {
    let source = &context.request.config.source;
    let about = match source {
        Source::Folder(folder) => folder.display(),
        Source::Cluster { agent_socket, .. } => agent_socket.display(),
    };
    let census = match context.host.cluster.census(&options.node, true) {
        Ok(census) => census,
        Err(error) => {
            findings.add(about, ClusterProblem::NoAnswer(error));
            return None;
        }
    };
    for line in &census.broken {
        let problem = Advised(line.clone(), "correct the object; no pod can use it");
        findings.add(&about, problem);
    }
    if let Some(theirs) = &census.version {
        agent(&about, theirs, &census, &mut findings);
        if options.is_node_given && census.node != options.node {
            let (theirs, ours) = (census.node.clone(), options.node.clone());
            findings.add(&about, ClusterProblem::OtherNode { theirs, ours });
        }
    }
    let source = match (&census.version, source) {
        (Some(release), _) => format!("the agent, release {release}"),
        (None, Source::Folder(folder)) => format!("folder {}", folder.display()),
        (None, Source::Cluster { .. }) => "no agent, the API server itself".to_owned(),
    };
    let (pods, definitions) = (census.pods.len(), census.definitions.len());
    findings.fine(format!("{source}: {pods} pods, {definitions} definitions"));
    Some(census)
}

fn agent(
    about: impl std::fmt::Display,
    theirs: &str,
    census: &Census,
    findings: &mut Findings<'_>,
) {
    let ours = version().to_string();
    if *theirs != ours {
        let theirs = theirs.to_owned();
        findings.add(&about, ClusterProblem::OtherRelease { theirs, ours });
    }
    if let Some(cause) = &census.unreachable {
        let remedy = "see in the agent's log why the API server does not answer it";
        findings.add(about, Advised(cause.clone(), remedy));
    } else if !census.listed {
        let problem = Advised(
            "the agent has not been able to list pods and definitions since it started",
            "look into the agent's log; the API server, its token or deploy/rbac.yaml is the \
             reason",
        );
        findings.add(about, problem);
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
        ] {
            assert_eq!(line(&problem), expected);
        }
    }
}
