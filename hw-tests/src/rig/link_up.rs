//! Sets interfaces up for a while.

use crate::case::Stop;
use crate::rig::command;

/// `IFF_UP` in sysfs' flags.
const UP: u32 = 1;

/// An interface that is up; as before when dropped.
#[derive(Debug)]
pub(crate) struct LinkUp {
    name: String,
    was_up: bool,
}

impl LinkUp {
    pub(crate) fn make(name: String) -> Result<Self, Stop> {
        let flags = crate::rig::sysfs::read(format!("/sys/class/net/{name}/flags"))?;
        let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16)?;
        command("ip", &["link", "set", "dev", &name, "up"])?;
        Ok(Self {
            name,
            was_up: flags & UP == UP,
        })
    }
}

impl Drop for LinkUp {
    fn drop(&mut self) {
        if !self.was_up {
            // The check of traces after each case finds what stays.
            let _ = command("ip", &["link", "set", "dev", &self.name, "down"]);
        }
    }
}
