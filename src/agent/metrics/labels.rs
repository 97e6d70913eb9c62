//! The labels of series.

use prometheus_client::encoding::EncodeLabelSet;

/// The kind of an object that is looked up.
#[derive(Debug, Clone, Copy)]
pub(in crate::agent) enum LookupKind {
    /// A pod.
    Pod,
    /// A definition.
    Definition,
    /// A claim.
    Claim,
}

impl LookupKind {
    pub(super) fn label(self) -> &'static str {
        match self {
            LookupKind::Pod => "pod",
            LookupKind::Definition => "definition",
            LookupKind::Claim => "claim",
        }
    }
}

/// Where an object is looked up.
#[derive(Debug, Clone, Copy)]
pub(in crate::agent) enum LookupOrigin {
    /// In the cache: no request.
    Cache,
    /// At the API server: one request.
    Api,
}

impl LookupOrigin {
    pub(super) fn label(self) -> &'static str {
        match self {
            LookupOrigin::Cache => "cache",
            LookupOrigin::Api => "api",
        }
    }
}

/// The outcome of an owed write.
#[derive(Debug, Clone, Copy)]
pub(in crate::agent) enum PublicationOutcome {
    /// It is published.
    Published,
    /// Its pod is gone.
    PodGone,
    /// It is still owed.
    Failed,
}

impl PublicationOutcome {
    pub(super) fn label(self) -> &'static str {
        match self {
            PublicationOutcome::Published => "told",
            PublicationOutcome::PodGone => "pod_gone",
            PublicationOutcome::Failed => "failed",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct BuildLabels {
    version: &'static str,
    arch: &'static str,
}

impl BuildLabels {
    pub(super) fn ours() -> BuildLabels {
        BuildLabels {
            version: env!("CARGO_PKG_VERSION"),
            arch: std::env::consts::ARCH,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct LookupLabels {
    pub(super) what: &'static str,
    pub(super) from: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct QuestionLabels {
    pub(super) answered: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PublicationLabels {
    pub(super) outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct KindLabels {
    pub(super) kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct DeviceLabels {
    pub(super) resource: String,
    pub(super) state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct StateLabels {
    pub(super) state: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct UnrestoredLabels {
    pub(super) device: String,
}
