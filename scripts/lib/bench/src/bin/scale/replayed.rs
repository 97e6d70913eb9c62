//! An agent without a process: it sends an agent's requests with an agent's client.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use jackfield::cluster::api::events::Event;
use jackfield::cluster::api::kinds::Objects;
use jackfield::cluster::api::{ApiError, ApiServer, EventContext, PodView, publish};
use jackfield::cluster::{self, PodName, Publication};
use jackfield::npwg::{ObjectRef, StatusEntry};
use tokio::sync::oneshot;

use crate::board::Board;

/// How long a watch lasts on average. An agent that has run for long begins a watch again at any
/// moment of this time.
const WATCH: Duration = Duration::from_secs(217);

/// The first pause and the longest pause after a failure, as those of an agent.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What a replayed agent does.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) node: String,
    pub(crate) kubeconfig: PathBuf,
    /// The wait before the first requests.
    pub(crate) after: Duration,
    /// Whether its first watches end at a random moment, as those of an agent that has run for long.
    pub(crate) is_old: bool,
}

/// The connection of a replayed agent, and its node's pods.
pub(crate) struct Connected {
    server: ApiServer,
    node: String,
    pods: Vec<(ObjectRef, PodView)>,
}

/// Sends the requests of an agent until it is dropped. Sends the connection to `ready` when the first
/// lists are complete.
pub(crate) async fn live(plan: Plan, board: Rc<Board>, ready: oneshot::Sender<Connected>) {
    tokio::time::sleep(plan.after).await;
    let caller = format!("agent; {}", plan.node);
    let server = match ApiServer::from_kubeconfig(&plan.kubeconfig, &caller).await {
        Ok(server) => server,
        Err(error) => return board.failed(&error),
    };
    let (pods, slices) = (Objects::pods(&plan.node), Objects::slices(&plan.node));
    let definitions = Objects::definitions();
    let mut views = Vec::new();
    let take = |name: ObjectRef, text: &str| {
        let view = serde_json::from_str::<PodView>(text);
        views.extend(
            view.ok()
                .and_then(|it| it.to_be_kept())
                .map(|it| (name, it)),
        );
    };
    let listed = tokio::join!(
        list(&server, &pods, &board, take),
        list(&server, &slices, &board, |_, _| {}),
        version(&server, &board),
    );
    let connected = Connected {
        server: server.clone(),
        node: plan.node,
        pods: views,
    };
    let _ = ready.send(connected);
    tokio::join!(
        watch(&server, &pods, &board, listed.0, plan.is_old),
        watch(&server, &slices, &board, listed.1, plan.is_old),
        watch(&server, &definitions, &board, listed.2, plan.is_old),
    );
}

async fn list(
    server: &ApiServer,
    objects: &Objects,
    board: &Board,
    mut take: impl FnMut(ObjectRef, &str),
) -> String {
    let mut last = Duration::ZERO;
    loop {
        let listed = server.list(objects, |item| {
            if let Ok(name) = item.object() {
                take(name, item.text());
            }
            true
        });
        match listed.await {
            Ok(version) => return version,
            Err(error) => pause(board, &error, &mut last).await,
        }
    }
}

async fn version(server: &ApiServer, board: &Board) -> String {
    let mut last = Duration::ZERO;
    loop {
        match server.definitions_version().await {
            Ok(version) => return version,
            Err(error) => pause(board, &error, &mut last).await,
        }
    }
}

async fn watch(
    server: &ApiServer,
    objects: &Objects,
    board: &Board,
    mut version: String,
    is_old: bool,
) {
    let mut end = match is_old {
        true => WATCH.mul_f32(fastrand::f32()),
        false => WATCH * 2,
    };
    let mut last = Duration::ZERO;
    loop {
        let from = version.clone();
        let take = |event: Event<'_>| {
            last = Duration::ZERO;
            if !event.version.is_empty() {
                version = event.version;
            }
        };
        if let Ok(Err(error)) = tokio::time::timeout(end, server.watch(objects, &from, take)).await
        {
            pause(board, &error, &mut last).await;
        }
        end = WATCH * 2;
    }
}

/// Pauses after a failure. `last` is the pause after the failure before.
async fn pause(board: &Board, error: &ApiError, last: &mut Duration) {
    board.failed(error);
    *last = (*last * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
    let least = error.retry_after().unwrap_or_default().max(*last);
    tokio::time::sleep(least.mul_f32(1.0 + fastrand::f32() / 4.0)).await;
}

impl Connected {
    /// Publishes what an ADD of each of the node's pods gives. Returns how many ADDs that is.
    pub(crate) async fn publish(&self, board: &Board) -> usize {
        let mut count = 0;
        for (pod, view) in &self.pods {
            let name = PodName::of(pod, Some(view.identity.uid.clone()));
            let entries = ["cluster", "bench/first", "bench/second"]
                .into_iter()
                .enumerate();
            let status = entries.map(|(number, network)| StatusEntry {
                name: network.to_owned(),
                interface: Some(format!("net{number}")),
                ..StatusEntry::default()
            });
            let message =
                "Add net0 from cluster; Add net1 from bench/first; Add net2 from bench/second";
            let event = cluster::Event::normal("AddedInterface", message);
            let publication = Publication::new(name, Some(status.collect()), vec![event]);
            let occasion = EventContext {
                node: &self.node,
                period: "1",
            };
            match publish(&self.server, Some(view), &publication, occasion).await {
                Ok(_) => count += 1,
                Err(error) => board.failed(&error.into()),
            }
        }
        count
    }
}
