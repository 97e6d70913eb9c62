//! A call of one of the suite's plugins.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::case::{Stop, present};

/// One call, from the environment and stdin.
pub(super) struct PluginCall {
    pub(super) verb: String,
    pub(super) container: String,
    pub(super) ifname: String,
    /// `None` if the network namespace is gone.
    pub(super) netns: Option<String>,
    pub(super) conf: Value,
}

impl PluginCall {
    pub(super) fn read(stdin: &[u8]) -> Result<Self, Stop> {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let netns = variable("CNI_NETNS");
        let name = Path::new(&netns).file_name();
        Ok(Self {
            verb: variable("CNI_COMMAND"),
            container: variable("CNI_CONTAINERID"),
            ifname: variable("CNI_IFNAME"),
            netns: name
                .and_then(|name| name.to_str().map(str::to_owned))
                .filter(|_| Path::new(&netns).exists()),
            conf: serde_json::from_slice(stdin)?,
        })
    }

    /// Returns a text of the pod's request, otherwise of the configuration.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.conf["runtimeConfig"][key]
            .as_str()
            .or_else(|| self.conf[key].as_str())
    }

    /// Returns the network namespace's name, which an attaching plugin needs.
    pub(super) fn netns(&self) -> Result<&str, Stop> {
        present("CNI_NETNS", self.netns.as_deref())
    }

    /// Returns the allocated device.
    pub(super) fn device(&self) -> Result<&str, Stop> {
        present("deviceID", self.text("deviceID"))
    }

    /// Returns the file that keeps what DEL needs, in the configuration's folder `dataDir`.
    pub(super) fn cache(&self) -> Result<PathBuf, Stop> {
        let folder = Path::new(present("dataDir", self.text("dataDir"))?);
        fs::create_dir_all(folder)?;
        Ok(folder.join(format!("{}-{}", self.container, self.ifname)))
    }

    /// Returns a result with one interface in the pod, or with none.
    pub(super) fn result(&self, mac: Option<&str>) -> Value {
        let interface = mac.map(|mac| {
            let sandbox = std::env::var("CNI_NETNS").unwrap_or_default();
            json!({ "name": self.ifname, "mac": mac, "sandbox": sandbox })
        });
        let interfaces: Vec<Value> = interface.into_iter().collect();
        json!({ "cniVersion": self.conf["cniVersion"], "interfaces": interfaces })
    }

    /// Returns the result of the previous plugin in the chain.
    pub(super) fn previous(&self) -> Value {
        self.conf["prevResult"].clone()
    }
}
