//! The cheapest delegate there can be: its ADD gives a ready interface, `ready-NAME`, the name that
//! is asked for, its DEL gives it back. What it takes is the floor that a plugin that calls
//! delegates stands on.

use std::env;
use std::fs::File;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};
use std::os::fd::AsRawFd;

const RTM_NEWLINK: u16 = 16;
const REQUEST_AND_ACK: u16 = 1 | 4;
const IFLA_IFNAME: u16 = 3;

fn main() -> ExitCode {
    #[allow(clippy::disallowed_methods, reason = "a result of its own")]
    let mut out = io::stdout();
    let (document, code) = match call() {
        Ok(document) => (document, ExitCode::SUCCESS),
        Err(cause) => {
            let message = cause.to_string().replace('"', "'");
            (
                format!("{{\"cniVersion\":\"1.0.0\",\"code\":999,\"msg\":\"{message}\"}}"),
                ExitCode::FAILURE,
            )
        }
    };
    let _ = out.write_all(document.as_bytes());
    code
}

fn call() -> io::Result<String> {
    let mut configuration = Vec::new();
    io::stdin().read_to_end(&mut configuration)?;
    let of =
        |name: &str| env::var(name).map_err(|_| io::Error::other(format!("{name} is not set")));
    let verb = of("CNI_COMMAND")?;
    if !matches!(verb.as_str(), "ADD" | "DEL") {
        return Ok(String::new());
    }
    let (name, netns) = (of("CNI_IFNAME")?, of("CNI_NETNS")?);
    let ready = format!("ready-{name}");
    let (from, to) = match verb.as_str() {
        "ADD" => (&ready, &name),
        _ => (&name, &ready),
    };
    enter(&File::open(&netns)?)?;
    rename(from, to)?;
    if verb == "DEL" {
        return Ok(String::new());
    }
    Ok(format!(
        "{{\"cniVersion\":\"1.0.0\",\"interfaces\":[{{\"name\":\"{name}\",\"sandbox\":\"{netns}\"}}]}}"
    ))
}

#[allow(
    clippy::disallowed_methods,
    reason = "this process is nothing but its stay in the namespace"
)]
fn enter(netns: &File) -> io::Result<()> {
    Ok(setns(netns, CloneFlags::CLONE_NEWNET)?)
}

fn rename(from: &str, to: &str) -> io::Result<()> {
    let index = if_nametoindex(from)?;
    let netlink = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )?;
    let name = [to.as_bytes(), &[0]].concat();
    let attribute = 4 + name.len();
    let length = 16 + 16 + attribute.next_multiple_of(4);
    let mut message = Vec::with_capacity(length);
    message.extend(u32::try_from(length).unwrap_or(0).to_ne_bytes());
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend(REQUEST_AND_ACK.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([0; 4]);
    message.extend(index.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(u16::try_from(attribute).unwrap_or(0).to_ne_bytes());
    message.extend(IFLA_IFNAME.to_ne_bytes());
    message.extend(&name);
    message.resize(length, 0);
    let kernel = NetlinkAddr::new(0, 0);
    sendto(netlink.as_raw_fd(), &message, &kernel, MsgFlags::empty())?;
    let mut answer = [0; 256];
    let length = recv(netlink.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    let errno = answer
        .get(16..20)
        .filter(|_| length >= 20)
        .and_then(|octets| octets.try_into().ok())
        .map_or(-1, i32::from_ne_bytes);
    match errno {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(-errno)),
    }
}
