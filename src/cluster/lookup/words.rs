//! Why a definition or a claim cannot be used, in words.

use std::fmt;

use super::{LookupError, Place};
use crate::diagnostic::Problem;

impl Problem for LookupError {
    fn words(&self) -> String {
        match self {
            Self::Missing {
                kind,
                object,
                place,
            } => format!("no {kind} {object} in {place}"),
            Self::TooLong { object, limit } => {
                format!("NetworkAttachmentDefinition {object} has more than {limit} bytes")
            }
            Self::TooLongForPlugin { object, limit } => format!(
                "NetworkAttachmentDefinition {object} has more than {limit} bytes, which a \
                 plugin of an older release does not take"
            ),
            Self::TooMany { object, limit } => format!(
                "NetworkAttachmentDefinition {object} was not looked up: one pod may select at \
                 most {limit} definitions"
            ),
            Self::Invalid(source) => source.to_string(),
            Self::Json(source) => source.to_string(),
            Self::Name(source) => source.to_string(),
            Self::Api(source) => source.words(),
            Self::Frame(source) => source.words(),
            Self::Ending(_) => "the agent is about to end".to_owned(),
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::TooLong { .. } => Some("make it smaller".to_owned()),
            Self::TooLongForPlugin { .. } => {
                Some("bring plugin and agent to one release".to_owned())
            }
            Self::Api(source) => source.remedy(),
            Self::Frame(source) => source.remedy(),
            _ => None,
        }
    }
}

/// As messages name it.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::ApiServer => f.write_str("the cluster"),
            Place::Folder { path, broken } => {
                write!(f, "manifestDir {}", path.display())?;
                match broken {
                    Some(file) => write!(f, " (unreadable here: {file})"),
                    None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_names_its_object_and_what_to_do() {
        let object = || "a/n".parse().unwrap();
        let missing = |place| LookupError::Missing {
            kind: "IPAMClaim",
            object: "a/c".into(),
            place,
        };
        let folder = Place::Folder {
            path: "/m".into(),
            broken: None,
        };
        for (error, line) in [
            (missing(Place::ApiServer), "no IPAMClaim a/c in the cluster"),
            (missing(folder), "no IPAMClaim a/c in manifestDir /m"),
            (
                LookupError::TooLong {
                    object: object(),
                    limit: 7,
                },
                "NetworkAttachmentDefinition a/n has more than 7 bytes; make it smaller",
            ),
            (
                LookupError::TooLongForPlugin {
                    object: object(),
                    limit: 7,
                },
                "NetworkAttachmentDefinition a/n has more than 7 bytes, which a plugin of an \
                 older release does not take; bring plugin and agent to one release",
            ),
            (
                LookupError::TooMany {
                    object: object(),
                    limit: 7,
                },
                "NetworkAttachmentDefinition a/n was not looked up: one pod may select at most 7 \
                 definitions",
            ),
        ] {
            assert_eq!(error.to_string(), line);
        }
    }
}
