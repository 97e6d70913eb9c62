//! Checks the source of pods and definitions: whether it answers, and its release.

mod problem;

use problem::ClusterProblem;

use super::{Check, Diagnosis, Options};
use crate::cluster::Census;
use crate::operation::Context;
use crate::request::Source;
use crate::setup::version;

/// Asks for the pods of this node and the definitions.
pub(super) fn look(
    context: &Context<'_>,
    options: &Options,
    diagnosis: &mut Diagnosis,
) -> Option<Census> {
    let about = match &context.request.config.source {
        Source::Folder(folder) => folder.display().to_string(),
        Source::Cluster { agent_socket, .. } => agent_socket.display().to_string(),
    };
    let census = match context.host.cluster.census(&options.node, true) {
        Ok(census) => census,
        Err(error) => {
            diagnosis.find(Check::Cluster, about, ClusterProblem::NoAnswer(error));
            return None;
        }
    };
    for line in &census.broken {
        let problem = ClusterProblem::BrokenObject(line.clone());
        diagnosis.find(Check::Cluster, &about, problem);
    }
    if let Some(theirs) = &census.version {
        agent(&about, theirs, &census, diagnosis);
        if options.is_node_given && census.node != options.node {
            let problem = ClusterProblem::OtherNode {
                theirs: census.node.clone(),
                ours: options.node.clone(),
            };
            diagnosis.find(Check::Cluster, &about, problem);
        }
    }
    if diagnosis.is_fine(Check::Cluster) {
        let source = match (&census.version, &context.request.config.source) {
            (Some(release), _) => format!("the agent, release {release}"),
            (None, Source::Folder(folder)) => format!("folder {}", folder.display()),
            (None, Source::Cluster { .. }) => "no agent, the API server itself".to_owned(),
        };
        let (pods, definitions) = (census.pods.len(), census.definitions.len());
        diagnosis.fine(
            Check::Cluster,
            format!("{source}: {pods} pods, {definitions} definitions"),
        );
    }
    Some(census)
}

fn agent(about: &str, theirs: &str, census: &Census, diagnosis: &mut Diagnosis) {
    let ours = version().to_string();
    if *theirs != ours {
        let theirs = theirs.to_owned();
        let problem = ClusterProblem::OtherRelease { theirs, ours };
        diagnosis.find(Check::Cluster, about, problem);
    }
    if let Some(cause) = &census.unreachable {
        let problem = ClusterProblem::ApiUnreachable(cause.clone());
        diagnosis.find(Check::Cluster, about, problem);
    } else if !census.listed {
        diagnosis.find(Check::Cluster, about, ClusterProblem::NotListed);
    }
}
