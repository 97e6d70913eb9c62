//! Reads single keys: lenient about the format, strict about the value.

use std::path::PathBuf;

use serde::de::DeserializeOwned;

use super::{NodeConfigError, ValueError};
use crate::cni::RawObject;
use crate::cni::json::excerpt;

/// The keys with the text of their values.
pub(super) struct Keys<'a> {
    pub(super) conf: &'a RawObject,
}

impl Keys<'_> {
    pub(super) fn read<T: DeserializeOwned>(
        &self,
        key: &'static str,
    ) -> Result<Option<T>, NodeConfigError> {
        self.conf.read(key).map_err(|cause| {
            let value = self.conf.get(key).map_or("", |raw| raw.get());
            invalid(key, value, ValueError::Type(cause))
        })
    }

    /// An object; empty when the key is missing.
    pub(super) fn object(&self, key: &'static str) -> Result<RawObject, NodeConfigError> {
        Ok(self.read(key)?.unwrap_or_default())
    }

    /// A string; `None` when it is empty, as for programs in Go.
    pub(super) fn text(&self, key: &'static str) -> Result<Option<String>, NodeConfigError> {
        Ok(self.read::<String>(key)?.filter(|text| !text.is_empty()))
    }

    pub(super) fn required(
        &self,
        key: &'static str,
        remedy: &'static str,
    ) -> Result<String, NodeConfigError> {
        self.text(key)?
            .ok_or(NodeConfigError::Missing { key, remedy })
    }

    pub(super) fn flag(&self, key: &'static str) -> Result<Option<bool>, NodeConfigError> {
        self.read(key)
    }

    pub(super) fn list(&self, key: &'static str) -> Result<Option<Vec<String>>, NodeConfigError> {
        self.read(key)
    }

    pub(super) fn optional_path(
        &self,
        key: &'static str,
    ) -> Result<Option<PathBuf>, NodeConfigError> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        if !text.starts_with('/') || text.contains('\0') {
            return Err(invalid(key, &text, ValueError::RelativePath));
        }
        Ok(Some(PathBuf::from(text)))
    }

    pub(super) fn path(
        &self,
        key: &'static str,
        default: &str,
    ) -> Result<PathBuf, NodeConfigError> {
        Ok(self
            .optional_path(key)?
            .unwrap_or_else(|| PathBuf::from(default)))
    }

    pub(super) fn choice<T: Copy>(
        &self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Result<Option<T>, NodeConfigError> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        let is_choice = |(name, _): &&(&'static str, T)| name.eq_ignore_ascii_case(&text);
        match choices.iter().find(is_choice) {
            Some((_, choice)) => Ok(Some(*choice)),
            None => {
                let choices = choices.iter().map(|(name, _)| *name).collect();
                Err(invalid(key, &text, ValueError::Choice(choices)))
            }
        }
    }
}

/// An invalid value.
pub(super) fn invalid(key: &'static str, value: &str, cause: ValueError) -> NodeConfigError {
    NodeConfigError::Value {
        key,
        value: excerpt(value).into_owned(),
        cause: Box::new(cause),
    }
}
