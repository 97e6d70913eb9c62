//! What it costs to ask a PF for the state of its VFs, by the kernel's own interface: the request that
//! the plugin makes, and the same without VFs.

use std::time::{Duration, Instant};

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::case::{Stop, holds};
use crate::rig::sysfs;

/// Ask for VFs (`RTEXT_FILTER_VF`), leave their statistics out (`RTEXT_FILTER_SKIP_STATS`).
const WITH_VFS: u32 = 1 | 8;
const WITHOUT: u32 = 8;
const TIMES: u32 = 200;

/// How long one answer takes at least, with the state of VFs and without.
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

/// `RTM_GETLINK` of one interface, with `IFLA_EXT_MASK`.
fn request(index: u32, mask: u32) -> Vec<u8> {
    const GETLINK: u16 = 18;
    const REQUEST: u16 = 1;
    const EXT_MASK: u16 = 29;
    let mut bytes = Vec::with_capacity(40);
    bytes.extend(40_u32.to_ne_bytes());
    bytes.extend(GETLINK.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    bytes.extend([0; 8]);
    // The link's header: family and type are not asked for.
    bytes.extend([0; 4]);
    bytes.extend(index.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(8_u16.to_ne_bytes());
    bytes.extend(EXT_MASK.to_ne_bytes());
    bytes.extend(mask.to_ne_bytes());
    bytes
}
