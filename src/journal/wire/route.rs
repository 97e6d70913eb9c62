//! Default routes that an attachment changes.
//!
//! Jackfield refuses a record in which a route has an unknown key, because Jackfield could not
//! restore this route exactly.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::List;
use crate::kernel::{self, DefaultRoute, RawAttribute};

/// One route.
#[derive(Serialize, Deserialize)]
#[serde(remote = "DefaultRoute", deny_unknown_fields)]
pub(in crate::journal) struct Route {
    #[serde(with = "Family")]
    family: kernel::Family,
    #[serde(with = "List::<NextHop>")]
    next_hops: Vec<kernel::NextHop>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metric: Option<u32>,
    protocol: u8,
    #[serde(default, skip_serializing_if = "is_zero")]
    scope: u8,
    #[serde(default, skip_serializing_if = "is_zero")]
    tos: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<IpNet>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefsrc: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_hop_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rest: Vec<RawAttribute>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "kernel::Family", rename_all = "lowercase")]
enum Family {
    V4,
    V6,
}

/// One next hop.
#[derive(Serialize, Deserialize)]
#[serde(remote = "kernel::NextHop", deny_unknown_fields)]
pub(super) struct NextHop {
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    onlink: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    extra_weight: u8,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rest: Vec<RawAttribute>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u8) -> bool {
    *number == 0
}
