//! Default routes that an attachment changes.
//!
//! A release that does not know a key of a route could not put the route back, so it refuses the record.

use std::borrow::Cow;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::journal::steps;
use crate::kernel::{DefaultRoute, Family, NextHop, RawAttribute};

/// The routes of one attachment: [`steps::RouteChange`].
#[derive(Serialize, Deserialize)]
pub(in crate::journal) struct RouteChange<'a> {
    removed: Vec<Route<'a>>,
    added: Vec<Route<'a>>,
}

impl<'a> From<&'a steps::RouteChange> for RouteChange<'a> {
    fn from(change: &'a steps::RouteChange) -> RouteChange<'a> {
        RouteChange {
            removed: change.removed.iter().map(Route::from).collect(),
            added: change.added.iter().map(Route::from).collect(),
        }
    }
}

impl From<RouteChange<'_>> for steps::RouteChange {
    fn from(change: RouteChange<'_>) -> steps::RouteChange {
        steps::RouteChange {
            removed: change.removed.into_iter().map(Into::into).collect(),
            added: change.added.into_iter().map(Into::into).collect(),
        }
    }
}

/// One route: [`DefaultRoute`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Route<'a> {
    family: RouteFamily,
    next_hops: Vec<Hop<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metric: Option<u32>,
    protocol: u8,
    #[serde(default, skip_serializing_if = "is_zero")]
    scope: u8,
    #[serde(default, skip_serializing_if = "is_zero")]
    tos: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<IpNet>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prefsrc: Option<IpAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_hop_id: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<u32>,
    #[serde(default, skip_serializing_if = "is_empty")]
    rest: Cow<'a, [RawAttribute]>,
}

/// [`Family`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RouteFamily {
    V4,
    V6,
}

/// One next hop: [`NextHop`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hop<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gateway: Option<IpAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interface: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    onlink: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    extra_weight: u8,
    #[serde(default, skip_serializing_if = "is_empty")]
    rest: Cow<'a, [RawAttribute]>,
}

impl<'a> From<&'a DefaultRoute> for Route<'a> {
    fn from(route: &'a DefaultRoute) -> Route<'a> {
        Route {
            family: match route.family {
                Family::V4 => RouteFamily::V4,
                Family::V6 => RouteFamily::V6,
            },
            next_hops: route.next_hops.iter().map(Hop::from).collect(),
            metric: route.metric,
            protocol: route.protocol,
            scope: route.scope,
            tos: route.tos,
            from: route.from,
            prefsrc: route.prefsrc,
            next_hop_id: route.next_hop_id,
            expires: route.expires,
            rest: Cow::Borrowed(&route.rest),
        }
    }
}

impl From<Route<'_>> for DefaultRoute {
    fn from(route: Route<'_>) -> DefaultRoute {
        DefaultRoute {
            family: match route.family {
                RouteFamily::V4 => Family::V4,
                RouteFamily::V6 => Family::V6,
            },
            next_hops: route.next_hops.into_iter().map(NextHop::from).collect(),
            metric: route.metric,
            protocol: route.protocol,
            scope: route.scope,
            tos: route.tos,
            from: route.from,
            prefsrc: route.prefsrc,
            next_hop_id: route.next_hop_id,
            expires: route.expires,
            rest: route.rest.into_owned(),
        }
    }
}

impl<'a> From<&'a NextHop> for Hop<'a> {
    fn from(hop: &'a NextHop) -> Hop<'a> {
        Hop {
            gateway: hop.gateway,
            interface: hop.interface.as_deref().map(Cow::Borrowed),
            onlink: hop.onlink,
            extra_weight: hop.extra_weight,
            rest: Cow::Borrowed(&hop.rest),
        }
    }
}

impl From<Hop<'_>> for NextHop {
    fn from(hop: Hop<'_>) -> NextHop {
        NextHop {
            gateway: hop.gateway,
            interface: hop.interface.map(Cow::into_owned),
            onlink: hop.onlink,
            extra_weight: hop.extra_weight,
            rest: hop.rest.into_owned(),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(number: &u8) -> bool {
    *number == 0
}

fn is_empty(attributes: &[RawAttribute]) -> bool {
    attributes.is_empty()
}
