//! The chart's dashboard and alerts on what a real agent serves, by Prometheus' own parsers and engine
//! (`tests/api/prometheus`).

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::devices;
use crate::doctor;
use crate::lab::{Lab, NETWORKS, eventually};

/// What Prometheus of today asks for.
const OPEN_METRICS: &str = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.3";

/// Two scrapes of an agent whose node has seen everything that is counted: the first in OpenMetrics,
/// the second, a little later, in Prometheus' text.
fn scrapes() -> [Value; 2] {
    let lab = devices::lab();
    let broken = json!({"type": "bridge", "bridge": "broken", "ipam": {
        "type": "static", "addresses": [{"address": "nonsense"}]}});
    lab.definition_of("broken", &broken);
    let _kubelet = devices::with_device(&lab, "web", "lab-vf1");
    let agent = lab.start_agent();
    lab.proxy.down();
    lab.proxy.cut();
    shows(&agent, "jackfield_watch_failures_total{kind=\"pod\"}");
    lab.proxy.heal();
    let uid = devices::asking(&lab, "web");
    devices::recorded(&lab, &[(&uid, "lab-vf1")]);
    let failing = lab.pod("failing", &json!({NETWORKS: "broken"}));
    lab.add("web", &uid).succeeds();
    lab.add("failing", &failing).fails(100, &["broken"]);
    looks(&lab);
    for metric in [
        "jackfield_calls_total{verb=\"ADD\",code=\"100\"}",
        "jackfield_devices",
        "jackfield_doctor_findings{check=\"cluster\"} 1",
        "jackfield_publications_total",
    ] {
        shows(&agent, metric);
    }
    let first = agent.scrape(OPEN_METRICS);
    lab.del("web", &uid).succeeds();
    shows(&agent, "jackfield_calls_total{verb=\"DEL\",code=\"0\"}");
    lab.wait_until_told();
    shows(&agent, "jackfield_owed_writes 0");
    let second = agent.scrape("*/*");
    [first, second].map(|(kind, page)| json!({"type": kind, "page": page}))
}

/// `doctor` for a node that is not the agent's: one finding.
fn looks(lab: &Lab) {
    doctor::installed(lab, json!({}));
    doctor::run(lab, "doctor", &["--node", "elsewhere"]);
}

#[track_caller]
fn shows(agent: &crate::lab::AgentProcess, metric: &str) {
    eventually(metric, || agent.get("/metrics").contains(metric));
}

/// What the chart makes: the dashboard and the rules, as text each.
fn rendered() -> (String, Value) {
    let helm = std::env::var("HELM").expect("HELM: run scripts/test --only api");
    let home = tempfile::tempdir().unwrap();
    let enabled = "grafanaDashboard.enabled=true,prometheusRule.enabled=true,\
                   prometheusRule.labels.release=stack";
    let output = Command::new(helm)
        .args([
            "template",
            "jackfield",
            "deploy/chart",
            "--namespace",
            "edge",
        ])
        .args(["--kube-version", "1.36.0", "--set", enabled])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("HOME", home.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let objects = crate::lab::manifests::of_text(&text);
    let find = |kind: &str, name: &str| {
        let named = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        objects.iter().find(named).unwrap()
    };
    let dashboard = find("ConfigMap", "jackfield-dashboard");
    let rules = find("PrometheusRule", "jackfield");
    for (object, label) in [(dashboard, "grafana_dashboard"), (rules, "release")] {
        assert_eq!(object["metadata"]["namespace"], "edge");
        assert!(object["metadata"]["labels"][label].is_string(), "{object}");
    }
    let dashboard = dashboard["data"]["jackfield.json"].as_str().unwrap();
    (dashboard.to_owned(), rules["spec"].clone())
}

/// The queries of a dashboard, those of its variables too, as Grafana sends them.
fn queries(dashboard: &str) -> BTreeMap<String, String> {
    let dashboard: Value = serde_json::from_str(dashboard).unwrap();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut queries = BTreeMap::new();
    for panel in list(&dashboard["panels"]) {
        for target in list(&panel["targets"]) {
            let name = format!("{} {}", panel["title"], target["refId"]);
            queries.insert(name, target["expr"].as_str().unwrap().to_owned());
        }
    }
    assert!(queries.len() > 20, "{queries:?}");
    for variable in list(&dashboard["templating"]["list"]) {
        let query = variable["query"].as_str().unwrap();
        if let Some(values) = query.strip_prefix("label_values(") {
            let (metric, label) = values.trim_end_matches(')').split_once(", ").unwrap();
            queries.insert(query.to_owned(), format!("count by ({label}) ({metric})"));
        }
    }
    for query in queries.values_mut() {
        *query = query
            .replace("$__rate_interval", "4m")
            .replace("$instance", ".*");
        assert!(
            !query.contains('$'),
            "a variable that nothing stands for: {query}"
        );
    }
    queries
}

/// What Prometheus says of them: problems, and how many series each gives.
fn judged(
    scrapes: &[Value],
    rules: &Value,
    queries: &BTreeMap<String, String>,
) -> (Vec<String>, BTreeMap<String, usize>) {
    let program = std::env::var("PROMETHEUS_CHECK");
    let program = program.expect("PROMETHEUS_CHECK: run scripts/test --only api");
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // JSON is YAML too.
    let input = json!({"scrapes": scrapes, "rules": rules.to_string(), "queries": queries});
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let problems = serde_json::from_value(told["problems"].take()).unwrap();
    (
        problems,
        serde_json::from_value(told["series"].take()).unwrap(),
    )
}

/// The alerts that the last scrape gives a reason for.
fn reasons(scrapes: &[Value], rules: &Value) -> Vec<String> {
    let (problems, series) = judged(scrapes, rules, &BTreeMap::new());
    assert_eq!(problems, [""; 0]);
    let given = series.into_iter().filter(|(_, count)| *count > 0);
    given.map(|(alert, _)| alert).collect()
}

/// A page on which series have other values.
fn with(page: &str, values: &[(&str, &str)]) -> String {
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    for (series, value) in values {
        let of = |line: &&mut String| line.starts_with(&format!("{series} "));
        let line = lines.iter_mut().find(of);
        *line.unwrap_or_else(|| panic!("{series} is not in\n{page}")) = format!("{series} {value}");
    }
    lines.join("\n") + "\n"
}

/// A page of a node on which doctor found nothing: beside other tests it finds their leftovers too.
fn without_findings(page: &str) -> String {
    let lines = page.lines().map(|line| match line.rsplit_once(' ') {
        Some((series, _)) if line.starts_with("jackfield_doctor_findings{") => {
            format!("{series} 0\n")
        }
        _ => format!("{line}\n"),
    });
    lines.collect()
}

#[test]
fn the_dashboard_shows_what_an_agent_serves_and_each_alert_tells_of_its_fault_alone() {
    let (dashboard, rules) = rendered();
    let [first, second] = scrapes();
    let queries = queries(&dashboard);
    let (problems, series) = judged(&[first.clone(), second.clone()], &rules, &queries);
    assert_eq!(problems, [""; 0]);
    for query in queries.keys() {
        assert!(
            series[query] > 0,
            "{query} shows nothing: {}",
            queries[query]
        );
    }
    let page = second["page"].as_str().unwrap();
    let well = without_findings(page);
    let doctor = "jackfield_doctor_findings{check=\"cluster\"}";
    let unwell = with(&well, &[(doctor, "1")]);
    let after = |page: String| [first.clone(), json!({"type": second["type"], "page": page})];
    assert_eq!(reasons(&after(well.clone()), &rules), [""; 0]);
    assert_eq!(reasons(&after(unwell), &rules), ["JackfieldDoctorFindings"]);
    let down = [
        after(well.clone())[0].clone(),
        json!({"type": "", "page": ""}),
    ];
    let expected = ["JackfieldAgentDown", "JackfieldDoctorFindings"];
    assert_eq!(reasons(&down, &rules), expected);
    let other = "jackfield_build_info{version=\"0.0.1\",arch=\"x86_64\"} 1\n";
    let two = after(well.clone() + other);
    assert_eq!(reasons(&two, &rules), ["JackfieldVersionsDiffer"]);
    let slow = |le: &str| format!("jackfield_call_seconds_bucket{{le=\"{le}\",verb=\"ADD\"}}");
    let slow = [slow("104.8576"), slow("+Inf")];
    for (alert, values) in [
        (
            "JackfieldCallsFail",
            &[("jackfield_calls_total{verb=\"ADD\",code=\"100\"}", "20")][..],
        ),
        ("JackfieldAddIsSlow", &[(&*slow[0], "90"), (&slow[1], "90")]),
        (
            "JackfieldDetachmentsOwed",
            &[("jackfield_owed_detachments", "2")],
        ),
        ("JackfieldWritesOwed", &[("jackfield_owed_writes", "1")]),
        (
            "JackfieldWatchFails",
            &[("jackfield_watch_failures_total{kind=\"pod\"}", "1000")],
        ),
        (
            "JackfieldAgentNearItsMemory",
            &[("process_resident_memory_bytes", "60000000")],
        ),
    ] {
        assert_eq!(reasons(&after(with(&well, values)), &rules), [alert]);
    }
}

/// Else nobody would notice that a metric was renamed.
#[test]
fn what_no_scrape_has_is_found() {
    let page = "# HELP a A.\n# TYPE a gauge\na{b=\"c\"} 1\n\
                # HELP d_total D.\n# TYPE d_total counter\nd_total 1\n";
    let scrape = json!({"type": "text/plain; version=0.0.4", "page": page});
    let rule = |name: &str, expr: &str, text: &str| json!({"alert": name, "expr": expr, "annotations": {"summary": text}});
    for (query, problem) in [
        ("sum by (b) (a)", None),
        ("rate(d_total[5m])", None),
        ("up == 0 and on (job, instance) a", None),
        ("renamed", Some("no scrape has the metric renamed")),
        ("a{c=\"b\"}", Some("the label c")),
        ("sum by (c) (a)", Some("the label c")),
        ("a * on (b) d_total", Some("the label b")),
        ("a * on (job) group_left (c) d_total", Some("the label c")),
        ("rate(a[5m])", Some("might not be a counter")),
        ("rate(d_total", Some("parse error")),
    ] {
        let queries = BTreeMap::from([("query".to_owned(), query.to_owned())]);
        let groups = json!({"groups": []});
        let (problems, _) = judged(&[scrape.clone(), scrape.clone()], &groups, &queries);
        match problem {
            None => assert_eq!(problems, [""; 0], "{query}"),
            Some(words) => assert!(problems.concat().contains(words), "{query}: {problems:?}"),
        }
    }
    for (rule, problem) in [
        (rule("A", "a", "{{ $labels.b }} {{ $value }}"), None),
        (rule("A", "a", "{{ $labels.c }}"), Some("the label c")),
        (rule("A", "a", "{{ $value"), Some("unclosed action")),
        (rule("A", "sum(", ""), Some("parse error")),
    ] {
        let groups = json!({"groups": [{"name": "g", "rules": [rule]}]});
        let (problems, _) = judged(std::slice::from_ref(&scrape), &groups, &BTreeMap::new());
        match problem {
            None => assert_eq!(problems, [""; 0], "{groups}"),
            Some(words) => assert!(problems.concat().contains(words), "{groups}: {problems:?}"),
        }
    }
    for (page, problem) in [
        ("a{b=\"c\n", "scrape 0"),
        ("# HELP d D.\n# TYPE d counter\nd 1\n", "lint: d: "),
    ] {
        let page = json!({"type": "text/plain; version=0.0.4", "page": page});
        let (problems, _) = judged(&[page], &json!({"groups": []}), &BTreeMap::new());
        assert!(problems.concat().contains(problem), "{problems:?}");
    }
}
