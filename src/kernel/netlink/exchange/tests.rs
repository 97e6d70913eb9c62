//! Exchanges with the real kernel.

use netlink_packet_route::link::{LinkAttribute, LinkMessage};

use super::*;

fn exchange() -> Exchange {
    let here = |connect: Box<dyn FnOnce() -> OpenResult + Send>| Ok(connect());
    Exchange::open(here, Duration::from_secs(5)).unwrap()
}

fn link(name: &str) -> RouteNetlinkMessage {
    let mut message = LinkMessage::default();
    message
        .attributes
        .push(LinkAttribute::IfName(name.to_owned()));
    RouteNetlinkMessage::GetLink(message)
}

#[test]
fn a_late_answer_is_not_taken_for_the_next_one() {
    let mut exchange = exchange();
    let forsaken = exchange.send(&mut NetlinkMessage::from(link("no-such-link")), Kind::One);
    forsaken.unwrap();
    let answer = exchange.ask(link("lo"), Kind::One, Some).unwrap();
    let [RouteNetlinkMessage::NewLink(lo)] = answer.as_slice() else {
        panic!("{answer:?}");
    };
    assert!(
        lo.attributes
            .contains(&LinkAttribute::IfName("lo".to_owned()))
    );
}

#[test]
fn silence_ends_with_patience() {
    let mut exchange = exchange();
    exchange.set_patience(Duration::ZERO);
    let silence = exchange.receive(Instant::now());
    assert!(matches!(silence, Err(Failure::Silent(_))), "{silence:?}");
}
