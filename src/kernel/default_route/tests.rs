//! Reads and writes default routes without a kernel.

use netlink_packet_core::{Emitable, Parseable};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteCacheInfo, RouteFlags, RouteMessage, RouteMetric,
    RouteNextHop, RouteNextHopFlags, RoutePreference, RouteProtocol, RouteScope, RouteType,
};

use super::*;
use crate::kernel::KernelError;

fn v4(text: &str) -> RouteAddress {
    RouteAddress::Inet(text.parse().unwrap())
}

fn message(family: AddressFamily, attributes: Vec<RouteAttribute>) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family;
    message.header.table = 254;
    message.header.kind = RouteType::Unicast;
    message.header.protocol = RouteProtocol::Boot;
    message.attributes = attributes;
    message
}

fn read(message: &RouteMessage, family: Family) -> DefaultRoute {
    DefaultRoute::read(message, family, |index| {
        Ok::<_, KernelError>(Some(format!("net{index}")))
    })
    .unwrap()
}

fn write(route: &DefaultRoute) -> RouteMessage {
    let message = route
        .write(|name| Ok(name.strip_prefix("net").and_then(|n| n.parse().ok())))
        .unwrap();
    // Encode the message and parse it again, which turns raw attributes into parsed ones.
    let mut octets = vec![0; message.buffer_len()];
    message.emit(&mut octets);
    RouteMessage::parse(octets.as_slice()).unwrap()
}

fn sorted(mut attributes: Vec<RouteAttribute>) -> Vec<String> {
    let mut texts: Vec<_> = attributes.drain(..).map(|a| format!("{a:?}")).collect();
    texts.sort();
    texts
}

#[test]
fn every_kind_of_route_is_written_as_it_was_read() {
    let mut plain = message(
        AddressFamily::Inet,
        vec![
            RouteAttribute::Gateway(v4("10.0.0.1")),
            RouteAttribute::Oif(3),
            RouteAttribute::Priority(7),
            RouteAttribute::PrefSource(v4("10.0.0.9")),
            RouteAttribute::Metrics(vec![
                RouteMetric::Lock(4),
                RouteMetric::Mtu(1400),
                RouteMetric::Advmss(1300),
                RouteMetric::CcAlgo("bbr".to_owned()),
            ]),
        ],
    );
    plain.header.flags = RouteFlags::Onlink;
    plain.header.tos = 8;
    plain.header.scope = RouteScope::Link;
    let hop = |index, gateway, hops, flags| {
        let mut hop = RouteNextHop::default();
        hop.interface_index = index;
        hop.hops = hops;
        hop.flags = flags;
        hop.attributes = vec![RouteAttribute::Gateway(v4(gateway))];
        hop
    };
    let multipath = message(
        AddressFamily::Inet,
        vec![RouteAttribute::MultiPath(vec![
            hop(3, "10.0.0.1", 0, RouteNextHopFlags::Onlink),
            hop(4, "10.1.0.1", 9, RouteNextHopFlags::empty()),
        ])],
    );
    let by_ipv6 = message(
        AddressFamily::Inet,
        vec![
            RouteAttribute::Via("fe80::1".parse::<IpAddr>().unwrap().into()),
            RouteAttribute::Oif(3),
        ],
    );
    let mut from = message(
        AddressFamily::Inet6,
        vec![
            RouteAttribute::Source(RouteAddress::Inet6("2001:db8::".parse().unwrap())),
            RouteAttribute::Gateway(RouteAddress::Inet6("fe80::1".parse().unwrap())),
            RouteAttribute::Oif(3),
            RouteAttribute::Priority(1024),
            RouteAttribute::Preference(RoutePreference::High),
        ],
    );
    from.header.source_prefix_length = 64;
    for (before, family) in [
        (plain, Family::V4),
        (multipath, Family::V4),
        (by_ipv6, Family::V4),
        (from, Family::V6),
    ] {
        let route = read(&before, family);
        let after = write(&route);
        assert_eq!(after.header, before.header, "{route}");
        assert_eq!(
            sorted(after.attributes),
            sorted(before.attributes),
            "{route}"
        );
    }
}

#[test]
fn flags_that_the_kernel_derives_are_not_written_back() {
    let mut dead = message(
        AddressFamily::Inet6,
        vec![
            RouteAttribute::Table(254),
            RouteAttribute::Oif(3),
            RouteAttribute::CacheInfo(RouteCacheInfo::parse(&[0; 32]).unwrap()),
        ],
    );
    dead.header.flags = RouteFlags::Dead | RouteFlags::Linkdown | RouteFlags::RtOffload;
    let written = write(&read(&dead, Family::V6));
    assert_eq!(written.header.flags, RouteFlags::empty());
    assert_eq!(written.attributes, [RouteAttribute::Oif(3)]);
}

#[test]
fn a_route_that_expires_keeps_its_remaining_seconds() {
    for (ticks, seconds) in [
        (0, None),
        (1, Some(1)),
        (179_950, Some(1800)),
        (u32::MAX, Some(1)),
    ] {
        let mut info = RouteCacheInfo::parse(&[0; 32]).unwrap();
        info.expires = ticks;
        let route = read(
            &message(
                AddressFamily::Inet6,
                vec![RouteAttribute::Oif(3), RouteAttribute::CacheInfo(info)],
            ),
            Family::V6,
        );
        assert_eq!(route.expires, seconds);
    }
}

#[test]
fn a_next_hop_object_is_written_without_its_next_hops() {
    let object = message(
        AddressFamily::Inet,
        vec![
            RouteAttribute::NhId(12),
            RouteAttribute::Gateway(v4("10.0.0.1")),
            RouteAttribute::Oif(3),
        ],
    );
    let route = read(&object, Family::V4);
    assert_eq!(route.to_string(), "default via 10.0.0.1 dev net3");
    assert_eq!(write(&route).attributes, [RouteAttribute::NhId(12)]);
}

#[test]
fn only_a_unicast_route_of_the_main_table_is_a_default_route() {
    let plain = || message(AddressFamily::Inet, vec![RouteAttribute::Oif(3)]);
    assert!(is_default(&plain(), Family::V4));
    assert!(!is_default(&plain(), Family::V6));
    let changed = |change: fn(&mut RouteMessage)| {
        let mut message = plain();
        change(&mut message);
        is_default(&message, Family::V4)
    };
    type Change = fn(&mut RouteMessage);
    let table: [(Change, bool); 6] = [
        (|m| m.header.destination_prefix_length = 1, false),
        (|m| m.header.kind = RouteType::Unreachable, false),
        (|m| m.header.flags = RouteFlags::Cloned, false),
        (|m| m.header.table = 100, false),
        (|m| m.attributes.push(RouteAttribute::Table(1000)), false),
        (|m| m.attributes.push(RouteAttribute::Table(254)), true),
    ];
    for (row, (change, ours)) in table.into_iter().enumerate() {
        assert_eq!(changed(change), ours, "row {row}");
    }
}

#[test]
fn a_route_is_written_in_the_format_of_ip_route() {
    let mut route = DefaultRoute::via("10.0.0.1".parse().unwrap(), "eth0", Some(100));
    assert_eq!(
        route.to_string(),
        "default via 10.0.0.1 dev eth0 metric 100"
    );
    assert_eq!(route.interfaces().collect::<Vec<_>>(), ["eth0"]);
    route.next_hops.push(NextHop {
        gateway: Some("10.1.0.1".parse().unwrap()),
        interface: Some("net1".to_owned()),
        onlink: true,
        extra_weight: 255,
        ..NextHop::default()
    });
    assert_eq!(
        route.to_string(),
        "default nexthop via 10.0.0.1 dev eth0 weight 1 nexthop via 10.1.0.1 dev net1 onlink \
         weight 256 metric 100"
    );
}

#[test]
fn a_route_without_an_existing_interface_or_next_hop_is_refused() {
    let gone = DefaultRoute::via("10.0.0.1".parse().unwrap(), "net1", None);
    let error = gone.write(|_| Ok(None)).unwrap_err().to_string();
    assert_eq!(
        error,
        "route \"default via 10.0.0.1 dev net1\": interface \"net1\" does not exist; \
         attach it first"
    );
    for hops in [Vec::new(), vec![NextHop::default()]] {
        let nowhere = DefaultRoute {
            next_hops: hops,
            ..gone.clone()
        };
        let error = nowhere.write(|_| Ok(Some(1))).unwrap_err();
        assert!(matches!(error, KernelError::NoNextHop { .. }), "{error}");
    }
}
