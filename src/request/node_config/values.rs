//! Reads the keys for which a check of the value's type is not enough.

use std::path::PathBuf;
use std::str::FromStr;

use serde_json::value::RawValue;

use super::keys::Keys;
use super::{ClusterNetwork, NodeConfigError, Source, ValueError};
use crate::cni::{NameError, NetworkConfig};
use crate::npwg::object_ref::is_label;

/// The maximum number of `defaultNetworks`, and of `delegates`.
pub(super) const MAX_DEFAULT_NETWORKS: usize = 32;

impl<'a> Keys<'a> {
    /// Returns the cluster network, which is `clusterNetwork` or the first element of `delegates`.
    /// Also returns the other elements of `delegates`.
    pub(super) fn cluster_network(
        &self,
    ) -> Result<(ClusterNetwork, Vec<Box<RawValue>>), NodeConfigError> {
        let name = self.text("clusterNetwork")?;
        let delegates: Option<Vec<Box<RawValue>>> = self.read("delegates")?;
        let mut delegates = delegates.unwrap_or_default();
        if let Some(name) = name.as_ref().filter(|_| !delegates.is_empty()) {
            return Err(self.invalid("clusterNetwork", name, ValueError::BesideDelegates));
        }
        self.check_count("delegates", delegates.len())?;
        for (index, delegate) in delegates.iter().enumerate() {
            NetworkConfig::parse(delegate.get().as_bytes()).map_err(|source| {
                let cause = ValueError::Delegate { index, source };
                self.invalid("delegates", delegate.get(), cause)
            })?;
        }
        match name {
            Some(name) => Ok((ClusterNetwork::Named(name), delegates)),
            None if delegates.is_empty() => Err(NodeConfigError::Missing {
                key: "clusterNetwork",
                remedy: "set clusterNetwork to the name or path of the cluster network's \
                         configuration, or put this configuration first in the list delegates",
            }),
            None => {
                let first = delegates.remove(0);
                Ok((ClusterNetwork::Inline(first), delegates))
            }
        }
    }

    fn check_count(&self, key: &str, count: usize) -> Result<(), NodeConfigError> {
        if count > MAX_DEFAULT_NETWORKS {
            return Err(self.invalid(
                key,
                &format!("a list of {count} networks"),
                ValueError::TooMany,
            ));
        }
        Ok(())
    }

    pub(super) fn name<T: FromStr<Err = NameError>>(
        &self,
        key: &'a str,
    ) -> Result<Option<T>, NodeConfigError> {
        let name = self.text(key)?;
        let parse = |name: String| {
            let parsed = name.parse();
            parsed.map_err(|cause| self.invalid(key, &name, ValueError::Name(cause)))
        };
        name.map(parse).transpose()
    }

    pub(super) fn default_networks(&self) -> Result<Vec<String>, NodeConfigError> {
        const KEY: &str = "defaultNetworks";
        let networks: Vec<String> = self.read(KEY)?.unwrap_or_default();
        self.check_count(KEY, networks.len())?;
        if networks.iter().any(|name| name.trim().is_empty()) {
            return Err(self.invalid(KEY, &format!("{networks:?}"), ValueError::EmptyName));
        }
        Ok(networks)
    }

    pub(super) fn system_namespaces(&self) -> Result<Vec<String>, NodeConfigError> {
        let names: Option<Vec<String>> = self.read("systemNamespaces")?;
        let names = names.unwrap_or_else(|| vec!["kube-system".into()]);
        self.namespaces("systemNamespaces", names)
    }

    pub(super) fn multus_namespace(&self) -> Result<String, NodeConfigError> {
        let name = self.text("multusNamespace")?;
        let name = name.unwrap_or_else(|| "kube-system".into());
        self.check_namespace("multusNamespace", &name)?;
        Ok(name)
    }

    pub(super) fn global_namespaces(&self) -> Result<Vec<String>, NodeConfigError> {
        let text = self.text("globalNamespaces")?;
        let text = text.unwrap_or_else(|| "default".into());
        let names = text.split(',').map(str::trim);
        let names = names.filter(|name| !name.is_empty()).map(str::to_owned);
        self.namespaces("globalNamespaces", names.collect())
    }

    fn namespaces(&self, key: &str, names: Vec<String>) -> Result<Vec<String>, NodeConfigError> {
        names
            .iter()
            .try_for_each(|name| self.check_namespace(key, name))?;
        Ok(names)
    }

    /// Refuses a name that no namespace can have.
    pub(in crate::request) fn check_namespace(
        &self,
        key: &str,
        name: &str,
    ) -> Result<(), NodeConfigError> {
        if is_label(name) {
            return Ok(());
        }
        Err(self.invalid(key, name, ValueError::Namespace))
    }

    pub(super) fn source(&self) -> Result<Source, NodeConfigError> {
        let folder = self.optional_path("manifestDir")?;
        let socket = self.optional_path("agentSocket")?;
        let kubeconfig = self.optional_path("kubeconfig")?;
        match folder {
            None => Ok(Source::Cluster {
                agent_socket: socket
                    .unwrap_or_else(|| PathBuf::from("/run/jackfield/agent/agent.sock")),
                kubeconfig,
            }),
            Some(folder) if socket.is_none() && kubeconfig.is_none() => Ok(Source::Folder(folder)),
            Some(folder) => {
                let value = folder.display().to_string();
                Err(self.invalid("manifestDir", &value, ValueError::BesideCluster))
            }
        }
    }
}
