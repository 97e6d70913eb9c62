//! Replaces values that identify a machine.

use std::collections::BTreeMap;

use crate::guid::Guid;
use crate::ipoib_addr::IpoibAddr;
use crate::mac_addr::MacAddr;

/// Replaces identifying values. The same value always has the same substitute.
#[derive(Default)]
pub(super) struct Redactor {
    macs: BTreeMap<MacAddr, MacAddr>,
    guids: BTreeMap<Guid, Guid>,
    switches: BTreeMap<String, String>,
}

impl Redactor {
    /// Replaces the identifying values in the text of a sysfs attribute. `attribute` is the name of
    /// the attribute, or `gid` for any GID.
    pub(super) fn text(&mut self, attribute: &str, text: &str) -> String {
        match attribute {
            "address" => self.address(text),
            "node_guid" => self.sysfs_guid(text),
            "gid" => self.gid(text),
            "phys_switch_id" => self.switch(text),
            _ => self.name(text),
        }
    }

    /// Replaces each MAC and GUID that follows an `x` in a name or path, as in `enx001122334455` or
    /// `ibx0011223344556677`.
    pub(super) fn name(&mut self, name: &str) -> String {
        let mut result = String::with_capacity(name.len());
        let mut rest = name;
        while let Some(at) = rest.find('x') {
            let (head, tail) = rest.split_at(at + 1);
            result.push_str(head);
            let end = tail
                .find(|character: char| !character.is_ascii_hexdigit())
                .unwrap_or(tail.len());
            let (digits, after) = tail.split_at(end);
            match end {
                12 => result.push_str(&self.bare_mac(digits)),
                16 => result.push_str(&self.bare_guid(digits)),
                _ => result.push_str(digits),
            }
            rest = after;
        }
        result + rest
    }

    fn address(&mut self, text: &str) -> String {
        if let Ok(mac) = MacAddr::parse_observed(text) {
            return self.mac(mac).to_string();
        }
        match text.parse::<IpoibAddr>() {
            Ok(address) => {
                let mut octets = [0; 20];
                // The flags and the queue pair number of the substitute are zero. The prefix is the
                // link-local prefix, which identifies no machine.
                octets[4] = 0xfe;
                octets[5] = 0x80;
                let guid = self.guid(address.port_guid()).octets();
                octets[12..].copy_from_slice(&guid);
                IpoibAddr::from(octets).to_string()
            }
            Err(_) => String::new(),
        }
    }

    fn mac(&mut self, mac: MacAddr) -> MacAddr {
        if mac.is_zero() || mac.is_broadcast() {
            return mac;
        }
        let next = counter(self.macs.len());
        *self
            .macs
            .entry(mac)
            .or_insert_with(|| MacAddr::from([2, 0, next[4], next[5], next[6], next[7]]))
    }

    fn guid(&mut self, guid: Guid) -> Guid {
        if guid.is_zero() {
            return guid;
        }
        let mut next = counter(self.guids.len());
        next[0] = 2;
        *self.guids.entry(guid).or_insert_with(|| Guid::from(next))
    }

    fn sysfs_guid(&mut self, text: &str) -> String {
        Guid::parse_observed(text)
            .map(|guid| in_fours(self.guid(guid)))
            .unwrap_or_default()
    }

    /// Replaces the port GUID and the prefix of a GID. The link-local prefix stays, because it does
    /// not identify a fabric.
    fn gid(&mut self, text: &str) -> String {
        let Some((at, _)) = text.match_indices(':').nth(3) else {
            return String::new();
        };
        let (prefix, port) = text.split_at(at);
        let prefix = if prefix == "fe80:0000:0000:0000" {
            prefix.to_owned()
        } else {
            self.sysfs_guid(prefix)
        };
        format!("{prefix}:{}", self.sysfs_guid(port.trim_start_matches(':')))
    }

    fn switch(&mut self, text: &str) -> String {
        let next = self.switches.len() + 1;
        self.switches
            .entry(text.to_owned())
            .or_insert_with(|| format!("{next:0width$x}", width = text.len().min(64)))
            .clone()
    }

    fn bare_mac(&mut self, digits: &str) -> String {
        crate::octets::parse_bare(digits).map_or_else(String::new, |octets| {
            self.mac(MacAddr::from(octets)).to_string().replace(':', "")
        })
    }

    fn bare_guid(&mut self, digits: &str) -> String {
        crate::octets::parse_bare(digits).map_or_else(String::new, |octets| {
            self.guid(Guid::from(octets)).to_string().replace(':', "")
        })
    }
}

/// Returns the number of the next substitute, counted from 1, as eight big-endian octets.
fn counter(used: usize) -> [u8; 8] {
    u64::try_from(used + 1).unwrap_or(u64::MAX).to_be_bytes()
}

/// Formats a GUID as sysfs does.
fn in_fours(guid: Guid) -> String {
    let [a, b, c, d, e, f, g, h] = guid.octets();
    format!("{a:02x}{b:02x}:{c:02x}{d:02x}:{e:02x}{f:02x}:{g:02x}{h:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_identity_has_one_substitute_in_every_form() {
        let mut redactor = Redactor::default();
        let address = redactor.text("address", "52:54:00:aa:00:01");
        assert_eq!(
            redactor.name("class/net/enx525400aa0001"),
            format!("class/net/enx{}", address.replace(':', ""))
        );
        assert_ne!(redactor.text("address", "52:54:00:aa:00:02"), address);

        let node = redactor.text("node_guid", "02c9:0300:0002:003a");
        let gid = redactor.text("gid", "fe80:0000:0000:0000:02c9:0300:0002:003a");
        assert_eq!(gid, format!("fe80:0000:0000:0000:{node}"));
        let ipoib: IpoibAddr = redactor
            .text(
                "address",
                "80:00:00:49:fe:80:00:00:00:00:00:00:02:c9:03:00:00:02:00:3a",
            )
            .parse()
            .unwrap();
        assert_eq!(ipoib.port_guid(), Guid::parse_observed(&node).unwrap());
    }

    #[test]
    fn nothing_of_the_original_remains() {
        let mut redactor = Redactor::default();
        for (attribute, text) in [
            ("address", "52:54:00:aa:00:01"),
            ("address", "no address at all 525400aa0001"),
            ("node_guid", "02c9:0300:0002:003a"),
            ("gid", "2001:0db8:0000:0000:02c9:0300:0002:003a"),
            ("phys_switch_id", "46843d0d38cfa36b"),
            ("parent", "enx525400aa0001"),
        ] {
            let redacted = redactor.text(attribute, text);
            for trace in ["54:00:aa", "5400aa", "02c9", "0db8", "46843d"] {
                assert!(!redacted.contains(trace), "{text} became {redacted}");
            }
        }
    }

    #[test]
    fn zeros_stay_zeros_because_they_mean_none() {
        let mut redactor = Redactor::default();
        assert_eq!(
            redactor.text("address", "00:00:00:00:00:00"),
            "00:00:00:00:00:00"
        );
        assert_eq!(
            redactor.text("node_guid", "0000:0000:0000:0000"),
            "0000:0000:0000:0000"
        );
    }

    #[test]
    fn ordinary_names_stay() {
        let mut redactor = Redactor::default();
        for name in [
            "devices/pci0000:00/0000:01:00.0",
            "mlx5_core.sf.4",
            "enp3s0f0np0",
            "x",
            "xénon",
        ] {
            assert_eq!(redactor.name(name), name);
        }
    }
}
