//! The two forms of `/metrics`: Prometheus' text of old, and OpenMetrics for a scraper that takes it.

use std::fmt::{self, Write};

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

/// A form of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exposition {
    /// Prometheus' text, version 0.0.4, which every scraper reads.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Exposition {
    /// The form that the header `Accept` prefers, as Prometheus' own client libraries choose it: text
    /// for a scraper that names neither.
    pub(crate) fn parse(accept: &str) -> Exposition {
        let mut best = (0.0, Exposition::Text);
        for (quality, form) in accept.split(',').filter_map(preference) {
            if quality > best.0 {
                best = (quality, form);
            }
        }
        best.1
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
        let _ = match self {
            Exposition::OpenMetrics => encode(&mut page, registry),
            Exposition::Text => encode(&mut AsText::into(&mut page), registry),
        };
        page
    }
}

/// One part of `Accept`, where it names a form in a version that is spoken here: how much that one is
/// liked.
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

/// Turns OpenMetrics into the text of old, line by line as it is written.
struct AsText<'a> {
    page: &'a mut String,
    /// The line that is being written.
    line: String,
    /// The help text of the metric, until its type is known.
    help: String,
}

impl AsText<'_> {
    fn into(page: &mut String) -> AsText<'_> {
        AsText {
            page,
            line: String::new(),
            help: String::new(),
        }
    }

    fn end_line(&mut self) {
        let line = &self.line;
        if line.starts_with("# HELP ") {
            self.help.clone_from(line);
        } else if let Some(named) = line.strip_prefix("# TYPE ") {
            let (name, kind) = named.split_once(' ').unwrap_or((named, "\n"));
            let help = self.help.strip_prefix("# HELP ").unwrap_or_default();
            let help = help.strip_prefix(name).unwrap_or_default();
            // Here a counter is called what its series are called.
            let total = if kind == "counter\n" { "_total" } else { "" };
            let lines = [
                "# HELP ", name, total, help, "# TYPE ", name, total, " ", kind,
            ];
            self.page.extend(lines);
        } else if !line.starts_with("# ") {
            // Units and the end are OpenMetrics' own.
            self.page.push_str(line);
        }
        self.line.clear();
    }
}

impl Write for AsText<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        for part in piece.split_inclusive('\n') {
            self.line.push_str(part);
            if part.ends_with('\n') {
                self.end_line();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;
    use prometheus_client::registry::Unit;

    use super::Exposition::{OpenMetrics, Text};
    use super::*;

    /// The headers of Prometheus 3.5, 2.53 and 2.4, a browser, curl, and others.
    #[test]
    fn open_metrics_is_for_a_scraper_that_takes_it() {
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
    fn the_text_of_old_names_a_counter_as_its_series_and_knows_no_unit_and_no_end() {
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
