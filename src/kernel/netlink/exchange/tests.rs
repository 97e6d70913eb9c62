//! Sends requests to the real kernel.

use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;

use super::*;

fn netlink(patience: Duration) -> Netlink {
    Netlink::new(Socket::new(NETLINK_ROUTE), patience).unwrap()
}

fn link(name: &str) -> RouteNetlinkMessage {
    let mut message = LinkMessage::default();
    message
        .attributes
        .push(LinkAttribute::IfName(name.to_owned()));
    RouteNetlinkMessage::GetLink(message)
}

#[test]
fn an_answer_to_an_earlier_request_is_ignored() {
    let mut netlink = netlink(Duration::from_secs(5));
    let forsaken = netlink.send(&mut NetlinkMessage::from(link("no-such-link")), Kind::One);
    forsaken.unwrap();
    let answer = netlink
        .ask(link("lo"), Kind::One, |FilteredMessage(it)| Some(it))
        .unwrap();
    let [RouteNetlinkMessage::NewLink(lo)] = answer.as_slice() else {
        panic!("{answer:?}");
    };
    assert!(
        lo.attributes
            .contains(&LinkAttribute::IfName("lo".to_owned()))
    );
}

#[test]
fn a_wait_without_an_answer_ends_after_the_time_limit() {
    let mut netlink = netlink(Duration::from_millis(1));
    let silence = netlink.receive(Instant::now());
    assert!(
        matches!(silence, Err(NetlinkError::Silent(_))),
        "{silence:?}"
    );
}
