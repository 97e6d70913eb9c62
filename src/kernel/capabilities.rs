//! The Linux capabilities that the plugin needs.

use caps::{CapSet, Capability};

use super::KernelError;

/// The capabilities that a process needs to enter and change another network namespace.
///
/// The delegates need the same capabilities. Jackfield checks for these capabilities before it runs
/// the first delegate of an ADD, or of a change to a running pod's networks. So an ADD or a change
/// does not fail halfway because of a missing capability.
const NEEDED: [(Capability, &str); 2] = [
    (Capability::CAP_NET_ADMIN, "CAP_NET_ADMIN"),
    (Capability::CAP_SYS_ADMIN, "CAP_SYS_ADMIN"),
];

/// Returns the names of the needed capabilities that the calling thread lacks in its effective set.
///
/// Each thread has its own capabilities, so the result applies to the calling thread only.
#[must_use]
pub fn missing() -> Vec<&'static str> {
    missing_of(|capability| {
        // If the set cannot be read, assume that the thread has the capability. If the thread lacks
        // the capability, the system call that needs the capability fails later.
        caps::has_cap(None, CapSet::Effective, capability).unwrap_or(true)
    })
}

/// Checks that the calling thread has all needed capabilities.
///
/// # Errors
/// [`KernelError::Capabilities`] with the names of the missing capabilities.
pub fn require() -> Result<(), KernelError> {
    #[cfg(test)]
    if crate::machine::current().is_some() {
        return Ok(());
    }
    let missing = missing();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(KernelError::Capabilities(missing))
    }
}

/// Returns whether the calling thread may access files of every owner (`CAP_DAC_OVERRIDE`).
pub fn overrides_owners() -> bool {
    caps::has_cap(None, CapSet::Effective, Capability::CAP_DAC_OVERRIDE).unwrap_or(false)
}

fn missing_of(has: impl Fn(Capability) -> bool) -> Vec<&'static str> {
    NEEDED
        .iter()
        .filter(|(capability, _)| !has(*capability))
        .map(|(_, name)| *name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_missing_capabilities_are_named() {
        assert_eq!(missing_of(|_| true), Vec::<&str>::new());
        assert_eq!(
            missing_of(|capability| capability != Capability::CAP_SYS_ADMIN),
            ["CAP_SYS_ADMIN"]
        );
        assert_eq!(missing_of(|_| false), ["CAP_NET_ADMIN", "CAP_SYS_ADMIN"]);
    }

    #[test]
    fn a_thread_that_dropped_its_capabilities_lacks_them() {
        let dropped = std::thread::spawn(|| {
            caps::clear(None, CapSet::Effective).unwrap();
            (missing(), require().is_err())
        })
        .join()
        .unwrap();
        assert_eq!(dropped, (vec!["CAP_NET_ADMIN", "CAP_SYS_ADMIN"], true));
    }
}
