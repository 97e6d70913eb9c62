//! Network namespaces by name.

use crate::case::Stop;
use crate::rig::{CommandError, command};

/// A network namespace, gone when dropped.
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

    /// Takes an interface of the host, under another name.
    pub(crate) fn take<'a>(
        &'a self,
        host_name: &'a str,
        name: &'a str,
    ) -> Result<Taken<'a>, CommandError> {
        let taken = Taken {
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

    /// Runs a program in it, with a sysfs of its own view.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String, CommandError> {
        let mut all = vec!["netns", "exec", self.name];
        all.extend(arguments);
        command("ip", &all)
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        // What stays is found by the traces that every case is checked for.
        let _ = command("ip", &["netns", "del", self.name]);
    }
}

/// An interface of the host in a network namespace; back under its own name when dropped.
#[derive(Debug)]
pub(crate) struct Taken<'a> {
    netns: &'a Netns,
    host_name: &'a str,
    name: &'a str,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let from = ["-netns", self.netns.name, "link", "set", "dev", self.name];
        let to = ["netns", "1", "name", self.host_name];
        // What stays is found by the traces that every case is checked for.
        let _ = command("ip", &[from.as_slice(), to.as_slice()].concat());
    }
}
