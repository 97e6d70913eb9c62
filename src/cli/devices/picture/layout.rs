//! The layout: bands from top to bottom, cards from left to right as long as they fit.

use super::canvas::{Area, Canvas, Type};
use super::legend;
use super::model::{Band, Card, Node};
use super::palette::{BAND, CARD, bold, faint, mono, plain};
use super::tile::{self, Size, frame};
use crate::cli::devices::usage::Owner;

/// The margin of the picture.
const MARGIN: f64 = 40.0;
/// The padding of a band and of a card.
const PAD: f64 = 18.0;
/// Between bands, and between cards.
const GAP: f64 = 18.0;
/// The greatest width of the cards of a band.
const WIDEST: f64 = 1484.0;
/// The least width of a card: its head has to fit.
const NARROWEST: f64 = 500.0;
const CARD_HEAD: f64 = 66.0;
/// The height of the line with a name.
const NAME: f64 = 16.0;
const BAND_HEAD: f64 = 40.0;
const HEAD: f64 = 124.0;

/// A card with its place, relative to its band.
struct Placed<'n, 'a> {
    card: &'n Card<'a>,
    area: Area,
}

/// Draws the whole picture.
pub(super) fn draw(node: &Node<'_>) -> String {
    let size = Size::for_tiles(node.tiles());
    let placed: Vec<(&Band<'_>, Vec<Placed<'_, '_>>)> = node
        .bands
        .iter()
        .map(|band| (band, place(band, size)))
        .collect();
    let cards = placed.iter().flat_map(|(_, cards)| cards);
    let content = cards
        .map(|card| card.area.x + card.area.width)
        .fold(legend::WIDTH - 2.0 * PAD, f64::max);
    let band_width = content + 2.0 * PAD;
    let mut canvas = Canvas::default();
    canvas.text((MARGIN, 62.0), band_width, &node.title, bold(28.0));
    canvas.text((MARGIN, 88.0), band_width, &node.summary, faint(15.0));
    let mut y = HEAD;
    legend::draw(&mut canvas, (MARGIN, y - 16.0));
    y += legend::HEIGHT;
    for (band, cards) in &placed {
        let bottom = cards
            .iter()
            .map(|card| card.area.y + card.area.height)
            .fold(0.0, f64::max);
        let area = Area {
            x: MARGIN,
            y,
            width: band_width,
            height: BAND_HEAD + bottom + PAD,
        };
        canvas.rect(area, 10.0, BAND);
        let head = (MARGIN + PAD, y + 26.0);
        canvas.text(head, content, &band.title, bold(15.0));
        for placed in cards {
            draw_card(&mut canvas, placed, size, (MARGIN + PAD, y + BAND_HEAD));
        }
        y += area.height + GAP;
    }
    canvas.finish(band_width + 2.0 * MARGIN, y - GAP + MARGIN, &node.title)
}

/// Places cards from left to right, and in the next row where the width ends.
fn place<'n, 'a>(band: &'n Band<'a>, size: Size) -> Vec<Placed<'n, 'a>> {
    let (mut x, mut y, mut row) = (0.0_f64, 0.0_f64, 0.0_f64);
    let mut placed = Vec::with_capacity(band.cards.len());
    for card in &band.cards {
        let (width, height) = extent(card, size);
        if x > 0.0 && x + width > WIDEST {
            (x, y, row) = (0.0, y + row + GAP, 0.0);
        }
        let area = Area {
            x,
            y,
            width,
            height,
        };
        placed.push(Placed { card, area });
        x += width + GAP;
        row = row.max(height);
    }
    placed
}

fn extent(card: &Card<'_>, size: Size) -> (f64, f64) {
    let head = head_height(card);
    if card.tiles.is_empty() {
        return (NARROWEST, head);
    }
    let columns = size.columns(card.tiles.len());
    let rows = card.tiles.len().div_ceil(columns);
    let along = |count: usize, each: f64| lossless(count) * (each + size.gap()) - size.gap();
    let width = along(columns, size.width()) + 2.0 * PAD;
    let height = head + along(rows, size.height()) + PAD;
    (width.max(NARROWEST), height)
}

fn head_height(card: &Card<'_>) -> f64 {
    if card.name.is_empty() {
        CARD_HEAD
    } else {
        CARD_HEAD + NAME
    }
}

fn draw_card(canvas: &mut Canvas, placed: &Placed<'_, '_>, size: Size, (left, top): (f64, f64)) {
    let Placed { card, area } = placed;
    let area = Area {
        x: left + area.x,
        y: top + area.y,
        ..*area
    };
    canvas.open(
        card.device.as_deref(),
        &format!("{} · {}", card.title, card.subtitle),
    );
    canvas.rect(area, 8.0, CARD);
    head(canvas, card, area);
    canvas.close();
    let columns = size.columns(card.tiles.len());
    for (number, tile) in card.tiles.iter().enumerate() {
        let (column, row) = (number % columns, number / columns);
        let x = area.x + PAD + lossless(column) * (size.width() + size.gap());
        let y = area.y + head_height(card) + lossless(row) * (size.height() + size.gap());
        tile::draw(canvas, tile, size, (x, y));
    }
}

/// The head of a card: interface and number of VFs, address and driver, name.
fn head(canvas: &mut Canvas, card: &Card<'_>, area: Area) {
    let mut left = area.x + PAD;
    let inner = area.width - 2.0 * PAD;
    let right = area.x + area.width - PAD;
    if card.device.is_some() {
        let mark = Area {
            x: left,
            y: area.y + 14.0,
            width: 15.0,
            height: 38.0,
        };
        frame(canvas, mark, card.driven, card.owner);
        left += 26.0;
    }
    let note = match card.owner {
        Owner::Pod(user) => format!("{} as {}", user.name(), user.interface),
        Owner::Orphan => "orphan".to_owned(),
        Owner::Free => card.note.clone(),
    };
    let look = Type {
        right: true,
        ..plain(13.0)
    };
    canvas.text((right, area.y + 29.0), inner * 0.6, &note, look);
    let room = if note.is_empty() { 1.0 } else { 0.38 };
    canvas.text((left, area.y + 29.0), inner * room, &card.title, bold(17.0));
    let below = inner - 26.0;
    let address = (left, area.y + 49.0);
    canvas.text(address, below, &card.subtitle, mono(12.0));
    if !card.name.is_empty() {
        canvas.text((left, area.y + 49.0 + NAME), below, &card.name, faint(12.0));
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a number of boxes is far below 2^52"
)]
fn lossless(count: usize) -> f64 {
    count as f64
}
