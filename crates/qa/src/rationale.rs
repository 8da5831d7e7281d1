//! The shortest proof of an answer inside the evidence: fewest triples from a topic to it.
//!
//! ```text
//! rationale(a) = argmin_{p : topic → a, all of p verified} |p|, then argmax Σ_{t ∈ p} s(t)
//! ```
//!
//! Triples are walked both ways: that Lou Seal is the mascot of the Giants proves who the
//! Giants' mascot is.

use std::collections::HashMap;
use std::hash::Hash;

/// One triple of the evidence: its ends and its score. None where it is not verified.
pub(crate) type Step<N> = Option<(N, N, f32)>;

/// For every node that the verified evidence joins to a topic, the triples of its rationale in
/// order from the topic. Topics themselves need none and have an empty one.
pub(crate) fn rationales<N: Copy + Eq + Hash>(
    topics: impl IntoIterator<Item = N>,
    evidence: &[Step<N>],
) -> HashMap<N, Vec<usize>> {
    let mut around: HashMap<N, Vec<(usize, N, f32)>> = HashMap::new();
    for (i, step) in evidence.iter().enumerate() {
        if let &Some((head, tail, score)) = step {
            around.entry(head).or_default().push((i, tail, score));
            around.entry(tail).or_default().push((i, head, score));
        }
    }
    let mut found: HashMap<N, Vec<usize>> = topics
        .into_iter()
        .map(|topic| (topic, Vec::new()))
        .collect();
    let mut ring: Vec<(N, f32)> = found.keys().map(|&topic| (topic, 0.0)).collect();
    while !ring.is_empty() {
        // the best way into each new node, among all of this length
        let mut next: HashMap<N, (f32, Vec<usize>)> = HashMap::new();
        for &(node, sum) in &ring {
            for &(i, end, score) in around.get(&node).map_or(&[][..], Vec::as_slice) {
                if found.contains_key(&end) {
                    continue;
                }
                let way = (sum + score, [&found[&node][..], &[i]].concat());
                let better = |old: &(f32, Vec<usize>)| {
                    way.0
                        .total_cmp(&old.0)
                        .then_with(|| old.1.cmp(&way.1))
                        .is_gt()
                };
                if next.get(&end).is_none_or(better) {
                    next.insert(end, way);
                }
            }
        }
        ring = next.iter().map(|(&node, way)| (node, way.0)).collect();
        found.extend(next.into_iter().map(|(node, way)| (node, way.1)));
    }
    found
}

/// Whether `path` leads over verified evidence from one of `topics` to `end`, step by step. Once it
/// is there, it may begin again at a topic: several paths can be one proof.
pub(crate) fn leads<N: Copy + Eq>(
    path: &[usize],
    topics: &[N],
    end: N,
    evidence: &[Step<N>],
) -> bool {
    let mut at: Vec<N> = topics.to_vec();
    for &i in path {
        let Some(&Some((head, tail, _))) = evidence.get(i) else {
            return false;
        };
        let again = at.contains(&end);
        at = [(head, tail), (tail, head)]
            .into_iter()
            .filter(|(from, _)| at.contains(from) || again && topics.contains(from))
            .map(|(_, to)| to)
            .collect();
    }
    !path.is_empty() && at.contains(&end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_triples_win_and_then_the_best() {
        // 1 -0- 2 -1- 4,  1 -2- 3 -3- 4,  4 -4- 5
        let evidence = [
            Some((1, 2, 0.9)),
            Some((2, 4, 0.1)),
            Some((3, 1, 0.6)),
            Some((3, 4, 0.6)),
            Some((5, 4, 0.5)),
        ];
        let found = rationales([1], &evidence);
        assert_eq!(found[&1], [0; 0]);
        assert_eq!(found[&4], [2, 3], "0.6 + 0.6 beats 0.9 + 0.1");
        assert_eq!(found[&5], [2, 3, 4]);
        // a direct triple beats both
        let direct = [&evidence[..], &[Some((4, 1, 0.0))]].concat();
        assert_eq!(rationales([1], &direct)[&4], [5]);
    }

    #[test]
    fn what_is_not_verified_proves_nothing() {
        let evidence = [Some((1, 2, 1.0)), None, Some((3, 4, 1.0))];
        let found = rationales([1], &evidence);
        assert_eq!(found.len(), 2);
        assert!(!leads(&[0, 1], &[1], 3, &evidence));
    }

    #[test]
    fn a_path_must_be_joined_from_topic_to_end() {
        let evidence = [Some((1, 2, 1.0)), Some((3, 2, 1.0)), Some((4, 5, 1.0))];
        assert!(leads(&[0, 1], &[1], 3, &evidence));
        assert!(!leads(&[1, 0], &[1], 3, &evidence));
        assert!(!leads(&[0, 2], &[1], 5, &evidence));
        assert!(!leads(&[], &[1], 1, &evidence));
        assert!(!leads(&[7], &[1], 1, &evidence));
        // two paths, one from each topic, are one proof; half of the second is none
        let both = [Some((1, 3, 1.0)), Some((2, 4, 1.0)), Some((4, 3, 1.0))];
        assert!(leads(&[0, 1, 2], &[1, 2], 3, &both));
        assert!(!leads(&[0, 1], &[1, 2], 3, &both));
        assert!(!leads(&[1, 0], &[1, 2], 3, &both));
    }
}
