//! Versions of the CNI protocol, and their negotiation.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A released version of the CNI specification; a later version compares as greater.
///
/// Jackfield supports all released versions (CNI 1.1.0 "Released versions"), because the runtime,
/// the node configuration and each definition may use any of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 0.1.0: `ip4` and `ip6` results. A configuration that names no version has this version.
    V0_1_0,
    /// 0.2.0: the VERSION command.
    V0_2_0,
    /// 0.3.0: chains, and results with `interfaces`, `ips` and `routes`.
    V0_3_0,
    /// 0.3.1: only corrects a misspelling in 0.3.0.
    V0_3_1,
    /// 0.4.0: CHECK, and `prevResult` on DEL.
    V0_4_0,
    /// 1.0.0: removes `ips[].version` and configurations of a single plugin.
    V1_0_0,
    /// 1.1.0: GC, STATUS, and more keys for interfaces and routes.
    V1_1_0,
}

impl Version {
    /// Every version, oldest first.
    pub const ALL: [Self; 7] = [
        Self::V0_1_0,
        Self::V0_2_0,
        Self::V0_3_0,
        Self::V0_3_1,
        Self::V0_4_0,
        Self::V1_0_0,
        Self::V1_1_0,
    ];

    /// The newest version.
    pub const LATEST: Self = Self::V1_1_0;

    /// The version as the specification writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V0_1_0 => "0.1.0",
            Self::V0_2_0 => "0.2.0",
            Self::V0_3_0 => "0.3.0",
            Self::V0_3_1 => "0.3.1",
            Self::V0_4_0 => "0.4.0",
            Self::V1_0_0 => "1.0.0",
            Self::V1_1_0 => "1.1.0",
        }
    }

    /// Every version in one line, for messages.
    pub fn supported() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }

    /// Returns the highest version that both a configuration and Jackfield support (CNI 1.1.0 §1
    /// "Version considerations"). A configuration without a version has version 0.1.0. An empty
    /// string counts as no version.
    ///
    /// # Errors
    ///
    /// [`VersionError`] if the configuration names versions and Jackfield supports none of them.
    pub fn negotiate(
        cni_version: Option<&str>,
        cni_versions: &[String],
    ) -> Result<Self, VersionError> {
        let versions = || {
            cni_version
                .into_iter()
                .chain(cni_versions.iter().map(String::as_str))
                .filter(|version| !version.is_empty())
        };
        if let Some(highest) = versions().filter_map(|version| version.parse().ok()).max() {
            return Ok(highest);
        }
        let unknown = versions().collect::<Vec<_>>().join(", ");
        if unknown.is_empty() {
            Ok(Self::V0_1_0)
        } else {
            Err(VersionError(unknown))
        }
    }

    /// Whether CHECK exists (0.4.0 and later).
    pub fn has_check(self) -> bool {
        self >= Self::V0_4_0
    }

    /// Whether GC exists (1.1.0 and later).
    pub fn has_gc(self) -> bool {
        self >= Self::V1_1_0
    }

    /// Whether STATUS exists (1.1.0 and later).
    pub fn has_status(self) -> bool {
        self >= Self::V1_1_0
    }

    /// Whether a runtime passes the result of the ADD to DEL (0.4.0 and later).
    pub fn passes_prev_result_on_del(self) -> bool {
        self >= Self::V0_4_0
    }

    /// Whether results have the `ip4`/`ip6` shape, which 0.3.0 removed.
    pub fn has_legacy_result(self) -> bool {
        self < Self::V0_3_0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|version| version.as_str() == text)
            .ok_or_else(|| VersionError(text.to_owned()))
    }
}

/// A CNI version that Jackfield does not support, or a comma-separated list of such versions.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("CNI version {0:?} is not supported; use one of {supported}", supported = Version::supported())]
pub struct VersionError(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_reads_back_as_it_is_written() {
        for version in Version::ALL {
            assert_eq!(version.to_string().parse(), Ok(version));
        }
        assert!(Version::ALL.is_sorted());
        assert_eq!(Version::ALL.last(), Some(&Version::LATEST));
    }

    // clause: CNI-1.1.0 §1 version: the highest supported of cniVersion and cniVersions is selected
    #[test]
    fn the_highest_supported_version_is_selected() {
        type Row = (
            Option<&'static str>,
            &'static [&'static str],
            Result<Version, &'static str>,
        );
        let table: [Row; 13] = [
            (None, &[], Ok(Version::V0_1_0)),
            (Some(""), &[], Ok(Version::V0_1_0)),
            (Some("0.1.0"), &[], Ok(Version::V0_1_0)),
            (Some("0.3.1"), &[], Ok(Version::V0_3_1)),
            (Some("1.0.0"), &["0.3.1", "1.1.0"], Ok(Version::V1_1_0)),
            (Some("1.1.0"), &["0.3.1", "0.4.0"], Ok(Version::V1_1_0)),
            (None, &["0.4.0", "0.3.1"], Ok(Version::V0_4_0)),
            (Some("1.0.0"), &["2.0.0", "9.9.9"], Ok(Version::V1_0_0)),
            (Some("7.0.0"), &["0.4.0"], Ok(Version::V0_4_0)),
            (Some("1.2.0"), &[], Err("1.2.0")),
            (Some("one"), &["two"], Err("one, two")),
            (Some("1.0"), &[], Err("1.0")),
            (Some(" 1.0.0"), &[], Err(" 1.0.0")),
        ];
        for (one, many, expected) in table {
            let many: Vec<String> = many.iter().map(ToString::to_string).collect();
            let expected = expected.map_err(|named| VersionError(named.to_owned()));
            assert_eq!(Version::negotiate(one, &many), expected, "{one:?} {many:?}");
        }
    }

    #[test]
    fn the_error_for_an_unknown_version_lists_the_supported_versions() {
        let error = Version::negotiate(Some("1.2.0"), &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "CNI version \"1.2.0\" is not supported; use one of 0.1.0, 0.2.0, 0.3.0, 0.3.1, \
             0.4.0, 1.0.0, 1.1.0"
        );
    }

    #[test]
    fn newer_verbs_exist_only_in_newer_versions() {
        for version in Version::ALL {
            assert_eq!(version.has_check(), version >= Version::V0_4_0);
            assert_eq!(version.has_gc(), version == Version::V1_1_0);
            assert_eq!(version.has_status(), version == Version::V1_1_0);
            assert_eq!(
                version.passes_prev_result_on_del(),
                version >= Version::V0_4_0
            );
            assert_eq!(version.has_legacy_result(), version <= Version::V0_2_0);
        }
    }
}
