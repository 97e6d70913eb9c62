//! The errors of the plugins of a chain.

use std::fmt;

use thiserror::Error;

use crate::cni::{PluginType, Verb};
use crate::delegate::DelegateError;
use crate::delegate::remedy::remedy;

/// The error of one plugin of a chain.
#[derive(Debug, Error)]
#[error("plugin {plugin}: {verb}: {}", self.words())]
pub struct ChainError {
    /// The plugin's type.
    pub plugin: PluginType,
    /// The plugin's position in the chain, from 0. The type alone is ambiguous, since a chain may
    /// contain the same plugin twice.
    pub index: usize,
    /// The verb that failed.
    pub verb: Verb,
    /// The configuration key that names an interface of the node, and its value: for example,
    /// `master` and `eth0`. `None` if the configuration has no such key.
    pub interface: Option<Box<(&'static str, String)>>,
    /// Why the plugin failed.
    #[source]
    pub cause: DelegateError,
}

impl ChainError {
    /// The cause and the remedy, without the plugin's name.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = self.cause.to_string();
        if let Some(remedy) = self.cause.delegate_error().and_then(remedy) {
            words += &format!("; {remedy}");
        }
        if let Some((key, name)) = self.interface.as_deref()
            && self.misses_interface(name)
        {
            words += &format!(
                "; the plugin's key {key:?} has the value {name:?}, so check that the node has \
                 this interface"
            );
        }
        words
    }

    /// Whether the plugin's message contains the kernel's error for a missing interface, but not
    /// the name of the interface.
    fn misses_interface(&self, name: &str) -> bool {
        let Some(text) = self.cause.plugin_text() else {
            return false;
        };
        let folded = text.to_ascii_lowercase();
        let is_missing = folded.contains("link not found") || folded.contains("no such device");
        is_missing && !text.contains(name)
    }
}

/// The errors of a chain's plugins, in the order of the calls. The list is never empty.
#[derive(Debug, Error)]
pub struct ChainErrors(Vec<ChainError>);

impl ChainErrors {
    /// Collects the errors. Returns `Ok` if there are none.
    ///
    /// # Errors
    /// All errors of the iterator, if it has any.
    pub fn of(errors: impl Iterator<Item = ChainError>) -> Result<(), Self> {
        let errors: Vec<_> = errors.collect();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(Self(errors))
        }
    }

    /// Drops the errors of the plugins after position `place` in the chain. Returns `Ok` if no
    /// error remains.
    ///
    /// # Errors
    /// The remaining errors.
    pub fn up_to(self, place: usize) -> Result<(), Self> {
        Self::of(self.0.into_iter().filter(|error| error.index <= place))
    }

    /// The errors in the order of the calls.
    pub fn iter(&self) -> impl Iterator<Item = &ChainError> {
        self.0.iter()
    }
}

impl fmt::Display for ChainErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if place == 0 { "" } else { "; also " })?;
        }
        Ok(())
    }
}
