//! Network configurations, what plugins answer, and the node's own configuration.

use super::said;
use crate::cni::{
    CapabilityArgs, CniResult, Error, Invocation, NetworkConfig, PluginConfig, RawObject,
    ResultError, ValidAttachment, Version,
};
use crate::delegate;
use crate::request::NodeConfig;
use crate::verify::IntendedFunction;

/// A definition's `spec.config`, or a file of `confDir`: it reads back from its own text, and each
/// of its plugins gets a configuration that is one.
pub(super) fn network_config(bytes: &[u8]) {
    let config = match NetworkConfig::parse(bytes) {
        Ok(config) => config,
        Err(error) => return said(&error),
    };
    assert_eq!(
        NetworkConfig::parse(config.raw().as_bytes()),
        Ok(config.clone())
    );
    if let Err(error) = IntendedFunction::check(&config) {
        assert!(error.to_string().starts_with("plugin "));
    }
    let Ok(name) = "net".parse() else { return };
    let capability_args = CapabilityArgs::new();
    let result = CniResult::default();
    for plugin in config.plugins() {
        let request = plugin.request(&Invocation {
            name: &name,
            version: config.version(),
            prev_result: Some(&result),
            capability_args: &capability_args,
            cni_args: None,
            inject: &[],
            valid_attachments: None,
        });
        match request {
            Err(error) => said(&error),
            Ok(text) => {
                let handed = RawObject::parse(text.as_bytes()).map(PluginConfig::new);
                let handed = handed.map(|it| it.map(|it| it.plugin_type().clone()));
                assert_eq!(handed, Ok(Ok(plugin.plugin_type().clone())), "{text}");
            }
        }
    }
}

/// What a plugin leaves on its standard output, with either exit status.
pub(super) fn plugin_answer(bytes: &[u8]) {
    for status in [0, 1] {
        match delegate::judged(status, bytes) {
            Ok(answer) => assert_eq!((status, answer.as_slice()), (0, bytes)),
            Err(error) => said(&error),
        }
    }
    if let Some(error) = Error::parse(bytes) {
        said(&error);
        let written = error.to_json(Version::LATEST);
        let code = Error::parse(written.as_bytes()).map(|it| it.code);
        assert_eq!(code, Some(error.code));
    }
    result(bytes);
}

/// A result in any version: what a version can say reads back, and 1.1.0 can say all.
fn result(bytes: &[u8]) {
    for config_version in [Version::V0_2_0, Version::LATEST] {
        let result = match CniResult::parse(bytes, config_version) {
            Ok(result) => result,
            Err(error) => {
                said(&error);
                continue;
            }
        };
        for version in Version::ALL {
            match result.to_json(version) {
                Ok(text) => {
                    let again = CniResult::parse(text.as_bytes(), version);
                    let again = again.and_then(|again| again.to_json(version));
                    assert_eq!(again, Ok(text));
                }
                Err(error) => assert_eq!(error, ResultError::NoAddress(version)),
            }
        }
        let newest = result.to_json(Version::LATEST).unwrap_or_default();
        assert_eq!(
            CniResult::parse(newest.as_bytes(), Version::LATEST),
            Ok(result.clone())
        );
        let recorded: Option<CniResult> = serde_json::from_str(&newest).ok();
        assert_eq!(recorded, Some(result));
    }
}

/// The configuration on stdin, with what travels along.
pub(super) fn node_config(bytes: &[u8]) {
    let object = match RawObject::parse_stdin(bytes) {
        Ok(object) => object,
        Err(error) => return said(&error),
    };
    match NodeConfig::parse(&object) {
        Err(error) => said(&error),
        Ok(node) => {
            node.warnings.iter().for_each(|warning| said(warning));
            assert!(
                node.policy
                    .rule("default")
                    .is_none_or(|rule| { rule.deny_keys.iter().all(|key| !key.is_empty()) })
            );
        }
    }
    if let Err(error) = ValidAttachment::read_list(&object) {
        said(&error);
    }
}
