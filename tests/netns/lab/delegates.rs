//! Delegates that are scripts: they note what they are told, or inject a fault.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;

use super::{Lab, real_plugins};

impl Lab {
    /// Puts a shell script into `binDir` as a delegate. `$LAB` in it is the lab's folder, `$REAL`
    /// the folder of the real plugins; stdin is the plugin configuration.
    pub(crate) fn delegate(&self, name: &str, script: &str) -> PathBuf {
        let text = format!(
            "#!/bin/bash\nLAB={}\nREAL={}\n{script}\n",
            self.path("").display(),
            real_plugins().display()
        );
        let path = self.write(&format!("bin/{name}"), &text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A delegate that notes each call in `log/calls` (`VERB interface name`) and its stdin in
    /// `log/NAME.VERB`, does what `script` says, and is the real plugin otherwise.
    pub(crate) fn recorder(&self, name: &str, real: &str, script: &str) {
        let text = format!(
            "stdin=$(cat)\n\
             echo \"$CNI_COMMAND $CNI_IFNAME {name}\" >>$LAB/log/calls\n\
             printf '%s\\n' \"$stdin\" >>$LAB/log/{name}.$CNI_COMMAND\n\
             {script}\n\
             exec $REAL/{real} <<<\"$stdin\""
        );
        self.delegate(name, &text);
    }

    /// A plugin for the end of a chain that records like [`Lab::recorder`] and passes on the
    /// result of those before it.
    pub(crate) fn bystander(&self, name: &str) {
        let script = "[ $CNI_COMMAND = ADD ] && jq -c '.prevResult' <<<\"$stdin\"; exit 0";
        self.recorder(name, "-", script);
    }

    /// The configurations that a recorder got with a verb.
    pub(crate) fn recorded(&self, name: &str, verb: &str) -> Vec<Value> {
        let lines = self.log(&format!("{name}.{verb}"));
        lines
            .iter()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    }

    /// What the lab's delegates noted in `log/NAME`, line by line.
    pub(crate) fn log(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path("log").join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}
