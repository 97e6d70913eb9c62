use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::*;
use crate::cluster::CheckFigure;
use crate::cluster::figures::{NetworkFigure, OnRecord, Phase, PhaseFigure, PluginFigure};

const PREFACE: &str = "# Metrics

The agent serves metrics for Prometheus. `--metrics` sets the address (default: `127.0.0.1:9321`). The paths are:

| Path | Content |
|---|---|
| `/metrics` | the metrics below |
| `/healthz` | 200 while the agent runs |
| `/readyz` | 200 once the agent has listed its node's pods and begun to watch definitions |

The plugin runs for milliseconds and serves no metrics. It answers the runtime, then sends the figures of the call to
the agent, and does not wait for a reply. If the plugin finds no agent, the metrics do not count the call.

Three metrics show what the journal contains: `jackfield_attachments`, `jackfield_owed_detachments` and
`jackfield_unrestored_devices`. The plugin counts the journal's records in each STATUS, in each GC, in each change of a
running pod's networks, and in each DEL that fails. In a DEL that succeeds, the plugin counts the records only if the
last count was at least a minute ago. Between two counts, each successful ADD adds one to `jackfield_attachments`, which
counts sandboxes, not networks. Each successful DEL subtracts one if it had something to detach. The other two metrics
do not change between two counts.

## What to watch

| Series | Condition | Action |
|---|---|---|
| `jackfield_owed_writes`, `jackfield_owed_detachments` | above 0 for minutes | read the reason in the agent's log |
| `jackfield_watch_failures_total` | it keeps growing | check the API server. The agent's cache may be as old as `jackfield_cache_age_seconds` shows. This age also grows while nothing in the cluster changes |
| `jackfield_calls_total` | it grows with a `code` other than 0 | look up the code in [errors.md](errors.md) |
| `jackfield_agent_absences_total` | it grows | find out why calls found no agent |
| `jackfield_installation` | `state` is not `installed` | read the node's events |
| `jackfield_unrestored_devices` | the metric has a series | run `jackfield doctor`, which names the settings that Jackfield could not restore, and the reasons |

The agent's log has a line for each failed call, with pod, container, network and phase.

## Labels and sources

- `code` is a code of [errors.md](errors.md).
- `network` is `namespace/definition`, or the cluster network's CNI name. The first 256 networks get their own
  series. All further networks, and networks without a usable definition, share the value `other`. The same limit
  applies to `plugin`.
- `phase` is one of `question` (asking the agent), `devices` (waiting until kubelet's record shows the pod's devices),
  `plan`, `lock` (waiting for the container's lock), `journal`, `delegates`, `verify`, `routes`, `publish` (leaving
  status and events for the agent) and `unwind` (rolling back a failed ADD).
- `check` is a check of `jackfield doctor`.

`jackfield_devices` counts the devices that kubelet's pod-resources API reports. A scrape shows the figures of the
agent's last query to kubelet. The figures are out of date after a minute. They are also out of date as soon as the
plugin has asked the agent for a pod's devices, because kubelet may have allocated these devices since the last query.
If a scrape shows figures that are out of date, the agent then queries kubelet for the next scrape, at most once a
second. The first scrape may show no devices.

For each check, `jackfield doctor` sends the number of findings to the agent. The agent serves the numbers of the last
run until the agent restarts. Before the first run, `/metrics` has no such numbers. If no agent listens during a run,
the numbers of that run are lost. To run `doctor` regularly, call `/opt/cni/bin/jackfield doctor` as root from a timer
of the node. Watch `jackfield_doctor_last_run_timestamp_seconds` to learn whether the timer works.

The metrics that begin with `process_` describe the agent's process. Their names are those of the Prometheus client
libraries.

A scraper gets OpenMetrics if it prefers OpenMetrics 1.0 in the header `Accept`, as Prometheus does. Any other scraper
gets Prometheus' text format 0.0.4 (`text/plain; version=0.0.4`). The names in the table below are the same in both
formats.

The agent accepts eight connections for metrics at a time. A connection lasts at most ten seconds, and a request header
may have at most 8 KiB. If all eight connections are in use, a new connection replaces the oldest. These limits do not
affect the plugins, which use another socket.

## Dashboard and alerts

[deploy/monitoring](../deploy/monitoring) has a dashboard and alerts.

- `dashboard.json` is for Grafana. Import it, or set `grafanaDashboard.enabled=true` in the chart. The chart then
  creates a ConfigMap for Grafana's sidecar. If your sidecar looks for a label other than `grafana_dashboard: \"1\"`,
  set `grafanaDashboard.labels`.
- `prometheus-rule.yaml` is for the Prometheus operator. Apply it with `kubectl apply -f`, or set
  `prometheusRule.enabled=true` in the chart. Prometheus selects rules by label, so in the chart also set
  `prometheusRule.labels` to the labels that your Prometheus selects. Without the operator, use the content of `spec` as
  a rule file of Prometheus.

The dashboard and the alerts need a Prometheus that scrapes the agents. The name of the scrape job does not matter.

| Alert | After | When |
|---|---|---|
| `JackfieldAgentDown` | 5 min | Prometheus cannot scrape an agent that it scraped within the last day |
| `JackfieldCallsFail` | 10 min | more than 3 calls in 15 minutes failed with the same code. Code 11 and codes for mistakes in pods and definitions do not count |
| `JackfieldAddIsSlow` | 15 min | one ADD in twenty takes more than 30 s |
| `JackfieldDetachmentsOwed` | 15 min | Jackfield has not completely detached a deleted pod yet |
| `JackfieldWritesOwed` | 15 min | the agent could not write statuses or events |
| `JackfieldWatchFails` | 15 min | a watch failed more than 3 times in 15 minutes |
| `JackfieldDoctorFindings` | 5 min | the last `jackfield doctor` on a node found something |
| `JackfieldVersionsDiffer` | 6 h | agents of several releases run |
| `JackfieldAgentNearItsMemory` | 15 min | an agent uses more than 48 MiB of memory; its limit is 64 MiB |

## Scrape from within the cluster

By default the agent listens on the node's loopback only. Anyone who can reach the address can read the names of
networks, resources and plugins. No NetworkPolicy protects the address, because the agent's pod uses the node's network.
So open the port only if you trust every host and pod that can reach your nodes:

```sh
helm upgrade --install --namespace kube-system jackfield deploy/chart --set agent.metrics=0.0.0.0:9321
```

For IPv6 use `'[::]:9321'`. With either value, the chart also changes the probes and adds a container port `metrics`.
With kustomize, patch the agent's `args`, probes and ports yourself. Then use a PodMonitor, or add this to the
configuration of Prometheus:

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

## All metrics

This table is generated from the code.

| Metric | Kind | Unit | Labels | Meaning |
|---|---|---|---|---|
";

fn sample() -> String {
    let metrics = Metrics::new();
    metrics.examined(&examination([("journal", 2), ("owed", 0)]));
    metrics.answered(true, Duration::from_micros(80));
    metrics.looked_up("pod", "cache");
    metrics.published("pod_gone");
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
    cache.pods.hear();
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
fn the_page_shows_every_metric() {
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
    assert!(
        !text.contains(never),
        "a cache without a list has no age: {text}"
    );
    assert!(!text.contains(r#"state="multus""#), "{text}");
}

#[test]
fn calls_that_do_not_count_the_records_change_the_attachments_by_one() {
    let metrics = Metrics::new();
    let removed = NetworkFigure {
        is_unknown: false,
        network: "a/b".into(),
        done: true,
    };
    let call = |verb: &'static str, code, networks: &[NetworkFigure]| {
        metrics.over(&Figures {
            verb: verb.into(),
            code,
            networks: networks.into(),
            ..Figures::default()
        });
        let page = metrics.page(&Cache::default(), &[], Exposition::Text);
        value(&page, "jackfield_attachments")
    };
    let removed = [removed];
    assert_eq!(call("DEL", 0, &removed), 0.0, "never below 0");
    assert_eq!(call("ADD", 11, &[]), 0.0);
    assert_eq!(call("ADD", 0, &[]), 1.0);
    assert_eq!(call("ADD", 0, &[]), 2.0);
    assert_eq!(call("CHECK", 0, &removed), 2.0);
    assert_eq!(call("DEL", 106, &removed), 2.0);
    assert_eq!(call("DEL", 0, &removed), 1.0);
    assert_eq!(call("DEL", 0, &[]), 1.0, "the repeated DEL has no record");
}

/// Returns the value of a series without labels.
fn value(page: &str, series: &str) -> f64 {
    let mut lines = page.lines();
    let value = lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    value
        .unwrap_or_else(|| panic!("{series} is not in\n{page}"))
        .parse()
        .unwrap()
}

#[test]
fn the_page_shows_the_resources_of_the_process() {
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
fn the_page_shows_only_the_last_run_of_doctor() {
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
    assert!(last.len() < before + 1024, "the label is shortened");
    assert!(last.contains(r"\\n"), "the label is escaped: {last}");
    let ran = value(&last, "jackfield_doctor_last_run_timestamp_seconds");
    assert!(ran > 1.7e9, "{last}");
}

/// Returns the names of the labels that the series of a metric have, each in backquotes.
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
