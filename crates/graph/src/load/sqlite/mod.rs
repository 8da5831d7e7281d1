//! SQLite databases: a row is a thing, its table is its class, its columns are relations of it, and
//! what refers to another row leads there. After the W3C's Direct Mapping of relational data, in
//! plain names:
//!
//! ```text
//! singer(id, name, age, label_id → label)        singer/7 -[type]-> singer
//! 7, "Ada", 36, 2                                singer/7 -[rdfs:label]-> "Ada"
//!                                                singer/7 -[age]-> 36
//!                                                singer/7 -[label]-> label/2
//! sings_on(singer_id → singer, record_id → …)    singer/7 -[sings_on]-> record/3
//! ```
//!
//! The label is the column `name`, `title` or `label`, else the first whose name ends so, else first
//! and last name together, else the table's name and the key. A table of nothing but two references
//! is a relation between the two. Whole numbers that only tell rows apart, and bytes, are left out.

mod pages;
mod schema;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;

use self::pages::{Pages, Tree, Value};
use self::schema::{Reference, Table};
use super::fields::{entity_key, push_field};
use crate::key::{self, LiteralKindRef, TripleKeys, XSD};

pub(crate) use self::pages::{Fault, MAGIC};

const LABEL: &str = "http://www.w3.org/2000/01/rdf-schema#label";
/// Longer texts are literals: nobody asks for them by name. A guess.
const LONGEST_NAME: usize = 200;
/// Names of columns that name a row, best first.
const NAMES: [&str; 3] = ["name", "title", "label"];
/// Names of columns that name a person together.
const FIRST_NAMES: [&str; 4] = ["first_name", "firstname", "fname", "forename"];
const LAST_NAMES: [&str; 4] = ["last_name", "lastname", "lname", "surname"];

/// What becomes of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    /// Left out.
    Nothing,
    /// A relation of this name.
    Relation(String),
}

/// How the rows of a table become triples.
#[derive(Debug)]
struct Mapping {
    table: Table,
    root: u32,
    /// Columns whose texts are the label.
    label: Vec<usize>,
    columns: Vec<Role>,
    /// The relation of each reference.
    references: Vec<String>,
    /// Whether it is nothing but a relation between two others.
    is_link: bool,
}

/// Reads all tables; `each` is called with the keys of every triple, with false for the last answer
/// when it wants no more. What is worth telling comes back.
pub(crate) fn read(
    file: File,
    mut each: impl FnMut(&TripleKeys) -> bool,
) -> Result<Vec<String>, Fault> {
    let mut pages = Pages::open(file)?;
    let (tables, mut notes) = tables(&mut pages)?;
    if tables.is_empty() {
        return Err(Fault::Database("it has no tables".into()));
    }
    // rows of tables to which something refers by other columns than their key
    let mut others: BTreeMap<(String, Vec<String>), HashMap<String, String>> = BTreeMap::new();
    for reference in tables.values().flat_map(|t| &t.table.references) {
        let Some(target) = tables.get(&reference.table.to_lowercase()) else {
            continue;
        };
        if !target.is_key(&reference.to) {
            let place = (target.table.name.to_lowercase(), lower(&reference.to));
            if let Entry::Vacant(free) = others.entry(place) {
                free.insert(target.rows_by(&mut pages, &reference.to)?);
            }
        }
    }
    let mut writer = Writer {
        keys: TripleKeys::default(),
        each: &mut each,
    };
    for mapping in tables.values() {
        let class = entity_key(&mapping.table.name);
        let mut rows = 0u64;
        mapping.rows(&mut pages, &mut |row, values| {
            rows += 1;
            if mapping.is_link {
                let ends: Option<Vec<_>> = (mapping.table.references.iter())
                    .map(|reference| target(reference, &values, &tables, &others))
                    .collect();
                return match ends.as_deref() {
                    Some([from, to]) => writer.link(from, &mapping.table.name, to),
                    _ => Ok(()),
                };
            }
            writer.begin(&row);
            writer.iri(key::RDF_TYPE, &class)?;
            writer.text(LABEL, &mapping.label_of(&row, &values))?;
            for (value, role) in values.iter().zip(&mapping.columns) {
                if let Role::Relation(relation) = role {
                    writer.value(relation, value)?;
                }
            }
            let references = mapping.table.references.iter().zip(&mapping.references);
            for (reference, relation) in references {
                if let Some(to) = target(reference, &values, &tables, &others) {
                    writer.relate(relation, &to)?;
                }
            }
            Ok(())
        })?;
        if rows == 0 {
            notes.push(format!("the table `{}` has no rows", mapping.table.name));
        }
    }
    Ok(notes)
}

/// The tables by their names in lower case, and which were left out.
fn tables(pages: &mut Pages) -> Result<(BTreeMap<String, Mapping>, Vec<String>), Fault> {
    let (mut tables, mut notes) = (BTreeMap::new(), Vec::new());
    pages.records(1, Tree::Table, &mut |_, values| {
        let [
            Value::Text(kind),
            Value::Text(name),
            _,
            Value::Integer(root),
            Value::Text(sql),
        ] = &values[..]
        else {
            return Ok(());
        };
        if kind != "table" || name.starts_with("sqlite_") {
            return Ok(());
        }
        match (Table::parse(name, sql), u32::try_from(*root)) {
            (Some(table), Ok(root)) => {
                tables.insert(name.to_lowercase(), Mapping::new(table, root));
            }
            _ => notes.push(format!("the table `{name}` is virtual, and was not read")),
        }
        Ok(())
    })?;
    Ok((tables, notes))
}

fn lower(names: &[String]) -> Vec<String> {
    names.iter().map(|name| name.to_lowercase()).collect()
}

/// The row that a reference leads to.
fn target(
    reference: &Reference,
    values: &[Value],
    tables: &BTreeMap<String, Mapping>,
    others: &BTreeMap<(String, Vec<String>), HashMap<String, String>>,
) -> Option<String> {
    let table = tables.get(&reference.table.to_lowercase())?;
    let key = key_of(&reference.columns, values)?;
    if table.is_key(&reference.to) {
        return Some(format!("{}/{key}", table.table.name));
    }
    let place = (table.table.name.to_lowercase(), lower(&reference.to));
    others.get(&place)?.get(&key).cloned()
}

/// Some values as one text; none if one of them is missing.
fn key_of(columns: &[usize], values: &[Value]) -> Option<String> {
    let texts: Option<Vec<String>> = (columns.iter())
        .map(|column| values.get(*column).and_then(text_of))
        .collect();
    Some(texts?.join("/"))
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Blob => None,
        Value::Integer(number) => Some(number.to_string()),
        Value::Real(number) => Some(number.to_string()),
        Value::Text(text) => Some(text.trim().replace('\0', "")).filter(|t| !t.is_empty()),
    }
}

/// A column's name without the `id` at its end: `customer_id`, `customerId`, `CustomerID`.
fn without_id(column: &str) -> &str {
    let plain = ["_id", "_ID", "_Id", " id", " ID"]
        .iter()
        .find_map(|end| column.strip_suffix(end));
    let joined = || ["Id", "ID"].iter().find_map(|end| column.strip_suffix(end));
    (plain.or_else(joined).filter(|rest| !rest.is_empty())).unwrap_or(column)
}

impl Mapping {
    fn new(table: Table, root: u32) -> Self {
        let find = |names: &[&str]| names.iter().find_map(|name| table.find(name));
        let is_free = |at: &usize| {
            let refers = table.references.iter().any(|r| r.columns.contains(at));
            !refers && table.number != Some(*at)
        };
        let ends = |at: &usize| {
            let name = table.columns[*at].to_lowercase();
            is_free(at) && NAMES[..2].iter().any(|end| name.ends_with(end))
        };
        let person = find(&FIRST_NAMES).zip(find(&LAST_NAMES));
        let whole = find(&NAMES).filter(is_free);
        let label = match (whole, person) {
            (Some(whole), _) => vec![whole],
            (None, Some((first, last))) => vec![first, last],
            (None, None) => (0..table.columns.len()).find(ends).into_iter().collect(),
        };
        let references = (table.references.iter())
            .map(|reference| match reference.columns[..] {
                [only] => {
                    let name = without_id(&table.columns[only]);
                    let is_bare = name.eq_ignore_ascii_case("id");
                    (if is_bare { &reference.table } else { name }).to_owned()
                }
                _ => reference.table.clone(),
            })
            .collect();
        let refers = |at: usize| table.references.iter().any(|r| r.columns.contains(&at));
        let columns = (table.columns.iter().enumerate())
            .map(|(at, name)| match () {
                () if table.number == Some(at) || refers(at) || label == [at] => Role::Nothing,
                () => Role::Relation(name.clone()),
            })
            .collect();
        let is_link = table.references.len() == 2
            && (0..table.columns.len()).all(|at| refers(at) || table.number == Some(at));
        Self {
            table,
            root,
            label,
            columns,
            references,
            is_link,
        }
    }

    /// Whether these columns are the key of the table.
    fn is_key(&self, columns: &[String]) -> bool {
        let places: Option<Vec<usize>> = columns.iter().map(|c| self.table.find(c)).collect();
        columns.is_empty() || places.is_some_and(|places| places == self.table.key)
    }

    /// Calls `each(name, values)` for each row, by the name of its thing.
    fn rows(
        &self,
        pages: &mut Pages,
        each: &mut dyn FnMut(String, Vec<Value>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let table = &self.table;
        let tree = match table.without_rowid {
            true => Tree::Index,
            false => Tree::Table,
        };
        // records of a table without numbers begin with its key
        let order: Vec<usize> = match table.without_rowid {
            true => {
                let rest = (0..table.columns.len()).filter(|at| !table.key.contains(at));
                table.key.iter().copied().chain(rest).collect()
            }
            false => (0..table.columns.len()).collect(),
        };
        pages.records(self.root, tree, &mut |number, record| {
            // columns that were added later are missing in older rows
            let mut values = vec![Value::Null; order.len()];
            for (value, at) in record.into_iter().zip(&order) {
                values[*at] = value;
            }
            if let Some(at) = table.number {
                values[at] = Value::Integer(number);
            }
            let key = match &table.key[..] {
                [] => None,
                key => key_of(key, &values),
            };
            let key = key.unwrap_or_else(|| number.to_string());
            each(format!("{}/{key}", table.name), values)
        })
    }

    /// The names of rows by the values of some columns.
    fn rows_by(
        &self,
        pages: &mut Pages,
        columns: &[String],
    ) -> Result<HashMap<String, String>, Fault> {
        let places: Option<Vec<usize>> = columns.iter().map(|c| self.table.find(c)).collect();
        let mut rows = HashMap::new();
        if let Some(places) = places {
            self.rows(pages, &mut |row, values| {
                if let Some(key) = key_of(&places, &values) {
                    rows.entry(key).or_insert(row);
                }
                Ok(())
            })?;
        }
        Ok(rows)
    }

    fn label_of(&self, row: &str, values: &[Value]) -> String {
        let texts: Vec<String> = (self.label.iter())
            .filter_map(|at| text_of(&values[*at]))
            .collect();
        match texts.is_empty() {
            true => row.replace('/', " "),
            false => texts.join(" "),
        }
    }
}

/// Writes triples of one row after another.
struct Writer<'a> {
    keys: TripleKeys,
    each: &'a mut dyn FnMut(&TripleKeys) -> bool,
}

impl Writer<'_> {
    fn begin(&mut self, row: &str) {
        self.keys[0].clear();
        key::push_name(&mut self.keys[0], row);
    }

    fn send(&mut self) -> Result<(), Fault> {
        match (self.each)(&self.keys) {
            true => Ok(()),
            false => Err(Fault::Stopped),
        }
    }

    fn iri(&mut self, relation: &str, object: &[u8]) -> Result<(), Fault> {
        self.keys[1].clear();
        key::push_iri(&mut self.keys[1], relation);
        self.keys[2].clear();
        self.keys[2].extend_from_slice(object);
        self.send()
    }

    fn text(&mut self, relation: &str, text: &str) -> Result<(), Fault> {
        let mut object = Vec::new();
        key::push_literal(&mut object, text, LiteralKindRef::Plain);
        self.iri(relation, &object)
    }

    fn relation(&mut self, relation: &str) {
        self.keys[1] = entity_key(relation.trim());
        self.keys[2].clear();
    }

    fn relate(&mut self, relation: &str, to: &str) -> Result<(), Fault> {
        self.relation(relation);
        key::push_name(&mut self.keys[2], to);
        self.send()
    }

    fn link(&mut self, from: &str, relation: &str, to: &str) -> Result<(), Fault> {
        self.begin(from);
        self.relate(relation, to)
    }

    fn value(&mut self, relation: &str, value: &Value) -> Result<(), Fault> {
        let Some(text) = text_of(value) else {
            return Ok(());
        };
        self.relation(relation);
        let object = &mut self.keys[2];
        let mut typed = |local: &str| {
            let kind = format!("{XSD}{local}");
            key::push_literal(object, &text, LiteralKindRef::Typed(&kind));
        };
        match value {
            Value::Integer(_) => typed("integer"),
            Value::Real(_) => typed("double"),
            _ if text.len() > LONGEST_NAME => {
                key::push_literal(object, &text, LiteralKindRef::Plain);
            }
            _ if push_field(object, &text, 2, true).is_err() => return Ok(()),
            _ => {}
        }
        self.send()
    }
}
