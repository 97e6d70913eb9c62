//! Calls the plugins of one attachment, with the arguments that the pod and the runtime pass.

use std::path::Path;

use super::{Context, Failure, Note};
use crate::cni::{CniArgs, CniResult};
use crate::delegate::{Binaries, Chain, DelegateError, Parameters, Ran, Time};
use crate::journal::{Header, Progress};
use crate::plan::Attachment;

/// The plugins of one attachment of one sandbox.
pub(super) struct Delegates<'a> {
    context: &'a Context<'a>,
    header: &'a Header,
    attachment: &'a Attachment,
    binaries: &'a Binaries,
    netns: Option<&'a str>,
    args: CniArgs,
    cni_path: String,
}

impl<'a> Delegates<'a> {
    /// Prepares to call the plugins of `attachment` in the sandbox of `header`.
    pub(super) fn new(
        context: &'a Context<'a>,
        header: &'a Header,
        attachment: &'a Attachment,
        binaries: &'a Binaries,
        netns: Option<&'a Path>,
    ) -> Result<Delegates<'a>, Failure> {
        let runtime = CniArgs::parse(&header.args).unwrap_or_default();
        Ok(Delegates {
            context,
            header,
            attachment,
            binaries,
            netns: netns.and_then(Path::to_str),
            args: attachment.args(runtime).map_err(Failure::Args)?,
            cni_path: context.cni_path(),
        })
    }

    /// Calls ADD of the whole chain. `previous` is the `prevResult` for its first plugin.
    pub(super) fn add(&self, previous: Option<CniResult>) -> Result<CniResult, Failure> {
        let exec = self.context.host.exec;
        let added = self.chain().add(exec, &self.parameters(), previous);
        added.map_err(|error| Failure::delegate(self.attachment, error))
    }

    /// Calls DEL of the whole chain, last plugin first. Also calls plugins that a failed ADD did
    /// not reach, but ignores the failures of those plugins.
    pub(super) fn del(&self, progress: &Progress) -> Result<(), Failure> {
        let result = progress.result.as_ref();
        let exec = self.context.host.exec;
        let deleted = self.chain().del(exec, &self.parameters(), result);
        let deleted = match progress.failed_at {
            Some(place) => deleted.or_else(|errors| errors.up_to(place)),
            None => deleted,
        };
        deleted.map_err(|errors| Failure::Delegates(self.attachment.place(), errors))
    }

    /// Calls CHECK of the chain until a plugin fails. If that plugin does not implement CHECK, adds
    /// a note instead of failing.
    pub(super) fn check(&self, result: Option<&CniResult>) -> Result<(), Failure> {
        let exec = self.context.host.exec;
        match self.chain().check(exec, &self.parameters(), result) {
            Ok(Ran::All | Ran::None) => Ok(()),
            Err(error) if has_no_check(&error.cause) => {
                let place = self.attachment.place();
                self.context.note(Note::NoCheck(place, Box::new(error)));
                Ok(())
            }
            Err(error) => Err(Failure::delegate(self.attachment, error)),
        }
    }

    fn chain(&self) -> Chain<'_> {
        Chain {
            config: &self.attachment.config,
            name: &self.attachment.network,
            binaries: self.binaries,
            cni_path: &self.cni_path,
            time: Time {
                until: self.context.deadline,
                per_call: self.context.request.config.deadlines.delegate,
            },
        }
    }

    fn parameters(&self) -> Parameters<'_> {
        Parameters {
            container_id: &self.header.container,
            netns: self.netns,
            ifname: &self.attachment.ifname,
            args: &self.args,
            capability_args: &self.attachment.capability_args,
            cni_args: self.attachment.cni_args.as_ref(),
            inject: &self.attachment.inject,
        }
    }
}

/// Whether a plugin returned an error because it does not implement CHECK. For example, the plugin
/// `whereabouts` returns such an error, although it declares a CNI version with CHECK.
fn has_no_check(cause: &DelegateError) -> bool {
    const WORDS: [&str; 4] = [
        "not implemented",
        "not supported",
        "unimplemented",
        "unknown cni_command",
    ];
    cause.delegate_error().is_some_and(|error| {
        let text = format!("{} {}", error.msg, error.details).to_ascii_lowercase();
        WORDS.iter().any(|words| text.contains(words))
    })
}
