//! What cases make in the kernel. Each thing is unmade when its value is dropped; [`crate::traces`]
//! finds what was not.

pub(crate) use cluster::Cluster;
pub(crate) use command::{CommandError, command};
pub(crate) use driver::Bound;
pub(crate) use ib_stub::{BoundStub, IbStub, LinkLayer};
pub(crate) use link::{Link, LinkVf};
pub(crate) use link_up::LinkUp;
pub(crate) use netdevsim::Netdevsim;
pub(crate) use netns::Netns;
pub(crate) use pf_stub::PfStub;
pub(crate) use pod::Pod;
pub(crate) use rxe::Rxe;
pub(crate) use testpmd::Testpmd;
pub(crate) use vdpa::{Vdpa, child};
pub(crate) use vduse::Vduse;
pub(crate) use vf_as_found::{VfAsFound, pf_and_number};
pub(crate) use vf_cost::vf_state_cost;
pub(crate) use vfs::{Vfs, netdev, pf_of, vf_number};
pub(crate) use wait::until;

mod cluster;
mod command;
mod driver;
mod ib_stub;
mod link;
mod link_up;
mod netdevsim;
mod netns;
mod pf_stub;
mod pod;
mod rxe;
pub(crate) mod sysfs;
mod testpmd;
mod vdpa;
mod vduse;
mod vf_as_found;
mod vf_cost;
mod vfs;
mod wait;
