//! Checks whether the source of pods and definitions answers. If the source is the agent, also
//! checks the agent's release and node.

use super::{Findings, Options};
use crate::cluster::Census;
use crate::diagnostic::Problem;
use crate::operation::Context;
use crate::request::Source;
use crate::setup::version;

/// Requests the pods of this node and all definitions. Returns `None` if the source gives no
/// answer.
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
            let remedy = error.remedy();
            let otherwise = || "correct manifestDir, agentSocket or kubeconfig".to_owned();
            findings.add(about, error.words(), remedy.unwrap_or_else(otherwise));
            return None;
        }
    };
    for line in &census.broken {
        let remedy = "correct the object or file, if this line names one";
        findings.add(&about, line, remedy);
    }
    if let Some(theirs) = &census.version {
        agent(&about, theirs, &census, &mut findings);
        let (theirs, ours) = (&census.node, &options.node);
        if options.is_node_given && theirs != ours {
            let remedy = format!(
                "set --node or NODE_NAME of the agent to {ours}; or, if this node's name is \
                 {theirs}, give --node {theirs} to this command"
            );
            let problem = format!("the agent serves node {theirs}, but this is node {ours}");
            findings.add(&about, problem, remedy);
        }
    }
    let source = match (&census.version, source) {
        (Some(release), _) => format!("the agent, release {release}"),
        (None, Source::Folder(folder)) => format!("folder {}", folder.display()),
        (None, Source::Cluster { .. }) => "the API server, without an agent".to_owned(),
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
        let problem =
            format!("the agent has release {theirs}, but this program has release {ours}");
        let remedy = "install the same release of the agent and of this program, unless an upgrade \
                      is in progress";
        findings.add(&about, problem, remedy);
    }
    if let Some(cause) = &census.unreachable {
        let remedy = "find in the agent's log why the API server does not answer";
        findings.add(about, cause, remedy);
    } else if !census.listed {
        findings.add(
            about,
            "the agent has not been able to list pods and definitions since it started",
            "read the agent's log; the cause is the API server, the agent's token or \
             deploy/rbac.yaml",
        );
    }
}
