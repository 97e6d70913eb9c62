//! The plugins of a chain that failed.

use std::fmt;

use thiserror::Error;

use crate::cni::PluginType;
use crate::cni::Verb;
use crate::delegate::DelegateError;
use crate::delegate::remedy::remedy;

/// A plugin of a chain that failed.
#[derive(Debug, Error)]
#[error("plugin {plugin}: {verb}: {}", self.words())]
pub struct ChainError {
    /// Its type.
    pub plugin: PluginType,
    /// Its place in the chain, from 0: a chain may have the same plugin twice.
    pub index: usize,
    /// What it was asked.
    pub verb: Verb,
    /// The interface of the node that its configuration names: key and value.
    pub interface: Option<Box<(&'static str, String)>>,
    /// Why it failed.
    #[source]
    pub cause: DelegateError,
}

impl ChainError {
    /// Why it failed and what helps, without saying which plugin it is.
    #[must_use]
    pub fn words(&self) -> String {
        let known = self.cause.delegate_error().and_then(remedy);
        let remedy = known.map_or_else(String::new, |remedy| format!("; {remedy}"));
        let said = self.cause.to_string();
        match self.interface.as_deref() {
            // The kernel's words, which name no interface.
            Some((key, name)) if is_of_no_interface(&said) && !said.contains(name.as_str()) => {
                format!(
                    "{said}{remedy}; its {key} is {name:?}, so see whether the node has that interface"
                )
            }
            _ => format!("{said}{remedy}"),
        }
    }
}

fn is_of_no_interface(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    said.contains("link not found") || said.contains("no such device")
}

/// The plugins of a chain that failed, one at least, in the order in which they were called.
#[derive(Debug, Error)]
pub struct ChainErrors(Vec<ChainError>);

impl ChainErrors {
    /// All of them; `Ok` where there is none.
    ///
    /// # Errors
    /// The errors.
    pub fn of(errors: impl Iterator<Item = ChainError>) -> Result<(), Self> {
        let errors: Vec<_> = errors.collect();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(Self(errors))
        }
    }

    /// Those of the plugins up to this place in the chain.
    ///
    /// # Errors
    /// All that are left.
    pub fn up_to(self, place: usize) -> Result<(), Self> {
        Self::of(self.0.into_iter().filter(|error| error.index <= place))
    }

    /// Each of them.
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
