//! Links and addresses as a real kernel shows them, in namespaces made for the purpose.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::sandbox::sandbox;
use jackfield::cni::InterfaceName;
use jackfield::kernel::{Address, Link, Netlink, NetnsError, PodLinks, PodNetns};

fn name(text: &str) -> InterfaceName {
    text.parse().unwrap()
}

fn link(netlink: &mut Netlink, text: &str) -> Link {
    netlink.link(&name(text)).unwrap().unwrap()
}

#[test]
fn a_link_is_read_with_all_that_is_judged() {
    let pod = sandbox();
    pod.ip("link add br0 type bridge");
    pod.ip("link add net1 address 02:00:00:00:00:01 mtu 1400 type veth peer name peer1");
    pod.ip("link set net1 master br0");
    pod.ip("link set net1 up");
    let mut netlink = pod.netlink();

    let peer = link(&mut netlink, "peer1");
    let bridge = link(&mut netlink, "br0");
    let before = link(&mut netlink, "net1");
    let expected = Link {
        index: before.index,
        name: "net1".to_owned(),
        address: vec![2, 0, 0, 0, 0, 1],
        mtu: 1400,
        up: true,
        carrier: false,
        arp_type: 1,
        kind: Some("veth".to_owned()),
        master: Some(bridge.index),
        lower: Some(peer.index),
        ..Link::default()
    };
    assert_eq!(before, expected);
    assert_eq!(bridge.kind.as_deref(), Some("bridge"));

    pod.ip("link set peer1 up");
    assert!(link(&mut netlink, "net1").carrier);
    pod.ip("link set net1 down");
    assert!(!link(&mut netlink, "net1").up);
}

#[test]
fn a_macvlan_tells_what_it_stands_on_and_where_that_is() {
    let host = sandbox();
    let pod = sandbox();
    host.ip("link add eth9 type veth peer name peer9");
    host.ip("link add link eth9 name net1 type macvlan mode bridge");
    let lower = link(&mut host.netlink(), "eth9").index;
    let here = link(&mut host.netlink(), "net1");
    assert_eq!((here.lower, here.lower_netns), (Some(lower), None));

    let target = pod.within(nix::unistd::gettid);
    host.ip(&format!("link set net1 netns {target}"));
    let there = link(&mut pod.netlink(), "net1");
    assert_eq!(there.kind.as_deref(), Some("macvlan"));
    assert_eq!(there.lower, Some(lower));
    assert!(there.lower_netns.is_some());
}

#[test]
fn a_link_that_is_not_there_is_none_by_name_and_by_index() {
    let pod = sandbox();
    let mut netlink = pod.netlink();
    assert_eq!(netlink.link(&name("net1")).unwrap(), None);
    assert_eq!(netlink.link_at(4711).unwrap(), None);
    assert_eq!(netlink.link_at(0).unwrap(), None);
    assert_eq!(netlink.addresses(4711).unwrap(), []);
}

#[test]
fn an_alternative_name_finds_the_link_under_its_own() {
    let pod = sandbox();
    pod.ip("link add net1 type veth peer name peer1");
    pod.ip("link property add dev net1 altname uplink");
    assert_eq!(link(&mut pod.netlink(), "uplink").name, "net1");
}

#[test]
fn all_links_are_listed() {
    let pod = sandbox();
    pod.ip("link add net1 type veth peer name peer1");
    let links = pod.netlink().links().unwrap();
    let mut names: Vec<_> = links.iter().map(|link| link.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["lo", "net1", "peer1"]);
}

#[test]
fn the_addresses_of_the_asked_link_are_read_and_of_no_other() {
    let pod = sandbox();
    pod.ip("link add net1 type veth peer name peer1");
    pod.ip("address add 10.1.1.5/24 dev net1");
    pod.ip("address add 10.1.1.6/32 peer 10.1.1.1/32 dev net1");
    pod.ip("address add 2001:db8::5/64 dev net1 nodad");
    pod.ip("address add 10.2.2.2/24 dev peer1");
    let mut netlink = pod.netlink();
    let index = link(&mut netlink, "net1").index;
    let addresses = netlink.addresses(index).unwrap();
    let mut texts: Vec<_> = addresses.iter().map(|a| a.address.to_string()).collect();
    texts.sort();
    assert_eq!(texts, ["10.1.1.5/24", "10.1.1.6/32", "2001:db8::5/64"]);
    assert!(addresses.iter().all(|address| address.index == index));
}

fn until(netlink: &mut Netlink, index: u32, good: impl Fn(&Address) -> bool) -> Address {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let addresses = netlink.addresses(index).unwrap();
        let ours = addresses
            .into_iter()
            .find(|a| a.address == "2001:db8::5/64".parse().unwrap())
            .unwrap();
        if good(&ours) {
            return ours;
        }
        assert!(Instant::now() < deadline, "{ours:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn duplicate_address_detection_is_seen_at_work_and_failing() {
    let pod = sandbox();
    pod.ip("link add net1 type veth peer name peer1");
    pod.ip("link set net1 up");
    pod.ip("address add 2001:db8::5/64 dev net1");
    let mut netlink = pod.netlink();
    let index = link(&mut netlink, "net1").index;
    // No carrier: the kernel cannot find out.
    assert!(until(&mut netlink, index, |_| true).is_pending());

    pod.ip("address add 2001:db8::5/64 dev peer1 nodad");
    pod.ip("link set peer1 up");
    let failed = until(&mut netlink, index, |address| address.dad_failed);
    assert!(!failed.is_pending());
}

#[test]
fn netns_entry_leaves_the_calling_thread_where_it_was() {
    let pod = sandbox();
    pod.ip("link add net1 type veth peer name peer1");
    let ours = || std::fs::read_link("/proc/thread-self/ns/net").unwrap();
    let before = ours();
    let mut inside = pod.netlink();
    assert!(inside.link(&name("net1")).unwrap().is_some());
    assert_eq!(ours(), before);
    assert!(!pod.open().is_ours().unwrap());
    let outside: Vec<_> = Netlink::here().unwrap().links().unwrap();
    assert!(outside.iter().all(|link| link.name != "peer1"));
}

#[test]
fn netns_entry_stays_usable_after_its_path_is_gone() {
    let pod = sandbox();
    pod.ip("link add net1 type veth peer name peer1");
    let netns = pod.open();
    let path = netns.path().to_owned();
    let same = pod.open().id() == netns.id();
    drop(pod);
    assert!(same);
    let error = PodNetns::open(&path).unwrap_err();
    assert!(matches!(error, NetnsError::Missing { .. }), "{error}");
    let mut netlink = Netlink::in_netns(&netns).unwrap();
    assert!(netlink.link(&name("net1")).unwrap().is_some());
}

#[test]
fn without_the_privilege_the_refusal_names_it() {
    let pod = sandbox();
    let netns = pod.open();
    let said = std::thread::spawn(move || {
        caps::clear(None, caps::CapSet::Effective).unwrap();
        Netlink::in_netns(&netns).unwrap_err().to_string()
    })
    .join()
    .unwrap();
    assert!(said.ends_with("run Jackfield with CAP_SYS_ADMIN"), "{said}");
    assert!(said.contains("/ns/net: cannot enter it: "), "{said}");
}

#[test]
fn many_questions_over_one_socket_leave_no_descriptor_behind() {
    let pod = sandbox();
    let open = || {
        std::fs::read_dir(Path::new("/proc/thread-self/fd"))
            .unwrap()
            .count()
    };
    let netns = pod.open();
    // Other tests open and close in the meantime: what leaks grows with every round.
    let before = open();
    for _ in 0..200 {
        let mut netlink = Netlink::in_netns(&netns).unwrap();
        netlink.link(&name("lo")).unwrap();
    }
    assert!(open() < before + 100, "{before} before, {} after", open());
}
