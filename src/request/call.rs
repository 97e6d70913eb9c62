//! The environment of one call (CNI 1.1.0 §2 Parameters).

use std::path::PathBuf;

use crate::cni::{self, ArgsError, CniArgs, ContainerId, InterfaceName, NameError, Verb, Version};

/// The variables that a verb requires.
const fn required(verb: Verb) -> &'static [&'static str] {
    match verb {
        Verb::Add | Verb::Check => &["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"],
        Verb::Del => &["CNI_CONTAINERID", "CNI_IFNAME", "CNI_PATH"],
        Verb::Gc => &["CNI_PATH"],
        Verb::Status | Verb::Version => &[],
    }
}

/// The environment of one call. Only [`Call::attachment`] checks the container and the interface.
#[derive(Debug, Clone)]
pub struct Call {
    /// `CNI_COMMAND`.
    pub verb: Verb,
    /// `CNI_CONTAINERID`, unchecked; see [`Call::attachment`].
    container_id: String,
    /// `CNI_IFNAME`, unchecked; see [`Call::attachment`].
    ifname: String,
    /// `CNI_NETNS`; `None` if missing or empty, as in a DEL after the netns is gone.
    pub netns: Option<PathBuf>,
    /// `CNI_ARGS`.
    pub args: CniArgs,
    /// `CNI_PATH`, a list of directories. Delegates get `binDir` followed by this list.
    pub cni_path: String,
    /// `CNI_NETNS_OVERRIDE`: whether `CNI_NETNS` may be the plugin's own network namespace.
    pub netns_override: bool,
}

impl Call {
    /// Reads the environment through `variable`.
    ///
    /// # Errors
    /// Code 4 for an unknown verb, and for missing variables. The error names every missing
    /// variable. Also code 4 for invalid `CNI_ARGS`, except in a DEL.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Call, EnvironmentError> {
        let text = variable("CNI_COMMAND").unwrap_or_default();
        let verb = Verb::named(&text).ok_or(EnvironmentError::Verb(text))?;
        let present = |name: &str| variable(name).filter(|value| !value.is_empty());
        let required = required(verb).iter().copied();
        let missing: Vec<_> = required.filter(|name| present(name).is_none()).collect();
        if !missing.is_empty() {
            return Err(EnvironmentError::Missing(missing));
        }
        Ok(Call {
            verb,
            container_id: present("CNI_CONTAINERID").unwrap_or_default(),
            ifname: present("CNI_IFNAME").unwrap_or_default(),
            netns: present("CNI_NETNS").map(PathBuf::from),
            args: match CniArgs::parse(&present("CNI_ARGS").unwrap_or_default()) {
                // A DEL does not need `CNI_ARGS`, so it treats invalid `CNI_ARGS` as empty.
                Err(_) if verb == Verb::Del => CniArgs::default(),
                args => args?,
            },
            cni_path: present("CNI_PATH").unwrap_or_default(),
            netns_override: matches!(
                variable("CNI_NETNS_OVERRIDE").as_deref(),
                Some("1" | "true" | "TRUE" | "True")
            ),
        })
    }

    /// Makes a call from `variables` instead of the environment. Commands such as
    /// `jackfield explain` use this function, because no container runtime sets their environment.
    ///
    /// # Errors
    /// As [`Call::read`].
    pub fn of(variables: &[(&str, &str)]) -> Result<Call, EnvironmentError> {
        Call::read(|wanted| {
            let variable = variables.iter().find(|(name, _)| *name == wanted);
            variable.map(|(_, value)| (*value).to_owned())
        })
    }

    /// The container ID and the interface name of the call, which identify the sandbox (CNI 1.1.0
    /// §3).
    ///
    /// # Errors
    /// Code 4 when one of the two is not a valid name.
    pub fn attachment(&self) -> Result<(ContainerId, InterfaceName), EnvironmentError> {
        let error = |variable| move |source| EnvironmentError::Name { variable, source };
        let container = self.container_id.parse();
        let container = container.map_err(error("CNI_CONTAINERID"))?;
        let ifname = self.ifname.parse().map_err(error("CNI_IFNAME"))?;
        Ok((container, ifname))
    }

    pub(super) fn require_version(&self, version: Version) -> Result<(), EnvironmentError> {
        let has_verb = match self.verb {
            Verb::Check => version.has_check(),
            Verb::Gc => version.has_gc(),
            Verb::Status => version.has_status(),
            Verb::Add | Verb::Del | Verb::Version => true,
        };
        let verb = self.verb;
        let too_old = EnvironmentError::TooOld { verb, version };
        has_verb.then_some(()).ok_or(too_old)
    }

    /// The directories of `CNI_PATH`, in order.
    pub fn path_dirs(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let dirs = self.cni_path.split(':');
        dirs.filter(|dir| !dir.is_empty()).map(PathBuf::from)
    }
}

/// What is wrong with the environment.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum EnvironmentError {
    /// The verb does not exist.
    #[error("unknown CNI_COMMAND: {0:?}; use ADD, DEL, CHECK, GC, STATUS or VERSION")]
    Verb(String),
    /// Variables that the verb requires are missing or empty.
    #[error("required env variables [{}] missing; the runtime must set them", .0.join(","))]
    Missing(Vec<&'static str>),
    /// A variable does not contain a valid name.
    #[error("invalid {variable}: {source}")]
    Name {
        /// The variable.
        variable: &'static str,
        /// What is wrong.
        source: NameError,
    },
    /// `CNI_ARGS` are not pairs of keys and values.
    #[error("invalid CNI_ARGS: {0}")]
    Args(#[from] ArgsError),
    /// The configuration's version does not have the verb.
    #[error(
        "config version {version} does not allow {verb}; raise cniVersion in the configuration"
    )]
    TooOld {
        /// The verb.
        verb: Verb,
        /// The configuration's version.
        version: Version,
    },
}

impl EnvironmentError {
    /// The CNI code.
    pub fn code(&self) -> u32 {
        match self {
            EnvironmentError::TooOld { .. } => cni::code::INCOMPATIBLE_VERSION,
            _ => cni::code::INVALID_ENVIRONMENT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Call, EnvironmentError> {
        Call::read(|name| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    const FULL: [(&str, &str); 5] = [
        ("CNI_COMMAND", "ADD"),
        ("CNI_CONTAINERID", "c1"),
        ("CNI_NETNS", "/run/netns/a"),
        ("CNI_IFNAME", "eth0"),
        ("CNI_PATH", "/opt/cni/bin:/usr/lib/cni"),
    ];

    // clause: CNI-1.1.0 §2 parameters: CNI_COMMAND names the operation
    #[test]
    fn an_unknown_or_lower_case_verb_is_refused() {
        for verb in ["add", "", "ATTACH", "GET"] {
            let error = read(&[("CNI_COMMAND", verb)]).unwrap_err();
            assert_eq!(error, EnvironmentError::Verb(verb.to_owned()));
            assert_eq!(error.code(), 4);
        }
    }

    // clause: CNI-1.1.0 §5 code 4: the message names every missing variable
    // clause: CNI-1.1.0 §2 environment: ADD requires the container ID, the network namespace and
    // the interface name
    #[test]
    fn every_missing_variable_is_named() {
        let error = read(&[("CNI_COMMAND", "ADD"), ("CNI_PATH", "/x")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "required env variables [CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME] missing; \
             the runtime must set them"
        );
    }

    // clause: CNI-1.1.0 §2 environment: CNI_NETNS is optional for DEL
    #[test]
    fn del_treats_an_empty_netns_as_absent() {
        let call = read(&[
            ("CNI_COMMAND", "DEL"),
            ("CNI_CONTAINERID", "c1"),
            ("CNI_NETNS", ""),
            ("CNI_IFNAME", "eth0"),
            ("CNI_PATH", "/x"),
        ])
        .unwrap();
        assert_eq!(call.netns, None);
    }

    // clause: CNI-1.1.0 §2 environment: STATUS needs no variable of an attachment
    #[test]
    fn status_accepts_missing_and_empty_variables() {
        for extra in [
            &[][..],
            &[
                ("CNI_CONTAINERID", ""),
                ("CNI_IFNAME", ""),
                ("CNI_NETNS", ""),
            ],
        ] {
            let mut pairs = vec![("CNI_COMMAND", "STATUS")];
            pairs.extend_from_slice(extra);
            let call = read(&pairs).unwrap();
            assert!(!call.verb.has_attachment());
        }
    }

    // clause: CNI-1.1.0 §2 container ID: Jackfield refuses an invalid container ID
    // clause: CNI-1.1.0 §2 interface name: Jackfield refuses an invalid interface name
    #[test]
    fn impossible_names_are_refused_with_code_4() {
        for (index, value) in [
            (1, "-c"),
            (1, "a/b"),
            (3, "."),
            (3, "sixteen-bytes-xx"),
            (3, "a:b"),
        ] {
            let mut pairs = FULL;
            pairs[index].1 = value;
            let error = read(&pairs).unwrap().attachment().unwrap_err();
            assert_eq!(error.code(), 4, "{error}");
            assert!(
                matches!(error, EnvironmentError::Name { variable, .. } if variable == pairs[index].0),
                "{error}"
            );
        }
    }

    #[test]
    fn the_search_path_keeps_its_order() {
        let dirs: Vec<_> = read(&FULL).unwrap().path_dirs().collect();
        assert_eq!(
            dirs,
            [PathBuf::from("/opt/cni/bin"), PathBuf::from("/usr/lib/cni")]
        );
    }
}
