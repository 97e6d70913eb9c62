//! The messages of [`FrameError`].

use super::FrameError;
use crate::cluster::frame::VERSION;
use crate::diagnostic::Problem;

impl Problem for FrameError {
    fn words(&self) -> String {
        match self {
            Self::Io(source) => source.to_string(),
            Self::Foreign => "it sent no message of Jackfield".to_owned(),
            Self::Version(theirs) => {
                format!("it speaks version {theirs}, this is version {VERSION}")
            }
            Self::TooLarge { length, limit } => {
                format!("a message of {length} bytes, {limit} are allowed")
            }
            Self::Definitions(limit) => {
                format!("the pod's definitions have more than {limit} bytes together")
            }
            Self::Json(source) => format!("a message that cannot be read ({source})"),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Io(_) | Self::Foreign | Self::TooLarge { .. } => return None,
            Self::Version(_) => "bring both to one release",
            Self::Definitions(_) => "make them smaller or select fewer",
            Self::Json(_) => "bring plugin and agent to one release",
        };
        Some(remedy.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_says_what_came_and_what_to_do() {
        for (error, line) in [
            (FrameError::Foreign, "it sent no message of Jackfield"),
            (
                FrameError::Version(2),
                "it speaks version 2, this is version 1; bring both to one release",
            ),
            (
                FrameError::TooLarge {
                    length: 8,
                    limit: 7,
                },
                "a message of 8 bytes, 7 are allowed",
            ),
            (
                FrameError::Definitions(7),
                "the pod's definitions have more than 7 bytes together; make them smaller or \
                 select fewer",
            ),
        ] {
            assert_eq!(error.to_string(), line);
        }
    }
}
