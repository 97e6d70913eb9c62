//! Finds out whether a function is in use before the suite takes it.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use device_info::PciAddress;
use nix::ifaddrs::getifaddrs;

use crate::bare_metal::routes;
use crate::rig::sysfs;

/// A function and its network interfaces.
#[derive(Debug)]
pub(super) struct State {
    address: PciAddress,
    there: bool,
    driver: Option<String>,
    pub(super) total_vfs: u32,
    vfs: u32,
    netdevs: Vec<Netdev>,
}

#[derive(Debug, Default)]
struct Netdev {
    name: String,
    up: bool,
    default_route: bool,
    /// Bonds, bridges, VLANs above it.
    uppers: Vec<String>,
    /// Without link-local addresses, which every interface has while it is up.
    addresses: Vec<IpAddr>,
}

impl State {
    pub(super) fn read(address: PciAddress) -> Result<Self, StateError> {
        let folder = sysfs::function(address);
        let number = |file: &str| {
            let text = sysfs::read(folder.join(file)).unwrap_or_default();
            text.parse().unwrap_or(0)
        };
        let mut names = sysfs::names(folder.join("net"));
        // The interface of a virtio function is below its virtio device.
        for child in sysfs::names(&folder) {
            if child.starts_with("virtio") {
                names.extend(sysfs::names(folder.join(child).join("net")));
            }
        }
        let netdevs: Result<_, StateError> = names.into_iter().map(Netdev::read).collect();
        Ok(Self {
            address,
            there: folder.exists(),
            driver: sysfs::link(folder.join("driver")),
            total_vfs: number("sriov_totalvfs"),
            vfs: number("sriov_numvfs"),
            netdevs: netdevs?,
        })
    }

    /// Returns why the suite must not use the function.
    pub(super) fn refusal(&self, as_pf: bool) -> Option<String> {
        let address = self.address;
        if !self.there {
            return Some(format!(
                "{address} does not exist; list the functions with lspci -D"
            ));
        }
        if as_pf && self.total_vfs == 0 {
            return Some(format!(
                "{address} has no SR-IOV; name a function with SR-IOV"
            ));
        }
        if as_pf && self.vfs > 0 {
            return Some(format!(
                "{address} has {} VFs already, which may be in use; write 0 to its sriov_numvfs",
                self.vfs
            ));
        }
        self.netdevs.iter().find_map(|netdev| {
            let why = netdev.refusal()?;
            Some(format!("{address} is in use: {} {why}", netdev.name))
        })
    }
}

impl Netdev {
    fn read(name: String) -> Result<Self, StateError> {
        let folder = Path::new("/sys/class/net").join(&name);
        let flags = sysfs::read(folder.join("flags")).unwrap_or_default();
        let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).unwrap_or(0);
        let uppers: Vec<String> = sysfs::names(&folder)
            .iter()
            .filter_map(|entry| entry.strip_prefix("upper_").map(str::to_owned))
            .collect();
        Ok(Self {
            up: flags & 1 == 1,
            default_route: default_routes()?.contains(&name),
            addresses: addresses(&name)?,
            uppers,
            name,
        })
    }

    fn refusal(&self) -> Option<String> {
        if self.default_route {
            return Some("carries a default route; name another function".to_owned());
        }
        if let Some(upper) = self.uppers.first() {
            return Some(format!(
                "is part of {upper}; remove it from there, or name another"
            ));
        }
        match self.addresses.first() {
            Some(address) if self.up => Some(format!(
                "is up with address {address}; remove it with ip addr flush dev {}",
                self.name
            )),
            _ => None,
        }
    }
}

fn default_routes() -> Result<BTreeSet<String>, StateError> {
    let mut names = BTreeSet::new();
    for (file, read) in [
        ("/proc/net/route", routes::of_ipv4 as fn(&str) -> Vec<&str>),
        ("/proc/net/ipv6_route", routes::of_ipv6),
    ] {
        match fs::read_to_string(file) {
            Ok(table) => names.extend(read(&table).into_iter().map(str::to_owned)),
            // A kernel without this family has no routes of it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(StateError::Routes { file, source }),
        }
    }
    Ok(names)
}

fn addresses(name: &str) -> Result<Vec<IpAddr>, StateError> {
    let all = getifaddrs().map_err(|errno| StateError::Addresses(errno.into()))?;
    Ok(all
        .filter(|entry| entry.interface_name == name)
        .filter_map(|entry| {
            let address = entry.address?;
            if let Some(v4) = address.as_sockaddr_in() {
                return Some(IpAddr::V4(v4.ip()));
            }
            let v6 = address.as_sockaddr_in6()?.ip();
            (!v6.is_unicast_link_local()).then_some(IpAddr::V6(v6))
        })
        .collect())
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (driver {}, interfaces {}, {} of {} VFs)",
            self.address,
            self.driver.as_deref().unwrap_or("none"),
            if self.netdevs.is_empty() {
                "none".to_owned()
            } else {
                let names: Vec<&str> = self
                    .netdevs
                    .iter()
                    .map(|netdev| netdev.name.as_str())
                    .collect();
                names.join(" ")
            },
            self.vfs,
            self.total_vfs
        )
    }
}

/// The machine does not report whether a function is in use, so the suite does not touch it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    #[error("{file}: {source}")]
    Routes {
        file: &'static str,
        source: io::Error,
    },
    #[error("cannot read this machine's addresses: {0}")]
    Addresses(io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pf(netdev: Netdev) -> State {
        State {
            address: "0000:01:00.0".parse().unwrap(),
            there: true,
            driver: Some("igb".to_owned()),
            total_vfs: 7,
            vfs: 0,
            netdevs: vec![netdev],
        }
    }

    fn netdev() -> Netdev {
        Netdev {
            name: "eth7".to_owned(),
            up: true,
            ..Netdev::default()
        }
    }

    #[test]
    fn an_idle_pf_is_accepted() {
        assert_eq!(pf(netdev()).refusal(true), None);
    }

    #[test]
    fn a_function_in_use_is_refused_with_the_reason() {
        for (state, part) in [
            (
                pf(Netdev {
                    default_route: true,
                    ..netdev()
                }),
                "eth7 carries a default route",
            ),
            (
                pf(Netdev {
                    uppers: vec!["bond0".to_owned()],
                    ..netdev()
                }),
                "eth7 is part of bond0",
            ),
            (
                pf(Netdev {
                    addresses: vec!["192.0.2.1".parse().unwrap()],
                    ..netdev()
                }),
                "eth7 is up with address 192.0.2.1",
            ),
            (
                State {
                    vfs: 2,
                    ..pf(netdev())
                },
                "has 2 VFs already",
            ),
            (
                State {
                    total_vfs: 0,
                    ..pf(netdev())
                },
                "has no SR-IOV",
            ),
            (
                State {
                    there: false,
                    ..pf(netdev())
                },
                "does not exist",
            ),
        ] {
            let refusal = state.refusal(true).unwrap();
            assert!(
                refusal.contains(part) && refusal.contains("; "),
                "{refusal}"
            );
        }
    }

    #[test]
    fn an_address_on_an_interface_that_is_down_does_not_count() {
        let state = pf(Netdev {
            up: false,
            addresses: vec!["192.0.2.1".parse().unwrap()],
            ..netdev()
        });
        assert_eq!(state.refusal(true), None);
    }

    #[test]
    fn the_loopbacks_address_is_seen() {
        let found = addresses("lo").unwrap();
        assert!(found.contains(&"127.0.0.1".parse().unwrap()), "{found:?}");
    }
}
