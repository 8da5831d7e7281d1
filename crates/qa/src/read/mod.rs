//! Reads a question as a logical form, with no network: names, classes, relations and operators
//! are found in its words, and typed rules put them together.

mod anchors;
mod arena;
mod arithmetic;
mod asked;
mod asked_for;
mod cat;
mod chart;
mod close;
mod counted;
mod dates;
mod far;
mod features;
mod fit;
mod follow;
mod groups;
mod joins;
mod kept;
mod kinds;
mod known;
mod lang;
mod learn;
mod matched;
mod measures;
mod mediators;
mod near;
mod nouns;
mod numbers;
mod operators;
pub mod overview;
mod phrases;
mod rules;
mod schema;
mod search;
mod tokens;
mod understood;
mod unnamed;
mod vocabulary;
mod ways;
mod write;

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wherefore_graph::{EntityId, Error as GraphError, Graph};

use self::arena::{Meaning, Node};
use self::features::Feature;
pub use self::features::Weights;
pub use self::fit::{Candidate, Example, Fitting, fit};
pub use self::follow::may_follow;
pub(crate) use self::follow::{Following, follow};
pub use self::kept::LearnedPhrases;
pub use self::known::Known;
use self::lang::{Op, english};
pub use self::learn::{Asked, Learning};
use self::matched::LIKELY;
pub use self::phrases::step_in_words;
use self::schema::Schema;
pub(crate) use self::schema::by_relation;
use self::search::{Reading, Search};
use self::tokens::{MAX_SLOTS, Phrase, Words};
pub(crate) use self::understood::Understood;
use self::vocabulary::Kind;
use crate::at_hand::with_rows_at_hand;
use crate::error::{Error, Result};
use crate::link::Link;
use crate::logic::Form;
use crate::question::Question;

/// Ways that no word says are answers from this fit to the whole question on, where things have
/// classes.
const WEAK: f32 = 3.5;

/// Has a service count what the graph holds, so that the first question need not wait; what it
/// counted is kept beside its label index, with the date.
pub fn count_schema(graph: &dyn Graph) -> Result<()> {
    Schema::new(graph, english()).map(|_| ())
}

/// What a reading comes to, as far as the search knows.
#[derive(Clone, Debug, PartialEq)]
pub enum Came {
    /// These.
    Entities(Vec<EntityId>),
    /// A number, where there is one.
    Number(Option<f64>),
    /// Yes or no.
    Truth(bool),
    /// Too much to tell before it is run.
    Unknown,
}

/// A reading of a question.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The form.
    pub form: Form,
    /// How well it fits; only to be compared with others of the same question.
    pub score: f32,
    /// What it comes to.
    pub came: Came,
    /// Its place among the question's readings, counted from 1.
    pub number: usize,
    /// Words that say something and that no part of it accounts for.
    pub unused: Vec<String>,
    /// Words of little meaning that no part of it accounts for.
    pub passed_over: Vec<String>,
    /// What the words stand for, in their order.
    pub(crate) understood: Vec<Understood>,
    /// What it was weighed by.
    pub features: Vec<f32>,
    /// The phrases of the steps that it takes, by their numbers.
    pub phrases: Vec<u32>,
    /// The vector of the question, names marked.
    pub question: Arc<[f32]>,
}

impl Proposal {
    /// A form that no words were weighed for.
    fn of(form: Form, came: Came) -> Self {
        Self {
            form,
            score: 0.0,
            came,
            number: 1,
            unused: Vec::new(),
            passed_over: Vec::new(),
            understood: Vec::new(),
            features: vec![0.0; features::NAMES.len()],
            phrases: Vec::new(),
            question: Arc::from([]),
        }
    }

    /// Whether it comes to an answer: not to nothing, and not to the names of the question.
    pub fn is_answer(&self) -> bool {
        let nothing = match &self.came {
            Came::Entities(all) => all.is_empty(),
            Came::Number(number) => number.is_none(),
            Came::Truth(_) | Came::Unknown => false,
        };
        !self.names_only() && !nothing
    }

    /// Whether it was found by comparing the whole question with a way, and by no word of its own.
    pub fn is_matched(&self) -> bool {
        self.features[Feature::matched as usize] > 0.0
    }

    /// Whether a noun stands for things of which the graph does not say what they are.
    pub fn is_grouped(&self) -> bool {
        self.features[Feature::class as usize] + self.features[Feature::noun_fits as usize] > 0.0
    }

    /// Whether a word stands for a relation or class that is called otherwise.
    pub fn is_said_otherwise(&self) -> bool {
        let of = |feature: Feature| self.features[feature as usize];
        of(Feature::relation_said) + of(Feature::class_said) > 0.0
    }

    /// How far words that the whole question was compared with name other relations than the ones it
    /// follows: 1 where one of them names just one.
    pub fn against(&self) -> f32 {
        self.features[Feature::matched_against as usize].min(1.0)
    }

    /// Whether it is nothing but names of the question, or what several of them have to do with each
    /// other though no word says so.
    pub fn names_only(&self) -> bool {
        let of = |feature: Feature| self.features[feature as usize];
        let is_unsaid = of(Feature::name) > 1.0
            && of(Feature::matched) > 1.0
            && of(Feature::and) > 0.0
            && of(Feature::relation) + of(Feature::class) + of(Feature::unnamed) == 0.0;
        is_unsaid || is_names(&self.form)
    }
}

fn is_names(form: &Form) -> bool {
    match form {
        Form::Name(_) | Form::Constant(_) => true,
        Form::Or(all) => all.iter().all(is_names),
        Form::Any(of) => is_names(of),
        _ => false,
    }
}

/// Whether a question asks for more than what relations lead to: a number, an extreme, a comparison,
/// an order, or what is left out.
pub(crate) fn computes(question: &str) -> bool {
    let asks = |op: Op| {
        matches!(
            op,
            Op::Count
                | Op::Aggregate(_)
                | Op::Not
                | Op::Except
                | Op::Difference
                | Op::Percentage
                | Op::Best(..)
                | Op::Extreme(_)
                | Op::More(..)
                | Op::Compare(_)
                | Op::Ordinal(_)
                | Op::Order(_)
                | Op::Rank
                | Op::Each
        )
    };
    let words = Words::new(question, english());
    words.phrases.iter().any(|phrase| asks(phrase.op))
}

/// Readings of a question, best first.
pub fn read(
    question: &Question,
    links: &[Link],
    graph: &dyn Graph,
    known: &Known,
    weights: &Weights,
    time: Duration,
) -> Result<Vec<Proposal>> {
    let begun = Instant::now();
    with_rows_at_hand(graph, |graph| {
        let left = time.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Err(Error::Graph(GraphError::OutOfTime {
                what: "reading the question at the service",
                limit_ms: time.as_millis(),
            }));
        }
        read_once(question, links, graph, known, weights, left)
    })
}

fn read_once(
    question: &Question,
    links: &[Link],
    graph: &dyn Graph,
    known: &Known,
    weights: &Weights,
    time: Duration,
) -> Result<Vec<Proposal>> {
    let words = Words::new(&question.text, english());
    read_words(words, links, None, graph, known, weights, time)
}

/// What words of a question stand for that refer to the last answer: the node, and its members and
/// form where it is [`Node::Carried`].
type Carried = (Node, Rc<[EntityId]>, Form);

fn read_words(
    words: Words,
    links: &[Link],
    carried: Option<Carried>,
    graph: &dyn Graph,
    known: &Known,
    weights: &Weights,
    time: Duration,
) -> Result<Vec<Proposal>> {
    if words.slots.len() > MAX_SLOTS || words.slots.is_empty() {
        return Ok(Vec::new());
    }
    let mut search = Search::new(graph, known, english(), weights, words, time);
    if let Some((node, members, form)) = carried {
        search.arena.carry(members, form);
        search.referent = Some(node);
    }
    let anchors = search.anchors(links)?;
    let readings = search.readings(&anchors)?;
    let asked: Arc<[f32]> = Arc::from(&*search.question);
    let numbered = (1..).zip(&readings);
    numbered
        .map(|(n, r)| proposal(&mut search, r, n, &asked))
        .collect()
}

fn proposal(
    search: &mut Search<'_>,
    reading: &Reading,
    number: usize,
    question: &Arc<[f32]>,
) -> Result<Proposal> {
    let came = match search.arena.meaning(reading.node)? {
        Meaning::Set(all) => Came::Entities(all.to_vec()),
        Meaning::Number(number) => Came::Number(number),
        Meaning::Truth(truth) => Came::Truth(truth),
        Meaning::Unknown => Came::Unknown,
    };
    let is_time = search.may_be_time(reading.node);
    let is_thing = search.arena.kind(reading.node) == Kind::Thing;
    let is_when = |slot: usize| {
        let at = search.words.slots[slot];
        let said = |p: &Phrase| p.op == Op::When && (p.from..p.to).contains(&at);
        search.words.phrases.iter().any(said)
    };
    let (mut unused, mut passed_over) = (Vec::new(), Vec::new());
    // nobody is a number
    let asked = search.words.all.iter().find(|w| search.lang.asks(&w.lower));
    if let Some(word) = asked
        && search.lang.person.contains(&word.lower)
        && matches!(search.arena.node(reading.node), Node::Join((_, true), _))
        && search.arena.kind(reading.node).is_measure()
    {
        unused.push(search.words.text[word.start..word.end].to_owned());
    }
    // `how much` is no thing, and `which wind farms` are no people
    if is_thing && search.asks_amount() {
        unused.extend(search.amount_word());
    }
    if let Some(at) = search.picked_otherwise(reading.node) {
        let word = &search.words.all[at];
        unused.push(search.words.text[word.start..word.end].to_owned());
    }
    // `how many miles`, where the graph has kilometres
    if let Node::Join((relation, true), _) = *search.arena.node(reading.node)
        && let Some(own) = search.schema.relation(relation).unit
    {
        let counted = |at: usize| {
            let says =
                |p: &Phrase| matches!(p.op, Op::Count | Op::How(_)) && p.from < at && at <= p.to;
            search.words.phrases.iter().any(says)
        };
        for (at, word) in search.words.all.iter().enumerate() {
            let said = search.lang.unit(&word.lower).filter(|_| counted(at));
            if said.is_some_and(|said| said.kind == own.kind && said.times != own.times) {
                unused.push(search.words.text[word.start..word.end].to_owned());
            }
        }
    }
    for (slot, &at) in search.words.slots.iter().enumerate() {
        let word = &search.words.all[at];
        if reading.skipped & 1 << slot == 0 || word.is_silent && !is_when(slot) {
            continue;
        }
        let text = search.words.text[word.start..word.end].to_owned();
        match search.skip[slot] {
            // `when` is not answered by what is no time
            Feature::skip_asking if is_when(slot) && !is_time => unused.push(text),
            Feature::skip_silent | Feature::skip_asking => {}
            Feature::skip_light | Feature::skip_light_said | Feature::skip_modifier => {
                passed_over.push(text);
            }
            _ => unused.push(text),
        }
    }
    let features = reading.derivation.features();
    // a way that no word says, far from the question as a whole or hardly likelier than others, is
    // a guess
    let of = |feature: Feature| features[feature as usize];
    let is_far = of(Feature::whole_fits) < WEAK && !search.schema.is_untyped;
    let is_one_of_many = search.likelihood(reading.node).is_some_and(|p| p < LIKELY);
    if of(Feature::matched) > 0.0 && (is_far || is_one_of_many) && unused.is_empty() {
        unused.append(&mut passed_over);
    }
    Ok(Proposal {
        form: write::form(&search.arena, reading.node)?,
        score: reading.score,
        came,
        number,
        unused,
        passed_over,
        understood: search.understood(reading)?,
        features,
        phrases: search.phrases_of(reading.node),
        question: Arc::clone(question),
    })
}
