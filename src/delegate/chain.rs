//! Calls the plugins of a network one after the other: CNI 1.1.0 §3.

mod error;
mod time;

use std::time::Instant;

use super::binaries::Binaries;
use super::call::{DelegateCall, DelegateExec, Parameters};
use super::error::DelegateError;
use crate::cni::{
    self, CapabilityArgs, CniResult, Invocation, NetworkConfig, NetworkName, PluginConfig,
    ValidAttachment, Verb,
};

pub use error::{ChainError, ChainErrors};
pub use time::Time;

/// The plugins of a network, ready to be called.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a> {
    /// The configuration.
    pub config: &'a NetworkConfig,
    /// The network's name in the configuration. If the configuration has no name, the definition's
    /// name.
    pub name: &'a NetworkName,
    /// The binaries of this configuration.
    pub binaries: &'a Binaries,
    /// The value of `CNI_PATH`.
    pub cni_path: &'a str,
    /// The time limits.
    pub time: Time,
}

/// Whether the plugins of a chain were called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// All plugins were called and succeeded.
    All,
    /// No plugin was called. The configuration disables the verb, or the configuration's CNI
    /// version does not have the verb.
    None,
}

/// The object that a call acts on.
#[derive(Clone, Copy)]
enum Scope<'a> {
    /// One attachment, with the previous result.
    Attachment(&'a Parameters<'a>, Option<&'a CniResult>),
    /// The network, with the attachments that GC must keep.
    Network(Option<&'a [ValidAttachment]>),
}

/// The keys with which a plugin's configuration names an interface of the node.
const INTERFACE_KEYS: [&str; 3] = ["master", "device", "bridge"];

/// A plugin and its position in the chain, from 0.
#[derive(Clone, Copy)]
struct Step<'a> {
    place: usize,
    plugin: &'a PluginConfig,
}

impl Step<'_> {
    fn error(self, verb: Verb, cause: DelegateError) -> ChainError {
        let body = self.plugin.body();
        let interface = INTERFACE_KEYS.iter().find_map(|key| {
            let name: Option<String> = body.read(key).ok().flatten();
            Some(Box::new((*key, name.filter(|name| !name.is_empty())?)))
        });
        ChainError {
            plugin: self.plugin.plugin_type().clone(),
            index: self.place,
            verb,
            interface,
            cause,
        }
    }
}

impl<'c> Chain<'c> {
    /// Attaches: calls every plugin in order. Each plugin gets the result of the previous plugin;
    /// the first plugin gets `result`.
    ///
    /// If the binary of one plugin is missing, this method runs no plugin at all.
    ///
    /// # Errors
    ///
    /// If binaries are missing, returns the error of the first plugin without a binary. Otherwise,
    /// returns the error of the first plugin that fails. The caller rolls back with [`Self::del`].
    pub fn add(
        &self,
        exec: &dyn DelegateExec,
        parameters: &Parameters<'_>,
        mut result: Option<CniResult>,
    ) -> Result<CniResult, ChainError> {
        let verb = Verb::Add;
        for step in self.steps() {
            self.binaries
                .get(step.place, step.plugin.plugin_type())
                .map_err(|missing| step.error(verb, missing.into()))?;
        }
        for step in self.steps() {
            let scope = Scope::Attachment(parameters, result.as_ref());
            let next = self
                .call(exec, verb, step, self.time.next(), scope)
                .and_then(|answer| self.result(&answer))
                .map_err(|cause| step.error(verb, cause))?;
            result = Some(next);
        }
        // The default is never used: `NetworkConfig` refuses a configuration without plugins, so at
        // least one plugin has returned a result.
        Ok(result.unwrap_or_default())
    }

    /// Detaches: calls every plugin in reverse order, even plugins that the ADD never called.
    ///
    /// CNI 1.1.0 §3 tells a runtime to stop at the first failure. The resources of the remaining
    /// plugins would then leak. If the failing plugin is no longer installed, every retry would
    /// stop at the same plugin, and the leak would be permanent. This method therefore calls the
    /// remaining plugins too, and returns the errors at the end.
    ///
    /// `result` is the final result of the ADD. This method passes `result` to the plugins if the
    /// configuration has CNI version 0.4.0 or later.
    ///
    /// # Errors
    ///
    /// The errors of all plugins that fail.
    pub fn del(
        &self,
        exec: &dyn DelegateExec,
        parameters: &Parameters<'_>,
        result: Option<&CniResult>,
    ) -> Result<(), ChainErrors> {
        let result = result.filter(|_| self.config.version().passes_prev_result_on_del());
        ChainErrors::of(self.steps().rev().filter_map(|step| {
            let deadline = self.time.share(step.place + 1);
            let scope = Scope::Attachment(parameters, result);
            let outcome = self.call(exec, Verb::Del, step, deadline, scope);
            Some(step.error(Verb::Del, outcome.err()?))
        }))
    }

    /// Checks: calls every plugin in order with the final result of the ADD.
    ///
    /// # Errors
    ///
    /// The error of the first plugin that fails. If the configuration allows CHECK but `result` is
    /// `None`, calls no plugin and returns [`DelegateError::NoResult`] as the first plugin's error.
    pub fn check(
        &self,
        exec: &dyn DelegateExec,
        parameters: &Parameters<'_>,
        result: Option<&CniResult>,
    ) -> Result<Ran, ChainError> {
        if !self.config.version().has_check() || self.config.disable_check() {
            return Ok(Ran::None);
        }
        self.call_each(exec, Verb::Check, Scope::Attachment(parameters, result))
    }

    /// Collects garbage: calls every plugin in order with the valid attachments. A failure does not
    /// stop the other plugins.
    ///
    /// # Errors
    ///
    /// The errors of all plugins that fail.
    pub fn gc(
        &self,
        exec: &dyn DelegateExec,
        valid: &[ValidAttachment],
    ) -> Result<Ran, ChainErrors> {
        if !self.config.version().has_gc() || self.config.disable_gc() {
            return Ok(Ran::None);
        }
        let steps = self.steps();
        let plugins = steps.len();
        ChainErrors::of(steps.filter_map(|step| {
            let deadline = self.time.share(plugins - step.place);
            let outcome = self.call(exec, Verb::Gc, step, deadline, Scope::Network(Some(valid)));
            Some(step.error(Verb::Gc, outcome.err()?))
        }))?;
        Ok(Ran::All)
    }

    /// Asks one plugin after the other whether it is ready for an ADD. Stops at the first plugin
    /// that is not ready.
    ///
    /// # Errors
    ///
    /// The error of the first plugin that is not ready.
    pub fn status(&self, exec: &dyn DelegateExec) -> Result<Ran, ChainError> {
        if !self.config.version().has_status() {
            return Ok(Ran::None);
        }
        self.call_each(exec, Verb::Status, Scope::Network(None))
    }

    /// Calls every plugin in order, until one fails.
    fn call_each(
        &self,
        exec: &dyn DelegateExec,
        verb: Verb,
        scope: Scope<'_>,
    ) -> Result<Ran, ChainError> {
        for step in self.steps() {
            self.call(exec, verb, step, self.time.next(), scope)
                .map_err(|cause| step.error(verb, cause))?;
        }
        Ok(Ran::All)
    }

    fn steps(&self) -> impl DoubleEndedIterator<Item = Step<'c>> + ExactSizeIterator + use<'c> {
        let plugins = self.config.plugins().iter().enumerate();
        plugins.map(|(place, plugin)| Step { place, plugin })
    }

    /// Parses the result of one plugin's ADD.
    fn result(&self, answer: &[u8]) -> Result<CniResult, DelegateError> {
        let result = CniResult::parse(answer, self.config.version())?;
        result.within_limits()?;
        // The answer may be an error document, because a script may print an error document and
        // still exit with status 0.
        if result.interfaces.is_empty()
            && result.ips.is_empty()
            && let Some(error) = cni::Error::parse(answer)
        {
            return Err(DelegateError::Refused(error));
        }
        Ok(result)
    }

    fn call(
        &self,
        exec: &dyn DelegateExec,
        verb: Verb,
        step: Step<'_>,
        deadline: Instant,
        scope: Scope<'_>,
    ) -> Result<Vec<u8>, DelegateError> {
        let (attachment, prev_result, valid_attachments) = match scope {
            Scope::Attachment(_, None) if verb == Verb::Check => {
                return Err(DelegateError::NoResult);
            }
            Scope::Attachment(parameters, result) => (Some(parameters), result, None),
            Scope::Network(valid) => (None, None, valid),
        };
        let binary = self.binaries.get(step.place, step.plugin.plugin_type())?;
        let no_args = CapabilityArgs::new();
        let stdin = step.plugin.request(&Invocation {
            name: self.name,
            version: self.config.version(),
            prev_result,
            capability_args: attachment.map_or(&no_args, |it| it.capability_args),
            cni_args: attachment.and_then(|it| it.cni_args),
            inject: attachment.map_or(&[], |it| it.inject),
            valid_attachments,
        })?;
        exec.exec(&DelegateCall {
            verb,
            binary,
            attachment,
            cni_path: self.cni_path,
            stdin: &stdin,
            deadline,
        })
    }
}

#[cfg(test)]
mod tests;
