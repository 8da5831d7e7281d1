//! Wide tables: a row is one entity, its columns are relations of it.
//!
//! ```text
//! name,born in,children        Ada -[born in]-> London
//! Ada,London,Byron;Anne        Ada -[children]-> Byron, Ada -[children]-> Anne     (split at `;`)
//! ```
//!
//! One column names the thing. Empty cells say nothing. Numbers, dates, `true` and `false` become
//! literals, all else names or IRIs, as in other tables. In JSON a thing is an object, and a list
//! is several values.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::csv;
use super::fields::{entity_key, fields, is_value, push_field};
use super::format::Format;
use crate::key::{self, LiteralKindRef, TripleKeys, XSD};

/// Columns that say what a row is: then no class is needed.
const TYPE_COLUMNS: [&str; 4] = ["type", "instance of", "instance_of", "is_a"];

/// What columns that name things are called, or end with.
const NAMES: [&str; 3] = ["name", "title", "label"];
/// Columns that number rows, and whose cells are names only where no other column names them.
const NUMBERS: [&str; 8] = ["id", "nr", "no", "number", "key", "code", "index", "row"];
/// What stands before `name` and is no kind of things.
const NO_KINDS: [&str; 16] = [
    "full",
    "first",
    "last",
    "given",
    "family",
    "display",
    "short",
    "long",
    "common",
    "scientific",
    "user",
    "date",
    "time",
    "year",
    "month",
    "day",
];
/// Records of a table that are looked at to tell whether it is wide.
const LOOKED_AT: usize = 200;

/// Options for wide tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wide {
    /// The column with the entity's name: its number from 1, or its name. If not set the first, or
    /// one that is called a name where the first only numbers the rows.
    pub name_column: Option<String>,
    /// The separator of several values in a cell.
    pub split: Option<String>,
    /// The class of the rows, none if it is empty. If not set it is what the column with the names
    /// says (`boat` of `boat_name`), or called as the file or the sheet is, unless a column says what
    /// the rows are.
    pub class: Option<String>,
}

/// Columns of one table.
#[derive(Debug)]
pub(crate) struct TableColumns {
    name: usize,
    named_by: String,
    /// The key of each column's relation; none for the thing's own name and for columns that have
    /// no name.
    relations: Vec<Option<Vec<u8>>>,
    split: Option<String>,
    /// The key of the class of each row.
    class: Option<Vec<u8>>,
}

/// The names in objects of one file.
#[derive(Debug)]
pub(crate) struct ObjectNames {
    name: String,
    split: Option<String>,
    /// The key of the class of each object.
    class: Option<Vec<u8>>,
}

/// The schema of a wide file.
#[derive(Debug)]
pub(crate) enum WideSchema {
    Table(TableColumns),
    Json(ObjectNames),
}

impl WideSchema {
    /// Which column names the rows, for a message.
    pub(super) fn named_by(&self) -> String {
        let column = match self {
            WideSchema::Table(columns) => &columns.named_by,
            WideSchema::Json(names) => &names.name,
        };
        match column.is_empty() {
            true => String::new(),
            false => format!(", called by its `{column}`"),
        }
    }
}

impl Wide {
    fn split(&self) -> Option<String> {
        self.split.clone().filter(|split| !split.is_empty())
    }

    /// The class of the rows of `file`, which has these columns, of which one names the rows.
    fn class<'c>(
        &self,
        file: &str,
        mut columns: impl Iterator<Item = &'c str>,
        name: &str,
    ) -> Option<Vec<u8>> {
        let is_type = |column: &str| TYPE_COLUMNS.iter().any(|t| column.eq_ignore_ascii_case(t));
        let name = match &self.class {
            Some(class) => class.trim().to_owned(),
            None if columns.any(is_type) => return None,
            None => kind_of_name(name)
                .unwrap_or_else(|| file.replace(['_', '-'], " ").trim().to_owned()),
        };
        (!name.is_empty() && !name.contains('\0')).then(|| entity_key(&name))
    }

    /// Reads the first record of the table `file`. Also returns notes for the user.
    pub(crate) fn columns(
        &self,
        header: &str,
        format: Format,
        file: &str,
    ) -> Result<(TableColumns, Vec<String>), String> {
        let header = header.trim_end_matches('\r');
        let cells = fields(header, format);
        let cells: Vec<&str> = cells.iter().map(|cell| cell.trim()).collect();
        if cells.len() < 2 {
            return Err("its first line names fewer than two columns".to_owned());
        }
        if header.contains('\0') {
            return Err("its first line holds a NUL byte".to_owned());
        }
        let name = match &self.name_column {
            None => name_column(&cells),
            Some(column) => {
                let wanted = column.trim();
                let named = cells.iter().position(|c| c.eq_ignore_ascii_case(wanted));
                let numbered = || wanted.parse::<usize>().ok()?.checked_sub(1);
                let numbered = || numbered().filter(|&at| at < cells.len());
                (named.or_else(numbered))
                    .ok_or_else(|| format!("its first line names no column `{column}`"))?
            }
        };
        let mut notes = Vec::new();
        let mut relations = Vec::with_capacity(cells.len());
        for (at, cell) in cells.iter().enumerate() {
            if cell.is_empty() && at != name {
                notes.push(format!(
                    "column {} has no name in the first line, and was not read",
                    at + 1
                ));
            }
            relations.push((at != name && !cell.is_empty()).then(|| entity_key(cell)));
        }
        if relations.iter().all(Option::is_none) {
            return Err("no column beside the one that names things has a name".to_owned());
        }
        Ok((
            TableColumns {
                name,
                named_by: cells[name].to_owned(),
                relations,
                split: self.split(),
                class: self.class(file, cells.iter().copied(), cells[name]),
            },
            notes,
        ))
    }

    /// Reads the first object of `file`.
    pub(crate) fn names(&self, first: &JsonElement, file: &str) -> Result<ObjectNames, String> {
        let JsonElement::Object(object) = first else {
            return Err("its first value is not an object".to_owned());
        };
        let name = match &self.name_column {
            Some(column) => column.clone(),
            None if object.is_empty() => return Err("its first object is empty".to_owned()),
            None => {
                let names: Vec<&str> = object.iter().map(|(name, _)| name.as_str()).collect();
                names[name_column(&names)].to_owned()
            }
        };
        let columns = object.iter().map(|(name, _)| name.as_str());
        Ok(ObjectNames {
            split: self.split(),
            class: self.class(file, columns, &name),
            name,
        })
    }
}

/// Which column names the rows: the first, or one that is called a name where the first only
/// numbers them.
fn name_column(columns: &[&str]) -> usize {
    let words: Vec<String> = columns.iter().map(|column| opened(column)).collect();
    let last = |words: &str| words.rsplit(' ').next().unwrap_or_default().to_owned();
    if !words
        .first()
        .is_some_and(|first| NUMBERS.contains(&last(first).as_str()))
    {
        return 0;
    }
    let whole = |word: &&str| words.iter().position(|w| w == word);
    let ends = || words.iter().position(|w| NAMES.contains(&last(w).as_str()));
    NAMES.iter().find_map(whole).or_else(ends).unwrap_or(0)
}

/// What a column that names things says they are: `boat` of `boat_name` and of `Boat`.
fn kind_of_name(column: &str) -> Option<String> {
    let words = opened(column);
    let end = NAMES.iter().find_map(|end| words.strip_suffix(end));
    let kind = end.unwrap_or(&words).trim();
    let none = || NO_KINDS.iter().chain(&NUMBERS).chain(&NAMES);
    let is_kind = !kind.is_empty() && kind.split(' ').all(|word| !none().any(|n| *n == word));
    is_kind.then(|| kind.to_owned())
}

/// A column's name as words in small letters.
fn opened(column: &str) -> String {
    let mut words = String::new();
    let mut before = None;
    for c in column.trim().chars() {
        if before.is_some_and(char::is_lowercase) && c.is_uppercase() {
            words.push(' ');
        }
        words.extend(match c {
            '_' | '-' | '.' => ' '.to_lowercase(),
            c => c.to_lowercase(),
        });
        before = Some(c);
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a table, of which this is the beginning, can only be a wide one: its first line names
/// columns, and its rows hold no head, relation and tail.
pub(super) fn is_wide(text: &[u8], format: Format) -> bool {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut add = |record: &[u8]| {
        let record = String::from_utf8_lossy(record);
        if rows.len() < LOOKED_AT && !record.trim().is_empty() {
            let cells = fields(record.trim_end_matches('\r'), format);
            rows.push(cells.iter().map(|cell| cell.trim().to_owned()).collect());
        }
    };
    match format {
        Format::Csv => csv::records(text, |record, _| add(record)),
        _ => text.split(|b| *b == b'\n').take(LOOKED_AT).for_each(add),
    }
    let Some((header, rows)) = rows.split_first() else {
        return false;
    };
    let width = header.len();
    let column = |at: usize| rows.iter().filter_map(move |row| row.get(at));
    let names: HashSet<&String> = header.iter().collect();
    let names_column = |(at, cell): (usize, &String)| {
        let is_name = !cell.is_empty() && !cell.contains("://") && !is_value(cell);
        is_name && !column(at).any(|c| c == cell)
    };
    let has_values = |at: usize| {
        let said = || column(at).filter(|cell| !cell.is_empty());
        said().filter(|cell| is_value(cell)).count() * 2 > said().count()
    };
    let whole = rows.iter().filter(|row| row.len() == width).count();
    let is_table = !rows.is_empty()
        && names.len() == width
        && whole * 10 >= rows.len() * 9
        && header.iter().enumerate().all(names_column);
    is_table
        && match width {
            0 | 1 => false,
            2 => true,
            // a relation is no number
            3 => has_values(1),
            4 => (0..width).any(has_values),
            _ => true,
        }
}

/// The triples of one row: the key of its entity, and keys of relations and values.
#[derive(Debug, Default)]
pub(crate) struct RowTriples {
    keys: TripleKeys,
    values: Vec<(Vec<u8>, Vec<u8>)>,
}

impl RowTriples {
    fn begin(&mut self, name: &str, class: Option<&Vec<u8>>) -> Result<(), String> {
        self.values.clear();
        self.keys[0].clear();
        push_field(&mut self.keys[0], name, 0, false).map_err(|_| {
            "no name: the cell that names the thing is empty or holds a NUL byte".to_owned()
        })?;
        if let Some(class) = class {
            let mut relation = Vec::new();
            key::push_iri(&mut relation, key::RDF_TYPE);
            self.values.push((relation, class.clone()));
        }
        Ok(())
    }

    fn text(&mut self, relation: &[u8], text: &str, split: Option<&String>) -> Result<(), String> {
        let parts: Vec<&str> = match split {
            Some(split) => text.split(split.as_str()).collect(),
            None => vec![text],
        };
        for part in parts.into_iter().map(str::trim).filter(|p| !p.is_empty()) {
            let mut key = Vec::new();
            push_field(&mut key, part, 2, true)?;
            self.values.push((relation.to_owned(), key));
        }
        Ok(())
    }

    fn literal(&mut self, relation: &[u8], text: &str, local: &str) {
        let mut key = Vec::new();
        let kind = format!("{XSD}{local}");
        key::push_literal(&mut key, text, LiteralKindRef::Typed(&kind));
        self.values.push((relation.to_owned(), key));
    }

    fn number(&mut self, relation: &[u8], number: &Number) {
        let local = if number.is_f64() { "double" } else { "integer" };
        self.literal(relation, &number.to_string(), local);
    }

    /// A JSON value; lists lie in no other lists.
    fn value(
        &mut self,
        name: &str,
        relation: &[u8],
        value: &Value,
        split: Option<&String>,
    ) -> Result<(), String> {
        match value {
            Value::Null => Ok(()),
            Value::String(text) => self.text(relation, text, split),
            Value::Number(number) => {
                self.number(relation, number);
                Ok(())
            }
            Value::Bool(truth) => {
                self.literal(relation, &truth.to_string(), "boolean");
                Ok(())
            }
            Value::Array(all) if !all.iter().any(Value::is_array) => {
                (all.iter()).try_for_each(|value| self.value(name, relation, value, split))
            }
            Value::Array(_) => Err(format!("`{}` is a list of lists", short(name))),
            Value::Object(_) => Err(format!(
                "`{}` is an object; only strings, numbers, booleans and lists of them are supported",
                short(name)
            )),
        }
    }

    /// Calls `each` with the keys of every triple.
    pub(crate) fn triples<E>(
        &mut self,
        mut each: impl FnMut(&TripleKeys) -> Result<(), E>,
    ) -> Result<(), E> {
        for (relation, value) in self.values.drain(..) {
            self.keys[1] = relation;
            self.keys[2] = value;
            each(&self.keys)?;
        }
        Ok(())
    }

    /// Reads one record of a table; false if it is blank.
    pub(crate) fn row(
        &mut self,
        record: &str,
        format: Format,
        columns: &TableColumns,
    ) -> Result<bool, String> {
        let record = record.trim_end_matches('\r');
        let cells = fields(record, format);
        if cells.iter().all(|cell| cell.trim().is_empty()) {
            return Ok(false);
        }
        let named = columns.relations.len();
        if cells.iter().skip(named).any(|cell| !cell.trim().is_empty()) {
            return Err(format!(
                "{} cells, and the first line names {named} columns",
                cells.len()
            ));
        }
        let name = cells.get(columns.name).map_or("", |cell| cell);
        self.begin(name, columns.class.as_ref())?;
        for (cell, relation) in cells.iter().zip(&columns.relations) {
            if let Some(relation) = relation {
                self.text(relation, cell, columns.split.as_ref())?;
            }
        }
        Ok(true)
    }

    /// Reads one object.
    pub(crate) fn object(
        &mut self,
        element: &JsonElement,
        names: &ObjectNames,
    ) -> Result<(), String> {
        let JsonElement::Object(object) = element else {
            return Err("no object".to_owned());
        };
        let own = |(name, _): &&(String, Value)| *name == names.name;
        let missing = || format!("no `{}`, which names the thing", short(&names.name));
        match &object.iter().find(own).ok_or_else(missing)?.1 {
            Value::String(text) => self.begin(text, names.class.as_ref())?,
            Value::Number(number) => self.begin(&number.to_string(), names.class.as_ref())?,
            _ => return Err(missing()),
        }
        for (name, value) in object.iter().filter(|pair| !own(pair)) {
            if name.trim().is_empty() || name.contains('\0') {
                return Err("a name of a relation is empty or holds a NUL byte".to_owned());
            }
            let relation = entity_key(name.trim());
            self.value(name, &relation, value, names.split.as_ref())?;
        }
        Ok(())
    }
}

/// The beginning of a name, for a message about it.
fn short(name: &str) -> String {
    name.chars().take(60).collect()
}

/// A JSON value; what stands in an object keeps its order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum JsonElement {
    Object(Vec<(String, Value)>),
    Other(Value),
}

impl JsonElement {
    pub(crate) fn value(self) -> Value {
        match self {
            JsonElement::Object(object) => Value::Object(object.into_iter().collect::<Map<_, _>>()),
            JsonElement::Other(value) => value,
        }
    }
}

impl<'de> Deserialize<'de> for JsonElement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = JsonElement;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonElement, A::Error> {
                let mut object = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    object.push(pair);
                }
                Ok(JsonElement::Object(object))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<JsonElement, A::Error> {
                let mut list = Vec::new();
                while let Some(value) = seq.next_element()? {
                    list.push(value);
                }
                Ok(JsonElement::Other(Value::Array(list)))
            }

            fn visit_str<E>(self, text: &str) -> Result<JsonElement, E> {
                Ok(JsonElement::Other(text.into()))
            }

            fn visit_bool<E>(self, truth: bool) -> Result<JsonElement, E> {
                Ok(JsonElement::Other(truth.into()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<JsonElement, E> {
                Ok(JsonElement::Other(number.into()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<JsonElement, E> {
                Ok(JsonElement::Other(number.into()))
            }

            fn visit_f64<E>(self, number: f64) -> Result<JsonElement, E> {
                Ok(JsonElement::Other(number.into()))
            }

            fn visit_unit<E>(self) -> Result<JsonElement, E> {
                Ok(JsonElement::Other(Value::Null))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Standard input: its rows have no class.
    const FILE: &str = "";

    fn triples(row: &mut RowTriples) -> Vec<[String; 3]> {
        let mut found = Vec::new();
        let done: Result<(), ()> = row.triples(|keys| {
            found.push(keys.clone().map(|k| String::from_utf8(k).unwrap()));
            Ok(())
        });
        done.unwrap();
        found
    }

    fn read(wide: &Wide, header: &str, record: &str) -> Result<Vec<[String; 3]>, String> {
        let (columns, _) = wide.columns(header, Format::Csv, FILE)?;
        let mut row = RowTriples::default();
        row.row(record, Format::Csv, &columns)?;
        Ok(triples(&mut row))
    }

    fn json(wide: &Wide, text: &str) -> Result<Vec<[String; 3]>, String> {
        let element: JsonElement = serde_json::from_str(text).unwrap();
        let names = wide.names(&element, FILE)?;
        let mut row = RowTriples::default();
        row.object(&element, &names)?;
        Ok(triples(&mut row))
    }

    #[test]
    fn a_row_is_a_thing_and_columns_are_its_relations() {
        let plain = Wide::default();
        let header = "name,born in,age,notes";
        assert_eq!(
            read(&plain, header, "Ada,London,36,").unwrap(),
            [
                ["nAda", "nborn in", "nLondon"],
                ["nAda", "nage", "l36\0^#integer"]
            ]
        );
        // a row may end early, but not go on
        assert_eq!(read(&plain, header, "Ada,London").unwrap().len(), 1);
        let long = read(&plain, header, "Ada,a,b,c,d").unwrap_err();
        assert_eq!(long, "5 cells, and the first line names 4 columns");
        assert!(
            read(&plain, header, ",London")
                .unwrap_err()
                .contains("no name")
        );
        assert!(read(&plain, header, " , ,").unwrap().is_empty());
        assert!(read(&plain, header, "Ada,a\0b").is_err());
    }

    #[test]
    fn cells_with_several_values_are_split_where_that_is_said() {
        let split = Wide {
            name_column: Some("title".into()),
            split: Some(";".into()),
            ..Wide::default()
        };
        assert_eq!(
            read(&split, "year,Title,cast", "1999,Matrix,Keanu; Carrie;").unwrap(),
            [
                ["nMatrix", "nyear", "l1999\0^#integer"],
                ["nMatrix", "ncast", "nKeanu"],
                ["nMatrix", "ncast", "nCarrie"]
            ]
        );
        let by_number = Wide {
            name_column: Some("2".into()),
            ..Wide::default()
        };
        let triple = &read(&by_number, "year,title", "1999,a;b").unwrap()[0];
        assert_eq!(triple[0], "na;b");
        for missing in ["0", "4", "director"] {
            let wide = Wide {
                name_column: Some(missing.into()),
                ..Wide::default()
            };
            assert!(read(&wide, "year,title", "1999,a").is_err(), "{missing}");
        }
    }

    #[test]
    fn rows_are_of_the_class_that_is_given_or_that_their_file_is_called() {
        let class = |wide: &Wide, file: &str, header: &str| {
            let (columns, _) = wide.columns(header, Format::Csv, file).unwrap();
            let mut row = RowTriples::default();
            row.row("Mint,45", Format::Csv, &columns).unwrap();
            let found = triples(&mut row);
            let is_type = |t: &&[String; 3]| t[1].ends_with("type");
            found.iter().find(is_type).map(|t| t[2].clone())
        };
        let plain = Wide::default();
        let named = |name: &str| Wide {
            class: Some(name.into()),
            ..Wide::default()
        };
        let kitchen = class(&plain, "kitchen_herbs", "name,height");
        assert_eq!(kitchen.as_deref(), Some("nkitchen herbs"));
        let herb = class(&named("herb"), "plants", "name,height");
        assert_eq!(herb.as_deref(), Some("nherb"));
        assert_eq!(class(&named(" "), "plants", "name,height"), None);
        assert_eq!(class(&plain, "", "name,height"), None);
        // the column says it
        assert_eq!(class(&plain, "plants", "name,Type").as_deref(), None);
        for column in ["herb_name", "Herb", "herbTitle", "herb"] {
            let herb = class(&plain, "plants", &format!("{column},height"));
            assert_eq!(herb.as_deref(), Some("nherb"), "{column}");
        }
        for column in ["full_name", "title", "commonName", "id"] {
            let plants = class(&plain, "plants", &format!("{column},height"));
            assert_eq!(plants.as_deref(), Some("nplants"), "{column}");
        }
    }

    #[test]
    fn rows_are_named_by_a_name_where_the_first_column_only_numbers_them() {
        let named = |header: &str| {
            let columns: Vec<&str> = header.split(',').collect();
            columns[name_column(&columns)].to_owned()
        };
        assert_eq!(named("boat_id,length,boat_name"), "boat_name");
        assert_eq!(named("ID,owner_name,name"), "name");
        assert_eq!(named("id,length"), "id");
        assert_eq!(named("city,name of the mayor"), "city");
    }

    #[test]
    fn a_table_is_wide_where_its_rows_cannot_be_triples() {
        let csv = |text: &str| is_wide(text.as_bytes(), Format::Csv);
        assert!(csv(
            "boat,builder,length,owner\nDunlin,Lomax,8.7,Tom\nTern,Lomax,4,Ann\n"
        ));
        assert!(csv("boat,owner\nDunlin,Tom\n"));
        assert!(csv("boat,length,owner\nDunlin,8.7,Tom\nTern,,Ann\n"));
        // triples, with and without more beside them
        assert!(!csv("Dunlin,owner,Tom\nTern,owner,Ann\n"));
        assert!(!csv("Dunlin,owner,Tom,0.9\nTern,owner,Ann,0.8\n"));
        assert!(!csv("Dunlin,owner,Tom,a,b\nTern,owner,Ann,c,d\n"));
        // nothing below the names of columns, lines of many lengths, a cell without a name
        assert!(!csv("boat,builder,length,owner\n"));
        assert!(!csv("a,b,c,d,e\n1\n2,3\n"));
        assert!(!csv("a,,c,d,e\n1,2,3,4,5\n"));
    }

    #[test]
    fn columns_without_a_name_are_told() {
        let (_, notes) = Wide::default()
            .columns(",a,,b\r", Format::Csv, FILE)
            .unwrap();
        let done = "column 3 has no name in the first line, and was not read";
        assert_eq!(notes, [done]);
        for bad in ["name", "name,", "name,\0"] {
            assert!(
                Wide::default().columns(bad, Format::Csv, FILE).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn an_object_is_a_thing_and_a_list_is_several_values() {
        let plain = Wide::default();
        let text =
            r#"{"title":"Matrix","year":1999,"cast":["Keanu","Carrie"],"sequel":null,"good":true}"#;
        assert_eq!(
            json(&plain, text).unwrap(),
            [
                ["nMatrix", "nyear", "l1999\0^#integer"],
                ["nMatrix", "ncast", "nKeanu"],
                ["nMatrix", "ncast", "nCarrie"],
                ["nMatrix", "ngood", "ltrue\0^#boolean"]
            ]
        );
        let by_name = Wide {
            name_column: Some("id".into()),
            ..Wide::default()
        };
        let triple = &json(&by_name, r#"{"a":1.5,"id":7}"#).unwrap()[0];
        assert_eq!(triple, &["n7", "na", "l1.5\0^#double"]);
        for bad in [
            r#"{"a":1}"#,
            r#"{"id":null}"#,
            r#"{"id":"x","a":{"b":1}}"#,
            r#"{"id":"x","a":[[1]]}"#,
            r#"{"id":"x","":1}"#,
            "[1]",
        ] {
            assert!(json(&by_name, bad).is_err(), "{bad}");
        }
    }
}
