//! The colours: the stripe shows the driver of a device, the fill whether a pod has it.

use super::canvas::{Look, Type};
use crate::cli::devices::usage::{DriverKind, Owner};

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

/// The colour of a kind of driver.
pub(super) fn stripe(driven: DriverKind) -> &'static str {
    match driven {
        DriverKind::Kernel => "#2563eb",
        DriverKind::Program => "#9333ea",
        DriverKind::Vdpa => "#0d9488",
        DriverKind::Nothing => "#94a3b8",
    }
}

/// A device's box.
pub(super) fn ground(driven: DriverKind, owner: Owner<'_>) -> Look {
    let (fill, line) = match (owner, driven) {
        (Owner::Orphan, _) => ("#fee2e2", "#dc2626"),
        (Owner::Free, _) => ("#ffffff", "#cbd5e1"),
        (Owner::Pod(_), DriverKind::Kernel) => ("#dbeafe", "#93b4ec"),
        (Owner::Pod(_), DriverKind::Program) => ("#f3e8ff", "#cfaaf0"),
        (Owner::Pod(_), DriverKind::Vdpa) => ("#ccfbf1", "#7cc7bf"),
        (Owner::Pod(_), DriverKind::Nothing) => ("#e2e8f0", "#94a3b8"),
    };
    Look {
        fill,
        line,
        dashed: driven == DriverKind::Nothing,
    }
}

/// Text of this size.
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

/// Text of a fixed width, for addresses.
pub(super) const fn mono(size: f64) -> Type {
    Type {
        mono: true,
        ..faint(size)
    }
}
