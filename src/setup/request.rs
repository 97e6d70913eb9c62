//! A call about the whole node, as no runtime makes it.

use crate::cni::RawObject;
use crate::request::{Call, Request};

/// The request that a configuration makes when nobody's pod is meant.
///
/// # Errors
/// One line about what is wrong with the configuration.
pub(super) fn about_the_node(conf: RawObject, cni_path: &str) -> Result<Request, String> {
    let call = Call::read(|wanted| match wanted {
        "CNI_COMMAND" => Some("STATUS".to_owned()),
        "CNI_PATH" => Some(cni_path.to_owned()),
        _ => None,
    })
    .map_err(|error| error.to_string())?;
    Request::for_people(call, conf).map_err(|error| error.to_string())
}
