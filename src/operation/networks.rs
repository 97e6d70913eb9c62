//! Finds networks without planning the attachments of a pod, for example for GC and STATUS.

use std::path::PathBuf;
use std::time::Instant;

use super::{Context, Failure, inquiry};
use crate::clock;
use crate::cluster::{
    Answer, Catalog, ClusterError, Network, NetworkError, PodName, Question,
    administrators_definitions,
};
use crate::cni::{NetworkConfig, PluginConfig, ValidAttachment};
use crate::delegate::{Binaries, Chain, FindError, Ran, Time};
use crate::diagnostic::SharedError;
use crate::npwg::ObjectRef;
use crate::plan::{self, Attachment, KnownNetwork, NamedIn, NetworkPlace, Reason};

/// A network that the node configuration names.
pub(super) struct Named {
    /// The network's name in messages.
    pub(super) label: String,
    /// The network, or the reason why it was not found.
    pub(super) found: Result<Network, NetworkError>,
    named_in: NamedIn,
}

/// Looks up in `answer` the networks that the node configuration names. Returns the cluster
/// network, which is `clusterNetwork` or the first entry of `delegates`. Also returns a list of the
/// other networks, in this order:
///
/// - the other entries of `delegates`
/// - the networks in `defaultNetworks`
/// - the auxiliary chain (`auxiliaryCNIChainName`)
pub(super) fn named(context: &Context<'_>, answer: &Answer) -> (Named, Vec<Named>) {
    let config = &context.request.config;
    let catalog = Catalog::build(config, answer);
    let named = |label: &str, found, named_in| Named {
        label: label.to_owned(),
        found,
        named_in,
    };
    let further = catalog.further.into_iter();
    let further = further.map(|it| named(&it.place(), Ok(it), NamedIn::ClusterNetwork));
    let defaults = catalog.defaults.into_iter();
    let defaults = defaults.map(|(name, found)| named(&name, found, NamedIn::DefaultNetworks));
    let auxiliary = catalog.auxiliary.into_iter();
    let auxiliary = auxiliary.map(|it| named("auxiliaryCNIChainName", it, NamedIn::AuxiliaryChain));
    let others = further.chain(defaults).chain(auxiliary).collect();
    let label = config.cluster_network.label();
    let cluster = named(label, catalog.cluster, NamedIn::ClusterNetwork);
    (cluster, others)
}

/// Asks the cluster for the networks that the node configuration names. If all of them are on disk
/// ([`inquiry::are_on_disk`]), returns an empty answer without a question to the cluster.
///
/// # Errors
/// If the cluster does not answer by `until`.
pub(super) fn answer(context: &Context<'_>, until: Instant) -> Result<Answer, ClusterError> {
    match question(context) {
        None => Ok(Answer::default()),
        Some(question) => context.host.cluster.ask(&question, until),
    }
}

/// Like [`answer`], but if all networks are on disk, checks that the cluster is ready to answer.
/// With `dynamicAttachment`, also asks for the sandboxes whose attachments do not match the current
/// annotation of their pod.
///
/// # Errors
/// If the cluster does not answer by `until`.
pub(super) fn ask(context: &Context<'_>, until: Instant) -> Result<Answer, ClusterError> {
    let known = question(context);
    let is_needed = known.is_some();
    let mut question = known.unwrap_or_default();
    question.differing = context.request.config.dynamic_attachment;
    let cluster = context.host.cluster;
    match is_needed {
        true => cluster.ask(&question, until),
        false => cluster.ready(&question, until),
    }
}

fn question(context: &Context<'_>) -> Option<Question> {
    let config = &context.request.config;
    let is_needed = !inquiry::are_on_disk(config);
    is_needed.then(|| definitions(context, administrators_definitions(config)))
}

/// Builds the question for the definitions of `networks`, without a pod.
pub(super) fn definitions(context: &Context<'_>, networks: Vec<ObjectRef>) -> Question {
    let config = &context.request.config;
    Question {
        networks,
        multus_namespace: config.multus_namespace.clone(),
        dialect: config.dialect,
        ..Question::default()
    }
}

/// Finds the current configuration of an attachment's network. Returns `None` if the network is not
/// found by `until`, if its configuration is invalid, or if the policy does not allow the network
/// for `pod`.
pub(super) fn find(
    context: &Context<'_>,
    attachment: &Attachment,
    pod: Option<&PodName>,
    until: Instant,
) -> Option<KnownNetwork> {
    let config = &context.request.config;
    // The pod's annotation may have replaced the node's cluster network. The attachment then has
    // another label, and the code after this block looks up the definition with that label.
    if attachment.is_cluster
        && let (cluster, _) = named(context, &answer(context, until).ok()?)
        && let Ok(cluster) = cluster.read(context)
        && cluster.label == attachment.label
    {
        return Some(cluster);
    }
    let object: ObjectRef = attachment.label.parse().ok()?;
    let question = definitions(context, vec![object.clone()]);
    let answer = context.host.cluster.ask(&question, until).ok()?;
    let catalog = Catalog::build(config, &answer);
    let network = catalog.selected(&object).ok()?;
    let read = match pod {
        _ if administrators_definitions(config).contains(&object) => {
            plan::read_administrators(config, network)
        }
        Some(pod) => plan::read_selected(config, &pod.namespace, &object, network),
        None => plan::read(network),
    };
    read.ok()
}

impl Named {
    /// Reads the network's configuration.
    pub(super) fn read(self, context: &Context<'_>) -> Result<KnownNetwork, Failure> {
        let (label, named_in) = (self.label, self.named_in);
        let network = self
            .found
            .map_err(|error| Reason::not_found(&error, named_in).at(&label, None))?;
        let in_time = clock::now() < context.deadline;
        let read = in_time.then(|| plan::read_administrators(&context.request.config, &network));
        let read = read.unwrap_or(Err(Reason::NoTime));
        Ok(read.map_err(|reason| reason.at(&network.place(), None))?)
    }
}

impl KnownNetwork {
    /// Calls GC of the network's plugins. Calls no plugin if the network's CNI version has no GC,
    /// or if the network's configuration disables GC.
    pub(super) fn gc(
        &self,
        context: &Context<'_>,
        valid: &[ValidAttachment],
        until: Instant,
    ) -> Result<Ran, Failure> {
        let gc = |chain: &Chain<'_>| chain.gc(context.host.exec, valid);
        let collected = self.call(context, until, gc);
        collected.map_err(|causes| Failure::Delegates(self.place(), causes))
    }

    /// Calls STATUS of the network's plugins. Calls no plugin if the network's CNI version has no
    /// STATUS.
    pub(super) fn status(&self, context: &Context<'_>) -> Result<Ran, Failure> {
        let status = |chain: &Chain<'_>| chain.status(context.host.exec);
        let ready = self.call(context, context.deadline, status);
        ready.map_err(|cause| Failure::Delegate(self.place(), Box::new(cause)))
    }

    fn place(&self) -> NetworkPlace {
        NetworkPlace {
            label: self.label.clone(),
            ifname: None,
        }
    }

    fn call<E>(
        &self,
        context: &Context<'_>,
        until: Instant,
        call: impl FnOnce(&Chain<'_>) -> Result<Ran, E>,
    ) -> Result<Ran, E> {
        let called = call(&Chain {
            config: &self.config,
            name: &self.name,
            binaries: &context.programs(&self.config),
            cni_path: &context.cni_path(),
            time: Time {
                until,
                per_call: context.request.config.deadlines.delegate,
            },
        });
        let stopwatch = context.host.stopwatch;
        stopwatch.attachment(&self.label, called.is_ok());
        called
    }

    /// Checks that an ADD would find the programs of all plugins, including IPAM plugins.
    pub(super) fn check_programs(&self, context: &Context<'_>) -> Result<(), Failure> {
        let (_, missing) = programs(context, &context.search_path(), &self.config);
        missing.into_iter().next().map_or(Ok(()), |missing| {
            let reason = Reason::Network(SharedError::new(missing));
            Err(reason.at(&self.label, None).into())
        })
    }
}

/// Finds the programs of a network's plugins in `dirs`. Also returns an error for each program that
/// Jackfield cannot run, including the programs of IPAM plugins.
pub(super) fn programs(
    context: &Context<'_>,
    dirs: &[PathBuf],
    config: &NetworkConfig,
) -> (Binaries, Vec<FindError>) {
    let ours = &context.host.ours;
    let binaries = Binaries::find(dirs, config, ours);
    let ipam = config.plugins().iter().filter_map(PluginConfig::ipam_type);
    let ipam = ipam.filter_map(|ipam| crate::delegate::find(dirs, ipam, ours).err());
    let missing = binaries.missing().map(|(_, problem)| problem.clone());
    let missing = missing.chain(ipam).collect();
    (binaries, missing)
}
