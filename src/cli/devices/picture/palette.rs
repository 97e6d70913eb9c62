//! Colours with a meaning: the stripe says what drives a device, the fill whether a pod has it.

use super::canvas::{Look, Type};
use crate::cli::devices::usage::{Driven, Owner};

pub(super) const INK: &str = "#1f2937";
pub(super) const FAINT: &str = "#64748b";
pub(super) const BAND: Look = Look {
    fill: "#f6f8fb",
    line: "#e2e8f0",
    dashed: false,
};
pub(super) const CARD: Look = Look {
    fill: "#ffffff",
    line: "#cbd5e1",
    dashed: false,
};

/// The colour of what drives a device.
pub(super) fn stripe(driven: Driven) -> &'static str {
    match driven {
        Driven::Kernel => "#2563eb",
        Driven::Program => "#9333ea",
        Driven::Vdpa => "#0d9488",
        Driven::Nothing => "#94a3b8",
    }
}

/// A device's box.
pub(super) fn ground(driven: Driven, owner: Owner<'_>) -> Look {
    let (fill, line) = match (owner, driven) {
        (Owner::Lost, _) => ("#fee2e2", "#dc2626"),
        (Owner::Nobody, _) => ("#ffffff", "#cbd5e1"),
        (Owner::Pod(_), Driven::Kernel) => ("#dbeafe", "#93b4ec"),
        (Owner::Pod(_), Driven::Program) => ("#f3e8ff", "#cfaaf0"),
        (Owner::Pod(_), Driven::Vdpa) => ("#ccfbf1", "#7cc7bf"),
        (Owner::Pod(_), Driven::Nothing) => ("#e2e8f0", "#94a3b8"),
    };
    Look {
        fill,
        line,
        dashed: driven == Driven::Nothing,
    }
}

/// Type of this size.
pub(super) const fn plain(size: f64) -> Type {
    Type {
        size,
        bold: false,
        mono: false,
        color: INK,
        right: false,
    }
}

pub(super) const fn bold(size: f64) -> Type {
    Type {
        bold: true,
        ..plain(size)
    }
}

pub(super) const fn faint(size: f64) -> Type {
    Type {
        color: FAINT,
        ..plain(size)
    }
}

/// Addresses: each letter as wide as the next.
pub(super) const fn mono(size: f64) -> Type {
    Type {
        mono: true,
        ..faint(size)
    }
}
