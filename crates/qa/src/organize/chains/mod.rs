//! Evidence as chains from the topics: `a -> [r] -> b -> [s] -> c; d; e`.
//!
//! "Weak-to-Strong GraphRAG" (ReG), section 4.2, Algorithm 1 and appendix E.4. Of the selected
//! triples Ĝ, those that touch a topic begin chains, the others continue them, breadth first:
//!
//! ```text
//! src  = { (h, r, t) ∈ Ĝ : h or t a topic }         tgt = Ĝ \ src
//! C·τ  is a chain if C is one, τ ∈ tgt begins where C ends, (topic, end of τ) is new, |C| < L
//! s(C) = (Π_{τ ∈ C} s(τ))^(1/|C|)
//! ```
//!
//! from topics along the triples, and against them (the topic is then last). Then chains with the
//! same topic and relations become one with all their ends, and chains of different topics with
//! common ends stand next to each other, cut to these (`chains/merge.rs`). The best chains come
//! first. L is `max_length`, 0 for none; the paper has 2, and none for CWQ.
//!
//! A retriever that has plans knows its paths: chains are then these, in their order.
//!
//! Departures: middle entities are listed as ends are, for chains that are merged may pass through
//! different ones; a node without a name is `?1`, several in one place are `?`; a chain that longer
//! ones begin with, whole, is not written again. `turns` lets a chain go along some triples and
//! against others, written `a <- [r] <- b`: where relations are stored one way only, few chains have
//! a second step otherwise. `leftovers` writes triples that are on no chain behind the others.
//! What exceeds `tokens`, by estimate, is left out from the weakest end.

mod expand;
mod merge;

use std::fmt::Write;

use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};
use wherefore_graph::{EntityId, Graph, Hop, RelationId};

use self::expand::{Way, along_plans, expand};
use self::merge::{merge_answers, merge_entities, sort};
use super::{Context, ContextLine, Form, Organizer, one_line};
use crate::error::{Error, Result};
use crate::question::Question;
use crate::select::Selection;

pub use expand::Path;
pub use merge::Chain;

/// Bytes of a token, on the low side: names and dotted relations have few.
const TOKEN_BYTES: usize = 3;

/// Settings of [`Chains`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChainsConfig {
    /// L: steps of the longest chain; 0 for any number.
    pub max_length: usize,
    /// Whether a chain may go along some triples and against others (not in the paper).
    pub turns: bool,
    /// Whether triples on no chain are written behind the others (not in the paper).
    pub leftovers: bool,
    /// Tokens of all lines, at most, by estimate; 0 for any number.
    pub tokens: usize,
    /// Whether each chain is shown with its score.
    pub confidence: bool,
}

impl Default for ChainsConfig {
    fn default() -> Self {
        Self {
            max_length: 2,
            turns: false,
            leftovers: false,
            tokens: 4096,
            confidence: false,
        }
    }
}

impl ChainsConfig {
    pub(crate) fn check(&self) -> Result<()> {
        if self.max_length > 16 {
            return Err(Error::Config(
                "`organize.max_length` must be from 0 to 16; 0 means any length".into(),
            ));
        }
        Ok(())
    }
}

/// Writes the evidence as chains.
#[derive(Clone, Debug, Default)]
pub struct Chains {
    config: ChainsConfig,
}

impl Chains {
    /// An organizer with these settings.
    pub fn new(config: ChainsConfig) -> Self {
        Self { config }
    }

    /// The chains of a selection, best first, those with common ends together.
    pub fn chains(&self, selection: &Selection) -> Vec<Vec<Chain>> {
        let topics = &selection.topics;
        if !selection.plans.is_empty() {
            return merge_entities(merge_answers(along_plans(selection)), topics);
        }
        let ways: &[Way] = match self.config.turns {
            true => &[Way::Either],
            false => &[Way::Along, Way::Against],
        };
        let mut paths = Vec::new();
        for way in ways {
            let max_length = self.config.max_length;
            paths.extend(expand(&selection.triples, topics, max_length, *way));
        }
        let mut chains = merge_answers(paths);
        sort(&mut chains);
        merge_entities(chains, topics)
    }
}

impl Organizer for Chains {
    fn organize(
        &self,
        _question: &Question,
        selection: &Selection,
        graph: &dyn Graph,
    ) -> Result<Context> {
        let groups = self.chains(selection);
        let mut writer = Writer {
            graph,
            unnamed: HashMap::new(),
            confidence: self.config.confidence,
        };
        let mut page = Page {
            room: match self.config.tokens {
                0 => usize::MAX,
                tokens => tokens.saturating_mul(TOKEN_BYTES),
            },
            lines: Vec::new(),
            written: HashSet::new(),
        };
        {
            let longer = Longer::of(&groups);
            for chain in groups.iter().flatten() {
                if !longer.tells(chain) && !page.add(chain, &mut writer)? {
                    break;
                }
            }
        }
        if self.config.leftovers {
            let on_chains: HashSet<usize> = (groups.iter().flatten())
                .flat_map(|chain| &chain.paths)
                .flat_map(|path| path.triples.iter().copied())
                .collect();
            for (i, (triple, score)) in selection.triples.iter().enumerate() {
                if on_chains.contains(&i) {
                    continue;
                }
                let alone = Path {
                    topic: triple.head,
                    hops: vec![Hop {
                        relation: triple.relation,
                        forward: true,
                    }],
                    nodes: vec![triple.tail],
                    triples: vec![i],
                    score: *score,
                };
                if !page.add(&merge_answers(vec![alone])[0], &mut writer)? {
                    break;
                }
            }
        }
        Ok(Context {
            selection: selection.clone(),
            lines: page.lines,
            with_confidence: self.config.confidence,
            form: Form::Chains,
            chains: groups,
        })
    }
}

/// What longer chains pass through: by topic and first relations, the entities behind these.
struct Longer<'a>(HashMap<(EntityId, &'a [Hop]), HashSet<EntityId>>);

impl<'a> Longer<'a> {
    fn of(groups: &'a [Vec<Chain>]) -> Self {
        let mut passed: HashMap<(EntityId, &[Hop]), HashSet<EntityId>> = HashMap::new();
        for chain in groups.iter().flatten() {
            for steps in 1..chain.hops.len() {
                let nodes = chain.paths.iter().map(|path| path.nodes[steps - 1]);
                let key = (chain.topic, &chain.hops[..steps]);
                passed.entry(key).or_default().extend(nodes);
            }
        }
        Self(passed)
    }

    /// Whether longer chains begin with this one, whole.
    fn tells(&self, chain: &Chain) -> bool {
        let passed = self.0.get(&(chain.topic, chain.hops.as_slice()));
        passed.is_some_and(|passed| chain.ends().all(|end| passed.contains(&end)))
    }
}

/// Lines within their room.
struct Page {
    room: usize,
    lines: Vec<ContextLine>,
    written: HashSet<String>,
}

impl Page {
    /// Writes a chain, as many of its ends as there is room for. False if there is no more room.
    fn add(&mut self, chain: &Chain, writer: &mut Writer<'_>) -> Result<bool> {
        let mut paths = chain.paths.as_slice();
        let mut text = writer.text(chain, paths)?;
        while text.len() >= self.room && paths.len() > 1 {
            // the length grows about as the number of ends does
            let share = paths.len() * self.room / text.len();
            paths = &paths[..share.clamp(1, paths.len() - 1)];
            text = writer.text(chain, paths)?;
        }
        if text.len() >= self.room {
            return Ok(false);
        }
        let whole = paths.len() == chain.paths.len();
        // a chain between two topics is found from either
        if self.written.insert(text.clone()) {
            self.room -= text.len() + 1;
            let mut seen = HashSet::new();
            let triples = paths.iter().flat_map(|p| p.triples.iter().copied());
            self.lines.push(ContextLine {
                text,
                path: triples.filter(|triple| seen.insert(*triple)).collect(),
                score: paths.iter().map(|p| p.score).fold(0.0, f32::max),
            });
        }
        Ok(whole)
    }
}

/// Writes chains; the same node without a name always the same way.
struct Writer<'a> {
    graph: &'a dyn Graph,
    unnamed: HashMap<EntityId, usize>,
    confidence: bool,
}

impl Writer<'_> {
    /// Some paths of a chain, from left to right as the triples point where they all point one way.
    fn text(&mut self, chain: &Chain, paths: &[Path]) -> Result<String> {
        let mut places = vec![self.names(&[chain.topic])?];
        for step in 0..chain.hops.len() {
            let nodes: Vec<EntityId> = paths.iter().map(|path| path.nodes[step]).collect();
            places.push(self.names(&nodes)?);
        }
        let left_out = chain.paths.len() - paths.len();
        if left_out > 0 {
            let last = places.last_mut().expect("a chain has an end");
            let _ = write!(last, "; and {left_out} more");
        }
        let mut text;
        if chain.hops.iter().all(|hop| !hop.forward) {
            text = places.pop().expect("a chain has an end");
            for (hop, place) in chain.hops.iter().zip(&places).rev() {
                let relation = self.relation(hop.relation)?;
                let _ = write!(text, " -> [{relation}] -> {place}");
            }
        } else {
            text = std::mem::take(&mut places[0]);
            for (hop, place) in chain.hops.iter().zip(&places[1..]) {
                let relation = self.relation(hop.relation)?;
                let arrow = if hop.forward { "->" } else { "<-" };
                let _ = write!(text, " {arrow} [{relation}] {arrow} {place}");
            }
        }
        if self.confidence {
            let score = paths.iter().map(|p| p.score).fold(0.0, f32::max);
            let _ = write!(text, " [confidence {score:.2}]");
        }
        Ok(text)
    }

    fn relation(&self, relation: RelationId) -> Result<String> {
        Ok(one_line(&self.graph.relation_label(relation)?))
    }

    /// The entities of one place, each once.
    fn names(&mut self, nodes: &[EntityId]) -> Result<String> {
        let mut seen = HashSet::with_capacity(nodes.len());
        let mut names: Vec<String> = Vec::new();
        let mut without = Vec::new();
        for &node in nodes {
            if !seen.insert(node) {
                continue;
            }
            if self.graph.is_named(node)? {
                names.push(plain(&self.graph.entity_label(node)?));
            } else {
                without.push(node);
            }
        }
        match without[..] {
            [] => {}
            [one] => {
                let next = self.unnamed.len() + 1;
                let number = self.unnamed.entry(one).or_insert(next);
                names.push(format!("?{number}"));
            }
            // which of them is joined to what can no longer be told
            _ => names.push("?".into()),
        }
        Ok(names.join("; "))
    }
}

/// A label without what could be taken for the marks of a chain.
fn plain(label: &str) -> String {
    one_line(label)
        .replace("->", "→")
        .replace("<-", "←")
        .replace(';', ",")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wherefore_graph::{MemoryGraph, NameMatch};

    use super::*;
    use crate::retrieve::Plan;

    fn entity(graph: &MemoryGraph, name: &str) -> EntityId {
        graph.entities_named(name, NameMatch::Exact).unwrap()[0]
    }

    fn selection(graph: &MemoryGraph, topics: &[&str], scores: &[f32]) -> Selection {
        let scores = scores.iter().copied().chain(std::iter::repeat(0.5));
        Selection {
            triples: graph.triples().zip(scores).collect(),
            topics: topics.iter().map(|name| entity(graph, name)).collect(),
            ..Selection::default()
        }
    }

    fn lines(config: ChainsConfig, selection: &Selection, graph: &MemoryGraph) -> Vec<String> {
        let context = Chains::new(config)
            .organize(&Question::new("?"), selection, graph)
            .unwrap();
        context.lines.into_iter().map(|l| l.text).collect()
    }

    fn lou_seal() -> MemoryGraph {
        MemoryGraph::from_names([
            ("Lou Seal", "sports.mascot.team", "San Francisco Giants"),
            (
                "San Francisco Giants",
                "sports.sports_team.championships",
                "2012 World Series",
            ),
            (
                "San Francisco Giants",
                "sports.sports_team.championships",
                "2014 World Series",
            ),
            (
                "San Francisco Giants",
                "sports.sports_team.championships",
                "2010 World Series",
            ),
        ])
    }

    /// But for `_`, which labels show as a space.
    #[test]
    fn the_example_of_the_paper_reads_as_printed() {
        let graph = lou_seal();
        let mut selection = selection(&graph, &["Lou Seal"], &[]);
        let score = |t: &wherefore_graph::Triple| match &*graph.entity_label(t.tail).unwrap() {
            "2012 World Series" => 0.9,
            "2014 World Series" => 0.8,
            "2010 World Series" => 0.7,
            _ => 0.6,
        };
        for (triple, s) in &mut selection.triples {
            *s = score(triple);
        }
        assert_eq!(
            lines(ChainsConfig::default(), &selection, &graph),
            [
                "Lou Seal -> [sports.mascot.team] -> San Francisco Giants -> \
                 [sports.sports team.championships] -> 2012 World Series; 2014 World Series; \
                 2010 World Series"
            ]
        );
        // √(0.6 · 0.9) = 0.735
        let config = ChainsConfig {
            confidence: true,
            ..ChainsConfig::default()
        };
        assert!(lines(config, &selection, &graph)[0].ends_with(" [confidence 0.73]"));
    }

    #[test]
    fn topics_stand_first_or_last_as_the_triples_point() {
        let graph = MemoryGraph::from_names([
            ("Heat", "starred_actors", "De Niro"),
            ("Heat", "starred_actors", "Pacino"),
            ("Ronin", "starred_actors", "De Niro"),
            ("Heat", "directed_by", "Mann"),
        ]);
        let of = selection(&graph, &["De Niro"], &[]);
        // against the arrows there is one step; the director lies behind a turn
        assert_eq!(
            lines(ChainsConfig::default(), &of, &graph),
            ["Heat; Ronin -> [starred actors] -> De Niro"]
        );
        let turns = ChainsConfig {
            turns: true,
            ..ChainsConfig::default()
        };
        let mut turned = lines(turns, &of, &graph);
        turned.sort();
        assert_eq!(
            turned,
            [
                "De Niro <- [starred actors] <- Heat -> [directed by] -> Mann",
                "De Niro <- [starred actors] <- Heat -> [starred actors] -> Pacino",
                "Heat; Ronin -> [starred actors] -> De Niro",
            ]
        );
        let left = ChainsConfig {
            leftovers: true,
            ..ChainsConfig::default()
        };
        let all = lines(left, &of, &graph);
        assert_eq!(all.len(), 3);
        assert!(all.contains(&"Heat -> [directed by] -> Mann".to_owned()));
    }

    #[test]
    fn chains_of_two_topics_are_cut_to_their_common_ends() {
        let graph = MemoryGraph::from_names([
            ("France", "borders", "Spain"),
            ("France", "borders", "Italy"),
            ("France", "borders", "Belgium"),
            ("Romance", "spoken in", "Spain"),
            ("Romance", "spoken in", "Italy"),
            ("Romance", "spoken in", "Romania"),
            ("France", "capital", "Paris"),
        ]);
        let selection = selection(&graph, &["France", "Romance"], &[]);
        let lines = lines(ChainsConfig::default(), &selection, &graph);
        assert_eq!(lines.len(), 3, "{lines:?}");
        let at = lines
            .iter()
            .position(|l| l.starts_with("France -> [borders]"));
        let together: Vec<&str> = lines[at.unwrap()..].iter().map(String::as_str).collect();
        assert!(together[0].contains("Italy") && together[0].contains("Spain"));
        assert!(!together[0].contains("Belgium"), "{lines:?}");
        assert!(together[1].starts_with("Romance -> [spoken in] -> "));
        assert!(!together[1].contains("Romania"));
    }

    #[test]
    fn unnamed_nodes_and_odd_labels_are_no_marks_of_a_chain() {
        let graph = MemoryGraph::from_names([
            ("a", "r", "m.0x"),
            ("m.0x", "s", "b -> [t] -> c; d"),
            ("a", "u", "m.0y"),
            ("a", "u", "m.0z"),
            ("m.0y", "v", "e"),
            ("m.0z", "v", "f"),
        ]);
        let mut written = lines(
            ChainsConfig::default(),
            &selection(&graph, &["a"], &[]),
            &graph,
        );
        written.sort();
        assert_eq!(
            written,
            [
                "a -> [r] -> ?1 -> [s] -> b → [t] → c, d",
                "a -> [u] -> ? -> [v] -> e; f"
            ]
        );
    }

    #[test]
    fn plans_keep_their_order() {
        let graph = lou_seal();
        let mut selection = selection(&graph, &["Lou Seal"], &[]);
        let hop = |name: &str| Hop {
            relation: graph.relation_named(name).unwrap().unwrap(),
            forward: true,
        };
        let plan = |hops: &[&str], score| Plan {
            topic: entity(&graph, "Lou Seal"),
            hops: hops.iter().map(|name| hop(name)).collect(),
            score,
        };
        selection.plans = vec![
            plan(&["sports.mascot.team"], 0.3),
            plan(
                &["sports.mascot.team", "sports.sports_team.championships"],
                0.2,
            ),
        ];
        let organizer = Chains::default();
        let chains: Vec<usize> = (organizer.chains(&selection).iter().flatten())
            .map(|chain| chain.hops.len())
            .collect();
        assert_eq!(chains, [1, 2]);
        // what the second tells is not written twice
        assert_eq!(lines(ChainsConfig::default(), &selection, &graph).len(), 1);
    }

    #[test]
    fn what_exceeds_the_tokens_goes_from_the_weakest_end() {
        let names: Vec<String> = (0..200).map(|i| format!("entity number {i}")).collect();
        let graph = MemoryGraph::from_names(names.iter().map(|n| ("hub", "has", n.as_str())));
        let selection = selection(&graph, &["hub"], &[]);
        let config = ChainsConfig {
            tokens: 100,
            ..ChainsConfig::default()
        };
        let cut = lines(config, &selection, &graph);
        assert_eq!(cut.len(), 1);
        assert!(cut[0].len() < 300 && cut[0].len() > 150, "{}", cut[0].len());
        assert!(cut[0].ends_with(" more"), "{}", cut[0]);
    }

    proptest! {
        /// Every triple that lies within L steps of a topic, one way, is on a chain, and every line
        /// leads back to the triples that it tells.
        #[test]
        fn nothing_near_is_lost_and_every_line_is_of_its_triples(
            edges in prop::collection::btree_set((0u32..6, 0u32..2, 0u32..6), 1..12),
        ) {
            let name = |i: u32| format!("e{i}");
            let named: Vec<(String, String, String)> = edges
                .iter()
                .map(|&(h, r, t)| (name(h), format!("r{r}"), name(t)))
                .collect();
            let graph = MemoryGraph::from_names(named);
            let Ok(found) = graph.entities_named("e0", NameMatch::Exact) else { return Ok(()) };
            let Some(&topic) = found.first() else { return Ok(()) };
            let selection = Selection {
                triples: graph.triples().map(|t| (t, 0.5)).collect(),
                topics: vec![topic],
                ..Selection::default()
            };
            let config = ChainsConfig { tokens: 0, ..ChainsConfig::default() };
            let context = Chains::new(config).organize(&Question::new("?"), &selection, &graph).unwrap();
            let told: HashSet<usize> = context.lines.iter().flat_map(|l| l.path.clone()).collect();
            for (i, (t, _)) in selection.triples.iter().enumerate() {
                if t.head == topic || t.tail == topic {
                    prop_assert!(told.contains(&i), "{:?}", context.lines);
                }
            }
            for line in &context.lines {
                for &i in &line.path {
                    let t = selection.triples[i].0;
                    for end in [t.head, t.tail] {
                        prop_assert!(line.text.contains(&*graph.entity_label(end).unwrap()));
                    }
                    prop_assert!(line.text.contains(&*graph.relation_label(t.relation).unwrap()));
                }
            }
        }
    }
}
