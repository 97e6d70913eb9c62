//! What happens to the API server and the agent.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use http::Method;

use super::node::Node;
use crate::lab::{AgentProcess, Fault};

/// The agent is killed in this part of the time only, so that one agent lives through the others.
const AGENT_DIES_WITHIN: f64 = 0.3;
/// A soak that takes longer also has connections that fall silent, which the agent notices after 30 s.
const LONG: Duration = Duration::from_secs(180);
/// How long the agent takes to notice a silent connection.
const SILENCE: Duration = Duration::from_secs(40);
/// The pauses between two disturbances, in milliseconds.
const PAUSES: std::ops::Range<u64> = 2_000..8_000;
/// How often to look whether the soak is over.
const GLANCE: Duration = Duration::from_millis(100);

/// The agent, and what disturbs it.
pub(super) struct Disturbances<'a> {
    node: &'a Node,
    agent: Mutex<AgentProcess>,
}

impl<'a> Disturbances<'a> {
    /// Starts the agent.
    pub(super) fn new(node: &'a Node) -> Disturbances<'a> {
        let agent = Mutex::new(node.lab.start_agent());
        Disturbances { node, agent }
    }

    /// Does something with the agent.
    pub(super) fn with_agent<T>(&self, look: impl FnOnce(&AgentProcess) -> T) -> T {
        look(&self.agent.lock().unwrap())
    }

    /// Disturbs until the soak is over. Then nothing is disturbed any more.
    pub(super) fn run(&self) {
        let began = Instant::now();
        let mut random = Rng::with_seed(self.node.settings.seed);
        let time = self.node.settings.time;
        loop {
            // A short soak has its faults too.
            let pause = Duration::from_millis(random.u64(PAUSES)).min(time / 10);
            self.sleep(pause);
            if self.node.is_over() {
                return;
            }
            let may_die = began.elapsed() < time.mul_f64(AGENT_DIES_WITHIN);
            self.node.calm.ends();
            let name = self.disturb(&mut random, may_die);
            self.node.lab.proxy.heal();
            self.node.calm.begins();
            self.node.report.fault(name);
        }
    }

    /// One disturbance to its end. Returns its name.
    fn disturb(&self, random: &mut Rng, may_die: bool) -> &'static str {
        let proxy = &self.node.lab.proxy;
        let time = Duration::from_millis(random.u64(500..3_000));
        let is_long = self.node.settings.time > LONG;
        match random.u8(0..10) {
            0..4 if may_die => {
                self.kill_agent(time);
                return "agent killed";
            }
            0 if is_long => {
                proxy.silence();
                self.sleep(SILENCE);
                return "API silent";
            }
            0..2 => {
                proxy.cut();
                return "API cut";
            }
            2..4 => {
                proxy.down();
                self.sleep(time);
                return "API down";
            }
            4..6 => {
                let pause = Duration::from_millis(random.u64(100..1_500));
                proxy.fault(move |_, _| Some(Fault::Slow(pause)));
                self.sleep(time);
                return "API slow";
            }
            _ => {}
        }
        let code = random.choice([409, 429, 500, 503]).unwrap_or(500);
        let mut random = random.fork();
        proxy.fault(move |method, _| {
            // A conflict is the answer to a write.
            let is_hit = (code != 409 || *method == Method::PATCH) && random.bool();
            is_hit.then_some(Fault::Answer(code, "the soak says so"))
        });
        self.sleep(time);
        match code {
            409 => "API 409",
            429 => "API 429",
            500 => "API 500",
            _ => "API 503",
        }
    }

    /// Kills the agent, and starts another one after a while.
    fn kill_agent(&self, away: Duration) {
        let mut agent = self.agent.lock().unwrap();
        agent.kill();
        self.sleep(away);
        *agent = self.node.lab.start_agent();
    }

    fn sleep(&self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until && !self.node.is_over() {
            thread::sleep(GLANCE);
        }
    }
}
