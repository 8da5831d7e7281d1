//! Links the longest spans of the question that are somebody's name.
//!
//! ```text
//! links = the longest spans [i, j) of words with normalise(words[i..j]) ∈ names, none overlapping
//! ```
//!
//! Given topics win: exactly as written first, then normalised. A topic that the graph does not
//! have is an error, for the asker was sure of it; an unlinked question is not.
//!
//! A span of stop words alone must be written exactly like the name (`The Who`). A single
//! lower-case word is a weak link, kept only where nothing better was found. Several entities of
//! one name are all linked, the one with most triples first and the others at half its score.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use wherefore_graph::names::normalise;
use wherefore_graph::{EntityId, Graph, NameMatch};

use super::{Link, Linker};
use crate::error::{Error, Result};
use crate::question::Question;
use crate::words::{Token, is_stop_word, tokens};

/// Of many entities with one name, at most this many are compared by degree.
const MAX_NAMESAKES: usize = 256;

/// Names offered when a topic is unknown.
const NEAR_NAMES: usize = 3;

/// Settings of [`Names`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NamesConfig {
    /// At most this many links are made.
    pub max_links: usize,
    /// The longest name that is looked for, in words.
    pub max_words: usize,
}

impl Default for NamesConfig {
    fn default() -> Self {
        Self {
            max_links: 4,
            max_words: 12,
        }
    }
}

impl NamesConfig {
    pub(crate) fn check(&self) -> Result<()> {
        if self.max_links == 0 || self.max_words == 0 {
            return Err(Error::Config(
                "`link.max_links` and `link.max_words` must be at least 1".into(),
            ));
        }
        Ok(())
    }
}

/// Links by name.
#[derive(Clone, Debug, Default)]
pub struct Names {
    config: NamesConfig,
}

impl Names {
    /// A linker with these settings.
    pub fn new(config: NamesConfig) -> Self {
        Self { config }
    }
}

impl Linker for Names {
    fn link(&self, question: &Question, graph: &dyn Graph) -> Result<Vec<Link>> {
        let mut links = if question.topics.is_empty() {
            self.spans(&question.text, graph)?
        } else {
            topics(&question.topics, graph)?
        };
        links.sort_by(|a, b| b.score.total_cmp(&a.score));
        let mut seen = HashSet::new();
        links.retain(|link| seen.insert(link.entity));
        // a given topic is never dropped
        links.truncate(self.config.max_links.max(question.topics.len()));
        Ok(links)
    }
}

impl Names {
    fn spans(&self, text: &str, graph: &dyn Graph) -> Result<Vec<Link>> {
        let words = tokens(text);
        let mut taken = vec![false; words.len()];
        let mut strong = Vec::new();
        let mut weak = Vec::new();
        for length in (1..=self.config.max_words.min(words.len())).rev() {
            for start in 0..=words.len() - length {
                let range = start..start + length;
                if taken[range.clone()].contains(&true) {
                    continue;
                }
                let Some(mention) = mention(text, &words[range.clone()], graph)? else {
                    continue;
                };
                taken[range].fill(true);
                let group = if mention.weak { &mut weak } else { &mut strong };
                group.extend(mention.links(text, graph)?);
            }
        }
        Ok(if strong.is_empty() { weak } else { strong })
    }
}

/// A span of the question that is a name.
struct Mention {
    span: (usize, usize),
    entities: Vec<EntityId>,
    exact: bool,
    weak: bool,
}

fn mention(text: &str, words: &[Token], graph: &dyn Graph) -> Result<Option<Mention>> {
    let (Some(first), Some(last)) = (words.first(), words.last()) else {
        return Ok(None);
    };
    let stop_words_only = words
        .iter()
        .all(|w| is_stop_word(&normalise(&text[w.start..w.end])));
    if stop_words_only && words.len() == 1 {
        return Ok(None);
    }
    let ends = if last.bare_end == last.end {
        &[last.end][..]
    } else {
        &[last.end, last.bare_end][..]
    };
    for &end in ends {
        let span = &text[first.start..end];
        let entities = graph.entities_named(span, NameMatch::Normalised)?;
        if entities.is_empty() {
            continue;
        }
        let exact = graph.entities_named(span, NameMatch::Exact)?;
        if stop_words_only && exact.is_empty() {
            continue;
        }
        return Ok(Some(Mention {
            span: (first.start, end),
            exact: !exact.is_empty(),
            weak: words.len() == 1 && !span.contains(|c: char| c.is_uppercase() || c.is_numeric()),
            entities: if exact.is_empty() { entities } else { exact },
        }));
    }
    Ok(None)
}

impl Mention {
    fn links(self, text: &str, graph: &dyn Graph) -> Result<Vec<Link>> {
        let score = match (self.weak, self.exact) {
            (false, true) => 1.0,
            (false, false) => 0.9,
            (true, _) => 0.5,
        };
        let mention = &text[self.span.0..self.span.1];
        namesakes(self.entities, mention, Some(self.span), score, graph)
    }
}

/// Links of all entities of one name, the one with most triples first.
fn namesakes(
    mut entities: Vec<EntityId>,
    mention: &str,
    span: Option<(usize, usize)>,
    score: f32,
    graph: &dyn Graph,
) -> Result<Vec<Link>> {
    entities.truncate(MAX_NAMESAKES);
    let mut by_degree = Vec::with_capacity(entities.len());
    for entity in entities {
        by_degree.push((graph.degree(entity)?, entity));
    }
    by_degree.sort_by_key(|&(degree, entity)| (std::cmp::Reverse(degree), entity));
    Ok(by_degree
        .into_iter()
        .enumerate()
        .map(|(rank, (_, entity))| Link {
            entity,
            mention: mention.to_owned(),
            span,
            score: if rank == 0 { score } else { score / 2.0 },
        })
        .collect())
}

fn topics(names: &[String], graph: &dyn Graph) -> Result<Vec<Link>> {
    let mut links = Vec::new();
    for name in names {
        let mut entities = graph.entities_named(name, NameMatch::Exact)?;
        if entities.is_empty() {
            entities = graph.entities_named(name, NameMatch::Normalised)?;
        }
        if entities.is_empty() {
            return Err(Error::NoSuchTopic {
                name: name.clone(),
                near: near(name, graph)?,
            });
        }
        links.extend(namesakes(entities, name, None, 1.0, graph)?);
    }
    Ok(links)
}

/// Names that begin like `name`, those with the fewest edits first.
fn near(name: &str, graph: &dyn Graph) -> Result<Vec<String>> {
    let wanted: Vec<char> = normalise(name).chars().take(64).collect();
    // shorter and shorter beginnings: the first that anybody has
    for length in [wanted.len(), wanted.len() / 2, 3, 1] {
        if length == 0 || length > wanted.len() {
            continue;
        }
        let prefix: String = wanted[..length].iter().collect();
        let mut found = Vec::new();
        for entity in graph.entities_with_prefix(&prefix, 500)? {
            let label = graph.entity_label(entity)?.into_owned();
            let other: Vec<char> = normalise(&label).chars().take(64).collect();
            found.push((edits(&wanted, &other), label));
        }
        if !found.is_empty() {
            found.sort();
            found.dedup();
            found.truncate(NEAR_NAMES);
            return Ok(found.into_iter().map(|(_, label)| label).collect());
        }
    }
    Ok(Vec::new())
}

/// Levenshtein distance.
fn edits(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use wherefore_graph::{Adjacency, MemoryGraph, toy};

    use super::*;

    fn mentions(question: &Question, graph: &dyn Graph) -> Vec<(String, String)> {
        Names::default()
            .link(question, graph)
            .unwrap()
            .into_iter()
            .map(|l| {
                if let Some((from, to)) = l.span {
                    assert_eq!(&question.text[from..to], l.mention);
                }
                (
                    l.mention,
                    graph.entity_label(l.entity).unwrap().into_owned(),
                )
            })
            .collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected
            .iter()
            .map(|&(a, b)| (a.to_owned(), b.to_owned()))
            .collect()
    }

    #[test]
    fn the_longest_name_wins_over_names_inside_it() {
        let question = Question::new("where do the san francisco giants play?");
        assert_eq!(
            mentions(&question, &toy::graph()),
            pairs(&[("san francisco giants", "San Francisco Giants")])
        );
    }

    #[test]
    fn possessives_control_characters_and_emoji_do_not_hide_a_name() {
        let question = Question::new("🎉\u{0}Lou\tSeal’s\u{1b}[31m team?");
        assert_eq!(
            mentions(&question, &toy::graph()),
            pairs(&[("Lou\tSeal", "Lou Seal")])
        );
    }

    #[test]
    fn stop_words_link_only_when_written_exactly_like_the_name() {
        let graph = MemoryGraph::from_names([("The Who", "is", "it"), ("Who", "plays", "guitar")]);
        let link = |text: &str| mentions(&Question::new(text), &graph);
        assert_eq!(link("who is it"), []);
        assert_eq!(link("who is in The Who"), pairs(&[("The Who", "The Who")]));
        assert_eq!(link("is the who it"), []);
    }

    #[test]
    fn a_lower_case_word_links_only_where_nothing_better_does() {
        let graph = MemoryGraph::from_names([("City", "of", "Oz"), ("Oz", "has", "Dorothy")]);
        let link = |text: &str| mentions(&Question::new(text), &graph);
        assert_eq!(link("which city is Oz"), pairs(&[("Oz", "Oz")]));
        assert_eq!(link("which city"), pairs(&[("city", "City")]));
    }

    #[test]
    fn given_topics_win_and_unknown_ones_are_an_error_with_near_names() {
        let graph = toy::graph();
        let question = Question::new("Where is Oracle Park?");
        assert_eq!(
            mentions(&question.clone().about(["lou_seal"]), &graph),
            pairs(&[("lou_seal", "Lou Seal")])
        );
        let error = Names::default()
            .link(&question.about(["San Fransisco"]), &graph)
            .unwrap_err();
        let Error::NoSuchTopic { near, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(near[0], "San Francisco");
    }

    #[test]
    fn namesakes_are_all_linked_the_busiest_first() {
        let graph = MemoryGraph::from_names([
            ("paris", "in", "Texas"),
            ("Paris", "in", "France"),
            ("Paris", "on", "Seine"),
        ]);
        let links = Names::default()
            .link(&Question::new("PARIS?"), &graph)
            .unwrap();
        let scores: Vec<f32> = links.iter().map(|l| l.score).collect();
        assert_eq!(scores, [0.9, 0.45]);
        assert_eq!(graph.degree(links[0].entity).unwrap(), 2);
    }

    #[test]
    fn a_hundred_kilobytes_are_read_quickly() {
        let text = "is San Francisco 🎉 ".repeat(5000);
        let start = Instant::now();
        let links = Names::default()
            .link(&Question::new(text), &toy::graph())
            .unwrap();
        assert_eq!(links.len(), 1);
        assert!(start.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn edits_are_counted() {
        let chars = |s: &str| s.chars().collect::<Vec<_>>();
        // kitten → sitten → sittin → sitting
        assert_eq!(edits(&chars("kitten"), &chars("sitting")), 3);
        assert_eq!(edits(&[], &chars("ab")), 2);
    }
}
