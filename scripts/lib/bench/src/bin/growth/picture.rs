//! The picture: for each axis a chart with a line for each call.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::Outcome;
use crate::axis::Axis;
use crate::call::Verb;
use crate::cell::Cell;
use crate::report::of;

const SIZE: (u32, u32) = (1080, 760);
/// The height of the legend.
const LEGEND: u32 = 54;
const FONT: &str = "sans-serif";
const INK: RGBColor = RGBColor(0x24, 0x29, 0x2F);
const FAINT: RGBColor = RGBColor(0xD0, 0xD7, 0xDE);
const PAPER: RGBColor = RGBColor(0xFF, 0xFF, 0xFF);
/// A dark page replaces these three colours. The colours of the lines suit both.
const DARK: &str = "<style>@media (prefers-color-scheme: dark) {\
[fill=\"#24292F\"] { fill: #E6EDF3 } [stroke=\"#24292F\"] { stroke: #8B949E } \
[stroke=\"#D0D7DE\"] { stroke: #30363D } [fill=\"#FFFFFF\"] { fill: #0D1117 } }</style>";

fn colour(verb: Verb) -> RGBColor {
    match verb {
        Verb::Add => RGBColor(0x1F, 0x83, 0xD6),
        Verb::Check => RGBColor(0x14, 0x9E, 0x74),
        Verb::Status => RGBColor(0xC9, 0x55, 0x9E),
        Verb::Gc => RGBColor(0xDB, 0x61, 0x1B),
        Verb::Doctor => RGBColor(0x8A, 0x74, 0xDD),
        Verb::Del => RGBColor(0xB0, 0x84, 0x00),
    }
}

/// The picture as SVG.
///
/// # Errors
/// If figures are missing.
pub(crate) fn draw(cells: &[Cell]) -> Outcome<String> {
    let mut svg = String::new();
    {
        let whole = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        whole.fill(&PAPER)?;
        let (legend, charts) = whole.split_vertically(LEGEND);
        draw_legend(&legend)?;
        for (axis, area) in Axis::ALL.into_iter().zip(charts.split_evenly((2, 3))) {
            draw_axis(cells, axis, &area)?;
        }
        whole.present()?;
    }
    let start = svg.find('>').map_or(0, |end| end + 1);
    svg.insert_str(start, DARK);
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw_legend(area: &Area<'_>) -> Outcome<()> {
    let title = (FONT, 17).into_font().color(&INK);
    area.draw(&Text::new("Time of one call, in ms", (20, 12), title))?;
    let label = (FONT, 15).into_font().color(&INK);
    let label = label.pos(Pos::new(HPos::Left, VPos::Center));
    for (number, verb) in (0..).zip(Verb::ALL) {
        let (x, y) = (330 + number * 122, 22);
        let line = vec![(x, y), (x + 28, y)];
        area.draw(&PathElement::new(line, colour(verb).stroke_width(3)))?;
        area.draw(&Circle::new((x + 14, y), 4, colour(verb).filled()))?;
        area.draw(&Text::new(verb.name(), (x + 36, y), label.clone()))?;
    }
    Ok(())
}

fn draw_axis(cells: &[Cell], axis: Axis, area: &Area<'_>) -> Outcome<()> {
    let points = axis.points();
    let ends = points.first().zip(points.last());
    let (first, last) = ends.ok_or("an axis has no points")?;
    // A margin for the circles.
    let x = (*first as f64 * 0.8..*last as f64 * 1.25).log_scale();
    let y = range(cells).log_scale();
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(46)
        .y_label_area_size(52)
        .build_cartesian_2d(x.with_key_points(keys(points)), y)?;
    let style = (FONT, 13).into_font().color(&INK);
    chart
        .configure_mesh()
        .x_desc(axis.title())
        .y_desc("ms per call")
        .axis_desc_style((FONT, 14).into_font().color(&INK))
        .label_style(style)
        .axis_style(INK)
        .bold_line_style(FAINT)
        .light_line_style(TRANSPARENT)
        .x_label_formatter(&|it| format!("{it:.0}"))
        .y_label_formatter(&|it| format!("{it}"))
        .draw()?;
    for verb in Verb::ALL {
        let row = of(cells, axis, verb)?;
        let row: Vec<(f64, f64)> = row.iter().map(|it| (it.count as f64, it.median)).collect();
        let line = LineSeries::new(row, colour(verb).stroke_width(2)).point_size(3);
        chart.draw_series(line)?;
    }
    Ok(())
}

fn keys(points: &[usize]) -> Vec<f64> {
    points.iter().map(|it| *it as f64).collect()
}

/// All charts have the same scale of time.
fn range(cells: &[Cell]) -> std::ops::Range<f64> {
    let times = || cells.iter().map(|it| it.median);
    let (least, most) = (
        times().fold(f64::MAX, f64::min),
        times().fold(0.0, f64::max),
    );
    least / 1.3..most * 1.3
}
