//! Everything that can be known before the first delegate runs: ADD acts on it, `explain` shows it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use device_info::PciAddress;

use super::hardware::{Claim, Hardware};
use super::{Context, Failure};
use crate::allocation::{Allocation, Sources, gather};
use crate::cluster::identity;
use crate::cluster::{
    self, Answer, Catalog, Event, Phase, PodAnnotations, PodName, Question,
    administrators_definitions,
};
use crate::cni::{CapabilityArgs, PluginConfig, RawObject};
use crate::delegate::{self, Binaries};
use crate::journal::Key;
use crate::npwg::ObjectRef;
use crate::plan::{self, Attachment, Inputs, PlanError, Reason};
use crate::request::ClusterNetwork;

/// The capability by which a runtime hands over the pod's annotations.
const RUNTIME_ANNOTATIONS: &str = "io.kubernetes.cri.pod-annotations";
/// How long an ADD waits for the cluster network (NPWG 1.3 §6.1.2).
const READINESS_WAIT: Duration = Duration::from_secs(45);
/// How often it looks.
const READINESS_PAUSE: Duration = Duration::from_millis(100);

/// A plan with every program found.
#[derive(Debug)]
pub struct Prepared {
    /// The pod, where the runtime names one.
    pub pod: Option<PodName>,
    /// What to attach, in order, each with its plugins' programs in the order of the chain.
    pub attachments: Vec<(Attachment, Binaries)>,
    /// What the pod's owner should know.
    pub events: Vec<Event>,
    /// What surprises people who look at it, a line each.
    pub remarks: Vec<String>,
    /// Every reason why the ADD would fail.
    pub problems: Vec<PlanError>,
}

/// Prepares an ADD.
///
/// # Errors
/// When no plan can be made at all; nothing has been done then.
pub fn prepare(context: &Context<'_>) -> Result<Prepared, Failure> {
    let node = &context.request.node;
    let (container, ifname) = context.request.call.attachment()?;
    wait_until_ready(node.readiness_indicator.as_deref(), context.deadline)?;
    let pod = pod_name(context)?;
    let given = given(context, pod.as_ref())?;
    let left = context.deadline.saturating_duration_since(Instant::now());
    let patience = cluster::AGENT_WAIT.min(left / 2);
    let question = question(context, pod.as_ref(), given.as_ref(), patience);
    let answer = ask(context, question.as_ref())?;
    check_identity(pod.as_ref(), &answer)?;
    let pod = pod.map(|pod| with_uid(pod, &answer));
    let known = answer.pod.as_ref().map(|pod| pod.annotations.clone());
    let given = given.map(|given| given.annotations);
    let annotations = given.or(known).unwrap_or_default();
    let catalog = Catalog::build(node, &answer);
    let asked = Instant::now();
    let allocation = allocation(
        context,
        question,
        &Known {
            pod: pod.as_ref(),
            annotations: &annotations,
            answer: &answer,
            catalog: &catalog,
        },
    );
    context.node.stopwatch.spent(Phase::Devices, asked);
    let allocated = Instant::now();
    let mut plan = plan::plan(Inputs {
        node,
        container: &container,
        ifname: &ifname,
        pod: pod.as_ref(),
        annotations: &annotations,
        answer: &answer,
        catalog: &catalog,
        allocation: &allocation,
        runtime_config: runtime_config(context)?,
    });
    inspect_devices(context, &Key { container, ifname }, &mut plan);
    let mut remarks = plan.remarks;
    remarks.extend(allocation.remarks);
    let mut prepared = Prepared {
        pod,
        attachments: Vec::new(),
        events: plan.events,
        remarks,
        problems: plan.problems,
    };
    prepared.find_programs(context, plan.attachments);
    context.node.stopwatch.spent(Phase::Plan, allocated);
    Ok(prepared)
}

/// The attachments that a sandbox without a record may have: the cluster network, and with
/// `all` also what its pod selects, as far as the cluster still knows it. Nobody can know better.
///
/// # Errors
/// When not even the cluster network's configuration is found.
pub(super) fn probable(context: &Context<'_>, all: bool) -> Result<Vec<Attachment>, Failure> {
    let node = &context.request.node;
    let (container, ifname) = context.request.call.attachment()?;
    let pod = pod_name(context).ok().flatten();
    let given = given(context, pod.as_ref()).ok().flatten();
    let known = all
        .then(|| question(context, pod.as_ref(), given.as_ref(), Duration::ZERO))
        .and_then(|question| ask(context, without_kubelet(question).as_ref()).ok())
        .filter(|answer| check_identity(pod.as_ref(), answer).is_ok());
    let (answer, annotations) = match known {
        Some(answer) => {
            let known = answer.pod.as_ref().map(|pod| pod.annotations.clone());
            let given = given.map(|given| given.annotations);
            (answer, given.or(known).unwrap_or_default())
        }
        None => {
            let question = question(context, None, None, Duration::ZERO);
            (ask(context, question.as_ref())?, PodAnnotations::default())
        }
    };
    let catalog = Catalog::build(node, &answer);
    let allocation = allocation(
        context,
        None,
        &Known {
            pod: pod.as_ref(),
            annotations: &annotations,
            answer: &answer,
            catalog: &catalog,
        },
    );
    let plan = plan::plan(Inputs {
        node,
        container: &container,
        ifname: &ifname,
        pod: pod.as_ref(),
        annotations: &annotations,
        answer: &answer,
        catalog: &catalog,
        allocation: &allocation,
        runtime_config: runtime_config(context).unwrap_or_default(),
    });
    let mut attachments = plan.attachments;
    attachments.retain(|attachment| all || attachment.is_cluster);
    if !attachments.iter().any(|attachment| attachment.is_cluster)
        && let Some(problem) = plan.problems.into_iter().next()
    {
        return Err(problem.into());
    }
    Ok(attachments)
}

/// What is known of a pod.
struct Known<'a> {
    pod: Option<&'a PodName>,
    annotations: &'a PodAnnotations,
    answer: &'a Answer,
    catalog: &'a Catalog,
}

/// What kubelet gave the pod, where one of its networks uses devices; nobody is asked otherwise.
/// With a `question` it is waited until kubelet knows, and the question is asked again.
fn allocation(context: &Context<'_>, question: Option<Question>, known: &Known<'_>) -> Allocation {
    let resources = known.catalog.resources();
    let everything = known.annotations.may_name_devices();
    if resources.is_empty() && !everything {
        return Allocation::default();
    }
    let until = match question {
        Some(_) => context.deadline,
        None => Instant::now(),
    };
    let sources = Sources {
        name: known.pod,
        pod: known.answer.pod.as_ref(),
        told: known.answer.kubelet.as_ref(),
        checkpoint: &context.request.node.kubelet_checkpoint,
        everything,
        until,
    };
    let question = question.map(|question| Question {
        patience: Duration::ZERO,
        ..question
    });
    gather(&sources, &resources, &mut || {
        let answer = context.node.cluster.ask(question.as_ref()?).ok()?;
        answer.kubelet
    })
}

/// Looks whether every device can be used and spared, before anything runs.
fn inspect_devices(context: &Context<'_>, key: &Key, plan: &mut plan::Plan) {
    let node = &context.request.node;
    let devices: Vec<PciAddress> = plan
        .attachments
        .iter()
        .filter_map(|attachment| attachment.device.as_ref()?.pci())
        .collect();
    let claim = Claim {
        journal: &context.node.journal,
        key,
        devices: &devices,
    };
    let mut looking = None;
    for attachment in &mut plan.attachments {
        if attachment.device.is_none() {
            continue;
        }
        let (hardware, links) =
            looking.get_or_insert_with(|| (Hardware::of(node), (context.node.devices)(None).ok()));
        let inspected = hardware.inspect(attachment).and_then(|()| match links {
            Some(links) => hardware.can_be_given(attachment, &claim, links.as_mut()),
            None => Ok(()),
        });
        if let Err(reason) = inspected {
            plan.problems.push(attachment.problem(reason));
        }
    }
}

/// The alternate readiness method: no attachment before the cluster network is ready.
pub(super) fn wait_until_ready(indicator: Option<&Path>, deadline: Instant) -> Result<(), Failure> {
    let Some(file) = indicator else { return Ok(()) };
    let until = deadline.min(Instant::now() + READINESS_WAIT);
    while !file.exists() {
        if Instant::now() >= until {
            return Err(Failure::NotReady(file.display().to_string()));
        }
        std::thread::sleep(READINESS_PAUSE.min(until.saturating_duration_since(Instant::now())));
    }
    Ok(())
}

/// The pod by CNI_ARGS. A runtime without Kubernetes names none: the cluster network is all then.
pub(super) fn pod_name(context: &Context<'_>) -> Result<Option<PodName>, Failure> {
    let args = &context.request.call.args;
    let text = |key: &str| args.get(key).filter(|value| !value.is_empty());
    let (Some(namespace), Some(name)) = (text("K8S_POD_NAMESPACE"), text("K8S_POD_NAME")) else {
        return Ok(None);
    };
    // Both become parts of paths and of requests.
    ObjectRef::new(namespace, name).map_err(Failure::PodName)?;
    Ok(Some(PodName {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: text("K8S_POD_UID").map(str::to_owned),
    }))
}

fn runtime_object(context: &Context<'_>) -> Result<RawObject, Failure> {
    let object = context.request.stdin.read::<RawObject>("runtimeConfig");
    object
        .map(Option::unwrap_or_default)
        .map_err(Failure::RuntimeConfig)
}

/// What kubelet says of the pod, where the runtime hands it over.
struct Given {
    annotations: PodAnnotations,
    is_static: bool,
}

fn given(context: &Context<'_>, pod: Option<&PodName>) -> Result<Option<Given>, Failure> {
    let object = runtime_object(context)?;
    let map: Option<BTreeMap<String, String>> = object
        .read(RUNTIME_ANNOTATIONS)
        .map_err(Failure::RuntimeConfig)?;
    let uid = pod.and_then(|pod| pod.uid.as_deref());
    Ok(map.map(|map| Given {
        annotations: PodAnnotations::from_map(&map),
        is_static: identity::is_static(uid, &map),
    }))
}

fn runtime_config(context: &Context<'_>) -> Result<CapabilityArgs, Failure> {
    Ok(CapabilityArgs::from(&runtime_object(context)?))
}

/// Whether the cluster network is found without asking anybody.
pub(super) fn is_on_disk(network: &ClusterNetwork) -> bool {
    match network {
        ClusterNetwork::Named(name) => name.starts_with('/'),
        ClusterNetwork::Inline(_) => true,
    }
}

/// What the cluster is asked, unless there is nothing to ask: a pod whose annotations came with
/// the call and that selects nothing needs neither agent nor API.
fn question(
    context: &Context<'_>,
    pod: Option<&PodName>,
    given: Option<&Given>,
    patience: Duration,
) -> Option<Question> {
    let node = &context.request.node;
    let nothing = PodAnnotations::default();
    let selects_nothing = given.is_some_and(|given| given.annotations == nothing);
    if is_on_disk(&node.cluster_network)
        && (pod.is_none() || selects_nothing)
        && node.default_networks.is_empty()
    {
        return None;
    }
    Some(Question {
        pod: pod.cloned(),
        annotations: given.map(|given| given.annotations.clone()),
        is_static: given.is_some_and(|given| given.is_static),
        networks: administrators_definitions(node),
        multus_namespace: node.multus_namespace.clone(),
        dialect: node.dialect,
        kubelet: Some(node.pod_resources_socket.clone()),
        patience,
    })
}

/// A question that does not wait for kubelet.
fn without_kubelet(question: Option<Question>) -> Option<Question> {
    question.map(|question| Question {
        kubelet: None,
        ..question
    })
}

fn ask(context: &Context<'_>, question: Option<&Question>) -> Result<Answer, Failure> {
    let Some(question) = question else {
        return Ok(Answer::default());
    };
    let ask = || context.node.cluster.ask(question);
    Ok(context.node.stopwatch.during(Phase::Question, ask)?)
}

/// CNI_ARGS are a hint: the pod of that name must be the one that the runtime means.
fn check_identity(pod: Option<&PodName>, answer: &Answer) -> Result<(), Failure> {
    let asked = pod.and_then(|pod| pod.uid.as_deref());
    let known = answer.pod.as_ref().and_then(|pod| pod.uid.as_deref());
    match (pod, asked, known) {
        (Some(pod), Some(asked), Some(known)) if asked != known => Err(Failure::OtherPod {
            pod: format!("{}/{}", pod.namespace, pod.name),
            asked: asked.to_owned(),
            known: known.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Where the runtime gives no UID, the cluster's: what is told later is about this very pod.
fn with_uid(mut pod: PodName, answer: &Answer) -> PodName {
    let known = answer.pod.as_ref().and_then(|pod| pod.uid.clone());
    pod.uid = pod.uid.or(known);
    pod
}

impl Prepared {
    /// Finds every program, the IPAM plugins' included, before any of them runs.
    fn find_programs(&mut self, context: &Context<'_>, attachments: Vec<Attachment>) {
        let dirs = context.search_path();
        let ours = &context.node.ours;
        for attachment in attachments {
            let binaries = Binaries::find(&dirs, &attachment.config, ours);
            let ipam = attachment
                .config
                .plugins()
                .iter()
                .filter_map(PluginConfig::ipam_type);
            let missing = ipam.filter_map(|ipam| delegate::find(&dirs, ipam, ours).err());
            for problem in binaries
                .missing()
                .map(|(_, problem)| problem.clone())
                .chain(missing)
            {
                self.problems
                    .push(attachment.problem(Reason::Network(problem.to_string())));
            }
            self.attachments.push((attachment, binaries));
        }
    }
}
