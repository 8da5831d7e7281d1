//! Questions to begin with, for a graph that brings none: made of its own facts, put into words as
//! a person would ask them, and kept only where the graph's method answers them right.

use std::cmp::Reverse;
use std::collections::HashSet;

use wherefore::graph::{
    Adjacency, EntityId, Graph, LiteralKind, RelationId, Store, Term, Triple, edges_by_relation,
};
use wherefore::phrase::{PREPOSITIONS, is_kind, is_silent, is_verb};
use wherefore::{Pipeline, Question, Result};

/// Questions that are offered.
const OFFERED: usize = 4;

/// Relations that are tried, the most frequent first.
const TRIED: usize = 24;

/// Facts of a relation that are looked at, for the best known thing among them.
const LOOKED_AT: usize = 200;

/// Names beyond this are descriptions.
const LONGEST_NAME: usize = 40;

/// Last words of relations whose values are for machines.
const CODES: [&str; 14] = [
    "code",
    "domain",
    "guid",
    "hash",
    "homepage",
    "id",
    "identifier",
    "image",
    "iri",
    "key",
    "notation",
    "uri",
    "url",
    "uuid",
];

/// Up to four questions that this pipeline answers right, each about another relation and another
/// thing.
pub(super) fn examples(store: &Store, pipeline: &Pipeline) -> Result<Vec<String>> {
    let mut relations = Vec::new();
    for id in 0..store.relation_bound() as u32 {
        let relation = RelationId(id);
        let count = store.relation_count(relation)?;
        if count > 0 && !is_silent(relation, store)? {
            relations.push((Reverse(count), relation));
        }
    }
    relations.sort();
    let mut questions = Vec::new();
    let mut asked_about = HashSet::new();
    for (_, relation) in relations.into_iter().take(TRIED) {
        if questions.len() == OFFERED {
            break;
        }
        let Some(asked) = best_known(store, relation, &asked_about)? else {
            continue;
        };
        let answer = pipeline.answer(&Question::new(asked.text.as_str()), store, &mut ())?;
        let first = answer.answers.first();
        if first.is_some_and(|answer| asked.answers.contains(&answer.name)) {
            asked_about.insert(asked.topic);
            questions.push(asked.text);
        }
    }
    Ok(questions)
}

/// A question with what it is about and all that answers it.
struct Asked {
    text: String,
    topic: EntityId,
    answers: HashSet<String>,
}

/// The question about the fact of this relation whose topic has most triples.
fn best_known(
    store: &Store,
    relation: RelationId,
    but: &HashSet<EntityId>,
) -> Result<Option<Asked>> {
    let Some(words) = worded(&plain(&store.relation_label(relation)?)) else {
        return Ok(None);
    };
    let mut best: Option<(usize, Triple)> = None;
    for triple in store.with_relation(relation)?.take(LOOKED_AT) {
        let triple = triple?;
        let topic = words.topic(triple);
        if but.contains(&topic)
            || !is_thing(topic, store)?
            || !is_asked_for(words.answer(triple), store)?
        {
            continue;
        }
        let degree = store.degree(topic)?;
        if best.as_ref().is_none_or(|(most, _)| degree > *most) {
            best = Some((degree, triple));
        }
    }
    let Some((_, triple)) = best else {
        return Ok(None);
    };
    let topic = words.topic(triple);
    let edges = match words {
        Words::OfHead(_) => store.outgoing(topic)?,
        Words::OfTail(_) => store.incoming(topic)?,
    };
    let mut answers = HashSet::new();
    for edge in edges_by_relation(&edges, relation) {
        answers.insert(store.entity_label(edge.entity)?.into_owned());
    }
    let kind = match words {
        Words::OfTail(_) => kind_of(triple.head, store)?,
        Words::OfHead(_) => None,
    };
    let subject = kind.map_or_else(|| "What".to_owned(), |kind| format!("Which {kind}"));
    Ok(Some(Asked {
        text: words.about(&store.entity_label(topic)?, &subject),
        topic,
        answers,
    }))
}

/// A question with a gap for its topic.
enum Words {
    /// About the head, for the tail.
    OfHead(String),
    /// About the tail, for the head, which `{subject}` stands for.
    OfTail(String),
}

impl Words {
    fn topic(&self, triple: Triple) -> EntityId {
        match self {
            Words::OfHead(_) => triple.head,
            Words::OfTail(_) => triple.tail,
        }
    }

    fn answer(&self, triple: Triple) -> EntityId {
        match self {
            Words::OfHead(_) => triple.tail,
            Words::OfTail(_) => triple.head,
        }
    }

    fn about(&self, topic: &str, subject: &str) -> String {
        match self {
            Words::OfHead(words) => words.replace("{topic}", topic),
            Words::OfTail(words) => words
                .replace("{subject}", subject)
                .replace("{topic}", topic),
        }
    }
}

/// How a relation is asked about; none where that would not be English, or where its values are
/// for machines.
fn worded(name: &str) -> Option<Words> {
    let words: Vec<&str> = name.split(' ').collect();
    let (first, last) = (*words.first()?, *words.last()?);
    if name.is_empty() || CODES.contains(&last) {
        return None;
    }
    let plural = |word: &str| {
        word.len() > 3
            && word.ends_with('s')
            && !["ss", "us", "is"].iter().any(|e| word.ends_with(e))
    };
    Some(match is_verb(name) {
        true if plural(first) || first == "is" => {
            Words::OfTail(format!("{{subject}} {name} {{topic}}?"))
        }
        true => Words::OfTail(format!("{{subject}} is {name} {{topic}}?")),
        false if PREPOSITIONS.contains(&first) => {
            let rest = words.get(1..).filter(|rest| !rest.is_empty())?.join(" ");
            Words::OfHead(format!("Which {rest} is {{topic}} {first}?"))
        }
        false => {
            let be = if plural(last) { "are" } else { "is" };
            Words::OfHead(format!("What {be} the {name} of {{topic}}?"))
        }
    })
}

/// The name of a relation as people say it: `film.film.directed_by` is `directed by`, and what
/// something `has` is called by what it is.
fn plain(label: &str) -> String {
    let last = label.rsplit('.').next().unwrap_or(label);
    let words = last.replace('_', " ").trim().to_lowercase();
    match words.strip_prefix("has ") {
        Some(rest) => rest.to_owned(),
        None => words,
    }
}

/// Whether something has a name to ask with.
fn is_thing(entity: EntityId, store: &Store) -> Result<bool> {
    Ok(!matches!(store.entity_term(entity)?, Term::Literal(_))
        && store.is_named(entity)?
        && store.entity_label(entity)?.chars().count() <= LONGEST_NAME)
}

/// Whether something is a good answer: a thing, or a value that has a type, such as numbers and
/// dates. Bare strings are codes and descriptions as often as not.
fn is_asked_for(entity: EntityId, store: &Store) -> Result<bool> {
    match store.entity_term(entity)? {
        Term::Literal(literal) => Ok(matches!(literal.kind, LiteralKind::Typed(_))),
        _ => is_thing(entity, store),
    }
}

/// What kind of thing something is, if the graph says so.
fn kind_of(entity: EntityId, store: &Store) -> Result<Option<String>> {
    for edge in store.outgoing(entity)?.iter() {
        if is_kind(&store.relation_label(edge.relation)?) {
            return Ok(Some(plain(&store.entity_label(edge.entity)?)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use wherefore::PipelineConfig;
    use wherefore::graph::{Input, LoadOptions, load};

    use super::*;

    fn stored(file: &str, text: &str) -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join(file);
        fs::write(&source, text).unwrap();
        let out = folder.path().join("graph");
        load(
            &[Input::File(source)],
            &out,
            &LoadOptions::default(),
            &|_| {},
        )
        .unwrap();
        let store = Store::open(&out).unwrap();
        (folder, store)
    }

    #[test]
    fn names_kinds_and_codes_are_not_asked_about() {
        let (_folder, store) = stored(
            "rivers.ttl",
            "@prefix : <http://example.org/> .\n\
             @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
             :fr a :Country ; rdfs:label \"France\" ; :country_code \"FR\" ; :capital :p ;\n\
               :population 68000000 ; :motto \"Liberty\" .\n\
             :p a :City ; rdfs:label \"Paris\" .\n\
             :s a :River ; rdfs:label \"Seine\" ; :flows_through :fr ; :code \"S1\" .\n\
             :Country rdfs:label \"country\" . :City rdfs:label \"city\" .\n\
             :River rdfs:label \"river\" .\n",
        );
        let pipeline = PipelineConfig::default().build().unwrap();
        let mut questions = examples(&store, &pipeline).unwrap();
        questions.sort();
        // one question for each thing: France is asked about once, as the best known
        assert_eq!(questions, ["What is the capital of France?"]);
    }

    #[test]
    fn every_question_is_answered_right() {
        let (_folder, store) = stored(
            "films.txt",
            "Alien|directed_by|Ridley Scott\nAlien|has_genre|Horror\nAlien|release_year|1979\n\
             Gladiator|directed_by|Ridley Scott\nGladiator|release_year|2000\n\
             Gladiator|in_language|English\nGladiator|starred_actors|Russell Crowe\n",
        );
        let pipeline = PipelineConfig::default().build().unwrap();
        let questions = examples(&store, &pipeline).unwrap();
        assert!(questions.len() >= 3, "{questions:?}");
        assert!(questions.contains(&"What is directed by Ridley Scott?".into()));
        for question in questions {
            let answer = pipeline.answer(&Question::new(question.as_str()), &store, &mut ());
            assert!(!answer.unwrap().answers.is_empty(), "{question}");
        }
    }

    #[test]
    fn relations_are_asked_about_as_people_do() {
        let asked = |name: &str| worded(&plain(name)).map(|w| w.about("X", "Which river"));
        for (name, question) in [
            ("capital", "What is the capital of X?"),
            ("has_genre", "What is the genre of X?"),
            ("starred_actors", "What are the starred actors of X?"),
            ("film.film.directed_by", "Which river is directed by X?"),
            ("flows_through", "Which river flows through X?"),
            ("is part of", "Which river is part of X?"),
            ("in_language", "Which language is X in?"),
            ("address", "What is the address of X?"),
        ] {
            assert_eq!(asked(name).as_deref(), Some(question), "{name}");
        }
        for name in ["country_code", "id", "wikidata url", "in", ""] {
            assert_eq!(asked(name), None, "{name}");
        }
    }
}
