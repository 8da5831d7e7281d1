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

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::fields::{entity_key, fields, push_field};
use super::source::Format;
use crate::key::{self, LiteralKindRef, TripleKeys, XSD};

pub(super) const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
/// Columns that say what a row is: then no class is needed.
const TYPE_COLUMNS: [&str; 5] = ["type", "class", "instance of", "instance_of", "is_a"];

/// Options for wide tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wide {
    /// The column with the entity's name: its number from 1, or its name; the first if not set.
    pub name_column: Option<String>,
    /// The separator of several values in a cell.
    pub split: Option<String>,
    /// The class of the rows, none if it is empty. If not set it is called as the file or the sheet
    /// is, unless a column says what the rows are.
    pub class: Option<String>,
}

/// Columns of one table.
#[derive(Debug)]
pub(crate) struct TableColumns {
    name: usize,
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

impl Wide {
    fn split(&self) -> Option<String> {
        self.split.clone().filter(|split| !split.is_empty())
    }

    /// The class of the rows of `file`, which has these columns.
    fn class<'c>(&self, file: &str, mut columns: impl Iterator<Item = &'c str>) -> Option<Vec<u8>> {
        let is_type = |column: &str| TYPE_COLUMNS.iter().any(|t| column.eq_ignore_ascii_case(t));
        let name = match &self.class {
            Some(class) => class.trim().to_owned(),
            None if columns.any(is_type) => return None,
            None => file.replace(['_', '-'], " ").trim().to_owned(),
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
            None => 0,
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
                relations,
                split: self.split(),
                class: self.class(file, cells.iter().copied()),
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
            None => (object.first())
                .map(|(name, _)| name.clone())
                .ok_or("its first object is empty")?,
        };
        Ok(ObjectNames {
            name,
            split: self.split(),
            class: self.class(file, object.iter().map(|(name, _)| name.as_str())),
        })
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
            key::push_iri(&mut relation, RDF_TYPE);
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
