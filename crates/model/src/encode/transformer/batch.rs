//! Texts laid end to end, in batches of bounded size.

/// Token ids of several texts, one after the other, without padding.
pub(super) struct Batch {
    pub(super) ids: Vec<u32>,
    /// Tokens of each text.
    pub(super) lengths: Vec<usize>,
    /// The place of each text among those given.
    pub(super) texts: Vec<usize>,
}

impl Batch {
    /// The position of each token in its text, counted from `first`.
    pub(super) fn positions(&self, first: usize) -> Vec<u32> {
        self.lengths
            .iter()
            .flat_map(|len| (first..first + len).map(|position| position as u32))
            .collect()
    }
}

/// Batches of at most `budget` tokens (or one text), longest texts first: if memory falls short
/// it does so at once, and the texts of a batch are of like length, so that threads finish together.
pub(super) fn batches(tokens: Vec<Vec<u32>>, budget: usize) -> Vec<Batch> {
    let mut order: Vec<usize> = (0..tokens.len()).collect();
    order.sort_by_key(|&text| std::cmp::Reverse(tokens[text].len()));
    let mut batches: Vec<Batch> = vec![];
    for text in order {
        let ids = &tokens[text];
        match batches.last_mut() {
            Some(batch) if batch.ids.len() + ids.len() <= budget => {
                batch.ids.extend_from_slice(ids);
                batch.lengths.push(ids.len());
                batch.texts.push(text);
            }
            _ => batches.push(Batch {
                ids: ids.clone(),
                lengths: vec![ids.len()],
                texts: vec![text],
            }),
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_the_budget_and_every_text_once() {
        let tokens = vec![vec![1; 2], vec![2; 9], vec![3; 3], vec![4; 1], vec![5; 2]];
        let batches = batches(tokens, 5);
        // lengths 9 | 3 2 | 2 1
        let lengths: Vec<_> = batches.iter().map(|b| b.lengths.clone()).collect();
        assert_eq!(lengths, [vec![9], vec![3, 2], vec![2, 1]]);
        let texts: Vec<_> = batches.iter().flat_map(|b| b.texts.clone()).collect();
        assert_eq!(texts, [1, 2, 0, 4, 3]);
        assert_eq!(batches[1].positions(2), [2, 3, 4, 2, 3]);
    }
}
