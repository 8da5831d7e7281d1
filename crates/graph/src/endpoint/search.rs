//! Searching entities by name at a service.
//!
//! A service's full text (`engine/`) gives labels that hold all words of a name; those that are the
//! name, in normal form, count. Of a name of common words the shortest labels come first, and the name
//! itself is the shortest of them.

use std::collections::{HashMap, HashSet};

use super::engine::TextQuery;
use super::{Relations, Search, Service, lock};
use crate::error::Result;
use crate::graph::{Adjacency, EntityId, NameMatch};
use crate::key;
use crate::names::normalise;

/// Names per request (guess).
const NAMES: usize = 12;
/// Labels that are compared for each name (guess).
const LABELS_EACH: usize = 40;
/// Names in the cache (guess).
const REMEMBERED: usize = 200_000;
/// Letters of a word that a prefix search completes; Virtuoso asks for four before a `*`.
const SHORTEST_PREFIX: usize = 4;
/// Maximum words of a name (guess).
const MOST_WORDS: usize = 12;

/// Labels and entities found for names, by normal form.
pub(super) type LabelMatches = HashMap<String, Vec<(String, EntityId)>>;

impl Service {
    /// The entity with this IRI, if it has triples.
    pub(super) fn find_iri(&self, name: &str) -> Result<Option<EntityId>> {
        let (true, Ok(node)) = (name.contains(':'), oxrdf::NamedNode::new(name)) else {
            return Ok(None);
        };
        let mut key = Vec::new();
        key::push_iri(&mut key, node.as_str());
        if let Some(names) = &self.names
            && let Some(known) = names.changes.find(&names.base, &key)?
        {
            return Ok(Some(known));
        }
        let entity = self.intern(&key)?;
        Ok((self.degree(entity)? > 0).then_some(entity))
    }

    /// Entities of the label index, without the texts that are only labels.
    pub(super) fn of_index(&self, found: Vec<EntityId>) -> Result<Vec<EntityId>> {
        let Some(names) = &self.names else {
            return Ok(Vec::new());
        };
        Ok(found
            .into_iter()
            .filter(|e| !names.is_literal(*e))
            .collect())
    }

    pub(super) fn search_name(&self, name: &str, matching: NameMatch) -> Result<Vec<EntityId>> {
        self.search_names(&[name])?;
        let found = lock(&self.found);
        let all = found
            .get(&normalise(name))
            .map(Vec::as_slice)
            .unwrap_or_default();
        let fits = |label: &str| matching == NameMatch::Normalised || label == name;
        Ok(all
            .iter()
            .filter(|(label, _)| fits(label))
            .map(|(_, e)| *e)
            .collect())
    }

    /// Searches many names at once and caches the results.
    pub(super) fn search_names(&self, names: &[&str]) -> Result<()> {
        let mut wanted: Vec<(String, &str)> = Vec::new();
        {
            let mut found = lock(&self.found);
            if found.len() > REMEMBERED {
                found.clear();
            }
            let mut seen = HashSet::new();
            for name in names {
                let normal = normalise(name);
                let words = normal.split(' ').count();
                let sensible = !normal.is_empty() && words <= MOST_WORDS && normal.len() <= 200;
                if sensible && !found.contains_key(&normal) && seen.insert(normal.clone()) {
                    wanted.push((normal, name));
                }
            }
        }
        if self.config.search == Search::None || wanted.is_empty() {
            return Ok(());
        }
        let chunks: Vec<&[(String, &str)]> = wanted.chunks(NAMES).collect();
        self.each_task(&chunks, |chunk| self.search_chunk(chunk))
    }

    fn search_chunk(&self, chunk: &[(String, &str)]) -> Result<()> {
        let query = match self.searches_text() {
            true => {
                let parts: Vec<String> = (chunk.iter())
                    .filter_map(|(normal, _)| self.text_query(normal, false))
                    .collect();
                if parts.is_empty() {
                    return Ok(());
                }
                format!("SELECT ?e ?l WHERE {{ {} }}", parts.join(" UNION "))
            }
            false => self.exact_query(chunk),
        };
        let mut found: LabelMatches = (chunk.iter())
            .map(|(normal, _)| (normal.clone(), Vec::new()))
            .collect();
        for (label, entity) in self.labelled(&query, chunk.len() * LABELS_EACH * 2)? {
            if let Some(same) = found.get_mut(&normalise(&label)) {
                same.push((label, entity));
            }
        }
        lock(&self.found).extend(found);
        Ok(())
    }

    pub(super) fn search_prefix(&self, normal: &str, limit: usize) -> Result<Vec<EntityId>> {
        // a name cannot be guessed at from its beginning without full text
        if !self.searches_text() {
            return Ok(Vec::new());
        }
        let Some(part) = self.text_query(normal, true) else {
            return Ok(Vec::new());
        };
        let query = format!("SELECT ?e ?l WHERE {{ {part} }}");
        let mut found: Vec<(String, EntityId)> = (self.labelled(&query, LABELS_EACH)?.into_iter())
            .map(|(label, entity)| (normalise(&label), entity))
            .filter(|(label, _)| label.starts_with(normal))
            .collect();
        found.sort();
        let mut seen = HashSet::new();
        found.retain(|(_, entity)| seen.insert(*entity));
        Ok(found.into_iter().take(limit).map(|(_, e)| e).collect())
    }

    /// Labels and the entities that they belong to.
    fn labelled(&self, query: &str, most: usize) -> Result<Vec<(String, EntityId)>> {
        let mut found = Vec::new();
        for row in self.client.select(query, most)?.rows {
            let [Some(e), Some(oxrdf::Term::Literal(label))] = row.as_slice() else {
                return Err(self.client.bad_reply("a row of names has no `?e` and `?l`"));
            };
            let oxrdf::Term::NamedNode(e) = e else {
                continue; // a blank node cannot be asked for again
            };
            found.push((label.value().to_owned(), self.entity_iri(e.as_str())?));
        }
        Ok(found)
    }

    /// Whether names are looked up by full text.
    fn searches_text(&self) -> bool {
        self.config.search == Search::FullText && self.text_query("a", false).is_some()
    }

    /// The relations that give names and occur; all that may, where none is known to.
    fn naming_iris(&self) -> Vec<&str> {
        let Relations { iris, naming, .. } = self.relations.as_ref();
        match naming.is_empty() {
            false => naming.iter().map(|r| iris[r.index()].as_str()).collect(),
            true => (self.config.labels.iter().chain(&self.config.aliases))
                .map(String::as_str)
                .collect(),
        }
    }

    /// Labels as they may be written: as given, in lower case, and with capitals.
    fn exact_query(&self, chunk: &[(String, &str)]) -> String {
        let mut literals = Vec::new();
        for (_, name) in chunk {
            let capitals: Vec<String> = name.split(' ').map(capital).collect();
            let mut spellings = vec![
                (*name).to_owned(),
                name.to_lowercase(),
                capital(name),
                capitals.join(" "),
            ];
            spellings.sort();
            spellings.dedup();
            for text in spellings {
                let plain = oxrdf::Literal::new_simple_literal(&text).to_string();
                literals.push(format!("{plain}@{}", self.config.language));
                literals.push(plain);
            }
        }
        let naming: Vec<String> = (self.naming_iris().iter())
            .map(|iri| format!("<{iri}>"))
            .collect();
        format!(
            "SELECT ?e ?l WHERE {{ VALUES ?l {{ {} }} ?e ?p ?l FILTER(?p IN ({})) }} LIMIT {}",
            literals.join(" "),
            naming.join(", "),
            chunk.len() * LABELS_EACH * 2
        )
    }

    /// The part of a query that gives labels with all words of a name, by the engine's full text.
    fn text_query(&self, normal: &str, prefix: bool) -> Option<String> {
        // words of full text are letters and digits; all else would be syntax
        let words: Vec<&str> = normal
            .split(|c: char| !c.is_alphanumeric())
            .filter(|w| !w.is_empty())
            .collect();
        let last = words.last()?;
        let pattern = self.config.engine.dialect().labels_with(&TextQuery {
            prefix: prefix && last.chars().count() >= SHORTEST_PREFIX,
            words: &words,
            naming: &self.naming_iris(),
            limit: LABELS_EACH,
        })?;
        Some(format!(
            "{{ SELECT DISTINCT ?e ?l WHERE {{ {pattern} }} ORDER BY STRLEN(STR(?l)) LIMIT {LABELS_EACH} }}"
        ))
    }
}

/// A word with its first letter in upper case.
fn capital(word: &str) -> String {
    let mut chars = word.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}
