//! Requests about the whole node. The rehearsal of a takeover, the uninstall and the doctor use them
//! in place of a request from the runtime.

use crate::cni::RawObject;
use crate::request::{Call, Request, RequestError};

/// Makes a request from a configuration. The request names no pod.
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
