//! Evidence drawn as a graph: topics purple, right answers green, wrong ones orange.
//!
//! Places are found by springs (Fruchterman and Reingold 1991), from a circle, so that the same
//! evidence always looks the same.

use std::collections::HashMap;
use std::fmt::Write;

use wherefore::answer::Evidence;

use super::page::escape;
use super::svg::short;

/// Most triples in a picture; the rest stand in the table.
pub(super) const MOST: usize = 16;
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;

/// What a node is to the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Topic,
    Right,
    Wrong,
    Other,
}

struct Node<'a> {
    label: &'a str,
    part: Part,
    at: (f64, f64),
}

/// Draws the first `most` of the evidence, each edge with its confidence.
pub(super) fn draw(
    evidence: &[&Evidence],
    most: usize,
    part: impl Fn(&str, &str) -> Part,
) -> String {
    let evidence = &evidence[..evidence.len().min(most)];
    let mut nodes: Vec<Node<'_>> = Vec::new();
    let mut ids: HashMap<&str, usize> = HashMap::new();
    let mut edges = Vec::new();
    for triple in evidence {
        let [head, _, tail] = &triple.ids;
        let ends = [(head, &triple.head), (tail, &triple.tail)].map(|(id, label)| {
            *ids.entry(id).or_insert_with(|| {
                nodes.push(Node {
                    label,
                    part: part(id, label),
                    at: (0.0, 0.0),
                });
                nodes.len() - 1
            })
        });
        edges.push((ends[0], ends[1], triple));
    }
    if nodes.is_empty() {
        return String::new();
    }
    let pairs: Vec<(usize, usize)> = edges.iter().map(|&(a, b, _)| (a, b)).collect();
    for (node, at) in nodes.iter_mut().zip(places(edges_nodes(&pairs), &pairs)) {
        node.at = at;
    }
    let mut svg = format!(
        "<svg class=\"network\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"evidence\">"
    );
    // triples between the same two nodes share a line, with an arrow at each end they point to
    let mut drawn: Vec<(usize, usize, Vec<&Evidence>)> = Vec::new();
    for &(a, b, triple) in &edges {
        match drawn
            .iter_mut()
            .find(|(x, y, _)| (*x, *y) == (a, b) || (*x, *y) == (b, a))
        {
            Some((_, _, triples)) => triples.push(triple),
            None => drawn.push((a, b, vec![triple])),
        }
    }
    for (a, b, triples) in &drawn {
        let ((x1, y1), (x2, y2)) = (nodes[*a].at, nodes[*b].at);
        let _ = write!(
            svg,
            "<path class=\"edge\" d=\"M{x1:.0} {y1:.0}L{x2:.0} {y2:.0}\"/>"
        );
        let first = &triples[0].ids[0];
        arrow(&mut svg, (x1, y1), (x2, y2));
        if triples.iter().any(|t| t.ids[0] != *first) {
            arrow(&mut svg, (x2, y2), (x1, y1));
        }
        let mut names: Vec<&str> = triples.iter().map(|t| last_part(&t.relation)).collect();
        names.dedup();
        let best = triples.iter().map(|t| t.score).fold(0.0, f32::max);
        let full: Vec<String> = triples
            .iter()
            .map(|t| format!("{} · {:.2}", t.relation, t.score))
            .collect();
        let _ = write!(
            svg,
            "<text class=\"relation\" x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{} {best:.2}<title>{}</title></text>",
            (x1 + x2) / 2.0,
            (y1 + y2) / 2.0 - 4.0,
            escape(&short(&names.join(" / "), 30)),
            escape(&full.join("; "))
        );
    }
    for node in &nodes {
        let class = match node.part {
            Part::Topic => "topic",
            Part::Right => "right",
            Part::Wrong => "wrong",
            Part::Other => "other",
        };
        let (x, y) = node.at;
        let _ = write!(
            svg,
            "<circle class=\"{class}\" cx=\"{x:.0}\" cy=\"{y:.0}\" r=\"7\"/>\
             <text class=\"node\" x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{}<title>{}</title></text>",
            y + 20.0,
            escape(&short(node.label, 24)),
            escape(node.label)
        );
    }
    svg + "</svg>"
}

/// The head of an arrow, short of the node so that it is seen.
fn arrow(svg: &mut String, from: (f64, f64), to: (f64, f64)) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(1.0);
    let (dx, dy) = (dx / length, dy / length);
    let (ex, ey) = (to.0 - dx * 8.0, to.1 - dy * 8.0);
    let (ax, ay) = (ex - dx * 8.0, ey - dy * 8.0);
    let _ = write!(
        svg,
        "<path class=\"head\" d=\"M{ex:.0} {ey:.0}L{:.0} {:.0}L{:.0} {:.0}Z\"/>",
        ax - dy * 3.5,
        ay + dx * 3.5,
        ax + dy * 3.5,
        ay - dx * 3.5
    );
}

/// `people.person.gender` is long; its end says most.
fn last_part(relation: &str) -> &str {
    relation.rsplit('.').next().unwrap_or(relation)
}

fn edges_nodes(edges: &[(usize, usize)]) -> usize {
    edges.iter().map(|&(a, b)| a.max(b) + 1).max().unwrap_or(0)
}

/// Springs along edges, charges everywhere; cooled down over 300 rounds.
fn places(count: usize, edges: &[(usize, usize)]) -> Vec<(f64, f64)> {
    let (width, height) = (WIDTH - 140.0, HEIGHT - 60.0);
    let ideal = (width * height / count.max(1) as f64).sqrt() * 0.8;
    let mut at: Vec<(f64, f64)> = (0..count)
        .map(|i| {
            let angle = 2.4 * i as f64; // the golden angle: no two on one line
            let radius = 0.5 * ((i as f64 + 0.5) / count as f64).sqrt();
            (
                width * (0.5 + radius * angle.cos()),
                height * (0.5 + radius * angle.sin()),
            )
        })
        .collect();
    for round in 0..300 {
        let heat = width / 8.0 * (1.0 - f64::from(round) / 300.0);
        let mut push = vec![(0.0, 0.0); count];
        for i in 0..count {
            for j in 0..i {
                let (dx, dy) = (at[i].0 - at[j].0, at[i].1 - at[j].1);
                let distance = dx.hypot(dy).max(1.0);
                let force = ideal * ideal / (distance * distance);
                push[i] = (
                    push[i].0 + dx * force / distance * 2.0,
                    push[i].1 + dy * force / distance * 2.0,
                );
                push[j] = (
                    push[j].0 - dx * force / distance * 2.0,
                    push[j].1 - dy * force / distance * 2.0,
                );
            }
        }
        for &(a, b) in edges {
            let (dx, dy) = (at[a].0 - at[b].0, at[a].1 - at[b].1);
            let distance = dx.hypot(dy).max(1.0);
            let pull = distance / ideal;
            push[a] = (
                push[a].0 - dx / distance * pull * 4.0,
                push[a].1 - dy / distance * pull * 4.0,
            );
            push[b] = (
                push[b].0 + dx / distance * pull * 4.0,
                push[b].1 + dy / distance * pull * 4.0,
            );
        }
        for (place, (dx, dy)) in at.iter_mut().zip(push) {
            let length = dx.hypot(dy).max(1e-9);
            let step = (length * ideal / 20.0).min(heat);
            place.0 = (place.0 + dx / length * step).clamp(0.0, width);
            place.1 = (place.1 + dy / length * step).clamp(0.0, height);
        }
    }
    // fill the picture: springs alone leave its borders empty
    let stretch = |values: Vec<f64>, room: f64| -> Vec<f64> {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let extent = high - low;
        let place = |v: f64| {
            if extent > 1.0 {
                (v - low) / extent
            } else {
                0.5
            }
        };
        values.into_iter().map(|v| room * place(v)).collect()
    };
    let (xs, ys) = at.into_iter().unzip();
    stretch(xs, width)
        .into_iter()
        .zip(stretch(ys, height))
        .map(|(x, y)| (x + 70.0, y + 20.0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_inside_apart_and_always_the_same() {
        let edges = [(0, 1), (1, 2), (1, 3), (3, 4), (5, 1)];
        let at = places(6, &edges);
        assert_eq!(at, places(6, &edges));
        for (i, a) in at.iter().enumerate() {
            assert!((0.0..WIDTH).contains(&a.0) && (0.0..HEIGHT).contains(&a.1));
            for b in &at[..i] {
                assert!((a.0 - b.0).hypot(a.1 - b.1) > 20.0, "{at:?}");
            }
        }
        assert!(places(0, &[]).is_empty());
        assert!(places(1, &[(0, 0)])[0].0.is_finite());
    }

    #[test]
    fn labels_are_escaped() {
        let triple = Evidence {
            head: "<img src=x onerror=alert(1)>".into(),
            relation: "a<b".into(),
            tail: "c&d".into(),
            ids: ["h".into(), "r".into(), "t".into()],
            ..Evidence::default()
        };
        let svg = draw(&[&triple], MOST, |_, _| Part::Other);
        assert!(!svg.contains("<img") && svg.contains("&lt;img") && svg.contains("c&amp;d"));
        assert!(draw(&[], MOST, |_, _| Part::Other).is_empty());
    }
}
