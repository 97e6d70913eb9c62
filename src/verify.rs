//! temporary
#![allow(missing_docs)]
use crate::cni::*;
use crate::kernel::*;
use crate::plan::Requested;
pub struct Intended<'a> {
    pub ifname: &'a InterfaceName,
    pub requested: &'a Requested,
    pub answered: Option<&'a CniResult>,
    pub later_interfaces: &'a [InterfaceName],
}
#[derive(Debug)]
pub enum Weight {
    Requested,
    Answered,
    Warning,
}
#[derive(Debug)]
pub struct Finding {
    pub weight: Weight,
}
impl std::fmt::Display for Finding {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Ok(())
    }
}
pub fn observe(
    _: &mut dyn PodLinks,
    _: &Intended<'_>,
    _: std::time::Instant,
) -> Result<(), KernelError> {
    Ok(())
}
pub fn judge(_: &Intended<'_>, _: &()) -> Vec<Finding> {
    vec![]
}
