//! Why a publication lacks something, in words.

use super::{MAX_EVENTS, MAX_STATUS, Omission};
use crate::diagnostic::Problem;

impl Problem for Omission {
    fn words(&self) -> String {
        match self {
            Self::LongStatus(length) => format!(
                "network-status is not written: it has {length} bytes; {MAX_STATUS} are allowed"
            ),
            Self::RefusedStatus(source) => {
                format!("network-status is not written: {}", source.words())
            }
            Self::Events(count) => {
                format!("{count} more events are left out; at most {MAX_EVENTS} are written")
            }
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::RefusedStatus(source) => source.remedy(),
            Self::LongStatus(_) | Self::Events(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_omission_says_what_is_missing_and_why() {
        for (omission, words) in [
            (
                Omission::LongStatus(200_000),
                "network-status is not written: it has 200000 bytes; 196608 are allowed",
            ),
            (
                Omission::Events(7),
                "7 more events are left out; at most 32 are written",
            ),
        ] {
            assert_eq!(omission.words(), words);
        }
    }
}
