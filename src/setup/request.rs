//! A call about the whole node, which no runtime makes.

use crate::cni::RawObject;
use crate::request::{Call, Request, RequestError};

/// The request of a configuration without a pod.
///
/// # Errors
/// When the configuration is invalid.
pub(super) fn about_the_node(conf: RawObject, cni_path: &str) -> Result<Request, RequestError> {
    let call = Call::read(|wanted| match wanted {
        "CNI_COMMAND" => Some("STATUS".to_owned()),
        "CNI_PATH" => Some(cni_path.to_owned()),
        _ => None,
    })?;
    Request::for_people(call, conf)
}
