//! `default-route`: replaces the pod's default routes with routes through one attachment (NPWG 1.3
//! §4.1.2.1.9).
//!
//! The journal records this change of routes as part of the attachment. Jackfield writes the record
//! before it changes the routes. DEL of the attachment undoes the change. The results that
//! Jackfield reports for the pod's attachments do not contain the replaced routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use ipnet::IpNet;

use super::{Failure, OpenLinks};
use crate::cni::{CniResult, InterfaceName, Route};
use crate::journal::{RouteChange, Sandbox};
use crate::kernel::{DefaultRoute, Family, KernelError, PodLinks, PodNetns};
use crate::plan::Attachment;

/// The metric of the first gateway of a family, if the family has several gateways. Each further
/// gateway gets the next higher metric.
const FIRST_METRIC: u32 = 100;

/// Plans the change that replaces the default routes with routes via `gateways`. If `gateways` is
/// empty, both families lose their default routes. Otherwise, a family without a gateway keeps its
/// default routes.
///
/// # Errors
/// If the routes cannot be read.
pub fn plan(
    gateways: &[IpAddr],
    ifname: &InterfaceName,
    links: &mut dyn PodLinks,
) -> Result<RouteChange, KernelError> {
    let mut removed = links.default_routes()?;
    removed.retain(|route| takes(gateways, route.family));
    let mut added = Vec::with_capacity(gateways.len());
    for family in Family::ALL {
        let of_family = gateways.iter().filter(|it| Family::of(**it) == family);
        let several = of_family.clone().count() > 1;
        for (metric, gateway) in (FIRST_METRIC..).zip(of_family) {
            let metric = several.then_some(metric);
            added.push(DefaultRoute::via(*gateway, ifname.as_str(), metric));
        }
    }
    Ok(RouteChange { removed, added })
}

/// Returns the default routes that further networks have added since `change`. If `gateways` is
/// empty, returns the routes of both families. Otherwise returns only the routes of families with a
/// gateway.
///
/// # Errors
/// If the routes cannot be read.
pub fn added_since(
    change: &RouteChange,
    gateways: &[IpAddr],
    links: &mut dyn PodLinks,
) -> Result<Vec<DefaultRoute>, KernelError> {
    let mut routes = links.default_routes()?;
    routes.retain(|route| {
        let is_ours = change.added.iter().any(|added| same(added, route));
        takes(gateways, route.family) && !is_ours
    });
    Ok(routes)
}

/// Whether `gateways` replace the default routes of `family`. An empty list removes the default
/// routes of both families.
fn takes(gateways: &[IpAddr], family: Family) -> bool {
    gateways.is_empty() || gateways.iter().any(|it| Family::of(*it) == family)
}

/// Applies the change.
///
/// # Errors
/// - [`Failure::Gateway`] if a new route cannot be added, usually because its gateway is not
///   reachable through the interface.
/// - [`Failure::Kernel`] if a route cannot be removed.
pub fn apply(
    change: &RouteChange,
    attachment: &Attachment,
    links: &mut dyn PodLinks,
) -> Result<(), Failure> {
    for route in &change.removed {
        links.remove_default_route(route)?;
    }
    for route in &change.added {
        links.add_default_route(route).map_err(|cause| {
            Failure::Gateway(attachment.place(), route.to_string(), Box::new(cause))
        })?;
    }
    Ok(())
}

/// Checks that the added routes still exist, and that the removed routes are still absent. Skips
/// each removed route that equals an added route.
///
/// # Errors
/// - [`Failure::Route`] with the first route that differs.
/// - [`Failure::Kernel`] if the routes cannot be read.
pub fn prove(
    change: &RouteChange,
    attachment: &Attachment,
    links: &mut dyn PodLinks,
) -> Result<(), Failure> {
    let there = links.default_routes()?;
    let is_there = |route: &DefaultRoute| there.iter().any(|other| same(route, other));
    let finding = |route: &DefaultRoute, problem| Failure::Route {
        place: attachment.place(),
        route: route.to_string(),
        problem,
    };
    if let Some(gone) = change.added.iter().find(|route| !is_there(route)) {
        return Err(finding(gone, "was requested and is missing"));
    }
    let replaced = |route: &&DefaultRoute| !change.added.iter().any(|added| same(added, route));
    let mut removed = change.removed.iter().filter(replaced);
    match removed.find(|route| is_there(route)) {
        Some(back) => Err(finding(back, "was removed and is back")),
        None => Ok(()),
    }
}

/// Whether `found` has the family, next hops and metric of `wanted`. If `wanted` has no metric, any
/// metric of `found` matches, because the kernel chooses the metric of such a route.
fn same(wanted: &DefaultRoute, found: &DefaultRoute) -> bool {
    let way = |route: &DefaultRoute| -> Vec<_> {
        let hops = route.next_hops.iter();
        hops.map(|hop| (hop.gateway, hop.interface.clone()))
            .collect()
    };
    wanted.family == found.family
        && (wanted.metric.is_none() || wanted.metric == found.metric)
        && way(wanted) == way(found)
}

/// Undoes the change. Ignores a failure that no retry can resolve: for example, a route cannot be
/// restored if its interface no longer exists. Does nothing if the namespace is gone.
///
/// # Errors
/// A temporary failure, such as a lack of descriptors or memory. The pod may then lack its default
/// routes, so the caller must call `undo` again.
pub fn undo(change: &RouteChange, netns: &Path, open: &OpenLinks) -> Result<(), KernelError> {
    let opened = PodNetns::open(netns).map_err(KernelError::from);
    let Some(mut links) = unless_final(opened.and_then(|netns| open(&netns)))? else {
        return Ok(());
    };
    for route in &change.added {
        unless_final(links.remove_default_route(route))?;
    }
    for route in &change.removed {
        unless_final(links.add_default_route(route))?;
    }
    Ok(())
}

/// Returns an error only if a retry may succeed. Returns `None` for a final failure.
fn unless_final<T>(outcome: Result<T, KernelError>) -> Result<Option<T>, KernelError> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(cause) if cause.is_passing() => Err(cause),
        Err(_) => Ok(None),
    }
}

/// Returns the results of all attachments, without the default routes and gateways that
/// `default-route` clears (NPWG 1.3 §4.1.2.1.9). For each IP family that `default-route` affects:
/// - No result contains a default route of the family.
/// - Only the attachment with the key `default-route` keeps the gateways of its addresses.
pub fn reflected(sandbox: &Sandbox) -> Vec<Option<CniResult>> {
    let results = sandbox.progress.iter().map(|it| it.result.clone());
    let mut results: Vec<Option<CniResult>> = results.collect();
    let mut attachments = sandbox.header.attachments.iter().enumerate();
    let taker = attachments.find_map(|(index, it)| Some((index, it.default_route.as_ref()?)));
    let Some((taker, gateways)) = taker else {
        return results;
    };
    let taken = |address: IpAddr| takes(gateways, Family::of(address));
    for (index, result) in results.iter_mut().enumerate() {
        let Some(result) = result else { continue };
        let routes = &mut result.routes;
        routes.retain(|route| !(route.dst.prefix_len() == 0 && taken(route.dst.addr())));
        if index != taker {
            let cleared = result.ips.iter_mut().filter(|ip| taken(ip.address.addr()));
            cleared.for_each(|ip| ip.gateway = None);
        }
    }
    results
}

/// Returns the results for the runtime and for network-status: the [`reflected`] results with the
/// new default routes and gateways (CNI 1.1.0 §5 ADD Success: routes). CHECK passes only the
/// reflected results to the plugins, because the plugins did not create the new routes.
pub fn answered(sandbox: &Sandbox) -> Vec<Option<CniResult>> {
    let mut results = reflected(sandbox);
    let attachments = sandbox.header.attachments.iter().zip(&sandbox.progress);
    for ((attachment, attached), result) in attachments.zip(&mut results) {
        let (Some(gateways), Some(result)) = (&attachment.default_route, result) else {
            continue;
        };
        for ip in &mut result.ips {
            if takes(gateways, Family::of(ip.address.addr())) {
                ip.gateway = gateways.iter().find(|it| ip.address.contains(*it)).copied();
            }
        }
        let added = attached.routes.added.iter();
        result.routes.extend(added.filter_map(as_answered));
    }
    results
}

/// Returns an added route as a plugin would report it in its result.
fn as_answered(route: &DefaultRoute) -> Option<Route> {
    let gateway = route.next_hops.first()?.gateway?;
    let any: IpAddr = match route.family {
        Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
        Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
    };
    Some(Route {
        dst: IpNet::new(any, 0).ok()?,
        gw: Some(gateway),
        mtu: None,
        advmss: None,
        priority: route.metric,
        table: None,
        scope: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fake::FakeLinks;

    #[test]
    fn routes_added_by_later_networks_are_replaced() {
        let gateways = ["10.1.0.1".parse().unwrap()];
        let via = |ifname, metric| DefaultRoute::via(gateways[0], ifname, metric);
        let six = DefaultRoute::via("fd00::1".parse().unwrap(), "net2", None);
        let change = RouteChange {
            removed: vec![via("eth0", None)],
            added: vec![via("net1", None)],
        };
        let mut links = FakeLinks {
            routes: vec![via("net1", Some(0)), via("net2", Some(7)), six],
            ..FakeLinks::default()
        };
        let added = added_since(&change, &gateways, &mut links).unwrap();
        assert_eq!(added, [via("net2", Some(7))]);
    }
}
