//! Default routes: read, removed and put back on a real kernel, compared by `ip route`.

use crate::sandbox::{Sandbox, sandbox};
use jackfield::kernel::{DefaultRoute, Family, KernelError, NetlinkError, PodLinks};

/// Two interfaces with addresses of both families, whose peers answer.
fn pod() -> Sandbox {
    let pod = sandbox();
    for n in 1..=2 {
        pod.ip(&format!("link add net{n} type veth peer name peer{n}"));
        // Link-local addresses come when the kernel has checked them, and their routes with them.
        pod.ip(&format!("link set net{n} addrgenmode none"));
        pod.ip(&format!("link set peer{n} addrgenmode none"));
        pod.ip(&format!("address add 10.{n}.0.5/24 dev net{n}"));
        pod.ip(&format!("address add 2001:db8:{n}::5/64 dev net{n} nodad"));
        pod.ip(&format!("link set peer{n} up"));
        pod.ip(&format!("link set net{n} up"));
    }
    pod
}

/// Everything in the main table of both families, with all that `ip` can tell.
fn shown(pod: &Sandbox) -> String {
    let v4 = pod.ip("-d -4 route show table main");
    let v6 = pod.ip("-d -6 route show table main");
    format!("{v4}--\n{v6}")
}

fn defaults(text: &str) -> usize {
    let lines = text.lines();
    lines.filter(|line| line.contains("default")).count()
}

/// Removed and put back.
fn there_and_back(pod: &Sandbox, context: &str) -> Vec<DefaultRoute> {
    let before = shown(pod);
    let mut netlink = pod.netlink();
    let routes = netlink.default_routes().unwrap();
    assert_eq!(routes.len(), defaults(&before), "{context}\n{before}");
    for route in &routes {
        netlink.remove_default_route(route).unwrap();
    }
    assert_eq!(defaults(&shown(pod)), 0, "{context}\n{}", shown(pod));
    assert_eq!(netlink.default_routes().unwrap(), []);
    for route in &routes {
        netlink.add_default_route(route).unwrap();
    }
    assert_eq!(shown(pod), before, "{context}\n{routes:?}");
    routes
}

// clause: NPWG-1.3 §4.1.2.1.9 cleared: and put back
// clause: NPWG-1.3 §4.1.2.1.9 set
#[test]
fn every_kind_of_default_route_is_put_back_exactly() {
    let table: &[&[&str]] = &[
        &["-4 route add default via 10.1.0.1"],
        &["-4 route add default via 10.1.0.1 dev net1 metric 100 proto dhcp src 10.1.0.5"],
        &["-4 route add default dev net1"],
        &["-4 route add default dev net1 scope global metric 5"],
        &["-4 route add default via 192.0.2.1 dev net1 onlink"],
        &["-4 route add default via 10.1.0.1 tos 0x10"],
        &["-4 route add default via inet6 2001:db8:1::1 dev net1"],
        &["-4 route add default via 10.1.0.1 realm 3/4"],
        &[
            "-4 route add default via 10.1.0.1 mtu lock 1400 advmss 1300 initcwnd 20 quickack 1 \
             hoplimit 9 rto_min 15ms congctl reno",
        ],
        &[
            "-4 route add default via 10.1.0.1 metric 1",
            "-4 route add default via 10.2.0.1 metric 2",
            "-4 route append default via 10.2.0.7 metric 1",
            "-4 route append default via 10.1.0.7 metric 1",
        ],
        &[
            "-4 route add default metric 3 nexthop via 10.1.0.1 dev net1 weight 10 nexthop via \
             192.0.2.1 dev net2 weight 256 onlink",
        ],
        &[
            "nexthop add id 7 via 10.1.0.1 dev net1",
            "-4 route add default nhid 7 metric 9",
        ],
        &["-6 route add default via 2001:db8:1::1"],
        &["-6 route add default via fe80::1 dev net1 metric 256 proto ra pref high"],
        &["-6 route add default dev net2 metric 5 mtu 1400 advmss 1300"],
        &["-6 route add default via 2001:db8:9::1 dev net1 onlink"],
        &["-6 route add default from 2001:db8:1::/64 via 2001:db8:1::1 dev net1"],
        &["-6 route add default via 2001:db8:1::1 src 2001:db8:1::5"],
        &[
            "-6 route add default metric 4 nexthop via 2001:db8:1::1 dev net1 weight 3 nexthop \
             via fe80::2 dev net2 weight 5",
        ],
        &[
            "-6 route add default via 2001:db8:1::1 metric 10",
            "-6 route append default via 2001:db8:2::1 metric 10",
            "-6 route add default via 2001:db8:2::1 metric 20",
            "-4 route add default via 10.1.0.1",
        ],
        &[
            "nexthop add id 8 via 2001:db8:1::1 dev net1",
            "-6 route add default nhid 8",
        ],
    ];
    for commands in table {
        let pod = pod();
        for command in *commands {
            pod.ip(command);
        }
        let routes = there_and_back(&pod, &commands.join("\n"));
        assert!(!routes.is_empty(), "{commands:?}");
    }
}

#[test]
fn what_is_no_default_route_of_the_main_table_is_left_alone() {
    let pod = pod();
    for command in [
        "-4 route add default via 10.1.0.1 table 100",
        "-6 route add default via 2001:db8:1::1 table 1000",
        "-4 route add unreachable default metric 4000",
        "-6 route add blackhole default metric 4000",
        "-4 route add 0.0.0.0/1 via 10.1.0.1",
        "-6 route add 2000::/3 via 2001:db8:1::1",
    ] {
        pod.ip(command);
    }
    assert_eq!(pod.netlink().default_routes().unwrap(), []);
}

#[test]
fn without_any_route_there_are_no_default_routes() {
    let pod = sandbox();
    assert_eq!(pod.netlink().default_routes().unwrap(), []);
}

#[test]
fn the_time_that_a_route_has_left_is_given_back() {
    let pod = pod();
    pod.ip("-6 route add default via fe80::1 dev net1 proto ra expires 1000");
    let mut netlink = pod.netlink();
    for _ in 0..2 {
        let routes = netlink.default_routes().unwrap();
        let [route] = routes.as_slice() else {
            panic!("{routes:?}")
        };
        let left = route.expires.unwrap();
        assert!((900..=1000).contains(&left), "{left}");
        netlink.remove_default_route(route).unwrap();
        netlink.add_default_route(route).unwrap();
    }
}

// clause: NPWG-1.3 §4.1.2.1.9 metrics: in their order
#[test]
fn gateways_are_added_with_the_metrics_given() {
    let pod = pod();
    let mut netlink = pod.netlink();
    for (gateway, interface, metric) in [
        ("10.1.0.1", "net1", None),
        ("10.2.0.1", "net2", Some(1)),
        ("2001:db8:1::1", "net1", Some(1)),
        ("2001:db8:2::1", "net2", Some(2)),
    ] {
        let route = DefaultRoute::via(gateway.parse().unwrap(), interface, metric);
        netlink.add_default_route(&route).unwrap();
        // A step that is made again changes nothing.
        netlink.add_default_route(&route).unwrap();
    }
    let routes = netlink.default_routes().unwrap();
    let shown: Vec<_> = routes.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "default via 10.1.0.1 dev net1",
            "default via 10.2.0.1 dev net2 metric 1",
            "default via 2001:db8:1::1 dev net1 metric 1",
            "default via 2001:db8:2::1 dev net2 metric 2",
        ]
    );
    assert_eq!(routes.iter().filter(|r| r.family == Family::V6).count(), 2);
}

// clause: NPWG-1.3 §4.1.2.1.9 set: a gateway that cannot be reached fails
#[test]
fn a_gateway_out_of_reach_is_refused_with_the_kernels_words() {
    let pod = pod();
    let mut netlink = pod.netlink();
    for gateway in ["192.0.2.1", "2001:db8:9::1"] {
        let route = DefaultRoute::via(gateway.parse().unwrap(), "net1", None);
        let error = netlink.add_default_route(&route).unwrap_err();
        let said = error.to_string();
        assert!(
            said.starts_with(&format!(
                "adding route \"default via {gateway} dev net1\": "
            )),
            "{said}"
        );
        let is_refusal = matches!(
            error,
            KernelError::Request {
                source: NetlinkError::Refused { .. },
                ..
            }
        );
        assert!(is_refusal, "{said}");
        assert!(said.ends_with("choose a gateway within reach"), "{said}");
    }
    let Err(KernelError::Request {
        source: NetlinkError::Refused { explanation, .. },
        ..
    }) = netlink.add_default_route(&DefaultRoute::via(
        "192.0.2.1".parse().unwrap(),
        "net1",
        None,
    ))
    else {
        panic!("it was added");
    };
    assert_eq!(explanation.as_deref(), Some("Nexthop has invalid gateway"));
}

#[test]
fn a_route_whose_interface_is_gone_is_gone_but_cannot_be_added() {
    let pod = pod();
    pod.ip("-4 route add default via 10.1.0.1");
    let mut netlink = pod.netlink();
    let routes = netlink.default_routes().unwrap();
    pod.ip("link del net1");
    for route in &routes {
        netlink.remove_default_route(route).unwrap();
        let error = netlink.add_default_route(route).unwrap_err();
        assert!(matches!(error, KernelError::NoInterface { .. }), "{error}");
    }
    assert_eq!(routes.len(), 1);
}

#[test]
fn an_interface_that_was_made_again_gets_its_route_back_by_name() {
    let pod = pod();
    pod.ip("-4 route add default via 10.1.0.1 metric 5");
    let mut netlink = pod.netlink();
    let routes = netlink.default_routes().unwrap();
    let before = pod.ip("-4 route show default");
    pod.ip("link del net1");
    pod.ip("link add net1 type veth peer name peer1");
    pod.ip("address add 10.1.0.5/24 dev net1");
    pod.ip("link set peer1 up");
    pod.ip("link set net1 up");
    netlink.add_default_route(&routes[0]).unwrap();
    assert_eq!(pod.ip("-4 route show default"), before);
}

#[test]
fn removing_takes_the_very_route_and_no_other() {
    let pod = pod();
    pod.ip("-4 route add default via 10.1.0.1 metric 1");
    pod.ip("-4 route append default via 10.2.0.1 metric 1");
    pod.ip("-6 route add default via 2001:db8:1::1 metric 7");
    pod.ip("-6 route add default via 2001:db8:2::1 metric 8");
    let mut netlink = pod.netlink();
    let routes = netlink.default_routes().unwrap();
    assert_eq!(routes.len(), 4);
    netlink.remove_default_route(&routes[1]).unwrap();
    netlink.remove_default_route(&routes[2]).unwrap();
    netlink.remove_default_route(&routes[2]).unwrap();
    let left = netlink.default_routes().unwrap();
    assert_eq!(left, [routes[0].clone(), routes[3].clone()]);
}
