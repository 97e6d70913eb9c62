//! Networks without a pod, as GC and STATUS use them.

use std::path::PathBuf;
use std::time::Instant;

use super::{Context, Failure, inquiry};
use crate::cluster::{
    Answer, Catalog, ClusterError, Network, NetworkError, PodName, Question,
    administrators_definitions,
};
use crate::cni::{NetworkConfig, NetworkName, ValidAttachment};
use crate::delegate::{Binaries, Chain, FindError, Ran, Time};
use crate::diagnostic::SharedError;
use crate::npwg::ObjectRef;
use crate::plan::{self, Attachment, ConfigurationProblem, NamedIn, NetworkPlace, Reason};

/// A network with its plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownNetwork {
    /// The name for people.
    pub(super) label: String,
    /// The name for plugins.
    pub(super) name: NetworkName,
    /// Its plugins.
    pub(super) config: NetworkConfig,
}

/// The networks of the node configuration, as found now.
#[derive(Debug)]
pub(super) struct Administrators {
    /// `clusterNetwork`.
    pub(super) cluster: Result<KnownNetwork, Failure>,
    /// The `delegates` after the first, `defaultNetworks`, and the auxiliary chain.
    pub(super) others: Vec<Result<KnownNetwork, Failure>>,
}

/// Finds the administrator's networks.
///
/// # Errors
/// If a definition has to come from the cluster and the cluster does not answer by `until`.
pub(super) fn administrators(
    context: &Context<'_>,
    until: Instant,
) -> Result<Administrators, Failure> {
    let answer = match question(context) {
        None => Answer::default(),
        Some(question) => context.host.cluster.ask(&question, until)?,
    };
    Ok(in_answer(context, &answer))
}

/// Asks the cluster for the definitions of the administrator's networks; if they need none, asks
/// whether the cluster answers. Waits until `until`.
///
/// # Errors
/// If the cluster does not answer.
pub(super) fn ask(context: &Context<'_>, until: Instant) -> Result<Answer, ClusterError> {
    let cluster = context.host.cluster;
    match question(context) {
        None => cluster.ready(until).map(|()| Answer::default()),
        Some(question) => cluster.ask(&question, until),
    }
}

fn question(context: &Context<'_>) -> Option<Question> {
    let config = &context.request.config;
    if inquiry::is_on_disk(&config.cluster_network) && config.default_networks.is_empty() {
        return None;
    }
    Some(Question {
        networks: administrators_definitions(config),
        multus_namespace: config.multus_namespace.clone(),
        dialect: config.dialect,
        ..Question::default()
    })
}

/// The administrator's networks according to `answer`.
pub(super) fn in_answer(context: &Context<'_>, answer: &Answer) -> Administrators {
    let config = &context.request.config;
    let Catalog {
        cluster,
        further,
        defaults,
        auxiliary,
        ..
    } = Catalog::build(config, answer);
    let unknown = |label: &str, error: NetworkError, named_in| {
        let report = error.to_string();
        let problem = ConfigurationProblem::NotFound { report, named_in };
        Reason::from(problem).at(label, None).into()
    };
    let administrators = |network: &Network| {
        let in_time = Instant::now() < context.deadline;
        let read = in_time.then(|| plan::read_administrators(config, network));
        KnownNetwork::read(network, read.unwrap_or(Err(Reason::NoTime)))
    };
    let mut others: Vec<_> = further.iter().map(administrators).collect();
    others.extend(defaults.into_iter().map(|(name, found)| {
        let network = found.map_err(|report| unknown(&name, report, NamedIn::DefaultNetworks))?;
        administrators(&network)
    }));
    others.extend(auxiliary.map(|found| {
        let network = found
            .map_err(|report| unknown("auxiliaryCNIChainName", report, NamedIn::AuxiliaryChain))?;
        administrators(&network)
    }));
    let label = config.cluster_network.label();
    Administrators {
        cluster: cluster
            .map_err(|report| unknown(label, report, NamedIn::ClusterNetwork))
            .and_then(|network| administrators(&network)),
        others,
    }
}

/// The current network of an attachment; `None` if it is not found by `until` or the policy forbids
/// it to `pod`.
pub(super) fn find(
    context: &Context<'_>,
    attachment: &Attachment,
    pod: Option<&PodName>,
    until: Instant,
) -> Option<KnownNetwork> {
    let config = &context.request.config;
    // A pod may have selected another cluster network.
    if attachment.is_cluster
        && let Ok(cluster) = administrators(context, until).ok()?.cluster
        && cluster.label == attachment.label
    {
        return Some(cluster);
    }
    let object: ObjectRef = attachment.label.parse().ok()?;
    let question = Question {
        networks: vec![object.clone()],
        multus_namespace: config.multus_namespace.clone(),
        dialect: config.dialect,
        ..Question::default()
    };
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
    KnownNetwork::read(network, read).ok()
}

impl KnownNetwork {
    fn read(
        network: &Network,
        read: Result<(NetworkName, NetworkConfig), Reason>,
    ) -> Result<KnownNetwork, Failure> {
        let (name, config) = read.map_err(|reason| reason.at(&network.place(), None))?;
        Ok(KnownNetwork {
            label: network
                .object
                .as_ref()
                .map_or_else(|| name.to_string(), ToString::to_string),
            name,
            config,
        })
    }

    fn place(&self) -> NetworkPlace {
        NetworkPlace {
            label: self.label.clone(),
            ifname: None,
        }
    }

    /// Calls GC of its plugins, if their version has it and the configuration does not disable it.
    pub(super) fn gc(
        &self,
        context: &Context<'_>,
        valid: &[ValidAttachment],
        until: Instant,
    ) -> Result<Ran, Failure> {
        let (binaries, cni_path) = self.programs(context);
        let chain = self.chain(context, &binaries, &cni_path, until);
        let collected = chain.gc(context.host.exec, valid);
        let stopwatch = context.host.stopwatch;
        stopwatch.attachment(&self.label, collected.is_ok());
        collected.map_err(|causes| Failure::Delegates {
            place: self.place(),
            causes,
        })
    }

    /// Calls STATUS of its plugins, if their version has it.
    pub(super) fn status(&self, context: &Context<'_>) -> Result<Ran, Failure> {
        let (binaries, cni_path) = self.programs(context);
        let chain = self.chain(context, &binaries, &cni_path, context.deadline);
        let ready = chain.status(context.host.exec);
        let stopwatch = context.host.stopwatch;
        stopwatch.attachment(&self.label, ready.is_ok());
        ready.map_err(|cause| Failure::Delegate {
            place: self.place(),
            cause: Box::new(cause),
        })
    }

    /// Checks that every program which an ADD would run exists, including IPAM plugins.
    pub(super) fn check_programs(&self, context: &Context<'_>) -> Result<(), Failure> {
        let missing = missing_programs(context, &self.config).into_iter().next();
        missing.map_or(Ok(()), |missing| {
            let reason = Reason::Network(SharedError::new(missing));
            Err(reason.at(&self.label, None).into())
        })
    }

    fn programs(&self, context: &Context<'_>) -> (Binaries, String) {
        let dirs: Vec<PathBuf> = context.search_path();
        let binaries = Binaries::find(&dirs, &self.config, &context.host.ours);
        (binaries, context.cni_path())
    }

    fn chain<'a>(
        &'a self,
        context: &Context<'_>,
        binaries: &'a Binaries,
        cni_path: &'a str,
        until: Instant,
    ) -> Chain<'a> {
        Chain {
            config: &self.config,
            name: &self.name,
            binaries,
            cni_path,
            time: Time {
                until,
                per_call: context.request.config.deadlines.delegate,
            },
        }
    }
}

/// The missing programs of a network.
pub(super) fn missing_programs(context: &Context<'_>, config: &NetworkConfig) -> Vec<FindError> {
    let dirs = context.search_path();
    let plugins = config.plugins().iter();
    let types =
        plugins.flat_map(|plugin| std::iter::once(plugin.plugin_type()).chain(plugin.ipam_type()));
    types
        .filter_map(|name| crate::delegate::find(&dirs, name, &context.host.ours).err())
        .collect()
}
