//! What each layer of a network did: a picture of the entities around the question, and how much each
//! triple of the rationale was heard.

use std::fmt::Write;

use wherefore::retrieve::gnn2r::{Explanation, LayerPicture, Role};

use super::page::escape;

const SIDE: f32 = 420.0;
const BORDER: f32 = 16.0;

/// All layers, one after the other.
pub(super) fn draw(explanation: &Explanation) -> String {
    let mut out = String::from(
        "<h2>Layers</h2><p class=\"dim\">Entities in the two directions in which they spread most. The \
         question is the cross; topics are purple, answers green, other candidates red.</p>",
    );
    for (number, layer) in explanation.layers.iter().enumerate() {
        let _ = write!(out, "<h3>Layer {}</h3>", number + 1);
        out += &picture(layer);
        out += "<table><tr><th>head</th><th>relation</th><th>tail</th>\
                <th>heard by the tail</th><th>heard by the head</th></tr>";
        for ([head, relation, tail], by_tail, by_head) in &layer.attention {
            let _ = write!(
                out,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"num\">{by_tail:.2}</td>\
                 <td class=\"num\">{by_head:.2}</td></tr>",
                escape(head),
                escape(relation),
                escape(tail)
            );
        }
        out += "</table>";
    }
    out
}

fn picture(layer: &LayerPicture) -> String {
    let extent = |of: fn(&(f32, f32)) -> f32| {
        let values = layer.places.iter().map(|place| of(&place.at));
        let (low, high) = values.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), x| {
            (low.min(x), high.max(x))
        });
        (low, (high - low).max(f32::MIN_POSITIVE))
    };
    let ((left, width), (top, height)) = (extent(|at| at.0), extent(|at| at.1));
    let room = SIDE - 2.0 * BORDER;
    let mut svg = format!(
        "<svg class=\"network\" style=\"max-width:{SIDE}px\" viewBox=\"0 0 {SIDE} {SIDE}\" role=\"img\" \
         aria-label=\"entities around the question\">"
    );
    // what matters is drawn last, over the rest
    let order = |role: Role| match role {
        Role::Other => 0,
        Role::Candidate => 1,
        Role::Topic => 2,
        Role::Answer => 3,
        Role::Question => 4,
    };
    let mut places: Vec<_> = layer.places.iter().collect();
    places.sort_by_key(|place| order(place.role));
    for place in places {
        let x = BORDER + room * (place.at.0 - left) / width;
        let y = BORDER + room * (place.at.1 - top) / height;
        let name = escape(&place.name);
        let (class, radius) = match place.role {
            Role::Question => {
                let _ = write!(
                    svg,
                    "<path class=\"edge\" stroke-width=\"3\" d=\"M{:.0} {y:.0}h14M{x:.0} {:.0}v14\">\
                     <title>{name}</title></path>",
                    x - 7.0,
                    y - 7.0
                );
                continue;
            }
            Role::Topic => ("topic", 6),
            Role::Answer => ("right", 6),
            Role::Candidate => ("wrong", 4),
            Role::Other => ("other", 3),
        };
        let _ = write!(
            svg,
            "<circle class=\"{class}\" cx=\"{x:.0}\" cy=\"{y:.0}\" r=\"{radius}\"><title>{name}</title>\
             </circle>"
        );
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use wherefore::retrieve::gnn2r::Place;

    use super::*;

    #[test]
    fn question_and_answer_are_marked_and_labels_are_data() {
        let place = |name: &str, at, role| Place {
            name: name.into(),
            at,
            role,
        };
        let layer = LayerPicture {
            attention: vec![(["a".into(), "<r>".into(), "b".into()], 0.25, 1.0)],
            places: vec![
                place("the question", (0.0, 0.0), Role::Question),
                place("<b>", (1.0, 2.0), Role::Answer),
            ],
        };
        let html = draw(&Explanation {
            layers: vec![layer],
        });
        assert!(html.contains("class=\"right\"") && html.contains("&lt;b&gt;"));
        assert!(html.contains("0.25") && html.contains("&lt;r&gt;"));
        // the corners of the picture
        assert!(html.contains("cx=\"404\" cy=\"404\""), "{html}");
        // nothing to draw is no picture of NaN
        assert!(!draw(&Explanation::default()).contains("NaN"));
    }
}
