//! Fuzz targets for network configurations, answers of plugins, and the node configuration.

use super::{accepted, said};
use crate::cni::{
    CapabilityArgs, CniResult, Error, Invocation, NetworkConfig, PluginConfig, RawObject,
    ResultError, ValidAttachment, Version,
};
use crate::delegate;
use crate::request::NodeConfig;
use crate::verify::IntendedFunction;

/// Parses a network configuration, as in the `spec.config` of a definition or in a file of
/// `confDir`. Checks that parsing the text of the configuration again gives the same configuration,
/// and that every plugin gets a valid plugin configuration.
pub(super) fn network_config(bytes: &[u8]) -> Option<()> {
    let config = accepted(NetworkConfig::parse(bytes))?;
    assert_eq!(
        NetworkConfig::parse(config.raw().as_bytes()),
        Ok(config.clone())
    );
    if let Err(error) = IntendedFunction::check(&config) {
        assert!(error.to_string().starts_with("plugin "));
    }
    let name = "net".parse().ok()?;
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
        if let Some(text) = accepted(request) {
            let handed = RawObject::parse(text.as_bytes()).map(PluginConfig::new);
            let handed = handed.map(|it| it.map(|it| it.plugin_type().clone()));
            assert_eq!(handed, Ok(Ok(plugin.plugin_type().clone())), "{text}");
        }
    }
    Some(())
}

/// Parses the standard output of a plugin, once for exit status 0 and once for exit status 1. Also
/// parses the output as a CNI error, and as a result in two CNI versions.
pub(super) fn plugin_answer(bytes: &[u8]) -> Option<()> {
    for status in [0, 1] {
        if let Some(answer) = accepted(delegate::judged(status, bytes)) {
            assert_eq!((status, answer.as_slice()), (0, bytes));
        }
    }
    if let Some(error) = Error::parse(bytes) {
        said(&error);
        let written = error.to_json(Version::LATEST);
        let code = Error::parse(written.as_bytes()).map(|it| it.code);
        assert_eq!(code, Some(error.code));
    }
    for config_version in [Version::V0_2_0, Version::LATEST] {
        if let Some(result) = accepted(CniResult::parse(bytes, config_version)) {
            writes_back(&result);
        }
    }
    Some(())
}

/// Writes a result in every CNI version that can express it. Checks that parsing the JSON and
/// writing it again gives the same JSON. CNI 1.1.0 must express the whole result.
fn writes_back(result: &CniResult) {
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
    let again = CniResult::parse(newest.as_bytes(), Version::LATEST);
    assert_eq!(again.as_ref(), Ok(result));
    let recorded = serde_json::from_str::<CniResult>(&newest).ok();
    assert_eq!(recorded.as_ref(), Some(result));
}

/// Parses the object on stdin: the node configuration, and the keys that the runtime adds.
pub(super) fn node_config(bytes: &[u8]) -> Option<()> {
    let object = accepted(RawObject::parse_stdin(bytes))?;
    accepted(ValidAttachment::read_list(&object));
    let node = accepted(NodeConfig::parse(&object))?;
    node.warnings.iter().for_each(|warning| said(warning));
    let mut denied = node.policy.rule("default")?.deny_keys.iter();
    assert!(denied.all(|key| !key.is_empty()));
    Some(())
}
