//! The keys whose values need more than a check of their type.

use std::path::PathBuf;

use serde_json::value::RawValue;

use super::keys::{Keys, invalid};
use super::{ClusterNetwork, NodeConfigError, Source, ValueError};
use crate::cni::{NetworkConfig, NetworkName};
use crate::npwg::ObjectRef;
use crate::request::deadlines::Deadlines;
use crate::request::log::{Level, Log, Rotation};
use crate::request::policy::Policy;

/// How many `defaultNetworks` or `delegates` a configuration may have.
pub(super) const MAX_DEFAULT_NETWORKS: usize = 32;

/// Refuses an invalid name, which would match no namespace.
fn namespace(key: &'static str, name: &str) -> Result<(), NodeConfigError> {
    // The name of the object does not matter.
    match ObjectRef::new(name, "any") {
        Ok(_) => Ok(()),
        Err(_) => Err(invalid(key, name, ValueError::Namespace)),
    }
}

impl Keys<'_> {
    /// The cluster network, and the further elements of `delegates`.
    pub(super) fn cluster_network(
        &self,
    ) -> Result<(ClusterNetwork, Vec<Box<RawValue>>), NodeConfigError> {
        let name = self.text("clusterNetwork")?;
        let delegates: Option<Vec<Box<RawValue>>> = self.read("delegates")?;
        let mut delegates = delegates.unwrap_or_default();
        if let Some(name) = name.as_ref().filter(|_| !delegates.is_empty()) {
            return Err(invalid("clusterNetwork", name, ValueError::BesideDelegates));
        }
        if delegates.len() > MAX_DEFAULT_NETWORKS {
            let count = delegates.len().to_string();
            return Err(invalid("delegates", &count, ValueError::TooMany));
        }
        for (index, delegate) in delegates.iter().enumerate() {
            NetworkConfig::parse(delegate.get().as_bytes()).map_err(|source| {
                let cause = ValueError::Delegate { index, source };
                invalid("delegates", delegate.get(), cause)
            })?;
        }
        match name {
            Some(name) => Ok((ClusterNetwork::Named(name), delegates)),
            None if delegates.is_empty() => Err(NodeConfigError::Missing {
                key: "clusterNetwork",
                remedy: "name the cluster network's configuration, or put it first in delegates",
            }),
            None => {
                let first = delegates.remove(0);
                Ok((ClusterNetwork::Inline(first), delegates))
            }
        }
    }

    pub(super) fn auxiliary_chain(&self) -> Result<Option<NetworkName>, NodeConfigError> {
        const KEY: &str = "auxiliaryCNIChainName";
        let name = self.text(KEY)?;
        let parse = |name: String| {
            let parsed = name.parse();
            parsed.map_err(|cause| invalid(KEY, &name, ValueError::Name(cause)))
        };
        name.map(parse).transpose()
    }

    pub(super) fn default_networks(&self) -> Result<Vec<String>, NodeConfigError> {
        let networks = self.list("defaultNetworks")?.unwrap_or_default();
        if networks.len() > MAX_DEFAULT_NETWORKS {
            let count = networks.len().to_string();
            return Err(invalid("defaultNetworks", &count, ValueError::TooMany));
        }
        if networks.iter().any(|name| name.trim().is_empty()) {
            let value = format!("{networks:?}");
            return Err(invalid("defaultNetworks", &value, ValueError::EmptyName));
        }
        Ok(networks)
    }

    pub(super) fn system_namespaces(&self) -> Result<Vec<String>, NodeConfigError> {
        const KEY: &str = "systemNamespaces";
        let names = self.list(KEY)?;
        let names = names.unwrap_or_else(|| vec!["kube-system".into()]);
        names.iter().try_for_each(|name| namespace(KEY, name))?;
        Ok(names)
    }

    pub(super) fn multus_namespace(&self) -> Result<String, NodeConfigError> {
        const KEY: &str = "multusNamespace";
        let name = self.text(KEY)?.unwrap_or_else(|| "kube-system".into());
        namespace(KEY, &name)?;
        Ok(name)
    }

    pub(super) fn global_namespaces(&self) -> Result<Vec<String>, NodeConfigError> {
        const KEY: &str = "globalNamespaces";
        let text = self.text(KEY)?.unwrap_or_else(|| "default".into());
        let names = text.split(',').map(str::trim);
        let names = names.filter(|name| !name.is_empty());
        names
            .map(|name| namespace(KEY, name).map(|()| name.to_owned()))
            .collect()
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
                Err(invalid("manifestDir", &value, ValueError::BesideCluster))
            }
        }
    }

    pub(super) fn log(&self) -> Result<Log, NodeConfigError> {
        let options = self.object("logOptions")?;
        Ok(Log {
            file: self.optional_path("logFile")?,
            level: self
                .choice("logLevel", &Level::NAMES)?
                .unwrap_or(Level::Error),
            to_stderr: self.flag("logToStderr")?.unwrap_or(true),
            rotation: Rotation::try_from(&options).map_err(|cause| {
                let value = options.to_string();
                invalid("logOptions", &value, ValueError::LogOptions(cause))
            })?,
        })
    }

    pub(super) fn policy(&self) -> Result<Policy, NodeConfigError> {
        let wire = self.object("policy")?;
        Policy::try_from(&wire)
            .map_err(|cause| invalid("policy", &wire.to_string(), ValueError::Policy(cause)))
    }

    pub(super) fn deadlines(&self) -> Result<Deadlines, NodeConfigError> {
        let wire = self.object("deadlines")?;
        Deadlines::try_from(&wire).map_err(NodeConfigError::Deadline)
    }
}
