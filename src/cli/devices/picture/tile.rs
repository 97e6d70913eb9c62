//! A device's box, in one of three sizes.

use super::canvas::{Area, Canvas, Look};
use super::model::Tile;
use super::palette::{bold, faint, ground, mono, plain, stripe};
use crate::cli::devices::usage::{DriverKind, Owner};

/// The size of a box: the fewer boxes a node has, the more room each gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// Four lines: the owner, the place, the device.
    Large,
    /// Three lines.
    Medium,
    /// A number and a pod.
    Small,
}

/// The width of the stripe at a box's left.
const STRIPE: f64 = 5.0;

impl Size {
    /// The size in which so many boxes fit one page.
    pub(super) fn for_tiles(count: usize) -> Size {
        match count {
            0..=12 => Size::Large,
            13..=96 => Size::Medium,
            _ => Size::Small,
        }
    }

    pub(super) const fn width(self) -> f64 {
        match self {
            Size::Large => 258.0,
            Size::Medium => 173.0,
            Size::Small => 83.0,
        }
    }

    pub(super) const fn height(self) -> f64 {
        match self {
            Size::Large => 92.0,
            Size::Medium => 62.0,
            Size::Small => 40.0,
        }
    }

    pub(super) const fn gap(self) -> f64 {
        match self {
            Size::Large => 12.0,
            Size::Medium | Size::Small => 8.0,
        }
    }

    /// The number of boxes per row on a card of `count`.
    pub(super) fn columns(self, count: usize) -> usize {
        match (self, count) {
            (Size::Large, 0..=2) => count.max(1),
            (Size::Large, 3..=4) => 2,
            (Size::Large, 5..=6) => 3,
            (Size::Large, _) => 4,
            (Size::Medium, _) => count.clamp(1, 8),
            (Size::Small, _) => count.clamp(1, 16),
        }
    }
}

/// Draws the box at its place.
pub(super) fn draw(canvas: &mut Canvas, tile: &Tile<'_>, size: Size, (x, y): (f64, f64)) {
    let area = Area {
        x,
        y,
        width: size.width(),
        height: size.height(),
    };
    canvas.open(Some(&tile.device), &title(tile));
    frame(canvas, area, tile.driven, tile.owner);
    match size {
        Size::Large => large(canvas, tile, area),
        Size::Medium => medium(canvas, tile, area),
        Size::Small => small(canvas, tile, area),
    }
    canvas.close();
}

/// Draws the background, and the stripe for the driver.
pub(super) fn frame(canvas: &mut Canvas, area: Area, driven: DriverKind, owner: Owner<'_>) {
    canvas.rect(area, 6.0, ground(driven, owner));
    let color = stripe(driven);
    let look = Look {
        fill: color,
        line: "none",
        dashed: false,
    };
    let above = (area.height * 0.2).min(7.0);
    let bar = Area {
        x: area.x + 5.0,
        y: area.y + above,
        width: STRIPE,
        height: area.height - 2.0 * above,
    };
    canvas.rect(bar, 2.5, look);
}

/// The text that the mouse shows: everything.
fn title(tile: &Tile<'_>) -> String {
    let owner = match tile.owner {
        Owner::Pod(user) => format!("{} as {} ({})", user.name(), user.interface, user.network),
        Owner::Orphan => "orphan".to_owned(),
        Owner::Free => "free".to_owned(),
    };
    let parts = [&tile.label, &tile.device, &owner, &tile.seen].into_iter();
    let parts = parts.chain(&tile.more).chain([&tile.name]);
    let parts = parts.filter(|part| !part.is_empty());
    parts.map(String::as_str).collect::<Vec<_>>().join(" · ")
}

/// The owner, in a word or as a pod's name.
fn owner(tile: &Tile<'_>) -> String {
    match tile.owner {
        Owner::Pod(user) => user.name().to_owned(),
        Owner::Orphan => "orphan".to_owned(),
        Owner::Free => "free".to_owned(),
    }
}

fn is_free(tile: &Tile<'_>) -> bool {
    tile.owner == Owner::Free
}

fn large(canvas: &mut Canvas, tile: &Tile<'_>, area: Area) {
    let (left, inner) = (area.x + 18.0, area.width - 30.0);
    let right = area.x + area.width - 12.0;
    let has_address = tile.label != tile.device;
    let room = if has_address { inner * 0.45 } else { inner };
    canvas.text((left, area.y + 22.0), room, &tile.label, bold(14.0));
    if has_address {
        let look = super::canvas::Type {
            right: true,
            ..mono(11.5)
        };
        canvas.text((right, area.y + 21.0), inner * 0.55, &tile.device, look);
    }
    let look = if is_free(tile) {
        faint(14.0)
    } else {
        plain(14.0)
    };
    canvas.text((left, area.y + 43.0), inner, &owner(tile), look);
    let first = match tile.owner {
        Owner::Pod(user) => format!("{} · {}", user.interface, user.network),
        Owner::Orphan | Owner::Free => tile.seen.clone(),
    };
    canvas.text((left, area.y + 62.0), inner, &first, faint(12.0));
    canvas.text(
        (left, area.y + 80.0),
        inner,
        &tile.more.join(" · "),
        faint(12.0),
    );
}

fn medium(canvas: &mut Canvas, tile: &Tile<'_>, area: Area) {
    let (left, inner) = (area.x + 17.0, area.width - 25.0);
    let right = area.x + area.width - 8.0;
    let has_address = tile.label != tile.device;
    let room = if has_address { inner * 0.4 } else { inner };
    canvas.text((left, area.y + 19.0), room, &tile.label, bold(13.0));
    if has_address {
        let look = super::canvas::Type {
            right: true,
            ..mono(10.5)
        };
        canvas.text((right, area.y + 18.5), inner * 0.6, &tile.device, look);
    }
    let look = if is_free(tile) {
        faint(12.5)
    } else {
        plain(12.5)
    };
    canvas.text((left, area.y + 36.0), inner, &owner(tile), look);
    let last = match tile.owner {
        Owner::Pod(user) => format!("{} · {}", user.interface, user.network),
        Owner::Orphan | Owner::Free => tile.more.first().unwrap_or(&tile.seen).clone(),
    };
    canvas.text((left, area.y + 52.0), inner, &last, faint(11.0));
}

fn small(canvas: &mut Canvas, tile: &Tile<'_>, area: Area) {
    let (left, inner) = (area.x + 15.0, area.width - 22.0);
    canvas.text((left, area.y + 16.5), inner, &tile.short, bold(12.0));
    // The pod's name without its namespace: there is room for one word.
    let name = owner(tile);
    let name = name.rsplit('/').next().unwrap_or(&name);
    let look = if is_free(tile) {
        faint(11.0)
    } else {
        plain(11.0)
    };
    canvas.text((left, area.y + 32.0), inner, name, look);
}
