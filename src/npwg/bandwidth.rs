//! How fast an attachment may be.

use std::num::NonZeroU64;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::cni::json::same_key;
use crate::cni::{JsonError, RawObject};

/// The value of `bandwidth`: NPWG 1.3 §4.1.2.1.8. One direction at least is limited.
///
/// It is written as the convention of the capability has it, always with bursts: the reference
/// plugin wants one with every rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    ingress: Option<Shape>,
    egress: Option<Shape>,
}

/// The limit of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    rate: NonZeroU64,
    burst: Option<NonZeroU64>,
}

impl Shape {
    /// The smallest burst that is assumed, in bits: 64 KiB, the largest packet there is.
    pub const LEAST_BURST: u64 = 64 * 1024 * 8;

    /// The largest burst that is assumed, in bits: what runtimes give the cluster network.
    pub const MOST_BURST: u64 = i32::MAX as u64;

    /// The rate in bits per second.
    #[must_use]
    pub const fn rate(&self) -> u64 {
        self.rate.get()
    }

    /// The burst in bits: as it was asked for, else a tenth of a second at the full rate, within
    /// [`Self::LEAST_BURST`] and [`Self::MOST_BURST`].
    ///
    /// A bucket that is smaller than a packet drops it, a larger one does not limit short flows.
    #[must_use]
    pub fn burst(&self) -> u64 {
        self.burst.map_or_else(
            || (self.rate() / 10).clamp(Self::LEAST_BURST, Self::MOST_BURST),
            NonZeroU64::get,
        )
    }
}

impl Bandwidth {
    /// What may come into the pod.
    #[must_use]
    pub const fn ingress(&self) -> Option<Shape> {
        self.ingress
    }

    /// What may leave the pod.
    #[must_use]
    pub const fn egress(&self) -> Option<Shape> {
        self.egress
    }

    /// Reads the value.
    ///
    /// # Errors
    ///
    /// [`BandwidthError`] when it limits nothing, holds a key that is not defined, a value that is
    /// no integer above zero, or a burst without its rate.
    pub(crate) fn read(object: &RawObject) -> Result<Self, BandwidthError> {
        const KEYS: [&str; 4] = ["ingressRate", "ingressBurst", "egressRate", "egressBurst"];
        for (key, _) in object.iter() {
            // A key with a period is somebody's own (§4.1.2.1).
            if !key.contains('.') && !KEYS.iter().any(|known| same_key(key, known)) {
                return Err(BandwidthError::UnknownKey(key.to_owned()));
            }
        }
        let shape = |rate: &'static str, burst: &'static str| match (
            object.read(rate)?,
            object.read(burst)?,
        ) {
            (Some(rate), burst) => Ok(Some(Shape { rate, burst })),
            (None, None) => Ok(None),
            (None, Some(NonZeroU64 { .. })) => Err(BandwidthError::BurstAlone { burst, rate }),
        };
        let bandwidth = Self {
            ingress: shape("ingressRate", "ingressBurst")?,
            egress: shape("egressRate", "egressBurst")?,
        };
        if bandwidth.ingress.is_none() && bandwidth.egress.is_none() {
            return Err(BandwidthError::Empty);
        }
        Ok(bandwidth)
    }
}

impl Serialize for Bandwidth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (shape, rate, burst) in [
            (self.ingress, "ingressRate", "ingressBurst"),
            (self.egress, "egressRate", "egressBurst"),
        ] {
            if let Some(shape) = shape {
                map.serialize_entry(rate, &shape.rate())?;
                map.serialize_entry(burst, &shape.burst())?;
            }
        }
        map.end()
    }
}

/// Why a `bandwidth` is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BandwidthError {
    /// A value is no integer above zero.
    #[error("{0}; give bits as an integer above zero")]
    Json(#[from] JsonError),
    /// A key that the specification does not define.
    #[error("{0:?} is not known; use ingressRate, ingressBurst, egressRate, egressBurst")]
    UnknownKey(String),
    /// A burst without a rate.
    #[error("{burst} needs {rate}; give both")]
    BurstAlone {
        /// The key that is there.
        burst: &'static str,
        /// The key that is missing.
        rate: &'static str,
    },
    /// Nothing is limited.
    #[error("it limits nothing; give ingressRate or egressRate")]
    Empty,
}

#[cfg(test)]
mod tests {
    use super::*;

    // clause: NPWG-1.3 §4.1.2.1.8 valid: one element at least
    // clause: NPWG-1.3 §4.1.2.1.8 rates: not zero
    // clause: NPWG-1.3 §4.1.2.1.8 bursts: not zero, with their rates
    #[test]
    fn a_bandwidth_limits_something() {
        let table = [
            (
                r#"{"ingressRate":2048,"ingressBurst":300,"egressRate":8000,"egressBurst":200}"#,
                true,
            ),
            (r#"{"ingressRate":2048}"#, true),
            (r#"{"egressRate":2048,"egressBurst":1}"#, true),
            (r#"{"egressRate":2048,"com.example.note":"x"}"#, true),
            (r#"{"ingressRate":null,"egressRate":1}"#, true),
            ("{}", false),
            (r#"{"com.example.note":"x"}"#, false),
            (r#"{"ingressRate":null}"#, false),
            (r#"{"ingressRate":0}"#, false),
            (r#"{"ingressRate":1,"ingressBurst":0}"#, false),
            (r#"{"egressRate":0}"#, false),
            (r#"{"egressRate":1,"egressBurst":0}"#, false),
            (r#"{"ingressBurst":1}"#, false),
            (r#"{"egressBurst":1}"#, false),
            (r#"{"ingressRate":1,"egressBurst":1}"#, false),
            (r#"{"ingressRate":-1}"#, false),
            (r#"{"ingressRate":1.5}"#, false),
            (r#"{"ingressRate":"1"}"#, false),
            (r#"{"ingressRate":18446744073709551616}"#, false),
            (r#"{"ingresRate":1}"#, false),
            (r#"{"ingressRate":1,"latency":1}"#, false),
        ];
        for (text, valid) in table {
            let object = RawObject::parse(text.as_bytes()).unwrap();
            assert_eq!(Bandwidth::read(&object).is_ok(), valid, "{text}");
        }
    }

    // clause: NPWG-1.3 §4.1.2.1.8.2 default bursts
    #[test]
    fn a_burst_that_is_not_given_is_a_tenth_of_a_second() {
        let table = [
            (1_u64, Shape::LEAST_BURST),
            (1_000_000, Shape::LEAST_BURST),
            (1_000_000_000, 100_000_000),
            (100_000_000_000, Shape::MOST_BURST),
        ];
        for (rate, burst) in table {
            let object = RawObject::parse(format!("{{\"egressRate\":{rate}}}").as_bytes()).unwrap();
            assert_eq!(
                serde_json::to_string(&Bandwidth::read(&object).unwrap()).unwrap(),
                format!(r#"{{"egressRate":{rate},"egressBurst":{burst}}}"#)
            );
        }
    }
}
