//! A kernel that shows what a test wants it to show.

use crate::cni::InterfaceName;

use super::{Address, DefaultRoute, KernelError, Link, PodLinks};

/// Links and routes as a test sets them; addresses as a sequence, one frame a reading.
#[derive(Debug, Default)]
pub(crate) struct FakeLinks {
    pub(crate) links: Vec<Link>,
    /// What each reading of addresses sees, in turn; the last one stays.
    pub(crate) frames: Vec<Vec<Address>>,
    pub(crate) routes: Vec<DefaultRoute>,
    /// How often addresses were read.
    pub(crate) readings: usize,
}

impl PodLinks for FakeLinks {
    fn links(&mut self) -> Result<Vec<Link>, KernelError> {
        Ok(self.links.clone())
    }

    fn link(&mut self, name: &InterfaceName) -> Result<Option<Link>, KernelError> {
        let found = self.links.iter().find(|link| link.name == name.as_str());
        Ok(found.cloned())
    }

    fn link_at(&mut self, index: u32) -> Result<Option<Link>, KernelError> {
        let found = self.links.iter().find(|link| link.index == index);
        Ok(found.cloned())
    }

    fn addresses(&mut self, index: u32) -> Result<Vec<Address>, KernelError> {
        let frame = self.frames.get(self.readings).or(self.frames.last());
        let addresses = frame.into_iter().flatten();
        let ours = addresses.filter(|address| address.index == index).cloned();
        let ours = ours.collect();
        self.readings += 1;
        Ok(ours)
    }

    fn default_routes(&mut self) -> Result<Vec<DefaultRoute>, KernelError> {
        Ok(self.routes.clone())
    }

    fn add_default_route(&mut self, route: &DefaultRoute) -> Result<(), KernelError> {
        for interface in route.interfaces() {
            if !self.links.iter().any(|link| link.name == interface) {
                return Err(KernelError::NoInterface {
                    route: route.to_string(),
                    interface: interface.to_owned(),
                });
            }
        }
        if !self.routes.contains(route) {
            self.routes.push(route.clone());
        }
        Ok(())
    }

    fn remove_default_route(&mut self, route: &DefaultRoute) -> Result<(), KernelError> {
        self.routes.retain(|there| there != route);
        Ok(())
    }
}
