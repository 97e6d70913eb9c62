//! The agents of all nodes: a few processes, and replayed ones.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_local};

use crate::Failure;
use crate::board::Board;
use crate::population::kubeconfig_of;
use crate::processes::{RealAgent, until_ready};
use crate::replayed::{self, Connected, Plan};
use crate::settings::{LONGEST, node_name};

/// The agents that run now.
pub(crate) struct Fleet {
    folder: PathBuf,
    /// The first nodes have real agents, so many.
    real: usize,
    pub(crate) board: Rc<Board>,
    processes: RefCell<BTreeMap<usize, RealAgent>>,
    replayed: RefCell<BTreeMap<usize, JoinHandle<()>>>,
    connected: RefCell<BTreeMap<usize, Rc<Connected>>>,
}

/// How agents start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    /// The longest random wait before their first requests.
    pub(crate) spread: Duration,
    /// Whether the first watches of replayed agents end as those of agents that have run for long.
    pub(crate) is_old: bool,
}

impl Fleet {
    pub(crate) fn new(folder: &Path, real: usize) -> Fleet {
        Fleet {
            folder: folder.to_owned(),
            real,
            board: Rc::default(),
            processes: RefCell::default(),
            replayed: RefCell::default(),
            connected: RefCell::default(),
        }
    }

    /// Starts the agents of these nodes at the same time. Returns how many were ready within
    /// [`LONGEST`], and after how long the last of them was.
    pub(crate) async fn start_all(
        &self,
        nodes: impl Iterator<Item = usize>,
        start: Start,
    ) -> Result<(usize, Duration), Failure> {
        let began = Instant::now();
        let starts = nodes.map(|node| self.start(node, start));
        // Each starts its agent when it is first polled, and then only waits.
        let starts: Vec<Result<bool, Failure>> = stream::iter(starts)
            .buffer_unordered(usize::MAX)
            .collect()
            .await;
        let mut ready = 0;
        for started in starts {
            ready += usize::from(started?);
        }
        Ok((ready, began.elapsed()))
    }

    /// Starts the agent of a node. Returns whether the agent was ready within [`LONGEST`].
    pub(crate) async fn start(&self, node: usize, start: Start) -> Result<bool, Failure> {
        if node < self.real {
            let agent = RealAgent::start(&self.folder, node, start.spread)?;
            let port = agent.port();
            self.processes.borrow_mut().insert(node, agent);
            return Ok(tokio::time::timeout(LONGEST, until_ready(port))
                .await
                .is_ok());
        }
        let (ready, is_ready) = oneshot::channel();
        let plan = Plan {
            node: node_name(node),
            kubeconfig: kubeconfig_of(&self.folder, node),
            after: start.spread.mul_f32(fastrand::f32()),
            is_old: start.is_old,
        };
        let task = spawn_local(replayed::live(plan, Rc::clone(&self.board), ready));
        self.replayed.borrow_mut().insert(node, task);
        match tokio::time::timeout(LONGEST, is_ready).await {
            Ok(Ok(connected)) => {
                self.connected.borrow_mut().insert(node, Rc::new(connected));
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Ends the agent of a node.
    pub(crate) async fn stop(&self, node: usize) -> Result<(), Failure> {
        self.connected.borrow_mut().remove(&node);
        if let Some(task) = self.replayed.borrow_mut().remove(&node) {
            task.abort();
        }
        let process = self.processes.borrow_mut().remove(&node);
        if let Some(agent) = process {
            agent.stop().await?;
        }
        Ok(())
    }

    /// Ends all agents, and waits until the audit log has their watches.
    pub(crate) async fn stop_all(&self) -> Result<(), Failure> {
        let replayed = self.replayed.borrow().keys().copied().collect::<Vec<_>>();
        let processes = self.processes.borrow().keys().copied().collect::<Vec<_>>();
        for node in replayed.into_iter().chain(processes) {
            self.stop(node).await?;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok(())
    }

    /// The processes of real agents.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.processes
            .borrow()
            .values()
            .map(RealAgent::pid)
            .collect()
    }

    /// Lets all replayed agents publish what ADDs give. Returns how many ADDs that is.
    pub(crate) async fn publish(&self) -> usize {
        let connected: Vec<Rc<Connected>> = self.connected.borrow().values().cloned().collect();
        let mut count = 0;
        for agent in connected {
            count += agent.publish(&self.board).await;
        }
        count
    }
}
