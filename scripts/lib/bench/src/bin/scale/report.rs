//! What was measured, beside what is promised.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::Range;
use std::time::Duration;

use crate::adds::{ADDS, CHURNING, TIMES};
use crate::audit::{self, Request};
use crate::crowd::Wave;
use crate::settings::{PODS, Settings, node_name};
use crate::starts::{Cost, Window};
use crate::story::Measured;

/// The most that bytes and processor time of a start may grow with definitions that no pod selects.
const GROWTH: f64 = 1.25;
/// What the measurement of processor time is worth, in milliseconds.
const NOISE: f64 = 0.5;
/// The largest share of the starts that may fall into one second.
const SHARE: f64 = 0.25;
/// How long after the longest wait the last agent may be ready.
const LATE: Duration = Duration::from_secs(10);
/// How far the busiest five seconds of an update may be over the mean.
const PEAK: f64 = 2.0;
const PEAK_SECONDS: usize = 5;
/// The shortest time after a refusal, which the API server asks for with 429.
const RETRY_AFTER: Duration = Duration::from_secs(1);

struct Report<'a> {
    settings: &'a Settings,
    measured: &'a Measured,
    requests: &'a [Request],
    text: String,
    is_kept: bool,
}

/// Returns the report, and whether every promise is kept.
pub(crate) fn of(settings: &Settings, measured: &Measured, requests: &[Request]) -> (String, bool) {
    let mut report = Report {
        settings,
        measured,
        requests,
        text: String::new(),
        is_kept: true,
    };
    report.reach();
    report.table();
    report.rates();
    report.promises();
    (report.text, report.is_kept)
}

impl Report<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{text}");
    }

    fn verdict(&mut self, is_kept: bool, promise: &str, shown: &str) {
        let word = if is_kept { "kept    " } else { "NOT KEPT" };
        self.is_kept &= is_kept;
        self.line(&format!("  {word}  {promise}: {shown}"));
    }

    /// The requests of an agent of these nodes, or with `None` of Multus.
    fn during(
        &self,
        window: Window,
        nodes: Option<Range<usize>>,
    ) -> impl Iterator<Item = &Request> {
        let names: Option<BTreeSet<String>> = nodes.map(|it| it.map(node_name).collect());
        let is_of = move |request: &Request| match &names {
            Some(names) => names.contains(&request.node),
            None => request.node.is_empty(),
        };
        let requests = self.requests.iter();
        requests.filter(move |it| window.has(it.at) && is_of(it))
    }

    fn reach(&mut self) {
        let Settings { nodes, real, .. } = *self.settings;
        let Measured { held, setup, .. } = *self.measured;
        self.line(&format!(
            "{held} of {nodes} nodes had an agent at the same time: {real} a real one, {} a replayed one over a \
             connection of its own. Setup took {:.0} s.",
            held.saturating_sub(real),
            setup.as_secs_f64()
        ));
        if held < nodes {
            self.line("There was no memory for more.");
        }
        self.line(&format!(
            "{} of them started together, within {} s; the processors of this machine bear no more, so the others \
             followed at the same rate. The figures of all {nodes} together are extrapolated. An idle hour is \
             extrapolated from {} s (thick Multus: 20 s), with watches that begin again as often as after hours. Each \
             node has {} pods. The rolling update does without the controller manager's own limit of 20 requests a \
             second, which makes a real one slower.",
            self.measured.together.nodes,
            self.settings.spread,
            self.settings.idle,
            PODS + 1
        ));
        let idle = self.measured.idle_cluster;
        self.line(&format!(
            "Without agents, kube-apiserver used {:.1} and etcd {:.1} ms of processor time a second; the figures \
             below are over that.",
            idle.api_server / idle.seconds,
            idle.etcd / idle.seconds
        ));
        for line in self.measured.failures.clone() {
            self.line(&line);
        }
    }

    fn table(&mut self) {
        self.line(&format!(
            "\n{:<44} {:>8} {:>10} {:>13} {:>8}",
            "", "requests", "kB", "apiserver ms", "etcd ms"
        ));
        for starts in self.measured.starts.clone() {
            let name = |who: &str, cost: &Cost| {
                format!(
                    "start, {} definitions, {who} ({})",
                    starts.definitions, cost.count
                )
            };
            self.row(&name("agent", &starts.real), &starts.real, false);
            self.row(&name("replayed", &starts.replayed), &starts.replayed, false);
            if let Some(multus) = &starts.multus {
                self.row(&name("thick Multus", multus), multus, true);
            }
        }
        let measured = self.measured;
        self.row(
            &format!("ADD, agent ({})", measured.adds.count),
            &measured.adds,
            false,
        );
        let replayed = &measured.replayed_adds;
        self.row(
            &format!("ADD, replayed ({})", replayed.count),
            replayed,
            false,
        );
        if let Some(multus) = &measured.multus_adds {
            self.row(
                &format!("ADD, thick Multus ({})", multus.count),
                multus,
                true,
            );
        }
        self.hour(
            &format!("idle hour, agent ({})", measured.idle.count),
            &measured.idle,
            false,
        );
        if let Some(multus) = &measured.multus_idle {
            self.hour(
                &format!("idle hour, thick Multus ({})", multus.count),
                multus,
                true,
            );
        }
        let hour = 3600.0 / measured.idle.used.seconds;
        let cores = measured.idle.used.api_server * hour / 3.6e6 / measured.held.max(1) as f64;
        self.line(&format!(
            "{} idle agents keep {:.2} cores of kube-apiserver busy.",
            self.settings.nodes,
            cores * self.settings.nodes as f64
        ));
    }

    fn per_one(&self, cost: &Cost, is_multus: bool) -> f64 {
        let nodes = (!is_multus).then(|| cost.nodes.clone());
        self.during(cost.window, nodes).count() as f64 / cost.count.max(1) as f64
    }

    fn row(&mut self, name: &str, cost: &Cost, is_multus: bool) {
        let requests = self.per_one(cost, is_multus);
        self.line(&format!(
            "{name:<44} {requests:>8.1} {:>10.1} {:>13.2} {:>8.2}",
            cost.bytes / 1000.0,
            cost.used.api_server,
            cost.used.etcd
        ));
    }

    fn hour(&mut self, name: &str, cost: &Cost, is_multus: bool) {
        let hour = 3600.0 / cost.used.seconds;
        let requests = self.per_one(cost, is_multus) * hour;
        let (bytes, one) = (cost.bytes * hour / 1000.0, cost.used.per(cost.count));
        let used = |value: f64| match is_multus {
            // So few daemons use too little to be told from the cluster.
            true => "-".to_owned(),
            false => format!("{:.1}", value * hour),
        };
        let (api_server, etcd) = (used(one.api_server), used(one.etcd));
        self.line(&format!(
            "{name:<44} {requests:>8.1} {bytes:>10.1} {api_server:>13} {etcd:>8}"
        ));
    }

    /// How many agents asked for their pods in each second.
    fn starts_per_second(&self, wave: &Wave) -> Vec<usize> {
        let lists = self.during(wave.window, Some(0..self.measured.held));
        let lists = lists.filter(|it| it.verb == "list" && it.resource == "pods");
        audit::per_second(lists, wave.window.from)
    }

    fn rates(&mut self) {
        let measured = self.measured;
        for (name, wave) in [
            ("together", &measured.together),
            ("rolling update", &measured.update),
        ] {
            let starts = self.starts_per_second(wave);
            let all = self.during(wave.window, Some(0..self.measured.held));
            let all = audit::per_second(all, wave.window.from);
            let most = |seconds: &[usize]| seconds.iter().max().copied().unwrap_or_default();
            self.line(&format!(
                "\n{name}: {} of {} agents ready in {:.1} s, {} failed requests, kube-apiserver {:.1} s and etcd {:.1} s \
                 of processor time; at most {} starts and {} requests in a second. Starts in each second:\n  {}",
                wave.ready,
                wave.nodes,
                wave.took.as_secs_f64(),
                wave.failed,
                wave.used.api_server / 1000.0,
                wave.used.etcd / 1000.0,
                most(&starts),
                most(&all),
                starts.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
            ));
        }
    }

    fn promises(&mut self) {
        self.line("\nPromises:");
        self.same_requests();
        self.start_does_not_grow();
        self.spread();
        self.no_herd();
        self.retry_after();
        self.adds();
    }

    fn same_requests(&mut self) {
        let mut shapes: BTreeMap<BTreeMap<String, usize>, usize> = BTreeMap::new();
        for starts in &self.measured.starts {
            for cost in [&starts.real, &starts.replayed] {
                for node in cost.nodes.clone() {
                    let requests = self.during(cost.window, Some(node..node + 1));
                    *shapes.entry(audit::patterns(requests)).or_default() += 1;
                }
            }
        }
        let is_same = shapes.len() == 1;
        let shown = match shapes.first_key_value() {
            Some((shape, count)) if is_same => {
                let sum: usize = shape.values().sum();
                format!("{sum} each in {count} starts")
            }
            _ => format!("they differ: {shapes:#?}"),
        };
        self.verdict(
            is_same,
            "replayed agents send the requests of real ones",
            &shown,
        );
    }

    fn start_does_not_grow(&mut self) {
        let [few, many] = self.measured.starts.as_slice() else {
            return;
        };
        let bytes = many.replayed.bytes / few.replayed.bytes;
        let real = many.real.bytes / few.real.bytes;
        let (before, after) = (few.replayed.used.api_server, many.replayed.used.api_server);
        let requests = self.per_one(&many.real, false) - self.per_one(&few.real, false);
        let is_kept = bytes.max(real) <= GROWTH
            && after <= before * GROWTH + NOISE
            && requests.abs() < f64::EPSILON;
        let shown = format!(
            "from {} to {} definitions {requests:+.1} requests, bytes × {real:.2} (replayed × {bytes:.2}), \
             kube-apiserver {before:.2} → {after:.2} ms",
            few.definitions, many.definitions
        );
        let promise =
            "a start costs nothing that grows with definitions that the node does not use";
        self.verdict(is_kept, promise, &shown);
    }

    fn spread(&mut self) {
        let wave = &self.measured.together;
        let starts = self.starts_per_second(wave);
        let most = starts.iter().max().copied().unwrap_or_default() as f64;
        let share = most / wave.nodes.max(1) as f64;
        let limit = self.settings.spread() + LATE;
        let is_kept = share <= SHARE && wave.ready == wave.nodes && wave.took <= limit;
        let shown = format!(
            "{:.0} % of {} starts in the busiest second, the last ready after {:.1} s of {} s; extrapolated, {} agents at once \
             need {:.1} cores of kube-apiserver for {} s",
            share * 100.0,
            wave.nodes,
            wave.took.as_secs_f64(),
            limit.as_secs(),
            self.settings.nodes,
            self.settings.nodes as f64 * wave.used.api_server
                / 1000.0
                / wave.nodes.max(1) as f64
                / self.settings.spread.max(1) as f64,
            self.settings.spread
        );
        self.verdict(
            is_kept,
            "agents that start at once do not list at once",
            &shown,
        );
    }

    fn no_herd(&mut self) {
        let wave = &self.measured.update;
        let starts = self.starts_per_second(wave);
        let most = starts
            .windows(PEAK_SECONDS)
            .map(|it| it.iter().sum::<usize>())
            .max();
        let most = most.unwrap_or_default() as f64 / PEAK_SECONDS as f64;
        let sum: usize = starts.iter().sum();
        let mean = sum as f64 / wave.took.as_secs_f64().max(1.0);
        let is_kept = most <= mean * PEAK && wave.failed == 0 && wave.ready == wave.nodes;
        let shown = format!(
            "maxUnavailable {} %: {mean:.1} starts a second, {most:.1} in the busiest {PEAK_SECONDS} s; {} of {} nodes updated in {:.0} s",
            self.settings.max_unavailable,
            wave.ready,
            wave.nodes,
            wave.took.as_secs_f64()
        );
        self.verdict(is_kept, "a rolling update is no herd", &shown);
    }

    fn retry_after(&mut self) {
        let mut requests: Vec<&Request> = self.during(self.measured.busy, Some(0..1)).collect();
        requests.sort_by_key(|it| it.at);
        // Requests that were under way together with a refused one are no retries of it.
        let together = Duration::from_millis(100);
        let after = |refused: &&Request| {
            let next = requests.iter().find(|it| it.at > refused.at + together);
            next.and_then(|next| next.at.duration_since(refused.at).ok())
        };
        let refused = requests.iter().copied().filter(|it| it.code == 429);
        let refused: Vec<&Request> = refused.collect();
        let shortest = refused.iter().filter_map(after).min();
        let is_kept = shortest.is_some_and(|it| it >= RETRY_AFTER);
        let shown = format!(
            "{} answers 429 with Retry-After: 1, the next request after {:.2} s at the earliest",
            refused.len(),
            shortest.unwrap_or_default().as_secs_f64()
        );
        self.verdict(
            is_kept,
            "429 is honoured (409: tests/api/faults.rs)",
            &shown,
        );
    }

    fn adds(&mut self) {
        let writes = |requests: &[&Request]| {
            let count = |verb: &str, resource: &str| {
                let is_it = |it: &&&Request| it.verb == verb && it.resource == resource;
                requests.iter().filter(is_it).count()
            };
            (count("patch", "pods/status"), count("create", "events"))
        };
        for cost in [&self.measured.adds, &self.measured.replayed_adds] {
            let requests: Vec<&Request> =
                self.during(cost.window, Some(cost.nodes.clone())).collect();
            let (patches, events) = writes(&requests);
            let is_kept =
                (patches, events, requests.len()) == (cost.count, cost.count, 2 * cost.count);
            let shown = format!(
                "{} ADDs: {patches} patches, {events} events, {} others",
                cost.count,
                requests.len() - patches - events
            );
            let who = match cost.nodes.start {
                0 => format!("real plugin, {ADDS} pods a node"),
                _ => "replayed".to_owned(),
            };
            self.verdict(
                is_kept,
                &format!("an ADD costs one patch and one event ({who})"),
                &shown,
            );
        }
        let churn = &self.measured.churn;
        let requests: Vec<&Request> = self
            .during(churn.window, Some(churn.nodes.clone()))
            .collect();
        let (patches, events) = writes(&requests);
        // One of each may be under way when the API server stops to answer.
        let is_kept = patches <= 2 * CHURNING && events <= 2 * CHURNING;
        let shown = format!(
            "{CHURNING} pods, each attached {TIMES} times while the API server does not answer: {patches} patches, \
             {events} events"
        );
        self.verdict(is_kept, "the writes of churning pods are merged", &shown);
    }
}
