//! The suites' manifests: which tests there are, and what each needs.

use std::path::{Path, PathBuf};

use oxrdf::{Graph, NamedNode, NamedNodeRef, NamedOrBlankNode, NamedOrBlankNodeRef, Term, TermRef};
use oxrdfio::{RdfFormat, RdfParser};

const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const MF: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#";
const QT: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#";

/// Where the suites are published: relative addresses in them are relative to this.
const HOME: &str = "https://w3c.github.io/rdf-tests/";

/// One test.
pub(super) struct Test {
    /// The folder of its manifest, `#`, and its own name.
    pub(super) id: String,
    /// The last part of its type.
    pub(super) kind: String,
    /// The file to parse, or the query.
    pub(super) action: Option<PathBuf>,
    /// The address that the action has for itself.
    pub(super) base: String,
    pub(super) data: Vec<PathBuf>,
    pub(super) has_named_graphs: bool,
    pub(super) has_services: bool,
    pub(super) result: Option<PathBuf>,
    /// Duplicates may be left out.
    pub(super) is_lax: bool,
}

/// All tests of all manifests that lie in a folder of `root`.
pub(super) fn tests(root: &Path, suites: &Path) -> Vec<Test> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("manifest.ttl").is_file())
        .collect();
    folders.sort();
    folders
        .iter()
        .flat_map(|folder| Manifest::open(folder, suites).tests())
        .collect()
}

struct Manifest<'a> {
    folder: String,
    suites: &'a Path,
    graph: Graph,
    iri: String,
}

impl<'a> Manifest<'a> {
    fn open(folder: &Path, suites: &'a Path) -> Self {
        let inside = folder.strip_prefix(suites).unwrap();
        let name = inside.to_str().unwrap().to_owned();
        let iri = format!("{HOME}{name}/manifest.ttl");
        Self {
            graph: graph_of(&folder.join("manifest.ttl"), &iri),
            folder: name,
            suites,
            iri,
        }
    }

    fn tests(&self) -> Vec<Test> {
        let manifest = NamedNode::new_unchecked(&self.iri);
        let lists = self
            .graph
            .objects_for_subject_predicate(&manifest, &named(MF, "entries"));
        let entries: Vec<Term> = lists.flat_map(|list| self.list(list)).collect();
        entries.iter().filter_map(|e| self.test(e)).collect()
    }

    fn list(&self, first: TermRef<'_>) -> Vec<Term> {
        let mut items = Vec::new();
        let mut at = first.into_owned();
        while let Some(item) = self.object(&at, RDF, "first") {
            items.push(item);
            match self.object(&at, RDF, "rest") {
                Some(rest) => at = rest,
                None => break,
            }
        }
        items
    }

    fn test(&self, entry: &Term) -> Option<Test> {
        let Term::NamedNode(name) = entry else {
            return None;
        };
        let fragment = name.as_str().rsplit('#').next()?;
        let kind = self.object(entry, RDF, "type")?;
        let action = self.object(entry, MF, "action")?;
        let query = self.object(&action, QT, "query");
        let shown = query.as_ref().unwrap_or(&action);
        let all = |name| -> Vec<Term> {
            let Some(subject) = subject(&action) else {
                return Vec::new();
            };
            let found = self
                .graph
                .objects_for_subject_predicate(subject.as_ref(), named(QT, name).as_ref());
            found.map(TermRef::into_owned).collect()
        };
        let result = self.object(entry, MF, "result");
        Some(Test {
            id: format!("{}#{fragment}", self.folder),
            kind: match &kind {
                Term::NamedNode(kind) => kind.as_str().rsplit('#').next()?.to_owned(),
                _ => return None,
            },
            action: self.file(shown),
            base: match shown {
                Term::NamedNode(iri) => iri.as_str().to_owned(),
                _ => self.iri.clone(),
            },
            data: all("data").iter().filter_map(|d| self.file(d)).collect(),
            has_named_graphs: !all("graphData").is_empty(),
            has_services: !all("serviceData").is_empty(),
            result: result.and_then(|r| self.file(&r)),
            is_lax: self.object(entry, MF, "resultCardinality").is_some(),
        })
    }

    fn object(&self, subject_term: &Term, namespace: &str, name: &str) -> Option<Term> {
        let predicate = named(namespace, name);
        let subject = subject(subject_term)?;
        let found = self
            .graph
            .object_for_subject_predicate(subject.as_ref(), predicate.as_ref());
        found.map(TermRef::into_owned)
    }

    fn file(&self, term: &Term) -> Option<PathBuf> {
        match term {
            Term::NamedNode(iri) => {
                let inside = iri.as_str().strip_prefix(HOME)?;
                Some(self.suites.join(inside))
            }
            _ => None,
        }
    }
}

fn subject(term: &Term) -> Option<NamedOrBlankNode> {
    match term {
        Term::NamedNode(node) => Some(node.clone().into()),
        Term::BlankNode(node) => Some(node.clone().into()),
        _ => None,
    }
}

fn named(namespace: &str, name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{namespace}{name}"))
}

/// The triples of a file as Oxigraph's parser reads them.
pub(super) fn graph_of(path: &Path, base: &str) -> Graph {
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or("ttl");
    let format = RdfFormat::from_extension(ending).unwrap_or(RdfFormat::Turtle);
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let parser = RdfParser::from_format(format).with_base_iri(base).unwrap();
    parser
        .for_slice(&bytes)
        .map(|quad| quad.unwrap_or_else(|e| panic!("{}: {e}", path.display())))
        .map(oxrdf::Triple::from)
        .collect()
}

/// What a result set in RDF says.
pub(super) fn result_set(graph: &Graph) -> Option<(bool, Vec<(i64, super::results::Row)>)> {
    const RS: &str = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#";
    let is = |name: &str| named(RS, name);
    let set = graph.subject_for_predicate_object(
        named(RDF, "type").as_ref(),
        TermRef::NamedNode(is("ResultSet").as_ref()),
    )?;
    let object = |subject: NamedOrBlankNodeRef<'_>, predicate: NamedNodeRef<'_>| {
        graph.object_for_subject_predicate(subject, predicate)
    };
    if let Some(TermRef::Literal(boolean)) = object(set, is("boolean").as_ref()) {
        return Some((boolean.value() == "true", Vec::new()));
    }
    let mut rows = Vec::new();
    for solution in graph.objects_for_subject_predicate(set, is("solution").as_ref()) {
        let Some(solution) = subject(&solution.into_owned()) else {
            continue;
        };
        let mut row = super::results::Row::new();
        for binding in
            graph.objects_for_subject_predicate(solution.as_ref(), is("binding").as_ref())
        {
            let Some(binding) = subject(&binding.into_owned()) else {
                continue;
            };
            let variable = object(binding.as_ref(), is("variable").as_ref());
            let value = object(binding.as_ref(), is("value").as_ref());
            if let (Some(TermRef::Literal(variable)), Some(value)) = (variable, value) {
                row.insert(variable.value().to_owned(), value.into_owned());
            }
        }
        let index = match object(solution.as_ref(), is("index").as_ref()) {
            Some(TermRef::Literal(index)) => index.value().parse().unwrap_or(0),
            _ => 0,
        };
        rows.push((index, row));
    }
    rows.sort_by_key(|(index, _)| *index);
    Some((false, rows))
}
