//! A form in plain English.
//!
//! ```text
//! (JOIN (R r) S)   the r of S                (JOIN r S)     those whose r is S
//! (AND S T)        S, those whose …          (COUNT S)      the number of S
//! (ARGMAX S p)     the one with the largest p among S
//! (TOP S m 3)      the 3 with the largest m among S
//! (NTH S m 2)      the one with the second largest m among S
//! (lt m N)         those whose m is less than N    (lt m m')      those whose m is less than their m'
//! (EXCEPT S T)     S except T                (TC S r t)     S, as of t
//! (HOW_MANY r)     number of its r           (SUM r m)      total m of all its r
//! (ADD m m')       m plus m'                 (SUM S m)      the total m of S
//! (ANY S)          whether there is any S    (IS lt N M)    whether N is less than M
//! (TABLE S m m')   for S: the m and the m'
//! ```
//!
//! What has a comma, an *or* or an *also* of its own stands in parentheses inside of others, so that
//! no two forms read the same.

use wherefore_graph::Graph;
use wherefore_graph::names::local_part;

use super::form::{Comparison, Constant, Extreme, Form, Place, Relation, Table};
use super::measure::{Aggregate, Measure, Number, Operator, Than};
use super::plan::{relation_called, sense_of};
use super::value::Sense;
use crate::error::Result;

impl Form {
    /// The form in words, with the graph's labels for its names.
    pub fn english(&self, graph: &dyn Graph) -> Result<String> {
        Speaker { graph }.form(self)
    }
}

impl Measure {
    /// The measure in words, to be said after *the*.
    pub fn english(&self, graph: &dyn Graph) -> Result<String> {
        Speaker { graph }.measure(self)
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
                let of = self.within(of, |f| reaches_on(f) && !matches!(f, Form::Best(..)))?;
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
                if let [one] = all.as_slice() {
                    return self.form(one);
                }
                let parts: Vec<String> = (all.iter())
                    .map(|f| self.within(f, |f| reaches_on(f) || matches!(f, Form::Join(..))))
                    .collect::<Result<_>>()?;
                parts.join(" or ")
            }
            Form::Except(of, not) => {
                let [of, not] = [self.member(of)?, self.member(not)?];
                format!("{of} except {not}")
            }
            Form::Best(rank, of, by) => {
                let degree = degree(rank.extreme, self.sense(by)?);
                let by = self.phrase(by)?;
                let of = self.operand(of)?;
                match rank.place {
                    Place::Best => format!("the one with the {degree} {by} among {of}"),
                    Place::First(k) => format!("the {k} with the {degree} {by} among {of}"),
                    Place::Nth(k) => {
                        format!(
                            "the one with the {} {degree} {by} among {of}",
                            ordinal(k.get())
                        )
                    }
                }
            }
            Form::Compare(is, by, than) => {
                let is = compared(*is, self.sense(by)?);
                let than = match than {
                    Than::Number(number) => self.side(number)?,
                    Than::Measure(measure) => format!("their {}", self.measure(measure)?),
                };
                format!("those whose {} is {is}{than}", self.measure(by)?)
            }
            Form::Number(number) => self.number(number)?,
            Form::Any(of) => self.whether(of)?,
            Form::Is(is, a, b) => {
                let sense = match self.sense_of_number(a)? {
                    Some(sense) => Some(sense),
                    None => self.sense_of_number(b)?,
                };
                let [a, b] = [self.side(a)?, self.side(b)?];
                format!("whether {a} is {}{b}", compared(*is, sense))
            }
            Form::Table(table) => self.table(table)?,
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

    /// A measure, to be said after *the* or *whose*.
    fn measure(&self, measure: &Measure) -> Result<String> {
        Ok(match measure {
            Measure::Path(path) => self.way(path)?,
            Measure::HowMany(path, None) => format!("number of {}", self.several(path)?),
            Measure::HowMany(path, Some(of)) => {
                let path = self.several(path)?;
                format!("number of {path} among {}", self.member(of)?)
            }
            Measure::Over(aggregate, path, by) => {
                let made = made(*aggregate, self.sense(by)?);
                let by = self.inner(by)?;
                let path = self.several(path)?;
                match aggregate {
                    Aggregate::Largest | Aggregate::Smallest => format!("{made} {by} among {path}"),
                    _ => format!("{made} {by} of all {path}"),
                }
            }
            Measure::Arithmetic(operator, a, b) => {
                format!("{} {} {}", self.inner(a)?, said(*operator), self.inner(b)?)
            }
            Measure::Constant(constant) => spoken(constant),
        })
    }

    /// A measure inside of another, in parentheses where it is more than one word's thing.
    fn inner(&self, measure: &Measure) -> Result<String> {
        let text = self.measure(measure)?;
        Ok(match measure {
            Measure::Path(path) if path.len() == 1 => text,
            Measure::Constant(_) => text,
            _ => format!("({text})"),
        })
    }

    fn number(&self, number: &Number) -> Result<String> {
        Ok(match number {
            Number::Constant(constant) => spoken(constant),
            Number::Count(of) => format!("the number of {}", self.operand(of)?),
            Number::Of(aggregate, of, by) => {
                let made = made(*aggregate, self.sense(by)?);
                let by = self.phrase(by)?;
                let of = self.operand(of)?;
                match aggregate {
                    Aggregate::Largest | Aggregate::Smallest => {
                        format!("the {made} {by} among {of}")
                    }
                    Aggregate::Only => format!("the {by} of {of}"),
                    Aggregate::Sum | Aggregate::Average => format!("the {made} {by} of {of}"),
                }
            }
            Number::Arithmetic(operator, a, b) => {
                let side = |n: &Number| -> Result<String> {
                    let text = self.number(n)?;
                    Ok(match n {
                        Number::Constant(_) => text,
                        _ => format!("({text})"),
                    })
                };
                format!("{} {} {}", side(a)?, said(*operator), side(b)?)
            }
        })
    }

    /// A number among other words, in parentheses where these would seem to belong to it.
    fn side(&self, number: &Number) -> Result<String> {
        let text = self.number(number)?;
        let open = match number {
            Number::Constant(_) => false,
            Number::Count(of) | Number::Of(_, of, _) => reaches_on(of),
            Number::Arithmetic(..) => true,
        };
        Ok(if open { format!("({text})") } else { text })
    }

    /// A measure after *largest* or *total*: what is calculated stands in parentheses.
    fn phrase(&self, measure: &Measure) -> Result<String> {
        match measure {
            Measure::Arithmetic(..) => self.inner(measure),
            measure => self.measure(measure),
        }
    }

    /// Yes or no: *whether Berlin is the capital of Germany*.
    fn whether(&self, of: &Form) -> Result<String> {
        if let Form::And(all) = of
            && let [Form::Or(entity), rest @ ..] = all.as_slice()
            && let ([name @ Form::Name(_)], false) = (entity.as_slice(), rest.is_empty())
        {
            let name = self.form(name)?;
            let rest = match rest {
                [one] => self.operand(one)?,
                several => self.form(&Form::And(several.to_vec()))?,
            };
            return Ok(
                match (
                    rest.strip_prefix("every "),
                    rest.strip_prefix("those whose "),
                ) {
                    (Some(class), _) => format!("whether {name} is one of all {class}"),
                    (_, Some(what)) => format!("whether {name} is one of those whose {what}"),
                    _ => format!("whether {name} is {rest}"),
                },
            );
        }
        let text = self.operand(of)?;
        Ok(
            match (text.strip_prefix("every "), text.strip_prefix("those ")) {
                (Some(class), _) => format!("whether there is any {class}"),
                (_, Some(what)) => format!("whether there is anything {what}"),
                _ => format!("whether there is anything that is {text}"),
            },
        )
    }

    fn table(&self, table: &Table) -> Result<String> {
        let mut text = format!("for {}", self.member(&table.of)?);
        for (i, column) in table.columns.iter().enumerate() {
            let joint = if i == 0 { ":" } else { " and" };
            text += &format!("{joint} the {}", self.inner(column)?);
        }
        if let Some((by, extreme)) = &table.order {
            let degree = degree(*extreme, self.sense(by)?);
            text += &format!(", ordered by the {}, {degree} first", self.inner(by)?);
        }
        match table.slice {
            Some((from, to)) if from == to => text += &format!(", row {from}"),
            Some((from, to)) => text += &format!(", rows {from} to {to}"),
            None => {}
        }
        Ok(text)
    }

    /// A form where a name is a class, in parentheses where it has more than one part.
    fn member(&self, form: &Form) -> Result<String> {
        match form {
            Form::Name(_) => self.operand(form),
            form => self.within(form, |f| !matches!(f, Form::Or(all) if all.len() == 1)),
        }
    }

    /// What a path leads to: `border`, `those that have it as owner`.
    fn several(&self, path: &[Relation]) -> Result<String> {
        Ok(match path {
            [one] if one.reversed => {
                format!("those that have it as {}", self.relation(one)?)
            }
            path => format!("its {}", self.way(path)?),
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

    /// What the values of a measure are, where that is known.
    fn sense(&self, measure: &Measure) -> Result<Option<Sense>> {
        match measure {
            Measure::Path(path) => match path.last() {
                Some(last) => match relation_called(&last.name, self.graph)? {
                    Some(relation) => sense_of(relation, self.graph),
                    None => Ok(None),
                },
                None => Ok(None),
            },
            Measure::Over(aggregate, _, by) if !aggregate.adds() => self.sense(by),
            _ => Ok(Some(Sense::Number)),
        }
    }

    fn sense_of_number(&self, number: &Number) -> Result<Option<Sense>> {
        match number {
            Number::Of(aggregate, _, by) if !aggregate.adds() => self.sense(by),
            Number::Constant(_) => Ok(None),
            _ => Ok(Some(Sense::Number)),
        }
    }
}

fn degree(extreme: Extreme, sense: Option<Sense>) -> &'static str {
    match (extreme, sense) {
        (Extreme::Largest, Some(Sense::Time)) => "latest",
        (Extreme::Smallest, Some(Sense::Time)) => "earliest",
        (Extreme::Largest, _) => "largest",
        (Extreme::Smallest, _) => "smallest",
    }
}

fn made(aggregate: Aggregate, sense: Option<Sense>) -> &'static str {
    match aggregate {
        Aggregate::Sum => "total",
        Aggregate::Average => "average",
        Aggregate::Largest => degree(Extreme::Largest, sense),
        Aggregate::Smallest => degree(Extreme::Smallest, sense),
        Aggregate::Only => "only",
    }
}

fn said(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "plus",
        Operator::Subtract => "minus",
        Operator::Multiply => "times",
        Operator::Divide => "divided by",
    }
}

/// What stands between *is* and the other value, with the space after it.
fn compared(is: Comparison, sense: Option<Sense>) -> &'static str {
    match (is, sense == Some(Sense::Time)) {
        (Comparison::Less, false) => "less than ",
        (Comparison::AtMost, false) => "at most ",
        (Comparison::Greater, false) => "more than ",
        (Comparison::AtLeast, false) => "at least ",
        (Comparison::Less, true) => "before ",
        (Comparison::AtMost, true) => "not after ",
        (Comparison::Greater, true) => "after ",
        (Comparison::AtLeast, true) => "not before ",
        (Comparison::Equal, _) => "equal to ",
        (Comparison::NotEqual, _) => "not equal to ",
    }
}

fn ordinal(n: u32) -> String {
    const WORDS: [&str; 10] = [
        "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
        "tenth",
    ];
    let ending = match (n % 100, n % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    match WORDS.get(n as usize - 1) {
        Some(word) => (*word).to_owned(),
        None => format!("{n}{ending}"),
    }
}

/// Whether what is said after it would seem to belong to its last part.
fn reaches_on(form: &Form) -> bool {
    matches!(
        form,
        Form::And(_) | Form::Except(..) | Form::Best(..) | Form::At(..)
    ) || matches!(form, Form::Or(all) if all.len() > 1
    )
}

fn spoken(constant: &Constant) -> String {
    match constant {
        Constant::Now => "now".into(),
        Constant::Bare(text) => text.clone(),
        Constant::Literal(literal) => literal.value.clone(),
    }
}
