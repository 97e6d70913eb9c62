//! An attachment as observed in the kernel.

use std::time::{Duration, Instant};

use crate::clock;
use crate::kernel::{Address, KernelError, Link, PodLinks};

use super::{Intended, Masters};

/// An attachment as observed in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The interface, with its permanent hardware address.
    pub link: Option<Link>,
    /// The IP addresses of the interface.
    pub addresses: Vec<Address>,
    /// The name of the bridge, bond or other link that has enslaved the attachment's interface. If
    /// this link is outside the pod's namespace, the field contains the link's index, for example
    /// `number 9`. `None` for a VRF, because a VRF changes only routing. Also `None` if
    /// verification accepts any master ([`Masters::Any`]).
    pub master: Option<String>,
    /// The names of the device behind the interface. [`observe`] sets at most one name: the parent
    /// device that the kernel reports. A caller with access to sysfs can replace this list with all
    /// names of the device. For example, the names of a virtio device are `virtioN` and the
    /// address of its PCI function.
    pub device: Vec<String>,
}

/// The shortest and the longest pause between two reads while the kernel checks addresses.
const PAUSES: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(50)];

/// Reads the interface of an attachment. Waits while the kernel checks the interface's addresses
/// for duplicates (RFC 4862 §5.4), until `deadline` at the latest.
///
/// Waits only for addresses that the pod requested or the delegate returned. Waiting for the
/// link-local address that the kernel adds would delay every pod by more than a second. Does not
/// wait if the link is down or has no carrier, because the kernel then does not check addresses.
///
/// # Errors
/// [`KernelError`] when the kernel refuses or does not answer.
pub fn observe(
    links: &mut dyn PodLinks,
    intended: &Intended<'_>,
    deadline: Instant,
) -> Result<Observed, KernelError> {
    let [mut pause, longest] = PAUSES;
    loop {
        let observed = look(links, intended)?;
        let left = deadline.saturating_duration_since(clock::now());
        if left.is_zero() || !waits(&observed, intended) {
            return Ok(observed);
        }
        clock::sleep(pause.min(left));
        pause = longest.min(pause * 2);
    }
}

fn look(links: &mut dyn PodLinks, intended: &Intended<'_>) -> Result<Observed, KernelError> {
    let Some(link) = links.link(intended.ifname)? else {
        return Ok(Observed::default());
    };
    let addresses = links.addresses(link.index)?;
    let master = match (link.master, intended.masters) {
        (Some(index), Masters::Among(_)) => master(links, index)?,
        _ => None,
    };
    Ok(Observed {
        device: link.parent_name.iter().cloned().collect(),
        link: Some(link),
        addresses,
        master,
    })
}

fn master(links: &mut dyn PodLinks, index: u32) -> Result<Option<String>, KernelError> {
    Ok(match links.link_at(index)? {
        Some(master) if master.kind.as_deref() == Some("vrf") => None,
        Some(master) => Some(master.name),
        None => Some(format!("number {index}")),
    })
}

fn waits(observed: &Observed, intended: &Intended<'_>) -> bool {
    let link = observed.link.as_ref();
    let mut pending = observed.addresses.iter().filter(|it| it.is_pending());
    link.is_some_and(|link| link.up && link.carrier)
        && pending.any(|it| intended.source_of(it.address).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cni::InterfaceName;
    use crate::kernel::fake::FakeLinks;
    use crate::npwg::RequestedIp;
    use crate::plan::Requested;

    fn link(index: u32, name: &str) -> Link {
        Link {
            index,
            name: name.to_owned(),
            up: true,
            carrier: true,
            ..Link::default()
        }
    }

    fn address(text: &str, tentative: bool, dad_failed: bool) -> Address {
        Address {
            index: 3,
            address: text.parse().unwrap(),
            dad_failed,
            tentative,
            optimistic: false,
        }
    }

    fn run(mut fake: FakeLinks, asked: &[&str], wait: Duration) -> (Observed, usize) {
        let ifname: InterfaceName = "net1".parse().unwrap();
        let ips: Vec<RequestedIp> = asked.iter().map(|ip| ip.parse().unwrap()).collect();
        let requested = Requested {
            ips,
            ..Requested::default()
        };
        let intended = Intended {
            ifname: &ifname,
            requested: &requested,
            answered: None,
            device: None,
            in_user_space: false,
            masters: Masters::Among(&[]),
        };
        let observed = observe(&mut fake, &intended, Instant::now() + wait).unwrap();
        (observed, fake.readings)
    }

    const LONG: Duration = Duration::from_secs(60);

    // clause: CNI-1.1.0 §2 CHECK at once: CHECK waits for duplicate address detection
    #[test]
    fn observe_waits_for_dad_of_a_requested_address() {
        for settled in [false, true] {
            let fake = FakeLinks {
                links: vec![link(3, "net1")],
                frames: vec![
                    vec![address("2001:db8::5/64", true, false)],
                    vec![address("2001:db8::5/64", true, false)],
                    vec![address("2001:db8::5/64", settled, settled)],
                ],
                ..FakeLinks::default()
            };
            let (observed, readings) = run(fake, &["2001:db8::5"], LONG);
            assert_eq!(readings, 3);
            assert_eq!(observed.addresses[0].dad_failed, settled);
        }
    }

    #[test]
    fn observe_waits_only_for_requested_addresses_that_can_settle() {
        let pending = vec![address("fe80::1/64", true, false)];
        let mut unplugged = link(3, "net1");
        unplugged.carrier = false;
        let mut down = link(3, "net1");
        down.up = false;
        for (link, asked) in [
            (link(3, "net1"), "2001:db8::5"),
            (unplugged, "fe80::1"),
            (down, "fe80::1"),
        ] {
            let fake = FakeLinks {
                links: vec![link],
                frames: vec![pending.clone()],
                ..FakeLinks::default()
            };
            let (observed, readings) = run(fake, &[asked], LONG);
            assert_eq!(readings, 1);
            assert!(observed.addresses[0].is_pending());
        }
    }

    #[test]
    fn the_deadline_ends_the_wait() {
        let fake = FakeLinks {
            links: vec![link(3, "net1")],
            frames: vec![vec![address("2001:db8::5/64", true, false)]],
            ..FakeLinks::default()
        };
        let (observed, readings) = run(fake, &["2001:db8::5"], Duration::from_millis(20));
        assert!(observed.addresses[0].is_pending());
        assert!((2..=5).contains(&readings), "{readings}");
    }

    #[test]
    fn observe_returns_the_names_of_master_and_device() {
        let mut port = link(3, "net1");
        port.master = Some(9);
        port.parent_name = Some("0000:01:10.0".to_owned());
        let master = |kind: &str| {
            let mut master = link(9, "master0");
            master.kind = Some(kind.to_owned());
            master
        };
        let fake = |links| FakeLinks {
            links,
            ..FakeLinks::default()
        };
        let (observed, _) = run(fake(vec![master("bond"), port.clone()]), &[], LONG);
        assert_eq!(observed.master.as_deref(), Some("master0"));
        assert_eq!(observed.device, ["0000:01:10.0"]);
        let (observed, _) = run(fake(vec![master("vrf"), port.clone()]), &[], LONG);
        assert_eq!(observed.master, None, "a VRF changes only routing");

        let (observed, _) = run(fake(vec![port]), &[], LONG);
        assert_eq!(observed.master.as_deref(), Some("number 9"));
        assert_eq!(run(fake(Vec::new()), &[], LONG).0, Observed::default());
    }
}
