//! Whoever knows the pods: is somebody there, and of which release?

use super::{Check, Diagnosis, Options};
use crate::cluster::Census;
use crate::operation::Context;
use crate::request::Source;
use crate::setup::version;

/// Asks who is on this node.
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
            diagnosis.error(Check::Cluster, about, &error.to_string());
            return None;
        }
    };
    for line in &census.broken {
        diagnosis.find(
            Check::Cluster,
            &about,
            line.clone(),
            "correct the object; nobody can use it",
        );
    }
    if let Some(theirs) = &census.version {
        agent(&about, theirs, &census, diagnosis);
        if options.is_node_told && census.node != options.node {
            let (theirs, ours) = (&census.node, &options.node);
            diagnosis.find(
                Check::Cluster,
                &about,
                format!("the agent knows the pods of node {theirs}, and this is {ours}"),
                format!("start the agent with --node {ours} (its NODE_NAME); or give --node {theirs} here, if that is this node"),
            );
        }
    }
    if diagnosis.is_fine(Check::Cluster) {
        let who = match (&census.version, &context.request.config.source) {
            (Some(release), _) => format!("the agent, release {release}"),
            (None, Source::Folder(folder)) => format!("folder {}", folder.display()),
            (None, Source::Cluster { .. }) => "no agent, the API server itself".to_owned(),
        };
        let (pods, definitions) = (census.pods.len(), census.definitions.len());
        diagnosis.fine(
            Check::Cluster,
            format!("{who}: {pods} pods, {definitions} definitions"),
        );
    }
    Some(census)
}

fn agent(about: &str, theirs: &str, census: &Census, diagnosis: &mut Diagnosis) {
    let ours = version().to_string();
    if *theirs != ours {
        diagnosis.find(
            Check::Cluster,
            about,
            format!("the agent is of release {theirs}, and this is {ours}"),
            "bring both to one release, unless an upgrade is under way",
        );
    }
    if let Some(cause) = &census.unreachable {
        diagnosis.error(Check::Cluster, about, cause);
    } else if !census.listed {
        diagnosis.find(
            Check::Cluster,
            about,
            "the agent has not been able to list pods and definitions since it started",
            "look into the agent's log; the API server, its token or deploy/rbac.yaml is the reason",
        );
    }
}
