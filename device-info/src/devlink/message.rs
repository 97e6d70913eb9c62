//! The part of generic netlink that the three requests of this crate need.

use nix::errno::Errno;

use super::{DevlinkError, DevlinkHandle, DevlinkPort, EswitchMode, PortFlavour};

/// The family that reports the numbers of the other families (`GENL_ID_CTRL`).
pub(super) const CONTROL: u16 = 16;

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const HEADER: usize = 16;
const GENERIC_HEADER: usize = 4;

const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// Numbers from `linux/devlink.h`.
mod devlink {
    pub(super) const CMD_PORT_GET: u8 = 5;
    pub(super) const CMD_ESWITCH_GET: u8 = 29;
    pub(super) const BUS_NAME: u16 = 1;
    pub(super) const DEV_NAME: u16 = 2;
    pub(super) const PORT_INDEX: u16 = 3;
    pub(super) const PORT_NETDEV_NAME: u16 = 7;
    pub(super) const ESWITCH_MODE: u16 = 25;
    pub(super) const PORT_FLAVOUR: u16 = 77;
    pub(super) const PORT_NUMBER: u16 = 78;
    pub(super) const PORT_PCI_PF_NUMBER: u16 = 127;
    pub(super) const PORT_PCI_VF_NUMBER: u16 = 128;
    pub(super) const PORT_EXTERNAL: u16 = 149;
    pub(super) const PORT_CONTROLLER_NUMBER: u16 = 150;
    pub(super) const PORT_PCI_SF_NUMBER: u16 = 164;
}

/// A request: a command, its attributes, and a description for messages.
pub(super) struct Request {
    command: u8,
    dump: bool,
    attributes: Vec<(u16, String)>,
    /// What the request asks devlink for, as in the message `devlink did not report {what}`
    /// ([`DevlinkError`]).
    what: String,
}

impl Request {
    pub(super) fn family(name: &str) -> Self {
        Self {
            command: CTRL_CMD_GETFAMILY,
            dump: false,
            attributes: vec![(CTRL_ATTR_FAMILY_NAME, name.to_owned())],
            what: "the number of its netlink family".to_owned(),
        }
    }

    pub(super) fn eswitch(device: &DevlinkHandle) -> Self {
        Self::device(devlink::CMD_ESWITCH_GET, false, device, "the switch mode")
    }

    pub(super) fn ports(device: &DevlinkHandle) -> Self {
        Self::device(devlink::CMD_PORT_GET, true, device, "the ports")
    }

    fn device(command: u8, dump: bool, device: &DevlinkHandle, what: &str) -> Self {
        Self {
            command,
            dump,
            attributes: vec![
                (devlink::BUS_NAME, device.bus.clone()),
                (devlink::DEV_NAME, device.name.clone()),
            ],
            what: format!("{what} of {device}"),
        }
    }

    pub(super) fn what(&self) -> String {
        self.what.clone()
    }

    pub(super) fn encode(&self, family: u16, sequence: u32) -> Vec<u8> {
        let mut payload = vec![self.command, 1, 0, 0];
        for (kind, text) in &self.attributes {
            let length = u16::try_from(4 + text.len() + 1).unwrap_or(u16::MAX);
            payload.extend(length.to_ne_bytes());
            payload.extend(kind.to_ne_bytes());
            payload.extend(text.as_bytes());
            payload.push(0);
            payload.resize(payload.len().next_multiple_of(4), 0);
        }
        let flags = NLM_F_REQUEST | if self.dump { NLM_F_DUMP } else { NLM_F_ACK };
        let length = u32::try_from(HEADER + payload.len()).unwrap_or(u32::MAX);
        let mut message = Vec::with_capacity(HEADER + payload.len());
        message.extend(length.to_ne_bytes());
        message.extend(family.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend(sequence.to_ne_bytes());
        message.extend(0_u32.to_ne_bytes());
        message.extend(payload);
        message
    }
}

/// Adds the replies in one datagram to `replies`. Returns true if the answer is complete.
pub(super) fn collect(
    datagram: &[u8],
    sequence: u32,
    request: &Request,
    replies: &mut Vec<Reply>,
) -> Result<bool, DevlinkError> {
    let garbled = || DevlinkError::Garbled(request.what());
    let mut rest = datagram;
    while !rest.is_empty() {
        let length =
            usize::try_from(u32_at(rest, 0).ok_or_else(garbled)?).map_err(|_| garbled())?;
        let message = rest
            .get(..length)
            .filter(|message| message.len() >= HEADER)
            .ok_or_else(garbled)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        if u32_at(message, 8) != Some(sequence) {
            // This is the rest of the answer to an earlier request that timed out.
            continue;
        }
        match u16_at(message, 4).ok_or_else(garbled)? {
            kind @ (NLMSG_ERROR | NLMSG_DONE) => {
                // The error code follows the header. NLMSG_ERROR with code 0 is an
                // acknowledgement. NLMSG_DONE ends a dump, and may have no code.
                let code = message
                    .get(HEADER..HEADER + 4)
                    .and_then(|bytes| bytes.try_into().ok())
                    .map_or(0, i32::from_ne_bytes);
                if code == 0 && kind == NLMSG_ERROR || kind == NLMSG_DONE && code >= 0 {
                    return Ok(true);
                }
                return Err(DevlinkError::Refused {
                    what: request.what(),
                    errno: Errno::from_raw(code.saturating_neg()),
                });
            }
            _ => replies.push(Reply(
                message
                    .get(HEADER + GENERIC_HEADER..)
                    .ok_or_else(garbled)?
                    .to_vec(),
            )),
        }
    }
    Ok(false)
}

/// The attributes of one reply.
#[derive(Debug)]
pub(super) struct Reply(Vec<u8>);

impl Reply {
    /// Returns the last complete attribute of a kind.
    fn get(&self, kind: u16) -> Option<&[u8]> {
        /// The bits for `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER` in the kind of an attribute.
        const FLAGS: u16 = 0xc000;
        let mut rest = self.0.as_slice();
        let mut found = None;
        while let (Some(length), Some(this)) = (u16_at(rest, 0), u16_at(rest, 2)) {
            let length = usize::from(length);
            let Some(value) = rest.get(4..length) else {
                break;
            };
            if this & !FLAGS == kind {
                found = Some(value);
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        found
    }

    fn text(&self, kind: u16) -> Option<&str> {
        std::str::from_utf8(self.get(kind)?.split(|byte| *byte == 0).next()?).ok()
    }

    fn number(&self, kind: u16) -> Option<u32> {
        match *self.get(kind)? {
            [a] => Some(u32::from(a)),
            [a, b] => Some(u32::from(u16::from_ne_bytes([a, b]))),
            [a, b, c, d] => Some(u32::from_ne_bytes([a, b, c, d])),
            _ => None,
        }
    }

    pub(super) fn family_id(&self) -> Option<u16> {
        u16::try_from(self.number(CTRL_ATTR_FAMILY_ID)?).ok()
    }

    pub(super) fn eswitch_mode(&self) -> Option<EswitchMode> {
        match self.number(devlink::ESWITCH_MODE)? {
            0 => Some(EswitchMode::Legacy),
            1 => Some(EswitchMode::Switchdev),
            _ => None,
        }
    }

    pub(super) fn is_of(&self, device: &DevlinkHandle) -> bool {
        self.text(devlink::BUS_NAME) == Some(&device.bus)
            && self.text(devlink::DEV_NAME) == Some(&device.name)
    }

    pub(super) fn port(&self) -> Option<DevlinkPort> {
        let flavour = match self.number(devlink::PORT_FLAVOUR) {
            Some(0) => PortFlavour::Physical,
            Some(3) => PortFlavour::PciPf,
            Some(4) => PortFlavour::PciVf,
            Some(7) => PortFlavour::PciSf,
            _ => PortFlavour::Other,
        };
        Some(DevlinkPort {
            index: self.number(devlink::PORT_INDEX)?,
            netdev: self
                .text(devlink::PORT_NETDEV_NAME)
                .filter(|name| !name.is_empty())
                .map(str::to_owned),
            flavour,
            number: self.number(devlink::PORT_NUMBER),
            controller: self.number(devlink::PORT_CONTROLLER_NUMBER).unwrap_or(0),
            external: self.number(devlink::PORT_EXTERNAL).unwrap_or(0) != 0,
            pf: self.number(devlink::PORT_PCI_PF_NUMBER),
            vf: self.number(devlink::PORT_PCI_VF_NUMBER),
            sf: self.number(devlink::PORT_PCI_SF_NUMBER),
        })
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests;
