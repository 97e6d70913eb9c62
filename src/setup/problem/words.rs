//! The words for what is wrong with the runtime's directory and with what was installed.

use super::{ConfFileProblem, Drift, NoNetwork};
use crate::diagnostic::Problem;
use crate::setup::NAME;
use crate::setup::binary::MODE;

/// What Cilium appends to the name of a configuration that it renames.
const CILIUM: &str = ".cilium_bak";

impl Problem for ConfFileProblem {
    fn words(&self) -> String {
        match self {
            ConfFileProblem::NotRegular => "it is not a regular file".to_owned(),
            ConfFileProblem::Unreadable(cause) => cause.to_string(),
            ConfFileProblem::Json(cause) => cause.to_string(),
            ConfFileProblem::Network(cause) => cause.to_string(),
            ConfFileProblem::WithinChain => {
                format!("its chain has {NAME} behind another plugin, so {NAME} would call itself")
            }
            ConfFileProblem::NoName => "it has no name".to_owned(),
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            ConfFileProblem::NotRegular => Some("remove it".to_owned()),
            _ => None,
        }
    }
}

impl Problem for NoNetwork {
    fn words(&self) -> String {
        match self {
            NoNetwork::Missing => "there is none".to_owned(),
            NoNetwork::BrokenFirst { name, cause } => {
                format!(
                    "{name} comes first and is not a configuration: {}",
                    cause.words()
                )
            }
            NoNetwork::NamedNotAFile(file) => {
                format!(
                    "clusterNetwork names {}, which is not a file",
                    file.display()
                )
            }
            NoNetwork::NamedUnreadable(cause) => format!("clusterNetwork names it: {cause}"),
            NoNetwork::NamedInvalid { file, cause } => format!(
                "clusterNetwork names {}, which is not a configuration: {cause}",
                file.display()
            ),
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            NoNetwork::BrokenFirst { cause, .. } => cause.remedy(),
            _ => None,
        }
    }
}

impl Problem for Drift {
    fn words(&self) -> String {
        match self {
            Drift::Renamed { file, to } => format!("{} was renamed to {to}", file.display()),
            Drift::Damaged { file, cause } => format!(
                "{} was changed and is not a configuration: {}",
                file.display(),
                cause.words()
            ),
            Drift::Overwritten { file } => {
                format!(
                    "{} holds the configuration of another program",
                    file.display()
                )
            }
            Drift::Missing { file } => format!("{} is missing", file.display()),
            Drift::NotFirst { first, ours } => {
                format!("{} comes before {ours}", first.display())
            }
            Drift::OtherNetwork { wanted, current } => format!(
                "the cluster network is {} and no longer {}",
                wanted.as_deref().unwrap_or("another one"),
                current.as_deref().unwrap_or("the configured one"),
            ),
            Drift::OtherContent { file } => {
                format!("{} differs from what is to be installed", file.display())
            }
            Drift::BinaryReplaced { path } => format!("{} was replaced", path.display()),
            Drift::BinaryUnreadable { path, cause } => format!("{}: {cause}", path.display()),
            Drift::BinaryMode { path, mode, owner } => format!(
                "{}: its mode is {mode:o} and its owner {owner}, not {MODE:o} and 0",
                path.display()
            ),
            Drift::NoManifest => "the manifest of the installation is missing".to_owned(),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Drift::Renamed { to, .. } if to.ends_with(CILIUM) => {
                "set cni.exclusive to false in Cilium's values"
            }
            Drift::NotFirst { .. } => {
                "rename that file, or let the runtime read a directory of its own"
            }
            Drift::OtherNetwork { .. } => "let only one network configure this directory",
            _ => "find the program that changes it, and stop it",
        };
        Some(remedy.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::diagnostic::line;

    fn assert_lines(cases: &[(&dyn Problem, &str)]) {
        for (problem, expected) in cases {
            assert_eq!(line(*problem), *expected);
        }
    }

    #[test]
    fn files_and_networks_have_their_words() {
        let not_regular = || Arc::new(ConfFileProblem::NotRegular);
        assert_lines(&[
            (&*not_regular(), "it is not a regular file; remove it"),
            (
                &ConfFileProblem::WithinChain,
                "its chain has jackfield behind another plugin, so jackfield would call itself",
            ),
            (&ConfFileProblem::NoName, "it has no name"),
            (&NoNetwork::Missing, "there is none"),
            (
                &NoNetwork::BrokenFirst {
                    name: "a".to_owned(),
                    cause: not_regular(),
                },
                "a comes first and is not a configuration: it is not a regular file; remove it",
            ),
            (
                &NoNetwork::NamedNotAFile("/a".into()),
                "clusterNetwork names /a, which is not a file",
            ),
        ]);
    }

    #[test]
    fn drift_has_its_words_and_a_remedy() {
        let stop = "find the program that changes it, and stop it";
        let renamed = |to: &str| Drift::Renamed {
            file: "/a".into(),
            to: to.to_owned(),
        };
        assert_lines(&[
            (
                &renamed("a.cilium_bak"),
                "/a was renamed to a.cilium_bak; set cni.exclusive to false in Cilium's values",
            ),
            (
                &renamed("a.old"),
                &format!("/a was renamed to a.old; {stop}"),
            ),
            (
                &Drift::Damaged {
                    file: "/a".into(),
                    cause: Arc::new(ConfFileProblem::NoName),
                },
                &format!("/a was changed and is not a configuration: it has no name; {stop}"),
            ),
            (
                &Drift::Missing { file: "/a".into() },
                &format!("/a is missing; {stop}"),
            ),
            (
                &Drift::NotFirst {
                    first: "/a".into(),
                    ours: "b".to_owned(),
                },
                "/a comes before b; rename that file, or let the runtime read a directory of its \
                 own",
            ),
            (
                &Drift::OtherNetwork {
                    wanted: Some("/a".to_owned()),
                    current: Some("/b".to_owned()),
                },
                "the cluster network is /a and no longer /b; let only one network configure this \
                 directory",
            ),
            (
                &Drift::BinaryMode {
                    path: "/a".into(),
                    mode: 0o777,
                    owner: 7,
                },
                &format!("/a: its mode is 777 and its owner 7, not 755 and 0; {stop}"),
            ),
        ]);
    }
}
