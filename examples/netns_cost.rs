//! What it costs to look at one attachment: microseconds for each step, medians of many.
//!
//! `cargo run --release --example netns_cost -- /run/netns/NAME INTERFACE`, as root.

#![allow(clippy::print_stdout, reason = "it prints what it measures")]

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use jackfield::cni::InterfaceName;
use jackfield::kernel::{Netlink, PodLinks, PodNetns};

const ROUNDS: usize = 2_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(path), Some(name)) = (words.next(), words.next()) else {
        return Err("give the path of a network namespace and the name of an interface".into());
    };
    let name: InterfaceName = name.parse()?;
    let mut steps: [Vec<Duration>; 5] = Default::default();
    for _ in 0..ROUNDS {
        let mut last = Instant::now();
        let mut lap = |step: &mut Vec<Duration>| {
            step.push(last.elapsed());
            last = Instant::now();
        };
        let [open, socket, link, addresses, again] = &mut steps;
        let netns = PodNetns::open(Path::new(&path))?;
        lap(open);
        let mut netlink = Netlink::in_netns(&netns)?;
        lap(socket);
        let found = netlink.link(&name)?.ok_or("there is no such interface")?;
        lap(link);
        netlink.addresses(found.index)?;
        lap(addresses);
        netlink.link(&name)?;
        netlink.addresses(found.index)?;
        lap(again);
    }
    let names = [
        "open and check the namespace",
        "enter it, open a socket",
        "read the link",
        "read its addresses",
        "link and addresses again",
    ];
    for (name, step) in names.iter().zip(&mut steps) {
        step.sort_unstable();
        let at = |share: usize| step.get(step.len() * share / 100).map(Duration::as_micros);
        println!(
            "{name:30} median {:>4} us, p90 {:>4} us",
            at(50).unwrap_or_default(),
            at(90).unwrap_or_default()
        );
    }
    Ok(())
}
