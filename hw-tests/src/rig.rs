//! What cases create in the kernel. Dropping a value removes what it created; [`crate::traces`]
//! finds leftovers.

pub(crate) use cluster::Cluster;
pub(crate) use command::{CommandError, command};
pub(crate) use driver::DriverBinding;
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
pub(crate) use vf_cost::vf_state_cost;
pub(crate) use vf_snapshot::{VfSnapshot, pf_and_number};
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
mod vf_cost;
mod vf_snapshot;
mod vfs;
mod wait;
