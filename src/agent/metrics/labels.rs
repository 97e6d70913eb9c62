//! What tells the series of a metric apart.

use prometheus_client::encoding::EncodeLabelSet;

/// What is looked up.
#[derive(Debug, Clone, Copy)]
pub(in crate::agent) enum What {
    /// A pod.
    Pod,
    /// A definition.
    Definition,
    /// A claim.
    Claim,
}

impl What {
    pub(super) fn label(self) -> &'static str {
        match self {
            What::Pod => "pod",
            What::Definition => "definition",
            What::Claim => "claim",
        }
    }
}

/// Where it was found, or not.
#[derive(Debug, Clone, Copy)]
pub(in crate::agent) enum Origin {
    /// In the cache: no request.
    Cache,
    /// At the API server: one request.
    Api,
}

impl Origin {
    pub(super) fn label(self) -> &'static str {
        match self {
            Origin::Cache => "cache",
            Origin::Api => "api",
        }
    }
}

/// What came of an owed write.
#[derive(Debug, Clone, Copy)]
pub(in crate::agent) enum Outcome {
    /// It was made.
    Told,
    /// Its pod is gone.
    PodGone,
    /// It is still owed.
    Failed,
}

impl Outcome {
    pub(super) fn label(self) -> &'static str {
        match self {
            Outcome::Told => "told",
            Outcome::PodGone => "pod_gone",
            Outcome::Failed => "failed",
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
pub(super) struct ShelfLabels {
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
