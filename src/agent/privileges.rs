//! The agent has no capability: it is root to own its files, and nothing else.

use caps::{CapSet, Capability};

use super::AgentError;

/// Gives up every capability, in every set, for good.
///
/// They are a thread's own: this has to come before any other thread is started.
///
/// # Errors
/// When one is left.
pub(super) fn give_up() -> Result<(), AgentError> {
    let failed = |cause: &dyn std::fmt::Display| AgentError::Privileges(cause.to_string());
    // What is executed by a process of user 0 would get them back.
    nix::sys::prctl::set_no_new_privs().map_err(|error| failed(&error))?;
    // The bounding set can be shrunk only by who may; a container without CAP_SETPCAP cannot use
    // what is in it either.
    if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP).unwrap_or(false) {
        let bounding = caps::read(None, CapSet::Bounding).map_err(|error| failed(&error))?;
        for capability in bounding {
            caps::drop(None, CapSet::Bounding, capability).map_err(|error| failed(&error))?;
        }
    }
    for set in [
        CapSet::Ambient,
        CapSet::Inheritable,
        CapSet::Effective,
        CapSet::Permitted,
    ] {
        caps::clear(None, set).map_err(|error| failed(&error))?;
    }
    for set in [CapSet::Effective, CapSet::Permitted] {
        let left = caps::read(None, set).map_err(|error| failed(&error))?;
        if !left.is_empty() {
            return Err(failed(&format!("{left:?} are left")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_afterwards_not_even_the_right_to_get_it_back() {
        let left = std::thread::spawn(|| {
            give_up().unwrap();
            give_up().unwrap();
            [CapSet::Effective, CapSet::Permitted, CapSet::Inheritable]
                .map(|set| caps::read(None, set).unwrap().len())
        });
        assert_eq!(left.join().unwrap(), [0, 0, 0]);
    }
}
