//! The file in which Multus lists the delegates of a sandbox, with one element per network.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{CacheError, CachedAttachment, config, decoded};
use crate::cni::{CapabilityArgs, InterfaceName, NetworkConfig, RawObject};
use crate::journal::Key;

/// One element of the file. `Bytes` contains the configuration of the network.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delegate {
    #[serde(rename = "Name")]
    name: Option<String>,
    #[serde(rename = "ifnameRequest")]
    ifname: Option<String>,
    #[serde(rename = "macRequest")]
    mac: Option<String>,
    #[serde(rename = "infinibandGUIDRequest")]
    guid: Option<String>,
    #[serde(rename = "ipRequest")]
    ips: Option<Vec<String>>,
    #[serde(rename = "deviceID")]
    device: Option<String>,
    #[serde(rename = "Bytes")]
    config: Option<String>,
    /// The complete configuration that Multus passed to the plugins. Multus has written this field
    /// since release 4.3. If the network is a configuration list, `Bytes` contains only the keys
    /// that Multus' Go types define. So Jackfield prefers this field to `Bytes`.
    #[serde(rename = "CNINetworkConfigList")]
    list: Option<List>,
}

/// A configuration list in the form of libcni's Go type.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct List {
    name: Option<String>,
    #[serde(rename = "CNIVersion")]
    version: Option<String>,
    plugins: Option<Vec<Plugin>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Plugin {
    bytes: Option<String>,
}

impl List {
    /// Returns the list as a network configuration; `None` if the list contains no plugin.
    fn config(&self) -> Result<Option<NetworkConfig>, CacheError> {
        let plugins = self.plugins.as_deref().unwrap_or_default();
        if plugins.is_empty() {
            return Ok(None);
        }
        let plugins = plugins.iter().map(|plugin| {
            let bytes = decoded(plugin.bytes.as_deref())?;
            Ok(RawObject::parse_configuration(&bytes)?)
        });
        let plugins = plugins.collect::<Result<Vec<_>, CacheError>>()?;
        let list = serde_json::json!({
            "cniVersion": self.version, "name": self.name, "plugins": plugins,
        });
        Ok(Some(NetworkConfig::parse(list.to_string().as_bytes())?))
    }
}

impl Delegate {
    pub(super) fn parse(raw: Option<Box<RawValue>>) -> Result<Delegate, CacheError> {
        let raw = raw.ok_or(CacheError::Null)?;
        Ok(serde_json::from_str(raw.get())?)
    }

    pub(super) fn attachment(
        self,
        position: usize,
        key: &Key,
    ) -> Result<CachedAttachment, CacheError> {
        let ifname: InterfaceName = match self.ifname.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => name.parse()?,
            None if position == 0 => key.ifname.clone(),
            None => InterfaceName::numbered("net", position),
        };
        let listed = self.list.as_ref().map(List::config).transpose()?.flatten();
        let config = match listed {
            Some(config) => config,
            None => config(self.config.as_deref())?,
        };
        let label = self.name.unwrap_or_default();
        let mut args = CapabilityArgs::new();
        let mut extra_args = Vec::new();
        let texts = [
            ("mac", Some("MAC"), self.mac),
            ("infinibandGUID", None, self.guid),
            ("deviceID", None, self.device),
        ];
        for (capability, variable, value) in texts {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                args.insert(capability, &value)?;
                extra_args.extend(variable.map(|variable| (variable.to_owned(), value)));
            }
        }
        if let Some(ips) = self.ips.filter(|ips| !ips.is_empty()) {
            args.insert("ips", &ips)?;
            extra_args.push(("IP".to_owned(), ips.join(",")));
        }
        let mut cached = CachedAttachment::bare(label, position == 0, ifname, config)?;
        cached.attachment.capability_args = args;
        cached.attachment.extra_args = extra_args;
        Ok(cached)
    }
}
