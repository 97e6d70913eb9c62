//! Derives a plugin's answer from its output and exit status.

use std::time::Duration;

use serde::de::IgnoredAny;

use super::error::{DelegateError, LastLine};
use super::process::{Ending, ProcessOutput};
use crate::cni::{self, Verb};

/// The JSON documents on standard output.
#[derive(Debug, PartialEq, Eq)]
enum Documents {
    None,
    One,
    Several,
    /// The output ends before the end of its first document.
    Cut,
    NotJson,
}

impl Documents {
    /// Counts the documents without storing them. Accepts strings that are not UTF-8. Deep nesting
    /// does not exhaust the stack.
    fn count(bytes: &[u8]) -> Self {
        let mut documents = serde_json::Deserializer::from_slice(bytes).into_iter::<IgnoredAny>();
        match (documents.next(), documents.next()) {
            (None, _) => Self::None,
            (Some(Ok(_)), None) => Self::One,
            (Some(Ok(_)), Some(Ok(_))) => Self::Several,
            (Some(Err(error)), _) if error.is_eof() => Self::Cut,
            _ => Self::NotJson,
        }
    }
}

/// Returns whether a plugin with this ending has written its whole answer. Output that is not JSON
/// counts as whole, because more output cannot make it JSON.
pub(super) fn complete(verb: Verb, ending: Ending, stdout: &[u8]) -> bool {
    (ending == Ending::Exited(0) && !verb.has_answer())
        || !matches!(Documents::count(stdout), Documents::None | Documents::Cut)
}

/// Returns the answer or the error of a plugin that has run (CNI 1.1.0 §2 "Errors", §5).
pub(super) fn judge(
    verb: Verb,
    after: Duration,
    output: ProcessOutput,
) -> Result<Vec<u8>, DelegateError> {
    let line = || LastLine::of(&output.stderr);
    match output.ending {
        Ending::Exited(0) if !verb.has_answer() => Ok(output.stdout),
        Ending::Exited(0) => match Documents::count(&output.stdout) {
            Documents::One => Ok(output.stdout),
            Documents::None => Err(DelegateError::Silent(line())),
            Documents::Several => Err(DelegateError::Twice),
            Documents::Cut | Documents::NotJson => {
                let line = LastLine::of(&output.stdout).or(line);
                Err(DelegateError::NotJson(line))
            }
        },
        Ending::Exited(status) => Err(match cni::Error::parse(&output.stdout) {
            Some(error) => DelegateError::Refused(error),
            None => {
                let line = line().or(|| LastLine::of(&output.stdout));
                DelegateError::Failed(status, line)
            }
        }),
        Ending::Signalled(signal) => Err(DelegateError::Crashed(signal, line())),
        Ending::Flooded => Err(DelegateError::Flooded),
        Ending::Hung => Err(DelegateError::Hung(after, line())),
        Ending::Unkillable => Err(DelegateError::Unkillable(after, line())),
        Ending::Lost => Err(DelegateError::Lost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(verb: Verb, ending: Ending, stdout: &str) -> Result<Vec<u8>, DelegateError> {
        let stderr = b"first\nlast\n".to_vec();
        let output = ProcessOutput {
            ending,
            stdout: stdout.into(),
            stderr,
            stderr_cut: false,
        };
        judge(verb, Duration::from_secs(60), output)
    }

    const ERROR: &str = r#"{"code":7,"msg":"bad","details":"worse"}"#;

    #[test]
    fn the_output_of_a_successful_plugin_is_the_answer() {
        use Verb::{Add, Check, Del};
        for (verb, stdout) in [
            (Add, "{}"),
            (Add, " {\"ips\":[]}\n"),
            (Del, ""),
            (Del, "chatter"),
            (Check, "{}{}"),
        ] {
            let answer = answer(verb, Ending::Exited(0), stdout).unwrap();
            assert_eq!(answer, stdout.as_bytes(), "{verb} {stdout}");
        }
    }

    // clause: CNI-1.1.0 §2 exit: status 0 means success
    // clause: CNI-1.1.0 §2 error document: a plugin with a nonzero status writes an error document
    #[test]
    fn status_and_output_determine_the_error() {
        use Verb::{Add, Del, Gc, Status};
        type IsExpected<'a> = &'a dyn Fn(&DelegateError) -> bool;
        let last = LastLine::of(b"last");
        let silent =
            |error: &DelegateError| matches!(error, DelegateError::Silent(line) if *line == last);
        let not_json = |error: &DelegateError| matches!(error, DelegateError::NotJson { .. });
        let twice = |error: &DelegateError| matches!(error, DelegateError::Twice);
        let refused = |error: &DelegateError| error.delegate_error().is_some();
        let failed = |error: &DelegateError| matches!(error, DelegateError::Failed(2, line) if *line == last);
        let table: [(Verb, i32, &str, IsExpected<'_>); 12] = [
            (Add, 0, "", &silent),
            (Add, 0, "\n", &silent),
            (Add, 0, "{}{}", &twice),
            (Add, 0, "{} trailing", &not_json),
            (Add, 0, "hello\n{}", &not_json),
            (Add, 0, "{\"ips\":", &not_json),
            (Add, 1, ERROR, &refused),
            (Add, 2, "{}", &failed),
            (Add, 2, "", &failed),
            (Del, 1, ERROR, &refused),
            (Gc, 2, "", &failed),
            (Status, 1, r#"{"code":50,"msg":"not ready"}"#, &refused),
        ];
        for (verb, status, stdout, is_expected) in table {
            let error = answer(verb, Ending::Exited(status), stdout).unwrap_err();
            assert!(is_expected(&error), "{verb} {status} {stdout}: {error}");
        }
    }

    #[test]
    fn an_error_quotes_the_output_that_is_not_json() {
        let error = answer(Verb::Add, Ending::Exited(0), "{} trailing").unwrap_err();
        let quoted = LastLine::of(b"{} trailing");
        assert!(
            matches!(&error, DelegateError::NotJson(line) if *line == quoted),
            "{error}"
        );
    }

    #[test]
    fn a_killed_plugin_is_an_error_whatever_it_wrote() {
        let endings = [
            Ending::Signalled(9),
            Ending::Flooded,
            Ending::Hung,
            Ending::Unkillable,
            Ending::Lost,
        ];
        for ending in endings {
            assert!(answer(Verb::Add, ending, "{}").is_err(), "{ending:?}");
            assert!(answer(Verb::Del, ending, "").is_err(), "{ending:?}");
        }
    }

    #[test]
    fn an_answer_is_complete_after_one_whole_document() {
        let table = [
            (Verb::Add, 0, "", false),
            (Verb::Add, 0, "{\"ips\":[", false),
            (Verb::Add, 0, "{}", true),
            (Verb::Add, 0, "no JSON", true),
            (Verb::Add, 1, "", false),
            (Verb::Del, 0, "", true),
            (Verb::Del, 1, "", false),
            (Verb::Del, 1, "{\"code\":1}", true),
        ];
        for (verb, status, stdout, expected) in table {
            let got = complete(verb, Ending::Exited(status), stdout.as_bytes());
            assert_eq!(got, expected, "{verb} {status} {stdout}");
        }
    }

    // Injects a fault: a document with 100,000 levels.
    #[test]
    fn a_deep_document_costs_no_stack() {
        let deep = "[".repeat(100_000);
        assert_eq!(Documents::count(deep.as_bytes()), Documents::Cut);
        let closed = deep + &"]".repeat(100_000);
        assert_eq!(Documents::count(closed.as_bytes()), Documents::One);
    }
}
