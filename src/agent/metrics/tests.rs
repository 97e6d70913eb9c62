use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::*;
use crate::cluster::CheckFigure;
use crate::cluster::figures::{NetworkFigure, OnRecord, Phase, PhaseFigure, PluginFigure};

const PREFACE: &str = "# Metrics

The agent serves them for Prometheus at `/metrics` of `--metrics` (`127.0.0.1:9321`), with
`/healthz` (it runs) and `/readyz` (it has listed its pods and watches definitions). The plugin lives for
milliseconds and serves nothing: when a call is over and its answer given, it tells the agent what the
call took and waits for nothing. A call that finds no agent is not counted.

A scraper whose `Accept` names OpenMetrics 1.0 gets that, as Prometheus' does; any other gets Prometheus'
text 0.0.4 (`text/plain; version=0.0.4`). The table below names series as both have them.

The label `code` is that of [errors.md](errors.md). `network` is `namespace/definition`, or the
cluster network's CNI name; the first 256 networks have series of their own, all others are `other`
together, and so it is with `plugin`. `phase` is one of `question` (asking the agent), `devices`
(waiting until kubelet's record shows the pod's devices), `plan`, `lock` (waiting for another call on
the same sandbox), `journal`, `delegates`, `verify`, `routes`, `publish` (leaving status and events for
the agent), `unwind`. `devices` are those that kubelet's pod-resources API names. A scrape asks kubelet
nothing. While somebody scrapes, the agent asks kubelet in the background: after a minute, or a second after it
answered for a pod with devices. The figures are at most a minute and one scrape interval old; the first scrape
may show none.

`jackfield doctor` tells the agent at its end how much each check found; `check` is the first column of its
table. The agent shows the last run until it ends itself, and before the first run, nothing. A doctor that cannot
read the node's configuration, or finds no agent, tells nobody. To have it run regularly, let a timer of the
node's call it (`/opt/cni/bin/jackfield doctor`, as root) and watch `jackfield_doctor_last_run_timestamp_seconds`.

The names that begin with `process_` are those of all Prometheus client libraries, and are the agent's own.

The page has eight connections, a request header of 8 KiB and ten seconds for each connection. When all are
taken, a new connection replaces the oldest. Plugins ask over a socket of their own, which these limits keep
free.

What to watch: `jackfield_owed_writes` and `jackfield_owed_detachments` above 0 for minutes (the log
says why), `jackfield_watch_failures_total` that goes on growing (the API server is out of reach; what
is known by then is as old as `jackfield_cache_age_seconds`, which grows on a quiet cluster too),
`jackfield_calls_total` with a `code` other than 0, `jackfield_agent_absences_total` that grows,
`jackfield_installation` with a `state` other than `installed`, and `jackfield_unrestored_devices`, whose label
`device` names a device that is not as it was before a pod had it (`jackfield doctor` says what of it and why).
The log of the agent has a line for each call that failed, with pod, container, network and phase.

## Dashboard and alerts

[deploy/monitoring](../deploy/monitoring) has both. `dashboard.json` is for Grafana: import it, or have the chart
put it into a ConfigMap for Grafana's sidecar (`--set grafanaDashboard.enabled=true`; the sidecar's label, if it is
another than `grafana_dashboard: \"1\"`, with `grafanaDashboard.labels`). `prometheus-rule.yaml` is for
Prometheus' operator: `kubectl apply` it, or `--set prometheusRule.enabled=true` with
`prometheusRule.labels`, by which your Prometheus chooses its rules. Without the operator, what is below `spec`
in it is a file of rules. Both need that Prometheus scrapes the agents, whatever it calls the job:

| Alert | After | When |
|---|---|---|
| `JackfieldAgentDown` | 5 min | a target that was an agent within a day cannot be scraped |
| `JackfieldCallsFail` | 10 min | more than 3 calls in 15 minutes failed with one code, those that mistakes of pods and definitions have left out |
| `JackfieldAddIsSlow` | 15 min | one ADD in twenty takes more than 30 s |
| `JackfieldDetachmentsOwed` | 15 min | something of a pod that is gone could not be detached |
| `JackfieldWritesOwed` | 15 min | statuses or events could not be written |
| `JackfieldWatchFails` | 15 min | a watch failed more than 3 times in 15 minutes |
| `JackfieldDoctorFindings` | 5 min | the last `jackfield doctor` on a node found something |
| `JackfieldVersionsDiffer` | 6 h | agents of several releases run |
| `JackfieldAgentNearItsMemory` | 15 min | an agent has more than 48 MiB resident, of the 64 that it may have |

## For a Prometheus in the cluster

As deployed the agent listens on the node's loopback alone: whoever reaches its address may read the names
of networks, resources and plugins, and no NetworkPolicy holds for a pod on the node's network. Where the
nodes are closed to others, `helm --set agent.metrics=0.0.0.0:9321` (`'[::]:9321'` for IPv6) opens it; with
kustomize a patch of the agent's `args` and of its probes. By the chart the probes follow, and the container
gets a port `metrics` for a PodMonitor, or for Prometheus' own configuration:

```yaml
scrape_configs:
  - job_name: jackfield
    kubernetes_sd_configs:
      - role: pod
        namespaces: {names: [kube-system]}
        selectors: [{role: pod, label: app.kubernetes.io/name=jackfield}]
    relabel_configs:
      - {source_labels: [__meta_kubernetes_pod_container_port_name], regex: metrics, action: keep}
      - {source_labels: [__meta_kubernetes_pod_node_name], target_label: node}
```

## All of them

This table is made from the code.

| Metric | Kind | Unit | Labels | Meaning |
|---|---|---|---|---|
";

fn sample() -> String {
    let metrics = Metrics::new();
    metrics.examined(&examination([("journal", 2), ("owed", 0)]));
    metrics.answered(true, Duration::from_micros(80));
    metrics.looked_up(What::Pod, Origin::Cache);
    metrics.published(Outcome::PodGone);
    metrics.owed(2);
    metrics.watch_failed("pod");
    metrics.installation("multus");
    metrics.installation("installed");
    metrics.over(&Figures {
        verb: "ADD".into(),
        took: 1_500,
        networks: vec![NetworkFigure {
            is_unknown: false,
            network: "a/b".into(),
            done: true,
        }],
        plugins: vec![PluginFigure {
            plugin: "macvlan".into(),
            verb: "ADD".into(),
            done: false,
            took: 700,
        }],
        phases: vec![PhaseFigure {
            phase: Phase::Verify.as_str().into(),
            took: 90,
        }],
        on_record: Some(OnRecord {
            attachments: 7,
            owed: 1,
            unrestored: vec!["0000:01:10.0".to_owned()],
        }),
        agent_silent: Some(180),
        ..Figures::default()
    });
    let vfs = Usage {
        resource: "intel.com/sriov".into(),
        all: 8,
        in_use: 3,
    };
    let cache = Cache::default();
    cache.pods.end();
    metrics.page(&cache, &[vfs], Exposition::OpenMetrics)
}

fn examination<const N: usize>(checks: [(&'static str, u64); N]) -> Examination {
    let figure = |(check, findings): (&'static str, u64)| CheckFigure {
        check: check.into(),
        findings,
    };
    Examination {
        checks: checks.map(figure).into(),
    }
}

#[test]
fn what_is_counted_is_shown() {
    let text = sample();
    for line in [
        r#"jackfield_questions_total{answered="true"} 1"#,
        r#"jackfield_lookups_total{what="pod",from="cache"} 1"#,
        r#"jackfield_publications_total{outcome="pod_gone"} 1"#,
        "jackfield_owed_writes 2",
        "jackfield_attachments 7",
        "jackfield_owed_detachments 1",
        r#"jackfield_unrestored_devices{device="0000:01:10.0"} 1"#,
        r#"jackfield_cache_age_seconds{kind="pod"} 0"#,
        "jackfield_answer_seconds_count 1",
        r#"jackfield_calls_total{verb="ADD",code="0"} 1"#,
        r#"jackfield_call_seconds_sum{verb="ADD"} 0.0015"#,
        r#"jackfield_operations_total{verb="ADD",network="a/b",result="done"} 1"#,
        r#"jackfield_phase_seconds_count{verb="ADD",phase="verify"} 1"#,
        r#"jackfield_delegate_calls_total{plugin="macvlan",verb="ADD",result="failed"} 1"#,
        r#"jackfield_delegate_seconds_sum{plugin="macvlan",verb="ADD"} 0.0007"#,
        r#"jackfield_devices{resource="intel.com/sriov",state="in use"} 3"#,
        r#"jackfield_devices{resource="intel.com/sriov",state="free"} 5"#,
        "jackfield_synced_records_total 0",
        r#"jackfield_installation{state="installed"} 1"#,
        "jackfield_agent_absences_total 1",
        "jackfield_agent_absence_seconds_total 180",
        r#"jackfield_watch_failures_total{kind="pod"} 1"#,
        r#"jackfield_doctor_findings{check="journal"} 2"#,
        r#"jackfield_doctor_findings{check="owed"} 0"#,
        concat!(
            r#"jackfield_build_info{version=""#,
            env!("CARGO_PKG_VERSION"),
            r#"",arch=""#
        ),
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let never = r#"jackfield_cache_age_seconds{kind="definition"}"#;
    assert!(!text.contains(never), "nothing was heard: {text}");
    assert!(!text.contains(r#"state="multus""#), "{text}");
}

/// The value of a series without labels.
fn value(page: &str, series: &str) -> f64 {
    let mut lines = page.lines();
    let value = lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    value
        .unwrap_or_else(|| panic!("{series} is not in\n{page}"))
        .parse()
        .unwrap()
}

#[test]
fn the_process_shows_what_it_takes() {
    let _open: Vec<fs::File> = (0..50).map(|_| fs::File::open("/proc").unwrap()).collect();
    let now = || {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap();
        now.as_secs_f64()
    };
    let before = now();
    for form in [Exposition::Text, Exposition::OpenMetrics] {
        let page = Metrics::new().page(&Cache::default(), &[], form);
        let of = |name: &str| value(&page, &format!("process_{name}"));
        assert!(of("cpu_seconds_total") > 0.0, "{page}");
        let (resident, all) = (of("resident_memory_bytes"), of("virtual_memory_bytes"));
        assert!((1e6..1e9).contains(&resident) && resident <= all, "{page}");
        assert!((50.0..=of("max_fds")).contains(&of("open_fds")), "{page}");
        let started = of("start_time_seconds");
        assert!((before - 1.0..now() + 1.0).contains(&started), "{page}");
    }
}

#[test]
fn a_run_of_doctor_takes_the_place_of_the_one_before_and_of_none_nothing_is_shown() {
    let metrics = Metrics::new();
    let page = || metrics.page(&Cache::default(), &[], Exposition::Text);
    let never = page();
    assert!(!never.contains("jackfield_doctor"), "{never}");
    metrics.examined(&examination([("journal", 2), ("gone", 1)]));
    let long = "x".repeat(1 << 20);
    let odd = CheckFigure {
        check: format!("{long}\n").into(),
        findings: u64::MAX,
    };
    let before = page().len();
    metrics.examined(&Examination { checks: vec![odd] });
    let last = page();
    for check in ["journal", "gone"] {
        assert!(!last.contains(&format!("{check}\"}}")), "{last}");
    }
    assert!(last.len() < before + 1024, "a label is cut");
    assert!(last.contains(r"\\n"), "and escaped: {last}");
    let ran = value(&last, "jackfield_doctor_last_run_timestamp_seconds");
    assert!(ran > 1.7e9, "{last}");
}

/// The labels of a metric's series.
fn labels(text: &str, metric: &str) -> BTreeSet<String> {
    let series = text.lines().filter_map(|line| line.strip_prefix(metric));
    let inside = series.filter_map(|rest| {
        let (before, labels) = rest.split_once('{')?;
        let ours = ["", "_total", "_count"].contains(&before);
        ours.then(|| labels.split_once('}').unwrap().0)
    });
    let pairs = inside.flat_map(|labels| labels.split(','));
    pairs
        .map(|pair| format!("`{}`", pair.split('=').next().unwrap()))
        .collect()
}

#[test]
fn the_document_has_every_metric() {
    let sample = sample();
    let of = |what: &str, metric: &str| {
        let start = format!("# {what} {metric} ");
        let line = sample.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap_or_default().to_owned()
    };
    let mut text = PREFACE.to_owned();
    let mut metrics = 0;
    for line in sample.lines() {
        let Some(rest) = line.strip_prefix("# HELP ") else {
            continue;
        };
        let (metric, help) = rest.split_once(' ').unwrap();
        let kind = of("TYPE", metric);
        let total = if kind == "counter" { "_total" } else { "" };
        let labels: Vec<String> = labels(&sample, metric).into_iter().collect();
        writeln!(
            text,
            "| `{metric}{total}` | {kind} | {} | {} | {} |",
            of("UNIT", metric),
            labels.join(", "),
            help.trim_end_matches('.')
        )
        .unwrap();
        metrics += 1;
    }
    assert!(metrics > 15, "{sample}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md");
    if std::env::var_os("WRITE_DOCS").is_some() {
        return fs::write(path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "docs/metrics.md is out of date; run WRITE_DOCS=1 cargo test --lib agent::metrics\n{text}"
    );
}
