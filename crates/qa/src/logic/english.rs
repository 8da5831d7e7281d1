//! A form in plain English.
//!
//! ```text
//! (JOIN (R r) S)   the r of S                (JOIN r S)     those whose r is S
//! (AND S T)        S, those whose …          (COUNT S)      the number of S
//! (ARGMAX S p)     the one with the largest p among S
//! (lt p v)         those whose p is less than v
//! (TC S r t)       S, as of t
//! ```
//!
//! What has a comma, an *or* or an *also* of its own stands in parentheses inside of others, so that
//! no two forms read the same.

use wherefore_graph::Graph;
use wherefore_graph::names::local_part;

use super::form::{Comparison, Constant, Extreme, Form, Relation};
use super::plan::{relation_called, sense_of};
use super::value::Sense;
use crate::error::Result;

impl Form {
    /// The form in words, with the graph's labels for its names.
    pub fn english(&self, graph: &dyn Graph) -> Result<String> {
        Speaker { graph }.form(self)
    }
}

struct Speaker<'a> {
    graph: &'a dyn Graph,
}

impl Speaker<'_> {
    fn form(&self, form: &Form) -> Result<String> {
        Ok(match form {
            Form::Name(name) => self.entity(name)?,
            Form::Constant(constant) => spoken(constant),
            Form::Join(relation, of) => {
                let name = self.relation(relation)?;
                let of = self.within(of, |f| {
                    matches!(f, Form::And(_) | Form::Or(_) | Form::At(..))
                })?;
                match relation.reversed {
                    true => format!("the {name} of {of}"),
                    false => format!("those whose {name} is {of}"),
                }
            }
            Form::And(all) => {
                // what leads somewhere first, then what must also be true of it
                let is_condition = |form: &&Form| {
                    matches!(form, Form::Compare(..))
                        || matches!(form, Form::Join(r, _) if !r.reversed)
                };
                let mut parts = Vec::with_capacity(all.len());
                for form in all.iter().filter(|f| !is_condition(f)) {
                    parts.push(match form {
                        Form::Name(_) => self.operand(form)?,
                        form => self.within(form, reaches_on)?,
                    });
                }
                for form in all.iter().filter(is_condition) {
                    let text = self.form(form)?;
                    parts.push(if parts.is_empty() {
                        text
                    } else {
                        text.replacen("those whose", "whose", 1)
                    });
                }
                let mut text = parts.remove(0);
                for part in parts {
                    let joint = if part.starts_with("whose") {
                        ", "
                    } else {
                        " that are also "
                    };
                    text = format!("{text}{joint}{part}");
                }
                text
            }
            Form::Or(all) => {
                let parts: Vec<String> = (all.iter())
                    .map(|f| self.within(f, |f| reaches_on(f) || matches!(f, Form::Join(..))))
                    .collect::<Result<_>>()?;
                parts.join(" or ")
            }
            Form::Count(of) => format!("the number of {}", self.operand(of)?),
            Form::Best(extreme, of, by) => {
                let degree = match (extreme, self.is_time(by)?) {
                    (Extreme::Largest, false) => "largest",
                    (Extreme::Smallest, false) => "smallest",
                    (Extreme::Largest, true) => "latest",
                    (Extreme::Smallest, true) => "earliest",
                };
                let by = self.way(by)?;
                format!("the one with the {degree} {by} among {}", self.operand(of)?)
            }
            Form::Compare(is, by, than) => {
                let time = self.is_time(by)?;
                let sign = match (is, time) {
                    (Comparison::Less, false) => "less than",
                    (Comparison::AtMost, false) => "at most",
                    (Comparison::Greater, false) => "more than",
                    (Comparison::AtLeast, false) => "at least",
                    (Comparison::Less, true) => "before",
                    (Comparison::AtMost, true) => "not after",
                    (Comparison::Greater, true) => "after",
                    (Comparison::AtLeast, true) => "not before",
                };
                format!("those whose {} is {sign} {}", self.way(by)?, spoken(than))
            }
            Form::At(of, _, time) => {
                let of = match &**of {
                    Form::Best(..) => self.within(of, reaches_on)?,
                    of => self.operand(of)?,
                };
                match time {
                    Constant::Now => format!("{of}, now"),
                    time => format!("{of}, as of {}", spoken(time)),
                }
            }
        })
    }

    /// A form inside of another, in parentheses where these are `needed`.
    fn within(&self, form: &Form, needed: impl Fn(&Form) -> bool) -> Result<String> {
        let text = self.form(form)?;
        Ok(match needed(form) {
            true => format!("({text})"),
            false => text,
        })
    }

    /// A form where a name is a class.
    fn operand(&self, form: &Form) -> Result<String> {
        match form {
            Form::Name(name) => Ok(format!("every {}", self.entity(name)?)),
            form => self.form(form),
        }
    }

    fn entity(&self, name: &str) -> Result<String> {
        let found = self
            .graph
            .entities_named(name, wherefore_graph::NameMatch::Exact)?;
        Ok(match found.as_slice() {
            [one] => self.graph.entity_label(*one)?.into_owned(),
            _ => name.to_owned(),
        })
    }

    /// The last part of a relation's name: `people.person.sibling_s` is `sibling s`.
    fn relation(&self, relation: &Relation) -> Result<String> {
        let label = match relation_called(&relation.name, self.graph)? {
            Some(found) => self.graph.relation_label(found)?.into_owned(),
            None => relation.name.clone(),
        };
        let local = local_part(&label);
        let last = local.rsplit('.').next().unwrap_or(&local);
        Ok(crate::words::opened(last))
    }

    /// `capacity of the venue record`; `capacity of the one that has it as owner` where a relation
    /// is read from tail to head.
    fn way(&self, by: &[Relation]) -> Result<String> {
        let mut words: Option<String> = None;
        for relation in by {
            let name = self.relation(relation)?;
            words = Some(match (words, relation.reversed) {
                (None, false) => name,
                (None, true) => format!("one that has it as {name}"),
                (Some(words), false) => format!("{name} of the {words}"),
                (Some(words), true) => format!("one that has the {words} as {name}"),
            });
        }
        Ok(words.unwrap_or_default())
    }

    fn is_time(&self, by: &[Relation]) -> Result<bool> {
        let Some(last) = by.last() else {
            return Ok(false);
        };
        Ok(match relation_called(&last.name, self.graph)? {
            Some(relation) => sense_of(relation, self.graph)? == Some(Sense::Time),
            None => false,
        })
    }
}

/// Whether what is said after it would seem to belong to its last part.
fn reaches_on(form: &Form) -> bool {
    matches!(
        form,
        Form::And(_) | Form::Or(_) | Form::Best(..) | Form::At(..)
    )
}

fn spoken(constant: &Constant) -> String {
    match constant {
        Constant::Now => "now".into(),
        Constant::Bare(text) => text.clone(),
        Constant::Literal(literal) => literal.value.clone(),
    }
}
