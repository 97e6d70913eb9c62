//! Time limits of the verbs: the key `deadlines`.

use std::time::Duration;

use super::node_config::{Keys, NodeConfigError, ValueError};

/// The time limit of each verb, and of one call of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// ADD, including its rollback.
    pub add: Duration,
    /// DEL.
    pub del: Duration,
    /// CHECK.
    pub check: Duration,
    /// GC.
    pub gc: Duration,
    /// STATUS.
    pub status: Duration,
    /// One call of a plugin. After this time, Jackfield kills the plugin and its descendants.
    pub delegate: Duration,
}

/// The longest allowed deadline. No runtime waits that long.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

impl Deadlines {
    /// Reads `deadlines`; each key is optional.
    pub(super) fn read(keys: &Keys<'_>) -> Result<Deadlines, NodeConfigError> {
        let read = |key, default| match keys.read::<String>(key)? {
            None => Ok(Duration::from_secs(default)),
            Some(text) => {
                duration(&text).ok_or_else(|| keys.invalid(key, &text, ValueError::Deadline))
            }
        };
        Ok(Deadlines {
            add: read("add", 100)?,
            del: read("del", 50)?,
            check: read("check", 20)?,
            gc: read("gc", 20)?,
            status: read("status", 2)?,
            delegate: read("delegate", 60)?,
        })
    }
}

fn duration(text: &str) -> Option<Duration> {
    humantime::parse_duration(text)
        .ok()
        .filter(|duration| !duration.is_zero() && *duration <= LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cni::RawObject;

    #[test]
    fn a_duration_needs_a_unit_and_is_at_most_one_day() {
        for (text, millis) in [
            ("500ms", 500),
            ("2s", 2_000),
            ("1m30s", 90_000),
            ("100s", 100_000),
            ("1day", 86_400_000),
        ] {
            assert_eq!(
                duration(text),
                Some(Duration::from_millis(millis)),
                "{text}"
            );
        }
        for text in [
            "",
            "0s",
            "2",
            "-1s",
            "soon",
            "1m 30",
            "1day 1s",
            "500000000000y",
        ] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn an_absent_deadline_keeps_its_default() {
        let read = |wire: &[u8]| {
            let wire = RawObject::parse(wire).unwrap();
            Deadlines::read(&Keys::of(&wire, String::new())).unwrap()
        };
        let deadlines = read(br#"{"Add": "9s", "gc": null}"#);
        assert_eq!(
            deadlines,
            Deadlines {
                add: Duration::from_secs(9),
                ..read(b"{}")
            }
        );
    }
}
