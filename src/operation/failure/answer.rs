//! Converts the failure of a verb to the CNI error for the runtime, with its code
//! (`docs/errors.md`). The types `RequestError` and `PlanError` define their own codes.

use super::Failure;
use crate::cni::{self, code};
use crate::delegate::{ChainError, DelegateError};
use crate::journal::LockError;

impl Failure {
    /// Returns the CNI code.
    pub fn code(&self) -> u32 {
        match self {
            Failure::Request(error) => error.code(),
            Failure::RuntimeConfig(_) | Failure::Depth(_) | Failure::ValidAttachments(_) => {
                code::INVALID_NETWORK_CONFIG
            }
            Failure::PrevResult(_) => code::DECODING_FAILURE,
            // CNI 1.1.0 §2 STATUS.
            Failure::NotAvailable(cause) => match cause.codes()[..] {
                [passed @ (code::TRY_AGAIN_LATER | code::LIMITED_CONNECTIVITY)] => passed,
                _ => code::NOT_AVAILABLE,
            },
            Failure::Several(causes) => causes.first().map_or(code::DELEGATE, Failure::code),
            Failure::Netns(_) | Failure::Args(_) | Failure::PodName(_) => code::INVALID_ENVIRONMENT,
            Failure::OwnNetns(_) => code::INVALID_NETNS,
            Failure::NotReady(_) | Failure::Lock(LockError::Busy { .. }) => code::TRY_AGAIN_LATER,
            Failure::Cluster(error) if error.is_transient() => code::TRY_AGAIN_LATER,
            Failure::Cluster(_) | Failure::OtherPod { .. } => code::CLUSTER,
            Failure::ChangesDenied(_) => code::RESTRICTED,
            Failure::Plan(error) => error.code(),
            Failure::AlreadyAttached(_) => code::SELECTION,
            Failure::Lock(LockError::Io { .. })
            | Failure::Journal(_)
            | Failure::NotOnRecord(_)
            | Failure::RecordLost(_)
            | Failure::Incomplete(_) => code::JOURNAL,
            Failure::Delegates(..) => code::DELEGATE,
            Failure::Result(_) => code::INCOMPATIBLE_VERSION,
            Failure::Delegate(_, error) => match &error.cause {
                DelegateError::NoResult => code::JOURNAL,
                DelegateError::NoRoom { .. } => code::TRY_AGAIN_LATER,
                // CNI 1.1.0 §5 Error: a runtime retries a call that ends with code 11.
                cause => match cause.delegate_error() {
                    Some(answer) if answer.code == code::TRY_AGAIN_LATER => answer.code,
                    _ => code::DELEGATE,
                },
            },
            Failure::Verification(..)
            | Failure::DeviceInfo(..)
            | Failure::Gateway(..)
            | Failure::Route { .. } => code::VERIFICATION,
            Failure::Kernel(_) | Failure::Ourselves(_) | Failure::DeviceFile(..) => {
                code::IO_FAILURE
            }
            Failure::Owed(_) | Failure::Restoring { .. } => code::TEARDOWN_INCOMPLETE,
            Failure::Unwinding { cause, .. } => cause.code(),
        }
    }

    /// Returns the failure as a CNI error (CNI 1.1.0 §5 Error). The message ends with the code,
    /// because runtimes and kubelet show people only the message.
    pub fn to_cni(&self) -> cni::Error {
        let code = self.code();
        let text = match code {
            code::TEARDOWN_INCOMPLETE => unmistakable,
            _ => |text| text,
        };
        cni::Error {
            code,
            msg: text(format!("{self} (code {code})")),
            details: text(self.details()),
        }
    }

    /// Formats the failure in one line with its code and the codes of the plugins.
    pub fn in_full(&self) -> String {
        let error = self.to_cni();
        match error.details.as_str() {
            "" => error.msg,
            details => format!("{}; {details}", error.msg),
        }
    }

    /// Returns the codes of the plugins that failed. The message of the failure already contains
    /// the plugins' messages.
    fn details(&self) -> String {
        let codes = self.codes().into_iter().map(|code| format!("code {code}"));
        codes.collect::<Vec<_>>().join("; also ")
    }

    fn codes(&self) -> Vec<u32> {
        let code = |error: &ChainError| Some(error.cause.delegate_error()?.code);
        match self {
            Failure::Delegate(_, error) => code(error).into_iter().collect(),
            Failure::Delegates(_, errors) => errors.iter().filter_map(code).collect(),
            Failure::Several(causes) | Failure::Owed(causes) => {
                causes.iter().flat_map(Failure::codes).collect()
            }
            Failure::Unwinding { cause, .. } | Failure::NotAvailable(cause) => cause.codes(),
            _ => Vec::new(),
        }
    }
}

/// Hides two phrases from containerd: replaces the spaces in them by no-break spaces. If containerd
/// found one of the phrases in the error of a DEL, it would treat the DEL as successful.
fn unmistakable(text: String) -> String {
    let phrases = ["not found", "no such file or directory"];
    phrases.iter().fold(text, |text, phrase| {
        text.replace(phrase, &phrase.replace(' ', "\u{a0}"))
    })
}
