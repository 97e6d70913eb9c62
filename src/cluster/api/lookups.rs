//! Asks the API server without a cache. Looks up single objects and the ResourceSlices of a node.
//! Lists a node's pods and the cluster's definitions (the census).

use std::path::Path;
use std::rc::Rc;

use super::answer::Lookup;
use super::definitions::{self, LARGEST_DEFINITION};
use super::kinds::Objects;
use super::objects::PodView;
use super::pages::Item;
use super::server::{GROUP, pod_path};
use super::slices::SliceView;
use super::{ApiError, ApiServer};
use crate::cluster::lookup::{LookupError, Place};
use crate::cluster::{Census, PodName};
use crate::kubelet::PodResources;
use crate::npwg::{Definition, IpamClaim, ObjectRef};

impl Lookup for ApiServer {
    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<PodView>, ApiError> {
        // Checks the name before it becomes part of a URL.
        let Ok(pod) = ObjectRef::new(namespace, name) else {
            return Ok(None);
        };
        self.find(&pod_path(&pod)).await
    }

    async fn definition(&self, object: &ObjectRef) -> Result<Definition, Rc<LookupError>> {
        let text = self.definition_text(object, LARGEST_DEFINITION).await?;
        Ok(definitions::read(&text)?.0)
    }

    async fn claim(&self, namespace: &str, name: &str) -> Result<IpamClaim, LookupError> {
        let claim = ObjectRef::new(namespace, name)?;
        let path = format!("/apis/{GROUP}/v1alpha1/namespaces/{namespace}/ipamclaims/{name}");
        let Some(body) = self.find(&path).await? else {
            let name = claim.to_string();
            return Err(LookupError::Missing("IPAMClaim", name, Place::ApiServer));
        };
        Ok(IpamClaim::from_json(&body)?)
    }

    fn kubelet(&self, socket: &Path) -> Rc<PodResources> {
        Rc::new(PodResources::at(socket))
    }

    async fn slices(&self, node: &str) -> Result<Vec<Rc<SliceView>>, ApiError> {
        let mut slices = Vec::new();
        let take = |item: Item<'_>| {
            slices.extend(item.read::<SliceView>().map(Rc::new));
            true
        };
        match self.list(&Objects::slices(node), take).await {
            Err(error) if !error.is_not_served() => Err(error),
            // A cluster without the API of ResourceSlices has no devices of DRA drivers.
            _ => Ok(slices),
        }
    }
}

impl ApiServer {
    /// Lists the pods of a node, without pods that have ended or use the host's network. If
    /// `with_definitions` is set, also lists all definitions.
    pub(super) async fn census(
        &self,
        node: &str,
        with_definitions: bool,
    ) -> Result<Census, ApiError> {
        let mut census = Census {
            node: node.to_owned(),
            ..Census::default()
        };
        let take = |item: Item<'_>| {
            if let Some((name, view)) = item.object().ok().zip(item.read::<PodView>())
                && !view.is_unattached
            {
                let uid = Some(view.identity.uid);
                census.pods.push(PodName::of(&name, uid));
            }
            true
        };
        self.list(&Objects::pods(node), take).await?;
        if with_definitions {
            self.add_definitions(&mut census, usize::MAX).await?;
        }
        Ok(census)
    }
}
