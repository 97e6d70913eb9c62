//! Parses the sysfs attribute `phys_port_name`, in which a driver reports the switch port of an
//! interface.

use std::fmt;
use std::str::FromStr;

use crate::quoted::Quoted;

/// The switch port of an interface, as drivers report it in `phys_port_name`: `p0`, `p0s1`, `pf0`,
/// `pf0vf3`, `pf0sf5`. On a DPU, a prefix such as `c1` marks a function that belongs to the host in
/// which the DPU is installed. Each host that uses the DPU has its own controller, and the prefix
/// contains the number of that controller.
///
/// To find a representor, the crate uses port names only if devlink reports no ports.
///
/// ```
/// use device_info::PhysPortName;
///
/// let port: PhysPortName = "c1pf0vf3".parse()?;
/// assert_eq!(port, PhysPortName::Vf { controller: Some(1), pf: 0, vf: 3 });
/// assert!(port.is_representor());
/// # Ok::<(), device_info::PhysPortNameError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PhysPortName {
    /// A port to the wire, or a part of a split port.
    Physical {
        /// The port's number, which drivers count from 0 or from 1.
        port: u32,
        /// The part, if the port is split.
        part: Option<u32>,
    },
    /// The representor of a physical function.
    Pf {
        /// The number after `c`, if the function belongs to another host. `None` if the function
        /// belongs to the machine that reports the port name.
        controller: Option<u32>,
        /// The physical function's number.
        pf: u32,
    },
    /// The representor of a virtual function.
    Vf {
        /// The number after `c`, if the function belongs to another host. `None` if the function
        /// belongs to the machine that reports the port name.
        controller: Option<u32>,
        /// The physical function's number.
        pf: u32,
        /// The virtual function's number.
        vf: u32,
    },
    /// The representor of a subfunction.
    Sf {
        /// The number after `c`, if the function belongs to another host. `None` if the function
        /// belongs to the machine that reports the port name.
        controller: Option<u32>,
        /// The physical function's number.
        pf: u32,
        /// The subfunction's number, `sfnum`.
        sf: u32,
    },
}

impl PhysPortName {
    /// Returns whether the interface is the representor of a function. If not, the interface is a
    /// port to the wire.
    #[must_use]
    pub const fn is_representor(self) -> bool {
        !matches!(self, Self::Physical { .. })
    }
}

impl FromStr for PhysPortName {
    type Err = PhysPortNameError;

    fn from_str(text: &str) -> Result<Self, PhysPortNameError> {
        parse(text).ok_or_else(|| PhysPortNameError(Quoted::new(text)))
    }
}

fn parse(text: &str) -> Option<PhysPortName> {
    let (controller, rest) = match text.strip_prefix('c') {
        Some(rest) => {
            let (controller, rest) = number(rest)?;
            (Some(controller), rest)
        }
        None => (None, text),
    };
    if let Some(rest) = rest.strip_prefix("pf") {
        let (pf, rest) = number(rest)?;
        return match rest {
            "" => Some(PhysPortName::Pf { controller, pf }),
            _ => match (rest.strip_prefix("vf"), rest.strip_prefix("sf")) {
                (Some(vf), _) => Some(PhysPortName::Vf {
                    controller,
                    pf,
                    vf: last(vf)?,
                }),
                (_, Some(sf)) => Some(PhysPortName::Sf {
                    controller,
                    pf,
                    sf: last(sf)?,
                }),
                _ => None,
            },
        };
    }
    let (port, rest) = number(rest.strip_prefix('p')?)?;
    let part = match rest {
        "" => None,
        _ => Some(last(rest.strip_prefix('s')?)?),
    };
    controller
        .is_none()
        .then_some(PhysPortName::Physical { port, part })
}

fn number(text: &str) -> Option<(u32, &str)> {
    let end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((digits.parse().ok()?, rest))
}

fn last(text: &str) -> Option<u32> {
    number(text).and_then(|(value, rest)| rest.is_empty().then_some(value))
}

impl fmt::Display for PhysPortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |controller: &Option<u32>, f: &mut fmt::Formatter<'_>| match controller {
            Some(controller) => write!(f, "c{controller}"),
            None => Ok(()),
        };
        match self {
            Self::Physical { port, part: None } => write!(f, "p{port}"),
            Self::Physical {
                port,
                part: Some(part),
            } => write!(f, "p{port}s{part}"),
            Self::Pf { controller, pf } => {
                of(controller, f)?;
                write!(f, "pf{pf}")
            }
            Self::Vf { controller, pf, vf } => {
                of(controller, f)?;
                write!(f, "pf{pf}vf{vf}")
            }
            Self::Sf { controller, pf, sf } => {
                of(controller, f)?;
                write!(f, "pf{pf}sf{sf}")
            }
        }
    }
}

/// A text that has none of the forms of [`PhysPortName`]. For example, some drivers use their own
/// scheme (`sw1p1`), which does not identify a function.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "port name {0}: it has none of the forms p0, p0s1, pf0, pf0vf3 and pf0sf5; find the port in \
     the output of `devlink port show`"
)]
pub struct PhysPortNameError(Quoted);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_form_of_a_port_name_is_read_and_written() {
        for (text, representor) in [
            ("p0", false),
            ("p0s1", false),
            ("pf0", true),
            ("pf0vf3", true),
            ("pf0sf5", true),
            ("c1pf0vf0", true),
            ("c1pf0", true),
            ("c2pf1sf88", true),
            ("pf0vf4294967295", true),
        ] {
            let port: PhysPortName = text.parse().unwrap();
            assert_eq!(
                (port.to_string().as_str(), port.is_representor()),
                (text, representor)
            );
        }
    }

    #[test]
    fn a_name_that_matches_no_known_form_is_refused() {
        for text in [
            "",
            "p",
            "pf",
            "sw1p1",
            "pf0vf",
            "pf0vf3x",
            "vf3",
            "c1p0",
            "0",
            "p0s",
            "pf0vf4294967296",
            "pf0vfr1",
        ] {
            assert!(text.parse::<PhysPortName>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "[cpfvs0-9]{0,12}|.*") {
            if let Ok(port) = text.parse::<PhysPortName>() {
                prop_assert_eq!(port.to_string().parse::<PhysPortName>().unwrap(), port);
            }
        }
    }
}
