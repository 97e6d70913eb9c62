//! Why a network has no configuration, in words.

use super::{LONGEST_RESOURCE, NetworkError};
use crate::diagnostic::Problem;
use crate::npwg::RESOURCE_NAME_ANNOTATION;

impl Problem for NetworkError {
    fn words(&self) -> String {
        match self {
            Self::Lookup(line) => line.clone(),
            Self::NotLookedUp(object) => {
                format!("NetworkAttachmentDefinition {object} was not looked up")
            }
            Self::Unknown { conf_dir } => format!(
                "no definition, no configuration of this name in confDir {} and no absolute path",
                conf_dir.display()
            ),
            Self::LongResource { object, length } => format!(
                "NetworkAttachmentDefinition {object}: its annotation \
                 {RESOURCE_NAME_ANNOTATION} has {length} bytes; {LONGEST_RESOURCE} are allowed"
            ),
            Self::NoConfig { object, conf_dir } => format!(
                "NetworkAttachmentDefinition {object} has no spec.config and confDir {} has no \
                 configuration named {}",
                conf_dir.display(),
                object.name()
            ),
            Self::OnDisk(source) => source.words(),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Lookup(_) | Self::NotLookedUp(_) => return None,
            Self::Unknown { .. } => "correct the name, or create what it names",
            Self::LongResource { .. } => "write the resource's name",
            Self::NoConfig { .. } => "write one of the two",
            Self::OnDisk(source) => return source.remedy(),
        };
        Some(remedy.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_names_what_was_looked_up_and_what_to_do() {
        let object = || "a/n".parse().unwrap();
        let conf_dir = || "/c".into();
        for (error, line) in [
            (NetworkError::Lookup("no a/n".into()), "no a/n"),
            (
                NetworkError::NotLookedUp(object()),
                "NetworkAttachmentDefinition a/n was not looked up",
            ),
            (
                NetworkError::Unknown {
                    conf_dir: conf_dir(),
                },
                "no definition, no configuration of this name in confDir /c and no absolute path; \
                 correct the name, or create what it names",
            ),
            (
                NetworkError::LongResource {
                    object: object(),
                    length: 300,
                },
                "NetworkAttachmentDefinition a/n: its annotation k8s.v1.cni.cncf.io/resourceName \
                 has 300 bytes; 253 are allowed; write the resource's name",
            ),
            (
                NetworkError::NoConfig {
                    object: object(),
                    conf_dir: conf_dir(),
                },
                "NetworkAttachmentDefinition a/n has no spec.config and confDir /c has no \
                 configuration named n; write one of the two",
            ),
        ] {
            assert_eq!(error.to_string(), line);
        }
    }
}
