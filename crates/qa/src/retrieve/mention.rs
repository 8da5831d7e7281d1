//! Where a topic is named in a question.

use wherefore_graph::names::normalise;

use crate::words::tokens;

/// Where the label stands in the question, as a byte range.
pub fn label_span(text: &str, label: &str) -> Option<(usize, usize)> {
    let label = normalise(label);
    let count = label.split(' ').count();
    let words = tokens(text);
    words.windows(count.max(1)).find_map(|window| {
        let (first, last) = (window.first()?, window.last()?);
        [last.end, last.bare_end]
            .into_iter()
            .find(|&end| normalise(&text[first.start..end]) == label)
            .map(|end| (first.start, end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_found_in_the_question() {
        assert_eq!(
            label_span("who is Lou_Seal's friend", "Lou Seal"),
            Some((7, 15))
        );
        assert_eq!(label_span("who is it", "Lou Seal"), None);
    }
}
