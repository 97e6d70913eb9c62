//! The words of notes.

use std::fmt;

use super::Note;
use crate::diagnostic::{self, Problem};

impl Problem for Note {
    fn words(&self) -> String {
        match self {
            Note::Event(message) | Note::DamagedRecord(message) | Note::Uncompared(message) => {
                message.clone()
            }
            Note::UnknownFunction(error) => error.to_string(),
            Note::Unpublished(error) => error.to_string(),
            Note::NoCheck { place, answer } => format!("{place}: {answer}"),
            Note::Tolerated(failure) => failure.to_string(),
            Note::DelOfDamagedRecord {
                container,
                file,
                cause,
            } => format!(
                "the record of container {container} was damaged ({cause}) and is now {file}; \
                 this DEL detaches what it can find without the record"
            ),
            Note::NotOnRecord(failure) => {
                format!("nothing is on record, and detaching without a record failed: {failure}")
            }
            Note::MultusCache(damage) => format!("cache of Multus: {damage}"),
            Note::AgentAway(error) => format!("{error}; pods that need it wait"),
            Note::AgentAwayBriefly(error) => {
                format!("{error}; it answered within the last minute")
            }
            Note::Unrestored { device, line } => format!("{device}: {line}"),
            Note::DetachedByCurrentConfiguration(place) => format!(
                "{place}: the plugins refused the configuration on record, and the network's \
                 current configuration detached it"
            ),
            Note::GivenUp(debt) => format!("{debt}; given up, since its ADD failed too"),
            Note::OwedDone(container) => format!("owed: container {container}: detached now"),
            Note::OwedAgain(container, failure) => {
                format!("owed: container {container}: {failure}")
            }
            Note::NoRetry(container, cause) => {
                format!("owed: container {container}: cannot start the retry: {cause}")
            }
            Note::NoValidAttachments => {
                "the runtime names no list of valid attachments, so GC collects nothing".to_owned()
            }
            Note::GcOutOfTime { left } => {
                format!("GC had no time for {left} containers; the next GC goes on with them")
            }
            Note::UnrecordedContainer(container) => format!(
                "container {container} is attached and not on record, so GC collects no network: \
                 it might free what that container has"
            ),
            Note::TooManyConfigurations { left_out, limit } => format!(
                "GC leaves out {left_out} networks on record: together the configurations have \
                 more than {limit} bytes"
            ),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Note::DamagedRecord(_) => {
                "its sandbox may still be attached: delete the pod, whose DEL detaches what it \
                 can find"
            }
            Note::UnknownFunction(_) => "Jackfield cannot restore its functions",
            Note::GivenUp(_) => "free by hand any address that its IPAM plugin may have given",
            Note::TooManyConfigurations { .. } => "make them smaller",
            _ => return None,
        };
        Some(remedy.to_owned())
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&diagnostic::line(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Failure;

    #[test]
    fn notes_say_what_happened_and_what_to_do() {
        let container = || "c1".parse().unwrap();
        for (note, words) in [
            (
                Note::GivenUp(Failure::NotReady("/ready".into())),
                "given up, since its ADD failed too; free by hand any address",
            ),
            (
                Note::DamagedRecord("/a".to_owned()),
                "/a; its sandbox may still be attached: delete the pod",
            ),
            (
                Note::OwedDone(container()),
                "owed: container c1: detached now",
            ),
            (Note::GcOutOfTime { left: 3 }, "no time for 3 containers"),
            (
                Note::UnrecordedContainer(container()),
                "container c1 is attached and not on record, so GC collects no network",
            ),
        ] {
            let line = note.to_string();
            assert!(line.contains(words), "{line}");
        }
    }
}
