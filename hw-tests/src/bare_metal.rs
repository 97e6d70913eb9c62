//! Runs the suite on this machine's own hardware.
//!
//! The suite prints what it will touch and touches only functions that the user named. It refuses
//! functions that are in use, and holds a lock on each function while it runs.

use std::io::{self, Write};

use device_info::PciAddress;

use crate::case::Case;
use crate::node::Node;
use crate::report::{Event, Report};
use crate::suite;
pub(crate) use interrupt::Interrupt;
pub(crate) use lock::Lock;
use lock::LockError;
use state::{State, StateError};

mod interrupt;
mod lock;
mod plan;
mod routes;
mod state;

/// Runs the cases on the functions of `node`. Returns false if there was nothing to run.
pub(crate) fn run(
    node: &Node,
    cases: &[Case],
    dry_run: bool,
    report: &mut Report,
) -> Result<bool, BareMetalError> {
    let mut states = Vec::new();
    for (address, is_pf) in functions(node) {
        states.push((State::read(address)?, is_pf));
    }
    plan::show(&states, cases)?;
    let refusals: Vec<String> = states
        .iter()
        .filter_map(|(state, is_pf)| state.refusal(*is_pf))
        .collect();
    if !refusals.is_empty() {
        return Err(BareMetalError::Refused(refusals.join("; ")));
    }
    if dry_run {
        return Ok(false);
    }
    if node.pfs.is_empty() {
        return Err(BareMetalError::NoPf);
    }
    if !nix::unistd::geteuid().is_root() {
        return Err(BareMetalError::NotRoot);
    }
    let mut locks = Vec::new();
    for (address, _) in functions(node) {
        locks.push(Lock::of(address)?);
    }
    let interrupt = Interrupt::watch().map_err(|errno| BareMetalError::Signals(errno.into()))?;
    suite::run(cases, node, &interrupt, &mut |event| match event {
        Event::Started { .. } => Ok(()),
        Event::Finished(finished) => {
            let case = cases.iter().find(|case| case.name == finished.case);
            case.map_or(Ok(()), |case| report.add(case, finished))
        }
    })?;
    drop(locks);
    if interrupt.is_asked() {
        report.close()?;
        return Err(BareMetalError::Interrupted);
    }
    Ok(true)
}

fn functions(node: &Node) -> impl Iterator<Item = (PciAddress, bool)> {
    let pfs = node.pfs.iter().map(|pf| (*pf, true));
    pfs.chain(node.virtio.iter().map(|virtio| (*virtio, false)))
}

/// Why the suite does not run on this machine.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BareMetalError {
    #[error("{0}; nothing was touched")]
    Refused(String),
    #[error("no PF was named, so nothing was touched; name a function with SR-IOV by --pf")]
    NoPf,
    #[error("changing VFs and drivers needs root; run it as root")]
    NotRoot,
    #[error("interrupted; everything that the suite created is removed")]
    Interrupted,
    #[error("cannot handle signals: {0}")]
    Signals(io::Error),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Out(#[from] io::Error),
}

/// Prints all PFs of this machine, whether or not the suite may use them.
fn candidates(out: &mut impl Write) -> Result<(), BareMetalError> {
    let mut any = false;
    for name in crate::rig::sysfs::names("/sys/bus/pci/devices") {
        let Ok(address) = name.parse::<PciAddress>() else {
            continue;
        };
        let state = State::read(address)?;
        if state.total_vfs == 0 {
            continue;
        }
        any = true;
        let usable = state.refusal(true).map_or_else(
            || "may be named by --pf".to_owned(),
            |why| format!("not usable: {why}"),
        );
        writeln!(out, "  {state}: {usable}")?;
    }
    if !any {
        writeln!(out, "  none: no function of this machine has SR-IOV")?;
    }
    Ok(())
}
