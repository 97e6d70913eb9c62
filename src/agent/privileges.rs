//! Gives up the agent's capabilities. The agent runs as root only because root owns the files that
//! the agent uses.

use caps::CapSet::{Ambient, Bounding, Effective, Inheritable, Permitted};
use caps::Capability;

use super::PrivilegeError;

/// Removes every capability from every capability set that the process may change. The process
/// cannot regain the capabilities.
///
/// Each thread has its own capabilities, and this function changes only those of the calling
/// thread. The caller must therefore not have started another thread.
///
/// # Errors
/// If `no_new_privs` cannot be set, if a capability set cannot be read or changed, or if the
/// process still has a capability.
pub(super) fn give_up() -> Result<(), PrivilegeError> {
    // Without `no_new_privs`, a process of user 0 would regain capabilities when it executes a
    // program.
    nix::sys::prctl::set_no_new_privs()?;
    // Only a process with CAP_SETPCAP may shrink the bounding set. Without CAP_SETPCAP, the set can
    // stay, because `no_new_privs` keeps the process from gaining the capabilities in the set.
    if caps::has_cap(None, Effective, Capability::CAP_SETPCAP).unwrap_or(false) {
        for capability in caps::read(None, Bounding)? {
            caps::drop(None, Bounding, capability)?;
        }
    }
    for set in [Ambient, Inheritable, Effective, Permitted] {
        caps::clear(None, set)?;
    }
    for set in [Effective, Permitted] {
        let left = caps::read(None, set)?;
        if !left.is_empty() {
            return Err(PrivilegeError::Left(left));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_capability_is_left_and_none_can_be_regained() {
        let left = std::thread::spawn(|| {
            give_up().unwrap();
            give_up().unwrap();
            [Effective, Permitted, Inheritable].map(|set| caps::read(None, set).unwrap().len())
        });
        assert_eq!(left.join().unwrap(), [0, 0, 0]);
    }
}
