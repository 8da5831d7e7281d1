//! Candidate subgraphs as sentences: one trail to each topic, said in words.
//!
//! Wang et al., GNN2R, algorithm 1: a sentence begins with the question's wh-word (`what` without
//! one) and tells each trail from the answer to its topic,
//!
//! ```text
//! (e_h, r, e_t) →  " is the R of"   if it is walked against its direction, else " has the R"
//!                  + " LABEL"       if e_t is a topic, else " an entity that"
//! ```
//!
//! trails joined by ` and`. Neither answers nor what lies on the way is named, so many subgraphs share
//! one sentence; they are told once. What differs between subgraphs of one sentence is kept as the
//! trails behind it: all combinations of one such trail for each topic are its subgraphs.
//!
//! Departures: nothing is said of a node without a name between two steps of the same direction
//! (`is the education institution of`); labels of relations are opened up into words; where no
//! candidate is joined to all topics, those that are joined to most of them count; a trail that comes
//! by its own topic names it at the end alone, so that a person is among the children of her parents.

use std::collections::{BTreeMap, HashMap};

use super::trails::{Ground, Trail, TrailConfig};
use crate::words::opened;

/// A sentence and the subgraphs that it tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sentence {
    /// The words.
    pub text: String,
    /// Relations and entities that it mentions.
    pub mentions: usize,
    /// The candidates that it tells of.
    pub answers: Vec<Told>,
}

/// A candidate with its trails, as many as tell the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// The candidate, a local id.
    pub candidate: u32,
    /// Its trails, places in the list of all.
    pub trails: Vec<usize>,
}

const WH_WORDS: [&str; 9] = [
    "who", "what", "which", "where", "when", "whose", "whom", "why", "how",
];

/// The question's wh-word, or `what`.
pub(super) fn wh_word(question: &str) -> &'static str {
    let lower = question.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    words
        .find_map(|word| WH_WORDS.iter().find(|wh| **wh == word))
        .copied()
        .unwrap_or("what")
}

/// What words a neighbourhood has.
pub(super) struct Words {
    /// For each local relation.
    pub(super) relations: Vec<String>,
    /// For each topic, a local id.
    pub(super) topics: BTreeMap<u32, String>,
}

impl Words {
    pub(super) fn relation(label: &str) -> String {
        opened(label)
    }

    /// The trail told from its end to its topic, and how much it mentions.
    fn phrase(&self, trail: &Trail, ground: &Ground<'_>, named: &[bool]) -> (String, usize) {
        let mut text = String::new();
        let mut mentions = 0;
        // a step whose object is still to be said: whether against its direction, and in words
        let mut open: Option<(bool, String)> = None;
        let say = |text: &mut String, (against, words): (bool, String)| match against {
            true => *text += &format!(" is the {words} of"),
            false => *text += &format!(" has the {words}"),
        };
        for (i, &(triple, forward)) in trail.steps.iter().enumerate().rev() {
            let [head, relation, tail] = ground.triple(triple);
            // told from the other end: what leads away from the topic is told against its direction
            let (against, to) = if forward { (true, head) } else { (false, tail) };
            let label = self.relations[relation as usize].as_str();
            mentions += 1;
            open = Some(match open.take() {
                Some((before, words)) if before == against => {
                    let words = match against {
                        true => format!("{label} {words}"),
                        false => format!("{words} {label}"),
                    };
                    (against, words)
                }
                Some(before) => {
                    say(&mut text, before);
                    text += " an entity that";
                    mentions += 1;
                    (against, label.to_owned())
                }
                None => (against, label.to_owned()),
            });
            if named[to as usize] {
                say(&mut text, open.take().expect("it was just set"));
                mentions += 1;
                match self.topics.get(&to) {
                    Some(topic) if i == 0 || to != trail.topic => text += &format!(" {topic}"),
                    _ => text += " an entity that",
                }
            }
        }
        if let Some(open) = open {
            // the topic itself has no name
            say(&mut text, open);
            text += " an entity";
            mentions += 1;
        }
        (text, mentions)
    }
}

/// The sentences of all candidates, in the order of the candidates, and whether these are all.
pub(super) fn sentences(
    question: &str,
    words: &Words,
    ground: &Ground<'_>,
    named: &[bool],
    trails: &[Trail],
    config: &TrailConfig,
) -> (Vec<Sentence>, bool) {
    // candidate → topic → phrase → trails
    type Phrases = BTreeMap<usize, Vec<usize>>;
    let mut phrases: Vec<(String, usize)> = Vec::new();
    let mut number: HashMap<String, usize> = HashMap::new();
    let mut found: BTreeMap<u32, BTreeMap<u32, Phrases>> = BTreeMap::new();
    for (i, trail) in trails.iter().enumerate() {
        let (text, mentions) = words.phrase(trail, ground, named);
        let phrase = *number.entry(text).or_insert_with_key(|text| {
            phrases.push((text.clone(), mentions));
            phrases.len() - 1
        });
        let of_topic = found.entry(trail.end).or_default().entry(trail.topic);
        of_topic.or_default().entry(phrase).or_default().push(i);
    }
    let most = found.values().map(BTreeMap::len).max().unwrap_or(0);
    let wh = wh_word(question);
    let mut all: Vec<Sentence> = Vec::new();
    let mut place: HashMap<Vec<usize>, usize> = HashMap::new();
    let mut complete = true;
    for (&candidate, topics) in found.iter().filter(|(_, topics)| topics.len() == most) {
        let mut combinations: Vec<(Vec<usize>, Vec<usize>)> = vec![(Vec::new(), Vec::new())];
        for of_topic in topics.values() {
            let longer = combinations.iter().flat_map(|(said, trails)| {
                of_topic.iter().map(move |(phrase, more)| {
                    let said = [&said[..], &[*phrase]].concat();
                    (said, [&trails[..], &more[..]].concat())
                })
            });
            let longer: Vec<_> = longer.take(config.max_combinations + 1).collect();
            combinations = longer;
            complete &= combinations.len() <= config.max_combinations;
            combinations.truncate(config.max_combinations);
        }
        for (said, trails) in combinations {
            let at = *place.entry(said).or_insert_with_key(|said| {
                let parts: Vec<&str> = said.iter().map(|p| phrases[*p].0.as_str()).collect();
                all.push(Sentence {
                    text: format!("{wh}{}", parts.join(" and")),
                    mentions: said.iter().map(|p| phrases[*p].1).sum(),
                    answers: Vec::new(),
                });
                all.len() - 1
            });
            all[at].answers.push(Told { candidate, trails });
        }
    }
    (all, complete)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(relations: &[&str], topics: &[(u32, &str)]) -> Words {
        Words {
            relations: relations.iter().map(|r| Words::relation(r)).collect(),
            topics: topics.iter().map(|&(t, label)| (t, label.into())).collect(),
        }
    }

    fn told(
        question: &str,
        words: &Words,
        triples: &[[u32; 3]],
        named: &[bool],
        candidates: &[u32],
        length: usize,
    ) -> Vec<Sentence> {
        let ground = Ground::new(triples, named);
        let config = TrailConfig {
            max_length: length,
            ..TrailConfig::default()
        };
        let topics: Vec<u32> = words.topics.keys().copied().collect();
        let (trails, _) = ground.trails(&topics, candidates, &config);
        let (sentences, complete) = sentences(question, words, &ground, named, &trails, &config);
        assert!(complete);
        sentences
    }

    #[test]
    fn the_example_of_the_paper_is_told_as_algorithm_1_has_it() {
        // Tim Burton (0) birthplace California (1); Batman (2) director Tim Burton; Batman cast
        // member Michael Keaton (3)
        let words = words(
            &["birthplace", "director", "cast member"],
            &[(1, "California"), (3, "Michael Keaton")],
        );
        let triples = [[0, 0, 1], [2, 1, 0], [2, 2, 3]];
        let question = "Who was born in California and directed a movie starring Michael Keaton?";
        let all = told(question, &words, &triples, &[true; 4], &[0], 2);
        assert_eq!(all.len(), 1);
        assert_eq!(
            all[0].text,
            "who has the birthplace California and is the director of an entity that has the cast \
             member Michael Keaton"
        );
        // three relations, two topics, one entity
        assert_eq!(all[0].mentions, 6);
        assert_eq!(all[0].answers[0].trails.len(), 2);
    }

    #[test]
    fn subgraphs_that_say_the_same_share_one_sentence() {
        // Ann (0) -child-> 1, 2;  1 -city-> 3;  2 -city-> 3 and 4
        let words = words(&["child", "city"], &[(0, "Ann")]);
        let triples = [[0, 0, 1], [0, 0, 2], [1, 1, 3], [2, 1, 3], [2, 1, 4]];
        let all = told(
            "cities of Ann's children",
            &words,
            &triples,
            &[true; 5],
            &[3, 4],
            2,
        );
        assert_eq!(all.len(), 1);
        assert_eq!(
            all[0].text,
            "what is the city of an entity that is the child of Ann"
        );
        let trails: Vec<usize> = all[0].answers.iter().map(|a| a.trails.len()).collect();
        assert_eq!(trails, [2, 1]);
    }

    #[test]
    fn unnamed_nodes_are_passed_through() {
        // Tom (0) education (1, no name); its institution is MIT (2), its degree PhD (3)
        let words = words(&["education", "institution", "degree"], &[(0, "Tom")]);
        let triples = [[0, 0, 1], [1, 1, 2], [1, 2, 3]];
        let named = [true, false, true, true];
        let all = told("Where did Tom study?", &words, &triples, &named, &[2], 1);
        assert_eq!(all[0].text, "where is the education institution of Tom");
        assert_eq!(all[0].mentions, 3);
        // directions that differ are told apart: who shares a degree's record with MIT
        let other = super::Words {
            relations: words.relations.clone(),
            topics: [(2, "MIT".to_owned())].into(),
        };
        let all = told("?", &other, &triples, &named, &[3], 1);
        assert_eq!(
            all[0].text,
            "what is the degree of an entity that has the institution MIT"
        );
    }

    #[test]
    fn candidates_joined_to_most_topics_count() {
        // 2 is joined to both topics, 3 to one
        let words = words(&["r", "s"], &[(0, "A"), (1, "B")]);
        let triples = [[0, 0, 2], [1, 1, 2], [0, 0, 3]];
        let all = told("which?", &words, &triples, &[true; 4], &[2, 3], 1);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].text, "which is the r of A and is the s of B");
        assert_eq!(wh_word("Tell me whom she met"), "whom");
        assert_eq!(wh_word("somewhat"), "what");
    }
}
