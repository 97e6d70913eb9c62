//! The two formats of `/metrics`: the text format of Prometheus, and OpenMetrics for scrapers that
//! accept it.

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

/// A format of the metrics page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exposition {
    /// The text format of Prometheus, version 0.0.4, which every scraper reads.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Exposition {
    /// Chooses the format that the header `Accept` prefers. If the header names neither format,
    /// chooses text, which is also the choice of Prometheus' client libraries.
    pub(crate) fn parse(accept: &str) -> Exposition {
        let preferences = accept.split(',').filter_map(preference);
        let better = |best: (f32, _), other: (f32, _)| match other.0 > best.0 {
            true => other,
            false => best,
        };
        preferences.fold((0.0, Exposition::Text), better).1
    }

    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Exposition::Text => "text/plain; version=0.0.4; charset=utf-8",
            Exposition::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    pub(super) fn of(self, registry: &Registry) -> String {
        let mut page = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut page, registry);
        match self {
            Exposition::OpenMetrics => page,
            Exposition::Text => as_text(&page),
        }
    }
}

/// Returns the format that one part of `Accept` names, and the part's quality (`q`, by default 1).
/// Returns `None` if the agent does not support the format or its version.
fn preference(part: &str) -> Option<(f32, Exposition)> {
    let mut words = part.split(';').map(str::trim);
    let kind = words.next()?;
    let (mut quality, mut version) = (1.0, None);
    for (key, value) in words.filter_map(|word| word.split_once('=')) {
        match key.trim() {
            "q" => quality = value.trim().parse().unwrap_or(1.0),
            "version" => version = Some(value.trim().trim_matches('"')),
            _ => {}
        }
    }
    let form = if kind.eq_ignore_ascii_case("application/openmetrics-text") {
        matches!(version, None | Some("1.0.0")).then_some(Exposition::OpenMetrics)
    } else if kind.eq_ignore_ascii_case("text/plain") {
        matches!(version, None | Some("0.0.4")).then_some(Exposition::Text)
    } else {
        None
    };
    form.map(|form| (quality, form))
}

/// Converts a page from OpenMetrics to the text format. Drops the lines `# UNIT` and `# EOF`, which
/// exist only in OpenMetrics.
fn as_text(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    // The text of the last HELP line. The next TYPE line is about the same metric.
    let mut help = "";
    for line in page.split_inclusive('\n') {
        if let Some(named) = line.strip_prefix("# HELP ") {
            help = named;
        } else if let Some(named) = line.strip_prefix("# TYPE ") {
            let (name, kind) = named.split_once(' ').unwrap_or((named, "\n"));
            let help = help.strip_prefix(name).unwrap_or_default();
            // The series of a counter have the suffix `_total` in both formats. The HELP and TYPE
            // lines have the suffix only in the text format.
            let total = if kind == "counter\n" { "_total" } else { "" };
            text.extend([
                "# HELP ", name, total, help, "# TYPE ", name, total, " ", kind,
            ]);
        } else if !line.starts_with("# ") {
            text.push_str(line);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;
    use prometheus_client::registry::Unit;

    use super::Exposition::{OpenMetrics, Text};
    use super::*;

    /// The first five headers are like those that Prometheus, a browser and curl send. The others
    /// are invented.
    #[test]
    fn only_a_scraper_that_prefers_open_metrics_gets_it() {
        for (accept, expected) in [
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                 application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;\
                 escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
                OpenMetrics,
            ),
            (
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
                 encoding=delimited;q=0.7,application/openmetrics-text;version=1.0.0;q=0.6,\
                 text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
                OpenMetrics,
            ),
            ("text/plain;version=0.0.4;q=1,*/*;q=0.1", Text),
            ("text/html,application/xml;q=0.9,*/*;q=0.8", Text),
            ("*/*", Text),
            ("", Text),
            ("application/openmetrics-text", OpenMetrics),
            ("Application/OpenMetrics-Text; Version=1.0.0", OpenMetrics),
            (
                "application/openmetrics-text; version=\"1.0.0\" ; q = 0.2",
                OpenMetrics,
            ),
            ("application/openmetrics-text; version=2.0.0", Text),
            ("application/openmetrics-text;q=0.2,text/plain;q=0.3", Text),
            (
                "text/plain;q=0.2,application/openmetrics-text;q=0.3",
                OpenMetrics,
            ),
            ("application/openmetrics-text;q=0", Text),
            ("application/openmetrics-text;q=nan", Text),
            (";;=,,q=;", Text),
        ] {
            assert_eq!(Exposition::parse(accept), expected, "{accept}");
        }
    }

    #[test]
    fn the_text_format_omits_what_only_open_metrics_has() {
        let mut registry = Registry::with_prefix("j");
        let (calls, age) = (Counter::<u64>::default(), Gauge::<i64>::default());
        calls.inc();
        registry.register("calls", "All calls", calls);
        registry.register_with_unit("age", "How old", Unit::Seconds, age);
        assert_eq!(
            Text.of(&registry),
            "# HELP j_calls_total All calls.\n# TYPE j_calls_total counter\nj_calls_total 1\n\
             # HELP j_age_seconds How old.\n# TYPE j_age_seconds gauge\nj_age_seconds 0\n"
        );
        let page = OpenMetrics.of(&registry);
        assert!(
            page.contains("# TYPE j_calls counter\n") && page.ends_with("# EOF\n"),
            "{page}"
        );
    }
}
