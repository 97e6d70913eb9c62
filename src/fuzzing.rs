//! Fuzz targets for the parsers that read input from other programs and from users.
//!
//! `scripts/fuzz` runs the targets with libFuzzer. A unit test runs each target on its corpus in
//! `tests/fuzz/corpus`. A second test finds the parsers in the source code and compares them with
//! the list in `parsers.rs`, so every new parser needs a target or a reason to have none.
//!
//! A target checks more than the absence of panics. If a parser accepts an input, the parsed value
//! must stay the same when it is written and parsed again. The error for a refused input must be
//! one line of limited length.

mod cni;
mod files;
mod npwg;
#[cfg(test)]
mod parsers;
mod plan;
#[cfg(test)]
mod tests;
mod text;
mod wire;

use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cni::{Error, Version};

/// A fuzz target: a function that calls one or more parsers with arbitrary bytes.
#[derive(Debug)]
pub struct Target {
    /// The name of the target and of its corpus.
    pub name: &'static str,
    /// The longest input that the fuzzer tries, in bytes.
    pub longest: usize,
    /// Runs the target. Panics if a check fails. Returns `None` if the target stopped early, for
    /// example because a parser refused the input.
    pub run: fn(&[u8]) -> Option<()>,
}

const fn target(name: &'static str, longest: usize, run: fn(&[u8]) -> Option<()>) -> Target {
    Target { name, longest, run }
}

/// All targets.
pub const TARGETS: &[Target] = &[
    target("json", 1 << 16, text::json),
    target("network-config", 1 << 16, cni::network_config),
    target("plugin-answer", 1 << 16, cni::plugin_answer),
    target("environment", 1 << 14, text::environment),
    target("words", 1 << 10, text::words),
    target("annotation", 1 << 18, npwg::annotation),
    target("plan", 1 << 16, plan::selected),
    target("network-status", 1 << 16, npwg::network_status),
    target("objects", 1 << 16, npwg::objects),
    target("manifests", 1 << 16, npwg::manifests),
    target("node-config", 1 << 16, cni::node_config),
    target("frames", 1 << 16, wire::frames),
    target("owed-writes", 1 << 16, files::owed_writes),
    target("journal", 1 << 16, files::journal),
    target("multus-cache", 1 << 16, files::multus_cache),
    target("kubelet-files", 1 << 16, files::kubelet_files),
    target("pod-resources", 1 << 14, wire::pod_resources),
    target("netlink", 1 << 15, wire::netlink),
    target("devlink", 1 << 13, wire::devlink),
    target("sysfs", 1 << 13, wire::sysfs),
    target("device-info", 1 << 16, files::device_info),
    target("pci-names", 1 << 13, files::pci_names),
    target("installation", 1 << 16, files::installation),
];

/// Puts a message about an input into a CNI error. Checks that the message in the error's JSON has
/// a limited length and no control characters.
fn said(what: &dyn Display) {
    const LONGEST: usize = (16 << 10) + 100;
    let document = Error::new(100, what.to_string()).to_json(Version::LATEST);
    let msg = Error::parse(document.as_bytes()).map_or_else(|| "\n".to_owned(), |it| it.msg);
    assert!(msg.len() <= LONGEST, "{} bytes", msg.len());
    assert!(!msg.contains(char::is_control), "{msg:?}");
}

/// Returns the value that a parser accepted. If the parser refused the input, checks its error
/// message.
fn accepted<T>(outcome: Result<T, impl Display>) -> Option<T> {
    outcome.inspect_err(|error| said(error)).ok()
}

/// Checks that the JSON of a value stays the same when it is parsed and written again.
fn settles<T: Serialize + DeserializeOwned>(value: &T) {
    let written = serde_json::to_string(value).unwrap_or_default();
    let again: Option<T> = serde_json::from_str(&written).ok();
    assert!(again.is_some(), "{written}");
    assert_eq!(serde_json::to_string(&again).ok(), Some(written));
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// Splits an input at its first zero byte into two inputs.
fn parts(bytes: &[u8]) -> [&[u8]; 2] {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

/// Passes every line of an input to `write`, and returns the bytes that `write` appended.
fn of_lines(bytes: &[u8], write: fn(&mut Vec<u8>, &[u8])) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() * 2);
    bytes
        .split(|byte| *byte == b'\n')
        .for_each(|line| write(&mut out, line));
    out
}
