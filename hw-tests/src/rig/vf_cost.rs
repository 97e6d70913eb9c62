//! Measures a request for the state of a PF's VFs through the kernel's own interface: the plugin's
//! request, and the same one without VFs.

use std::time::{Duration, Instant};

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::case::{Stop, holds};
use crate::rig::sysfs;

/// Asks for VFs (`RTEXT_FILTER_VF`) without statistics (`RTEXT_FILTER_SKIP_STATS`).
const WITH_VFS: u32 = 1 | 8;
const WITHOUT: u32 = 8;
const TIMES: u32 = 200;

/// Returns the shortest time of an answer, with the state of VFs and without.
pub(crate) fn vf_state_cost(interface: &str) -> Result<(Duration, Duration), Stop> {
    let index: u32 = sysfs::read(format!("/sys/class/net/{interface}/ifindex"))?.parse()?;
    let socket = Socket::new(NETLINK_ROUTE)?;
    let ask = |mask: u32| -> Result<Duration, Stop> {
        let request = request(index, mask);
        let mut best = Duration::MAX;
        for _ in 0..TIMES {
            let started = Instant::now();
            socket.send_to(&request, &SocketAddr::new(0, 0), 0)?;
            let (answer, _) = socket.recv_from_full()?;
            best = best.min(started.elapsed());
            holds("the kernel answers with a link", answer.get(4) == Some(&16))?;
        }
        Ok(best)
    };
    Ok((ask(WITH_VFS)?, ask(WITHOUT)?))
}

/// Encodes `RTM_GETLINK` for one interface, with `IFLA_EXT_MASK`.
fn request(index: u32, mask: u32) -> Vec<u8> {
    const GETLINK: u16 = 18;
    const REQUEST: u16 = 1;
    const EXT_MASK: u16 = 29;
    let mut bytes = Vec::with_capacity(40);
    bytes.extend(40_u32.to_ne_bytes());
    bytes.extend(GETLINK.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    bytes.extend([0; 8]);
    // The link header's family and type are not needed.
    bytes.extend([0; 4]);
    bytes.extend(index.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(8_u16.to_ne_bytes());
    bytes.extend(EXT_MASK.to_ne_bytes());
    bytes.extend(mask.to_ne_bytes());
    bytes
}
