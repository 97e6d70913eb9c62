//! The fuzz target for plans.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{parts, said, text};
use crate::allocation::Allocation;
use crate::cluster::{Answer, Catalog, PodAnnotations, PodName};
use crate::cni::{CapabilityArgs, InterfaceName, RawObject};
use crate::npwg::{Definition, Dialect, ObjectRef};
use crate::plan::{Inputs, plan};
use crate::request::NodeConfig;

const CONF: &[u8] = br#"{"cniVersion":"1.0.0","name":"j","type":"jackfield","undeclared":"args",
    "confDir":"/nowhere","delegates":[{"cniVersion":"1.0.0","name":"c","type":"ptp"}],
    "policy":{"namespaces":{"ns":{"types":["bridge","macvlan","tuning","host-local","static"],
                                  "denyKeys":["ipam.dataDir","sysctl","args.cni.a.b"]}}}}"#;

/// Plans the attachments of a pod. The input contains the annotation of the pod, a zero byte, and a
/// configuration. Every definition in the annotation has this configuration.
///
/// If the plan has no problems, checks that all interfaces have different names, and that the
/// attachments comply with the policy of the namespace. Every plugin must have an allowed type, and
/// no plugin may have the denied key `sysctl`. The policy check skips the first attachment, which
/// is the cluster network.
pub(super) fn selected(bytes: &[u8]) -> Option<()> {
    let [annotation, config] = parts(bytes).map(text);
    let (annotation, config) = (annotation?, config?);
    let node = NodeConfig::parse(&RawObject::parse(CONF).ok()?).ok()?;
    let annotations = PodAnnotations::from_map(&BTreeMap::from([(
        crate::npwg::NETWORKS_ANNOTATION.to_owned(),
        annotation.to_owned(),
    )]));
    let definition = |object: ObjectRef| {
        let definition = Definition {
            object: object.clone(),
            config: Some(config.to_owned()),
            resource_name: None,
        };
        (object, Ok(definition))
    };
    let named = annotations.references("ns", "kube-system", Dialect::V1_3);
    let answer = Answer {
        definitions: named.into_iter().map(definition).collect(),
        ..Answer::default()
    };
    let pod = PodName {
        namespace: "ns".to_owned(),
        name: "p".to_owned(),
        uid: None,
    };
    let plan = plan(Inputs {
        config: &node,
        container: &"c".parse().ok()?,
        ifname: &InterfaceName::first(),
        pod: Some(&pod),
        annotations: &annotations,
        answer: &answer,
        catalog: &Catalog::build(&node, &answer),
        allocation: &Allocation::default(),
        runtime_config: CapabilityArgs::new(),
        until: Instant::now() + Duration::from_secs(60),
    });
    plan.problems.iter().for_each(|problem| said(problem));
    plan.remarks.iter().for_each(|remark| said(remark));
    plan.warnings.iter().for_each(|warning| said(warning));
    if !plan.problems.is_empty() {
        return None;
    }
    let mut names: Vec<&InterfaceName> = plan.attachments.iter().map(|it| &it.ifname).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), plan.attachments.len());
    let allowed = &node.policy.rule("ns")?.types;
    let further = plan.attachments.iter().skip(1);
    for plugin in further.flat_map(|it| it.config.plugins()) {
        let name = plugin.plugin_type().as_str();
        assert!(allowed.iter().any(|allowed| allowed == name));
        assert!(!plugin.body().contains("sysctl"));
    }
    Some(())
}
