//! Charts as inline SVG: grouped bars with error bars, lines, stacked bars.
//!
//! Colours are CSS classes (`c0`, `c1`, …), so that the page decides them for light and dark.

use std::fmt::Write;

use super::page::escape;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 44.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 12.0;

/// One bar or point: value, and interval if there is one.
pub(super) type Value = (f64, Option<(f64, f64)>);

fn y(value: f64) -> f64 {
    TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - value.clamp(0.0, 1.0))
}

fn open(title: &str) -> String {
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escape(title)
    );
    for tick in 0..=4 {
        let value = f64::from(tick) / 4.0;
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{0:.1}\" y2=\"{0:.1}\"/>\
             <text class=\"tick\" x=\"{1}\" y=\"{2:.1}\" text-anchor=\"end\">{value:.2}</text>",
            y(value),
            LEFT - 6.0,
            y(value) + 4.0
        );
    }
    svg
}

/// Bars in groups: one group for each label, one bar in it for each series.
pub(super) fn bars(
    title: &str,
    labels: &[String],
    series: &[(String, Vec<Option<Value>>)],
) -> String {
    let mut svg = open(title);
    let group = (WIDTH - LEFT) / labels.len().max(1) as f64;
    let bar = (group * 0.76 / series.len().max(1) as f64).min(56.0);
    for (g, label) in labels.iter().enumerate() {
        let middle = LEFT + group * (g as f64 + 0.5);
        let from = middle - bar * series.len() as f64 / 2.0;
        for (s, (name, values)) in series.iter().enumerate() {
            let Some((value, interval)) = values[g] else {
                continue;
            };
            let x = from + bar * s as f64;
            let _ = write!(
                svg,
                "<rect class=\"c{}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\"><title>{} · {}: {value:.3}{}</title></rect>",
                s % 8,
                x + 1.0,
                y(value),
                bar - 2.0,
                y(0.0) - y(value),
                escape(name),
                escape(label),
                interval.map_or(String::new(), |(l, h)| format!(" [{l:.3}, {h:.3}]"))
            );
            if let Some((low, high)) = interval {
                let at = x + bar / 2.0;
                let _ = write!(
                    svg,
                    "<path class=\"error\" d=\"M{at:.1} {0:.1}V{1:.1}M{2:.1} {0:.1}h6M{2:.1} {1:.1}h6\"/>",
                    y(low),
                    y(high),
                    at - 3.0
                );
            }
            if bar >= 26.0 {
                let above = interval.map_or(value, |(_, high)| high.max(value));
                let _ = write!(
                    svg,
                    "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{value:.2}</text>",
                    x + bar / 2.0,
                    (y(above) - 4.0).max(10.0)
                );
            }
        }
        let _ = write!(
            svg,
            "<text class=\"label\" x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - BOTTOM + 18.0,
            escape(label)
        );
    }
    svg + "</svg>" + &legend(series.iter().map(|(name, _)| name.as_str()))
}

/// Lines over labels, one for each series.
pub(super) fn lines(
    title: &str,
    labels: &[String],
    series: &[(String, Vec<Option<Value>>)],
) -> String {
    let mut svg = open(title);
    let step = (WIDTH - LEFT - 60.0) / (labels.len().max(2) - 1) as f64;
    let x = |i: usize| LEFT + 30.0 + step * i as f64;
    for (i, label) in labels.iter().enumerate() {
        let _ = write!(
            svg,
            "<text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x(i),
            HEIGHT - BOTTOM + 18.0,
            escape(label)
        );
    }
    for (s, (name, values)) in series.iter().enumerate() {
        let points: Vec<(usize, f64)> = values
            .iter()
            .enumerate()
            .filter_map(|(i, v)| v.map(|(v, _)| (i, v)))
            .collect();
        let path: Vec<String> = points
            .iter()
            .map(|&(i, v)| format!("{:.1},{:.1}", x(i), y(v)))
            .collect();
        let _ = write!(
            svg,
            "<polyline class=\"line s{}\" points=\"{}\"/>",
            s % 8,
            path.join(" ")
        );
        for &(i, v) in &points {
            let _ = write!(
                svg,
                "<circle class=\"c{}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\"><title>{} · {}: {v:.3}</title></circle>",
                s % 8,
                x(i),
                y(v),
                escape(name),
                escape(&labels[i])
            );
        }
    }
    svg + "</svg>" + &legend(series.iter().map(|(name, _)| name.as_str()))
}

/// One bar for each row, divided into named parts.
pub(super) fn stacked(title: &str, parts: &[&str], rows: &[(String, Vec<usize>)]) -> String {
    let height = 34.0 * rows.len() as f64 + 8.0;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escape(title)
    );
    for (r, (name, counts)) in rows.iter().enumerate() {
        let total = counts.iter().sum::<usize>().max(1) as f64;
        let top = 34.0 * r as f64 + 6.0;
        let _ = write!(
            svg,
            "<text class=\"label\" x=\"0\" y=\"{:.1}\">{}</text>",
            top + 16.0,
            escape(&short(name, 20))
        );
        let (mut x, room) = (150.0, WIDTH - 150.0);
        for (p, &count) in counts.iter().enumerate() {
            let width = room * count as f64 / total;
            if count > 0 {
                let _ = write!(
                    svg,
                    "<rect class=\"o{p}\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"24\"><title>{}: {count} ({:.1}%)</title></rect>",
                    (width - 1.0).max(0.5),
                    parts[p],
                    100.0 * count as f64 / total
                );
                if width > 34.0 {
                    let _ = write!(
                        svg,
                        "<text class=\"inside\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{count}</text>",
                        x + width / 2.0,
                        top + 16.5
                    );
                }
            }
            x += width;
        }
    }
    let mut legend = String::from("<p class=\"legend\">");
    for (p, part) in parts.iter().enumerate() {
        if rows.iter().any(|(_, counts)| counts[p] > 0) {
            let _ = write!(legend, "<span><i class=\"o{p}\"></i>{part}</span>");
        }
    }
    svg + "</svg>" + &legend + "</p>"
}

fn legend<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    if names.len() < 2 {
        return String::new();
    }
    let mut out = String::from("<p class=\"legend\">");
    for (i, name) in names.enumerate() {
        let _ = write!(
            out,
            "<span><i class=\"c{}\"></i>{}</span>",
            i % 8,
            escape(name)
        );
    }
    out + "</p>"
}

/// A text of at most `most` characters.
pub(super) fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
