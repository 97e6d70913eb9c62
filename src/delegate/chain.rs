//! A network's plugins, one after the other: CNI 1.1.0 §3.

mod error;
mod time;

use std::time::Instant;

use serde_json::value::RawValue;

use super::binaries::Binaries;
use super::call::{DelegateCall, DelegateExec};
use super::error::DelegateError;
use crate::cni::Verb;
use crate::cni::{
    self, CapabilityArgs, CniArgs, CniResult, ContainerId, InterfaceName, Invocation,
    NetworkConfig, NetworkName, PluginConfig, RawObject, ValidAttachment,
};

pub use error::{ChainError, ChainErrors};
pub use time::Time;

/// A network whose plugins are to be called.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a> {
    /// Its plugins.
    pub config: &'a NetworkConfig,
    /// Its name: that of the configuration, or of the object that holds it.
    pub name: &'a NetworkName,
    /// What is executed, as found for this very configuration.
    pub binaries: &'a Binaries,
    /// The value of `CNI_PATH`.
    pub cni_path: &'a str,
    /// How long it may take.
    pub time: Time,
}

/// What ADD, DEL and CHECK of one attachment have in common: CNI 1.1.0 §3 "Attachment Parameters".
#[derive(Clone, Copy, Debug)]
pub struct Parameters<'a> {
    /// The sandbox.
    pub container_id: &'a ContainerId,
    /// The path of its network namespace; a DEL may come without.
    pub netns: Option<&'a str>,
    /// The interface in it.
    pub ifname: &'a InterfaceName,
    /// Generic arguments.
    pub args: &'a CniArgs,
    /// Capability arguments.
    pub capability_args: &'a CapabilityArgs,
    /// The pod's `cni-args`.
    pub cni_args: Option<&'a RawObject>,
    /// Keys that every plugin gets.
    pub inject: &'a [(String, Box<RawValue>)],
}

/// Whether anything was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// All plugins, and all is well.
    All,
    /// None: the configuration's version does not have the verb.
    TooOld,
    /// None: the configuration forbids it.
    Disabled,
}

/// What a call is about.
#[derive(Clone, Copy)]
enum Subject<'a> {
    /// One attachment, and the result that its plugins go by.
    Attachment(&'a Parameters<'a>, Option<&'a CniResult>),
    /// All attachments of the network.
    Network(Option<&'a [ValidAttachment]>),
}

/// The keys by which plugins name an interface of the node.
const INTERFACES: [&str; 3] = ["master", "device", "bridge"];

/// A plugin at its place in the chain.
#[derive(Clone, Copy)]
struct Step<'a> {
    place: usize,
    plugin: &'a PluginConfig,
}

impl Step<'_> {
    fn error(self, verb: Verb, cause: DelegateError) -> ChainError {
        let body = self.plugin.body();
        let named = INTERFACES.iter().find_map(|key| {
            let name: Option<String> = body.read(key).ok().flatten();
            Some(Box::new((*key, name.filter(|name| !name.is_empty())?)))
        });
        ChainError {
            plugin: self.plugin.plugin_type().clone(),
            index: self.place,
            verb,
            interface: named,
            cause,
        }
    }
}

impl<'c> Chain<'c> {
    /// Attaches: every plugin in order, each with the result of the one before.
    ///
    /// Nothing runs unless every plugin's binary is there.
    ///
    /// # Errors
    ///
    /// Of the first plugin that failed; what it and the ones before it did is for [`Self::del`]
    /// to undo.
    pub fn add(
        &self,
        exec: &(impl DelegateExec + ?Sized),
        parameters: &Parameters<'_>,
    ) -> Result<CniResult, ChainError> {
        self.add_behind(exec, parameters, None)
    }

    /// As [`Self::add`], for a chain whose first plugin stands behind something that answered
    /// `result` and is no plugin.
    ///
    /// # Errors
    ///
    /// As [`Self::add`].
    pub fn add_behind(
        &self,
        exec: &(impl DelegateExec + ?Sized),
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
            let subject = Subject::Attachment(parameters, result.as_ref());
            let added = self
                .call(exec, verb, step, self.time.next(), subject)
                .and_then(|answer| self.result(&answer))
                .map_err(|cause| step.error(verb, cause))?;
            result = Some(added);
        }
        // A configuration without plugins is refused when it is read.
        Ok(result.unwrap_or_default())
    }

    /// Detaches: every plugin in reverse order, also after one that failed, and also those that
    /// an ADD may not have reached.
    ///
    /// CNI 1.1.0 §3 stops at the first failure. That leaks what the plugins before it hold, for
    /// ever where the failure is a binary that was uninstalled; so this goes on, and reports.
    ///
    /// `result` is the final one of the ADD, which the plugins get from version 0.4.0 on.
    ///
    /// # Errors
    ///
    /// Of all plugins that failed.
    pub fn del(
        &self,
        exec: &(impl DelegateExec + ?Sized),
        parameters: &Parameters<'_>,
        result: Option<&CniResult>,
    ) -> Result<(), ChainErrors> {
        let result = result.filter(|_| self.config.version().passes_prev_result_on_del());
        ChainErrors::of(self.steps().rev().filter_map(|step| {
            let deadline = self.time.share(step.place + 1);
            let subject = Subject::Attachment(parameters, result);
            let called = self.call(exec, Verb::Del, step, deadline, subject);
            Some(step.error(Verb::Del, called.err()?))
        }))
    }

    /// Checks: every plugin in order with the final result of the ADD.
    ///
    /// # Errors
    ///
    /// Of the first plugin that failed.
    pub fn check(
        &self,
        exec: &(impl DelegateExec + ?Sized),
        parameters: &Parameters<'_>,
        result: Option<&CniResult>,
    ) -> Result<Ran, ChainError> {
        if !self.config.version().has_check() {
            return Ok(Ran::TooOld);
        }
        if self.config.disable_check() {
            return Ok(Ran::Disabled);
        }
        for step in self.steps() {
            let result = result.ok_or_else(|| step.error(Verb::Check, DelegateError::NoResult))?;
            let subject = Subject::Attachment(parameters, Some(result));
            self.call(exec, Verb::Check, step, self.time.next(), subject)
                .map_err(|cause| step.error(Verb::Check, cause))?;
        }
        Ok(Ran::All)
    }

    /// Collects: every plugin in order, also after one that failed, with those that are attached.
    ///
    /// # Errors
    ///
    /// Of all plugins that failed.
    pub fn gc(
        &self,
        exec: &(impl DelegateExec + ?Sized),
        valid: &[ValidAttachment],
    ) -> Result<Ran, ChainErrors> {
        if !self.config.version().has_gc() {
            return Ok(Ran::TooOld);
        }
        if self.config.disable_gc() {
            return Ok(Ran::Disabled);
        }
        let steps = self.steps();
        let plugins = steps.len();
        ChainErrors::of(steps.filter_map(|step| {
            let deadline = self.time.share(plugins - step.place);
            let called = self.call(
                exec,
                Verb::Gc,
                step,
                deadline,
                Subject::Network(Some(valid)),
            );
            Some(step.error(Verb::Gc, called.err()?))
        }))?;
        Ok(Ran::All)
    }

    /// Asks every plugin in order whether an ADD would work.
    ///
    /// # Errors
    ///
    /// Of the first plugin that is not ready.
    pub fn status(&self, exec: &(impl DelegateExec + ?Sized)) -> Result<Ran, ChainError> {
        if !self.config.version().has_status() {
            return Ok(Ran::TooOld);
        }
        for step in self.steps() {
            self.call(
                exec,
                Verb::Status,
                step,
                self.time.next(),
                Subject::Network(None),
            )
            .map_err(|cause| step.error(Verb::Status, cause))?;
        }
        Ok(Ran::All)
    }

    fn steps(&self) -> impl DoubleEndedIterator<Item = Step<'c>> + ExactSizeIterator + use<'c> {
        self.config
            .plugins()
            .iter()
            .enumerate()
            .map(|(place, plugin)| Step { place, plugin })
    }

    /// The result of one plugin's ADD.
    fn result(&self, answer: &[u8]) -> Result<CniResult, DelegateError> {
        let result = CniResult::parse(answer, self.config.version())?;
        result.within_limits()?;
        // Scripts forget `exit 1`: an error document has none of a result's keys.
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
        exec: &(impl DelegateExec + ?Sized),
        verb: Verb,
        step: Step<'_>,
        deadline: Instant,
        subject: Subject<'_>,
    ) -> Result<Vec<u8>, DelegateError> {
        let binary = self.binaries.get(step.place, step.plugin.plugin_type())?;
        let (parameters, prev_result, valid_attachments) = match subject {
            Subject::Attachment(parameters, result) => (Some(parameters), result, None),
            Subject::Network(valid) => (None, None, valid),
        };
        let (none, no_args) = (CapabilityArgs::new(), CniArgs::default());
        let stdin = step.plugin.request(&Invocation {
            name: self.name,
            version: self.config.version(),
            prev_result,
            capability_args: parameters.map_or(&none, |given| given.capability_args),
            cni_args: parameters.and_then(|given| given.cni_args),
            inject: parameters.map_or(&[], |given| given.inject),
            valid_attachments,
        })?;
        exec.exec(&DelegateCall {
            verb,
            binary,
            container_id: parameters.map(|given| given.container_id),
            netns: parameters.and_then(|given| given.netns),
            ifname: parameters.map(|given| given.ifname),
            args: parameters.map_or(&no_args, |given| given.args),
            cni_path: self.cni_path,
            stdin: &stdin,
            deadline,
        })
    }
}

#[cfg(test)]
mod tests;
