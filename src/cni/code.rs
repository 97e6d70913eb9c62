//! The error codes of CNI and of Jackfield.

/// One error code: its name, its meaning and the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// The value of the key `code` in a CNI error.
    pub number: u32,
    /// A short name.
    pub name: &'static str,
    /// What happened.
    pub meaning: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

/// Returns the entry with this number, or `None` if the table does not have the number.
pub fn lookup(number: u32) -> Option<&'static Code> {
    TABLE.iter().find(|code| code.number == number)
}

macro_rules! codes {
    ($($constant:ident = $number:literal, $name:literal, $meaning:literal, $remedy:literal;)*) => {
        $(
            #[doc = concat!($meaning, ".")]
            ///
            #[doc = concat!("Remedy: ", $remedy, ".")]
            pub const $constant: u32 = $number;
        )*

        /// Every code in ascending order. `docs/errors.md` is generated from this table.
        ///
        /// CNI defines the codes from 1 to 99 (CNI 1.1.0 §5 "Error" and §2 "STATUS"). Jackfield
        /// defines the codes from 100 on.
        pub const TABLE: &[Code] = &[$(Code {
            number: $number,
            name: $name,
            meaning: $meaning,
            remedy: $remedy,
        }),*];
    };
}

codes! {
    INCOMPATIBLE_VERSION = 1, "incompatible CNI version",
        "Jackfield does not support the configuration's CNI version, or this version lacks the verb that the runtime calls, or this version cannot express the result",
        "raise `cniVersion`, or set it to a version that the message lists";
    UNSUPPORTED_FIELD = 2, "unsupported field",
        "A plugin does not support the value of a key. If Jackfield does not support a value in its own configuration, it returns code 7 instead",
        "change the key that the message names";
    UNKNOWN_CONTAINER = 3, "unknown container",
        "A plugin does not know the container",
        "nothing";
    INVALID_ENVIRONMENT = 4, "invalid environment",
        "A variable of the call is missing or invalid",
        "check how the container runtime calls its plugins";
    IO_FAILURE = 5, "I/O failure",
        "Jackfield could not read stdin or use a file, or the kernel did not answer",
        "check the file or operation that the message names";
    DECODING_FAILURE = 6, "decoding failure",
        "The configuration on stdin is not JSON, its `cniVersion` is not a string, or its `prevResult` is not a CNI result",
        "correct the configuration file, or the program that passes `prevResult`";
    INVALID_NETWORK_CONFIG = 7, "invalid network configuration",
        "A key of the configuration is missing or has an invalid value",
        "correct the key that the message names";
    INVALID_NETNS = 8, "invalid network namespace",
        "The network namespace is the host's",
        "give the sandbox a separate network namespace";
    TRY_AGAIN_LATER = 11, "try again later",
        "Something that the call needs is not ready yet",
        "wait for the runtime to retry; if the error persists, check what the message names";
    NOT_AVAILABLE = 50, "plugin not available",
        "No pod can be attached now",
        "check what the message names, for example a plugin, the agent or the journal";
    LIMITED_CONNECTIVITY = 51, "limited connectivity",
        "No pod can be attached now, and attached pods may have lost connectivity",
        "check the plugin that the message names";
    DELEGATE = 100, "delegate failed",
        "A delegate failed; the error's `details` contain the delegate's code",
        "follow the delegate's message";
    SELECTION = 101, "invalid selection",
        "The networks annotation of the pod is invalid, contradicts itself, or requests a name or address that is in use. Or the container is attached already",
        "correct the annotation of the pod; if the container is attached already, send a DEL first";
    NETWORK = 102, "network not usable",
        "A definition is missing or unreadable, its configuration is invalid, or one of its plugins is not installed",
        "create or correct the definition that the message names, or install the plugin";
    CAPABILITY = 103, "capability not declared",
        "The pod requests a capability that no plugin of the network declares",
        "declare the capability in the definition; for `ips` and `mac`, you can set `undeclared` to `args` in the node configuration instead";
    DEVICES = 104, "devices",
        "The pod does not have the devices that its networks need, or Jackfield cannot find out which devices the pod has. Or a device is in use, is unfit for its network, or still has the previous pod's MAC, GUID or VLAN. Or a network would take a device or interface that the node itself needs",
        "compare the pod's resource requests with the `resourceName` of its networks, and check the device or interface that the message names";
    VERIFICATION = 105, "verification failed",
        "The kernel does not show what the pod requested or what the delegate reported",
        "check the delegate that the message names";
    TEARDOWN_INCOMPLETE = 106, "teardown incomplete",
        "Jackfield could not detach a network or restore a device, and must retry",
        "wait for Jackfield to retry; `jackfield doctor` lists the failed detachments";
    CLUSTER = 107, "cluster",
        "The cluster does not have the pod. Or the pod's UID differs from the UID that the runtime passed. Or Jackfield cannot read from the API server or the folder of manifests",
        "check the agent, the API server or the folder of manifests";
    RESTRICTED = 108, "restricted",
        "`namespaceIsolation` or `policy` does not allow this network or this use of the network. Or `dynamicAttachment` does not allow changes of running pods",
        "create the definition in the pod's namespace, extend `policy`, or set `dynamicAttachment` to `true`";
    JOURNAL = 109, "journal",
        "Jackfield cannot read or write the journal, or a CHECK finds no usable record in it. The journal records what is attached",
        "check the directory that `journalDir` names";
}

#[cfg(test)]
mod tests {
    use super::*;

    // clause: CNI-1.1.0 §5 codes: Jackfield defines the codes from 100 on
    #[test]
    fn every_code_is_unique_and_has_a_description() {
        assert!(TABLE.is_sorted_by(|one, next| one.number < next.number));
        for code in TABLE {
            assert!(code.number < 52 || (100..=109).contains(&code.number));
            assert!(!code.name.is_empty() && !code.meaning.is_empty() && !code.remedy.is_empty());
            assert_eq!(lookup(code.number), Some(code));
        }
        assert_eq!(lookup(9), None);
    }
}
