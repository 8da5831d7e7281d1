//! Links the words of a question that are somebody's name, or part of it, or nearly it.
//!
//! ```text
//! 1. whole names     the longest spans, none overlapping            spans.rs
//! 2. misspelt names  as 1, an unknown word read as one spelt alike, where 1 found nothing sure
//! 3. parts of names  the longest runs of words that some name holds lexicon.rs
//! 4. longer names    of 1 to 3, names that hold all their words, as further candidates
//! ```
//!
//! Each mention's candidates are ranked by `rank.rs`. Given topics win: exactly as written first,
//! then normalised. A topic that the graph does not have is an error, for the asker was sure of
//! it; an unlinked question is not.
//!
//! A span of stop words alone must be written exactly like the name (`The Who`). A single
//! lower-case word is a weak mention: it ranks below the others, and is linked only where nothing
//! better was found. UTF-8 that was read as Windows-1252 is read again; such mentions have no span.

use std::borrow::Cow;
use std::collections::HashSet;

use wherefore_graph::Graph;

use super::lookup::{Lookup, NamesConfig};
use super::mentions::Reading;
use super::rank::found;
use super::spans::words;
use super::topics::{NEAR_NAMES, near, surely_named};
use super::{Candidate, Link, Linker, MatchKind, Mention};
use crate::at_hand::with_rows_at_hand;
use crate::error::Result;
use crate::question::Question;
use crate::words::repaired;

/// Of a mention's candidates, those are linked that score this share of its best one.
const CLOSE: f32 = 0.9;

/// Links by name.
#[derive(Debug)]
pub struct Names {
    lookup: Lookup,
}

impl Names {
    /// A linker with these settings; opens the encoder and reads the alias file.
    pub fn new(config: NamesConfig) -> Result<Self> {
        Lookup::new(config).map(|lookup| Self { lookup })
    }

    fn topics(&self, question: &Question, graph: &dyn Graph) -> Result<Vec<Mention>> {
        let ranker = self.lookup.ranker(&question.text, graph)?;
        let mut mentions = Vec::new();
        for name in &question.topics {
            let named = surely_named(name, graph)?;
            let mut candidates = ranker.rank(found(named, MatchKind::Given, 1.0), 1.0)?;
            let top = candidates.first().map_or(1.0, |c| c.score);
            // what was given is not in doubt, only which of its namesakes was meant
            for Candidate { score, .. } in &mut candidates {
                *score /= top;
            }
            mentions.push(Mention {
                text: name.clone(),
                span: None,
                candidates,
            });
        }
        Ok(mentions)
    }

    fn mentions_over(&self, question: &Question, graph: &dyn Graph) -> Result<Vec<Mention>> {
        let mut mentions = if question.topics.is_empty() {
            let text = repaired(&question.text);
            let reading = Reading {
                words: words(&text),
                text: &text,
                graph,
                lookup: &self.lookup,
            };
            let mut mentions = reading.mentions()?;
            if matches!(text, Cow::Owned(_)) {
                // spans are of the text that was asked, and this is another
                mentions.iter_mut().for_each(|m| m.span = None);
            }
            mentions
        } else {
            self.topics(question, graph)?
        };
        mentions.sort_by(|a, b| best(b).total_cmp(&best(a)));
        Ok(mentions)
    }
}

impl Linker for Names {
    fn mentions(&self, question: &Question, graph: &dyn Graph) -> Result<Vec<Mention>> {
        with_rows_at_hand(graph, |graph| self.mentions_over(question, graph))
    }

    fn link(&self, question: &Question, graph: &dyn Graph) -> Result<Vec<Link>> {
        let mentions = self.mentions(question, graph)?;
        let top = mentions.first().map_or(0.0, best);
        let mut links: Vec<(usize, Link)> = Vec::new();
        for mention in &mentions {
            for (place, candidate) in mention.candidates.iter().enumerate() {
                let close = candidate.score >= CLOSE * best(mention);
                if candidate.how == MatchKind::Given
                    || close && candidate.score >= self.lookup.config.keep * top
                {
                    links.push((
                        place,
                        Link {
                            entity: candidate.entity,
                            mention: mention.text.clone(),
                            span: mention.span,
                            score: candidate.score,
                        },
                    ));
                }
            }
        }
        // every mention's first candidate before any mention's second
        links.sort_by(|a, b| (a.0.cmp(&b.0)).then(b.1.score.total_cmp(&a.1.score)));
        let mut seen = HashSet::new();
        let mut links: Vec<Link> = links.into_iter().map(|(_, link)| link).collect();
        links.retain(|link| seen.insert(link.entity));
        // a given topic is never dropped
        links.truncate(self.lookup.config.max_links.max(question.topics.len()));
        links.sort_by(|a, b| b.score.total_cmp(&a.score));
        Ok(links)
    }

    fn nearest(&self, question: &Question, graph: &dyn Graph) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for word in words(&question.text) {
            if !word.stop && word.text.chars().count() > 2 && names.len() < NEAR_NAMES {
                names.extend(near(&word.text, 3, graph)?.into_iter().take(1));
            }
        }
        names.dedup();
        Ok(names)
    }
}

fn best(mention: &Mention) -> f32 {
    mention.candidates.first().map_or(0.0, |c| c.score)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use wherefore_graph::{Adjacency, MemoryGraph, toy};

    use super::*;
    use crate::error::Error;

    fn linker() -> Names {
        Names::new(NamesConfig::default()).unwrap()
    }

    fn links(question: &Question, graph: &dyn Graph) -> Vec<(String, String)> {
        linker()
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
            links(&question, &toy::graph())[0],
            pairs(&[("san francisco giants", "San Francisco Giants")])[0]
        );
    }

    #[test]
    fn possessives_control_characters_and_emoji_do_not_hide_a_name() {
        let question = Question::new("🎉\u{0}Lou\tSeal’s\u{1b}[31m team?");
        assert_eq!(
            links(&question, &toy::graph())[0],
            pairs(&[("Lou\tSeal", "Lou Seal")])[0]
        );
    }

    #[test]
    fn stop_words_link_only_when_written_exactly_like_the_name() {
        let graph = MemoryGraph::from_names([("The Who", "is", "it"), ("Who", "plays", "guitar")]);
        let link = |text: &str| links(&Question::new(text), &graph);
        assert_eq!(link("who is it"), []);
        assert_eq!(link("who is in The Who"), pairs(&[("The Who", "The Who")]));
        assert_eq!(link("is the who it"), []);
    }

    #[test]
    fn a_lower_case_word_links_only_where_nothing_better_does() {
        let graph = MemoryGraph::from_names([("City", "of", "Oz"), ("Oz", "has", "Dorothy")]);
        let link = |text: &str| links(&Question::new(text), &graph);
        assert_eq!(link("which city is Oz"), pairs(&[("Oz", "Oz")]));
        assert_eq!(link("which city"), pairs(&[("city", "City")]));
        assert_eq!(link("which cities"), pairs(&[("cities", "City")]));
    }

    #[test]
    fn parts_and_misspellings_of_names_are_linked() {
        let graph = toy::graph();
        for (text, name) in [
            ("who is the mascot of the giants", "San Francisco Giants"),
            ("who plays in San Fransisco", "San Francisco"),
            ("how large is oracel park", "Oracle Park"),
        ] {
            let found = links(&Question::new(text), &graph);
            assert_eq!(found[0].1, name, "{text}: {found:?}");
        }
    }

    #[test]
    fn misread_letters_are_no_obstacle() {
        let graph = MemoryGraph::from_names([("Václav Klaus", "born in", "Prague")]);
        assert_eq!(
            links(&Question::new("where was VÃ¡clav Klaus born"), &graph),
            pairs(&[("Václav Klaus", "Václav Klaus")])
        );
    }

    #[test]
    fn given_topics_win_and_unknown_ones_are_an_error_with_near_names() {
        let graph = toy::graph();
        let question = Question::new("Where is Oracle Park?");
        assert_eq!(
            links(&question.clone().about(["lou_seal"]), &graph),
            pairs(&[("lou_seal", "Lou Seal")])
        );
        let error = linker()
            .link(&question.about(["San Fransisco"]), &graph)
            .unwrap_err();
        let Error::NoSuchTopic { near, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(near[0], "San Francisco");
    }

    #[test]
    fn namesakes_are_all_candidates_the_busiest_first() {
        let graph = MemoryGraph::from_names([
            ("paris", "in", "Texas"),
            ("Paris", "in", "France"),
            ("Paris", "on", "Seine"),
        ]);
        let found = linker().link(&Question::new("PARIS?"), &graph).unwrap();
        assert_eq!(found.len(), 2);
        assert!(found[0].score > found[1].score);
        assert_eq!(graph.degree(found[0].entity).unwrap(), 2);
    }

    #[test]
    fn aliases_of_the_user_win_over_names() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "oracle park\tLou Seal\ngiants\t-\n").unwrap();
        let linker = Names::new(NamesConfig {
            aliases: Some(file.path().to_owned()),
            ..NamesConfig::default()
        })
        .unwrap();
        let graph = toy::graph();
        let link = |text: &str| linker.link(&Question::new(text), &graph).unwrap();
        let found = link("Where is Oracle Park");
        assert_eq!(graph.entity_label(found[0].entity).unwrap(), "Lou Seal");
        assert_eq!(found.len(), 1);
        assert!(link("who are the giants").is_empty());
    }

    #[test]
    fn an_unlinked_question_is_told_the_nearest_names() {
        let near = linker()
            .nearest(&Question::new("what about Oraxxx?"), &toy::graph())
            .unwrap();
        assert_eq!(near, ["Oracle Park"]);
    }

    #[test]
    fn eight_kilobytes_are_read_quickly() {
        let text = "is San Francisco 🎉 qwertzuiop ".repeat(250);
        let start = Instant::now();
        let found = linker().link(&Question::new(text), &toy::graph()).unwrap();
        assert!(!found.is_empty());
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}
