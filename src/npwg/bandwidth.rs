//! Rate limits of an attachment.

use std::num::NonZeroU64;

use serde::Serialize;
use thiserror::Error;

use crate::cni::json::same_key;
use crate::cni::{JsonError, RawObject};

/// The value of `bandwidth` (NPWG 1.3 §4.1.2.1.8), which limits at least one direction. A value
/// without a limit counts as absent.
///
/// The JSON of this type has the format of CNI's capability `bandwidth`. Each rate has a burst,
/// because the reference plugin requires a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bandwidth {
    /// The rate of traffic into the pod, in bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    ingress_rate: Option<u64>,
    /// The burst of traffic into the pod, in bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    ingress_burst: Option<u64>,
    /// The rate of traffic out of the pod, in bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    egress_rate: Option<u64>,
    /// The burst of traffic out of the pod, in bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    egress_burst: Option<u64>,
}

/// The smallest default burst in bits: 64 KiB, the size of the largest possible packet.
const LEAST_BURST: u64 = 64 * 1024 * 8;

/// The largest default burst in bits: the burst that container runtimes pass for the cluster
/// network.
const MOST_BURST: u64 = i32::MAX as u64;

/// The default burst in bits: a tenth of a second at the full rate, between [`LEAST_BURST`] and
/// [`MOST_BURST`].
///
/// The burst must not be too small, because the kernel drops every packet that is larger than the
/// burst. The burst must not be too large, because the kernel does not limit a flow that fits into
/// the burst.
fn default_burst(rate: u64) -> u64 {
    (rate / 10).clamp(LEAST_BURST, MOST_BURST)
}

impl Bandwidth {
    /// Reads the value; `None` when it limits nothing.
    ///
    /// # Errors
    ///
    /// [`BandwidthError`] if a key is unknown, a value is not an integer above zero, or a burst has
    /// no rate. A key that contains a `.` is never an error.
    pub(crate) fn read(object: &RawObject) -> Result<Option<Self>, BandwidthError> {
        const KEYS: [&str; 4] = ["ingressRate", "ingressBurst", "egressRate", "egressBurst"];
        for (key, _) in object.iter() {
            // Keys with a period are reserved for implementations (§4.1.2.1).
            if !key.contains('.') && !KEYS.iter().any(|known| same_key(key, known)) {
                return Err(BandwidthError::UnknownKey(key.to_owned()));
            }
        }
        let read = |rate_key, burst_key| {
            let rate: Option<NonZeroU64> = object.read(rate_key)?;
            let burst: Option<NonZeroU64> = object.read(burst_key)?;
            if rate.is_none() && burst.is_some() {
                let (burst, rate) = (burst_key, rate_key);
                return Err(BandwidthError::BurstAlone { burst, rate });
            }
            let rate = rate.map(NonZeroU64::get);
            let burst = burst.map(NonZeroU64::get);
            Ok((rate, burst.or(rate.map(default_burst))))
        };
        let (ingress_rate, ingress_burst) = read("ingressRate", "ingressBurst")?;
        let (egress_rate, egress_burst) = read("egressRate", "egressBurst")?;
        let limits = ingress_rate.is_some() || egress_rate.is_some();
        Ok(limits.then_some(Self {
            ingress_rate,
            ingress_burst,
            egress_rate,
            egress_burst,
        }))
    }
}

/// Why a `bandwidth` is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BandwidthError {
    /// A value is not an integer above zero.
    #[error("{0}; give bits as an integer above zero")]
    Json(#[from] JsonError),
    /// A key that the specification does not define. Keys that contain a `.` are allowed.
    #[error("unknown key {0:?}; use ingressRate, ingressBurst, egressRate, egressBurst")]
    UnknownKey(String),
    /// A burst without a rate.
    #[error("{burst} needs {rate}; give both")]
    BurstAlone {
        /// The key of the burst.
        burst: &'static str,
        /// The missing key.
        rate: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Bandwidth>, BandwidthError> {
        Bandwidth::read(&RawObject::parse(text.as_bytes()).unwrap())
    }

    // clause: NPWG-1.3 §4.1.2.1.8 valid: only defined keys are accepted
    // clause: NPWG-1.3 §4.1.2.1.8 rates: a rate is not zero
    // clause: NPWG-1.3 §4.1.2.1.8 bursts: a burst is not zero and comes with a rate
    #[test]
    fn only_a_bandwidth_with_a_valid_rate_is_accepted() {
        for text in [
            r#"{"ingressRate":2048,"ingressBurst":300,"egressRate":8000,"egressBurst":200}"#,
            r#"{"ingressRate":2048}"#,
            r#"{"egressRate":2048,"egressBurst":1}"#,
            r#"{"egressRate":2048,"com.example.note":"x"}"#,
            r#"{"ingressRate":null,"egressRate":1}"#,
        ] {
            assert!(read(text).unwrap().is_some(), "{text}");
        }
        for text in [
            "{}",
            r#"{"com.example.note":"x"}"#,
            r#"{"ingressRate":null}"#,
        ] {
            assert_eq!(read(text), Ok(None), "{text}");
        }
        for text in [
            r#"{"ingressRate":0}"#,
            r#"{"ingressRate":1,"ingressBurst":0}"#,
            r#"{"egressRate":0}"#,
            r#"{"egressRate":1,"egressBurst":0}"#,
            r#"{"ingressBurst":1}"#,
            r#"{"egressBurst":1}"#,
            r#"{"ingressRate":1,"egressBurst":1}"#,
            r#"{"ingressRate":-1}"#,
            r#"{"ingressRate":1.5}"#,
            r#"{"ingressRate":"1"}"#,
            r#"{"ingressRate":18446744073709551616}"#,
            r#"{"ingresRate":1}"#,
            r#"{"ingressRate":1,"latency":1}"#,
        ] {
            read(text).expect_err(text);
        }
    }

    // clause: NPWG-1.3 §4.1.2.1.8.2 default bursts
    #[test]
    fn the_default_burst_is_a_tenth_of_a_second() {
        let table = [
            (1_u64, LEAST_BURST),
            (1_000_000, LEAST_BURST),
            (1_000_000_000, 100_000_000),
            (100_000_000_000, MOST_BURST),
        ];
        for (rate, burst) in table {
            let bandwidth = read(&format!("{{\"egressRate\":{rate}}}")).unwrap();
            assert_eq!(
                serde_json::to_string(&bandwidth).unwrap(),
                format!(r#"{{"egressRate":{rate},"egressBurst":{burst}}}"#)
            );
        }
    }
}
