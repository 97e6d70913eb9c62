//! The environment of a delegate.

use std::ffi::OsString;
use std::process::Command;

use super::call::DelegateCall;
use super::depth::{DEPTH_VARIABLE, Depth};

/// The `PATH` of delegates if the runtime's environment has no `PATH`. Plugins need a `PATH` to run
/// tools such as `iptables`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The part of the environment that all delegates share.
///
/// Delegates inherit only the variables that [`shared`] lists. With containerd's `LD_LIBRARY_PATH`,
/// a delegate would load containerd's libraries. Other variables may contain the runtime's
/// credentials.
#[derive(Debug)]
pub(super) struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    /// Selects the variables for delegates. `vars` is the environment of this process. Adds `PATH`
    /// if it is missing. Adds [`DEPTH_VARIABLE`] with the value of `depth`.
    pub(super) fn new(vars: impl Iterator<Item = (OsString, OsString)>, depth: Depth) -> Self {
        let mut inherited: Vec<_> = vars
            .filter(|(name, _)| name.to_str().is_some_and(shared))
            .collect();
        if !inherited.iter().any(|(name, _)| name == "PATH") {
            inherited.push(("PATH".into(), DEFAULT_PATH.into()));
        }
        inherited.push((DEPTH_VARIABLE.into(), depth.to_value().into()));
        Self(inherited)
    }

    /// Returns the command for one call: CNI 1.1.0 §2 "Parameters".
    ///
    /// The program is an absolute path. For a bare name, the standard library would search the
    /// delegate's `PATH`, and would call `fork` instead of `posix_spawn`.
    pub(super) fn command(&self, call: &DelegateCall<'_>) -> Command {
        let mut command = Command::new(call.binary.path());
        command
            .env_clear()
            .envs(self.0.iter().map(|(name, value)| (name, value)))
            .env("CNI_COMMAND", call.verb.as_str())
            .env("CNI_PATH", call.cni_path);
        if let Some(attachment) = call.attachment {
            command
                .env("CNI_CONTAINERID", attachment.container_id.as_str())
                .env("CNI_NETNS", attachment.netns.unwrap_or_default())
                .env("CNI_IFNAME", attachment.ifname.as_str())
                .env("CNI_ARGS", attachment.args.to_string());
        }
        command
    }
}

/// Whether delegates inherit a variable.
fn shared(name: &str) -> bool {
    match name {
        // These variables are the parameters of the runtime's call of Jackfield.
        // `Environment::command` sets the parameters of the delegate's call.
        "CNI_COMMAND" | "CNI_CONTAINERID" | "CNI_NETNS" | "CNI_IFNAME" | "CNI_ARGS"
        | "CNI_PATH" => false,
        "PATH" | "HOME" | "LANG" | "LANGUAGE" | "TZ" => true,
        "TRACEPARENT" | "TRACESTATE" | "BAGGAGE" => true,
        _ => ["CNI_", "LC_", "OTEL_"]
            .iter()
            .any(|prefix| name.starts_with(prefix)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(vars: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        let vars = vars.iter().map(|(name, value)| (name.into(), value.into()));
        Environment::new(vars, Depth::parse(None).unwrap()).0
    }

    // clause: CNI-1.1.0 §4 environment: a delegate gets a newly built environment
    #[test]
    fn delegates_inherit_only_selected_variables() {
        let kept = kept(&[
            ("LD_LIBRARY_PATH", "/opt/containerd/lib:"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("CNI_CONTAINERID", "another"),
            ("CNI_COMMAND", "DEL"),
            ("CNI_NETNS_OVERRIDE", "1"),
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("TRACEPARENT", "00-1-2-01"),
            ("JACKFIELD_DEPTH", "7"),
        ]);
        let names: Vec<_> = kept.iter().filter_map(|(name, _)| name.to_str()).collect();
        assert_eq!(
            names,
            [
                "CNI_NETNS_OVERRIDE",
                "PATH",
                "LC_ALL",
                "TRACEPARENT",
                "JACKFIELD_DEPTH"
            ]
        );
        assert!(kept.contains(&("JACKFIELD_DEPTH".into(), "1".into())));
    }

    #[test]
    fn delegates_get_a_default_path_if_the_runtime_has_none() {
        assert!(kept(&[]).contains(&("PATH".into(), DEFAULT_PATH.into())));
    }
}
