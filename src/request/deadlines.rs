//! How long each verb may take (key `deadlines`).

use std::time::Duration;

use serde::Deserialize;

/// Upper bounds for the verbs and for one call of one plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// ADD, the unwinding included.
    pub add: Duration,
    /// DEL.
    pub del: Duration,
    /// CHECK.
    pub check: Duration,
    /// GC.
    pub gc: Duration,
    /// STATUS.
    pub status: Duration,
    /// One call of one plugin; past it the plugin is ended with all its children.
    pub delegate: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Deadlines {
            add: Duration::from_secs(100),
            del: Duration::from_secs(50),
            check: Duration::from_secs(20),
            gc: Duration::from_secs(20),
            status: Duration::from_secs(2),
            delegate: Duration::from_secs(60),
        }
    }
}

/// The key as it is written: each entry optional, `null` as good as absent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Wire {
    add: Option<String>,
    del: Option<String>,
    check: Option<String>,
    gc: Option<String>,
    status: Option<String>,
    delegate: Option<String>,
}

impl TryFrom<Wire> for Deadlines {
    type Error = DeadlineError;

    fn try_from(wire: Wire) -> Result<Self, Self::Error> {
        let default = Deadlines::default();
        let read = |key, text: Option<String>, default| match text {
            None => Ok(default),
            Some(text) => duration(&text).ok_or(DeadlineError { key, text }),
        };
        Ok(Deadlines {
            add: read("add", wire.add, default.add)?,
            del: read("del", wire.del, default.del)?,
            check: read("check", wire.check, default.check)?,
            gc: read("gc", wire.gc, default.gc)?,
            status: read("status", wire.status, default.status)?,
            delegate: read("delegate", wire.delegate, default.delegate)?,
        })
    }
}

fn duration(text: &str) -> Option<Duration> {
    humantime::parse_duration(text)
        .ok()
        .filter(|duration| !duration.is_zero())
}

/// A deadline that is no duration.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{key}: {text:?} is no duration above zero; write it as 500ms, 2s or 1m30s")]
pub struct DeadlineError {
    key: &'static str,
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_people_write_them() {
        for (text, millis) in [
            ("500ms", 500),
            ("2s", 2_000),
            ("1m30s", 90_000),
            ("100s", 100_000),
        ] {
            assert_eq!(
                duration(text),
                Some(Duration::from_millis(millis)),
                "{text}"
            );
        }
        for text in ["", "0s", "2", "-1s", "soon", "1m 30"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_not_given_keeps_its_default() {
        let wire = Wire {
            add: Some("9s".into()),
            ..Wire::default()
        };
        let deadlines = Deadlines::try_from(wire).unwrap();
        assert_eq!(
            deadlines,
            Deadlines {
                add: Duration::from_secs(9),
                ..Deadlines::default()
            }
        );
    }
}
