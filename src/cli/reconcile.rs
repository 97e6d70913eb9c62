//! `reconcile`: gives running pods the networks that their annotations now select. A STATUS call of
//! the runtime starts the same changes. The command is for people, and for nodes whose runtime does
//! not call STATUS.

use serde_json::{Value, json};

use super::{CommandError, NodeArgs, Output, call, no_findings, note, pod, print, print_json};
use crate::cluster::PodName;
use crate::cni::RawObject;
use crate::journal::{Journal, Key};
use crate::npwg::ObjectRef;
use crate::operation::change::{self, Changed};
use crate::operation::{Context, Failure};
use crate::plan::NetworkPlace;
use crate::plugin::{self, with_host};
use crate::request::NodeConfig;

/// Logs and metrics show this name for a change. For a call of the runtime, they show the CNI verb.
const VERB: &str = "RECONCILE";

#[derive(Debug, clap::Args)]
pub(super) struct ReconcileArgs {
    #[command(flatten)]
    node: NodeArgs,
    /// Only this pod
    #[arg(long, value_name = "NS/NAME", value_parser = super::pod)]
    pod: Option<ObjectRef>,
    /// Show what would change; change nothing
    #[arg(long)]
    dry_run: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

pub(super) fn reconcile(args: &ReconcileArgs) -> Result<(), CommandError> {
    let conf = call::read_conf(&args.node.conf)?;
    let config = NodeConfig::parse(&conf)
        .map_err(|cause| CommandError::Conf(args.node.conf.clone(), Box::new(cause.into())))?;
    config.warnings.iter().for_each(|line| note(line));
    let journal = Journal::new(&config.journal_dir);
    let mut sandboxes = journal.networks().map_err(Failure::from)?;
    if let Some(wanted) = &args.pod {
        let wanted_name = wanted.to_string();
        let is_wanted = |pod: &PodName| pod.to_string() == wanted_name;
        sandboxes.retain(|it| it.pod.as_ref().is_some_and(is_wanted));
        if sandboxes.is_empty() {
            return Err(CommandError::NotAttached(wanted.clone()));
        }
    }
    let act = match args.dry_run {
        true => change::foresee,
        false => change::change,
    };
    let mut outcomes = Vec::new();
    let mut failed = false;
    for sandbox in sandboxes {
        let (Some(pod), container, ifname) = (sandbox.pod, sandbox.container, sandbox.ifname)
        else {
            continue;
        };
        let key = Key { container, ifname };
        let cni_path = &args.node.cni_path;
        match run(&journal, &key, cni_path, conf.clone(), act, &note) {
            Ok(changed) if changed.is_empty() => {}
            Ok(changed) => outcomes.push((pod.to_string(), changed)),
            Err(failure) => {
                failed = true;
                note(&format!("pod {pod}: {failure}"));
            }
        }
    }
    show(args.output, &outcomes)?;
    if outcomes.is_empty() && !failed && args.output == Output::Table {
        print(["nothing to change"])?;
    }
    no_findings(!failed)
}

/// Runs `act` for a sandbox. Builds the request from the sandbox's record, `cni_path` and the node
/// configuration `conf`. Passes each note of the call to `warn`, and reports the call to the agent.
/// Does nothing if the journal has no record of the sandbox.
///
/// # Errors
/// The failure of `act` or of [`with_host`], or the reason why the request is invalid.
pub(super) fn run(
    journal: &Journal,
    key: &Key,
    cni_path: &str,
    conf: RawObject,
    act: fn(&Context<'_>) -> Result<Changed, Failure>,
    warn: &dyn Fn(&str),
) -> Result<Changed, CommandError> {
    let Some(header) = journal.header(key) else {
        return Ok(Changed::default());
    };
    let request = change::request(&header, cni_path, conf)?;
    let outcome = with_host(&request.config, |host| {
        let context = Context::new(host, &request, request.config.deadlines.add);
        let outcome = act(&context);
        context.notes().iter().for_each(|it| warn(&it.to_string()));
        let failure = outcome.as_ref().err().map(Failure::to_cni);
        plugin::report(host, &request, VERB, failure.as_ref());
        outcome
    });
    Ok(outcome?)
}

fn show(output: Output, outcomes: &[(String, Changed)]) -> Result<(), CommandError> {
    let place = |place: &NetworkPlace| place.to_string();
    if output == Output::Json {
        let document = outcomes.iter().map(|(pod, changed)| {
            json!({
                "pod": pod,
                "detached": changed.detached.iter().map(place).collect::<Vec<_>>(),
                "attached": changed.attached.iter().map(place).collect::<Vec<_>>(),
                "status": changed.status,
            })
        });
        return print_json(&Value::from_iter(document));
    }
    let mut lines = Vec::new();
    for (pod, changed) in outcomes {
        let acts = [("detach", &changed.detached), ("attach", &changed.attached)];
        for (act, places) in acts {
            let line = |place| format!("pod {pod}: {act} {place}");
            lines.extend(places.iter().map(line));
        }
        lines.extend(pod::rows(&changed.status));
    }
    print(lines)
}
