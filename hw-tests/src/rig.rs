//! What cases make in the kernel. Each thing is unmade when its value is dropped; [`crate::traces`]
//! finds what was not.

pub(crate) use command::{CommandError, command};
pub(crate) use driver::Bound;
pub(crate) use ib_stub::{IbStub, LinkLayer};
pub(crate) use link::Link;
pub(crate) use netdevsim::Netdevsim;
pub(crate) use netns::Netns;
pub(crate) use pf_stub::PfStub;
pub(crate) use rxe::Rxe;
pub(crate) use vdpa::{Vdpa, child};
pub(crate) use vduse::Vduse;
pub(crate) use vfs::{Vfs, netdev};
pub(crate) use wait::until;

mod command;
mod driver;
mod ib_stub;
mod link;
mod netdevsim;
mod netns;
mod pf_stub;
mod rxe;
pub(crate) mod sysfs;
mod vdpa;
mod vduse;
mod vfs;
mod wait;
