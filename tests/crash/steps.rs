//! The steps of a run: the system calls at which a fault can make a difference.

use std::fmt;

use crate::table::syscalls::{self, CHANGING, FALLIBLE, Syscalls};

/// One step of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    syscall: String,
    nth: usize,
    /// The call as strace recorded it.
    text: String,
}

impl Step {
    /// The option of strace that records every possible step.
    pub(crate) fn trace() -> String {
        let names = [CHANGING.concat(), FALLIBLE.concat()].concat();
        let names: Vec<String> = names.iter().map(|name| format!("?{name}")).collect();
        format!("trace={}", names.join(","))
    }

    /// The steps of a run by its record.
    pub(crate) fn all(record: &str) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for line in record.lines() {
            let Some((syscall, _)) = line.split_once('(') else {
                continue;
            };
            let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            if !syscall.bytes().all(|byte| is_name(byte) || byte == b'_') {
                continue;
            }
            let earlier = steps.iter().filter(|step| step.syscall == syscall);
            steps.push(Step {
                syscall: syscall.to_owned(),
                nth: earlier.count() + 1,
                text: line.to_owned(),
            });
        }
        steps
    }

    /// Whether the step is one of many alike that read or write the program, piece by piece.
    fn is_piece(&self) -> bool {
        let is_of_program = self.text.contains("/cni-bin/") || self.text.contains("/jackfield>");
        is_of_program && matches!(self.syscall.as_str(), "read" | "write") && self.nth % 50 != 1
    }

    /// Whether the step changes something outside of the process.
    pub(crate) fn changes(&self) -> bool {
        !self.is_piece() && syscalls::changes(&self.syscall, &self.text)
    }

    /// Whether the step is one of these system calls.
    pub(crate) fn is_of(&self, syscalls: Syscalls) -> bool {
        !self.is_piece() && syscalls.contain(&self.syscall, &self.text)
    }

    /// The name of the step among all of its run. It does not depend on how often the run had to
    /// wait or to read before.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.syscall, self.nth)
    }

    /// A number for choices that concern the step.
    pub(crate) fn number(&self) -> usize {
        self.nth + self.syscall.len()
    }

    /// The options with which strace injects `what` here. The counters of strace are per system
    /// call.
    pub(crate) fn injection(&self, what: &str) -> [String; 4] {
        let Step { syscall, nth, .. } = self;
        [
            "-e".to_owned(),
            format!("trace={syscall}"),
            "-e".to_owned(),
            format!("inject={syscall}:{what}:when={nth}"),
        ]
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self.text.chars().take(120).collect();
        write!(f, "{} number {}: {text}", self.syscall, self.nth)
    }
}
