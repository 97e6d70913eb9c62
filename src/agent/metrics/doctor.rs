//! The findings of the last `jackfield doctor` on this node.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::labels::{Gauges, label};
use super::{add, add_time, gauge, set};
use crate::cluster::Examination;

/// The findings and the time of the last run.
#[derive(Debug)]
pub(super) struct Doctor {
    findings: Gauges<1>,
    ran: Time,
}

impl Doctor {
    /// Adds the metrics to the registry.
    pub(super) fn new(registry: &mut Registry) -> Doctor {
        Doctor {
            findings: add(
                registry,
                "doctor_findings",
                "Findings of the last `jackfield doctor` on this node, by check",
            ),
            ran: add_time(
                registry,
                "doctor_last_run_timestamp",
                "Unix time of the last `jackfield doctor` on this node",
                Time::default(),
            ),
        }
    }

    /// Replaces the findings of the previous run, and sets the time of the last run to now.
    pub(super) fn ran(&self, examination: &Examination) {
        self.findings.clear();
        for of in &examination.checks {
            set(&self.findings, [("check", label(&of.check))], of.findings);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = gauge(now.unwrap_or_default().as_secs());
        self.ran.0.store(now, Ordering::Relaxed);
    }
}

/// A gauge with a time in seconds since 1970. The metrics page omits this gauge while it is 0.
#[derive(Debug, Default, Clone)]
struct Time(Arc<AtomicI64>);

impl EncodeMetric for Time {
    fn encode(&self, encoder: MetricEncoder) -> fmt::Result {
        ConstGauge::new(self.0.load(Ordering::Relaxed)).encode(encoder)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }

    fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}
