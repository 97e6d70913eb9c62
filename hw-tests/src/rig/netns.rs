//! Named network namespaces.

use crate::case::Stop;
use crate::rig::{CommandError, command};

/// A network namespace, removed when dropped.
#[derive(Debug)]
pub(crate) struct Netns {
    name: &'static str,
}

impl Netns {
    pub(crate) fn add(name: &'static str) -> Result<Self, Stop> {
        command("ip", &["netns", "add", name])?;
        Ok(Self { name })
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// Moves an interface of the host into it, under another name.
    pub(crate) fn take<'a>(
        &'a self,
        host_name: &'a str,
        name: &'a str,
    ) -> Result<MovedInterface<'a>, CommandError> {
        let taken = MovedInterface {
            netns: self,
            host_name,
            name,
        };
        let to = ["netns", self.name, "name", name];
        command(
            "ip",
            &[&["link", "set", "dev", host_name], to.as_slice()].concat(),
        )?;
        Ok(taken)
    }

    /// Runs a program in it, with its own view of sysfs.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String, CommandError> {
        let mut all = vec!["netns", "exec", self.name];
        all.extend(arguments);
        command("ip", &all)
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        // The check of traces after each case finds what stays.
        let _ = command("ip", &["netns", "del", self.name]);
    }
}

/// An interface of the host in a network namespace; back under its own name when dropped.
#[derive(Debug)]
pub(crate) struct MovedInterface<'a> {
    netns: &'a Netns,
    host_name: &'a str,
    name: &'a str,
}

impl Drop for MovedInterface<'_> {
    fn drop(&mut self) {
        let from = ["-netns", self.netns.name, "link", "set", "dev", self.name];
        let to = ["netns", "1", "name", self.host_name];
        // The check of traces after each case finds what stays.
        let _ = command("ip", &[from.as_slice(), to.as_slice()].concat());
    }
}
