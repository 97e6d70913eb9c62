//! The privileges that the plugin cannot do without.

use caps::{CapSet, Capability};

use super::KernelError;

/// What attaching needs: to enter another network namespace, and to change what is in it.
///
/// The delegates need the same, so one look before the first of them runs saves an ADD that
/// fails half-way.
const NEEDED: [(Capability, &str); 2] = [
    (Capability::CAP_NET_ADMIN, "CAP_NET_ADMIN"),
    (Capability::CAP_SYS_ADMIN, "CAP_SYS_ADMIN"),
];

/// The names of the needed privileges that the calling thread lacks, in its effective set.
///
/// Privileges are a thread's, so this is about the caller alone.
#[must_use]
pub fn missing() -> Vec<&'static str> {
    missing_of(|capability| {
        // Where the kernel does not tell, the act itself will: nothing is refused on a guess.
        caps::has_cap(None, CapSet::Effective, capability).unwrap_or(true)
    })
}

/// Makes sure that nothing is [`missing`].
///
/// # Errors
/// [`KernelError::Capabilities`], in one line that names them.
pub fn require() -> Result<(), KernelError> {
    let missing = missing();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(KernelError::Capabilities { missing })
    }
}

/// Whether the calling thread may use files whoever owns them.
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
    fn each_privilege_that_is_missing_is_named_and_no_other() {
        assert_eq!(missing_of(|_| true), Vec::<&str>::new());
        assert_eq!(
            missing_of(|capability| capability != Capability::CAP_SYS_ADMIN),
            ["CAP_SYS_ADMIN"]
        );
        assert_eq!(missing_of(|_| false), ["CAP_NET_ADMIN", "CAP_SYS_ADMIN"]);
    }

    #[test]
    fn a_thread_that_gave_its_privileges_up_lacks_them() {
        let dropped = std::thread::spawn(|| {
            caps::clear(None, CapSet::Effective).unwrap();
            (missing(), require().is_err())
        })
        .join()
        .unwrap();
        assert_eq!(dropped, (vec!["CAP_NET_ADMIN", "CAP_SYS_ADMIN"], true));
    }
}
