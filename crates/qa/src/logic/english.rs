//! A form in plain English.
//!
//! ```text
//! class               countries                       (JOIN (R capital) [France])  the capital of France
//! (JOIN capital S)    things whose capital is S       (AND country (JOIN …))       countries whose …
//! (JOIN borders S)    things with borders: S          (EXCEPT S T)                 S other than T
//! (ARGMAX S m)        the country with the largest m  (NTH S m 2)                  the country with the second largest m
//! (TOP S m 3)         the 3 countries with the largest m [among those …]
//! (lt m N)            things whose m is less than N   (lt m m')                    things whose m is less than their m'
//! (HOW_MANY city)     number of cities                (SUM city m)                 total m of its cities
//! (DIV m m')          ratio of m to m'                (SUM S m)                    the total m of S
//! (COUNT S)           how many S; the number of S     (TC S r t)                   S, as of t
//! (ANY S)             whether there are any S         (IS lt N M)                  whether N is less than M
//! (TABLE S m m')      for each S: the m and the m'
//! ```
//!
//! A relation is told by its label, which may be anything. One that reads as a single noun is said
//! of its owner (*whose capital is Paris*, *the capital of France*), as are *member of* (*members of
//! the EU*) and *located in* (*located in France*). Whatever else it is, a verb or a plural, it
//! stands as a title: *with borders: Germany*, *things that San Francisco Giants has as won*.
//!
//! What would seem to belong to something else stands in parentheses, so that no two forms read the
//! same.

use wherefore_graph::Graph;
use wherefore_graph::names::local_part;

use super::form::{
    Aggregate, Comparison, Constant, Extreme, Form, Measure, Number, Operator, Place, Rank,
    Relation, Table, Than,
};
use super::nouns::{Label, Of, Shape, plural, with_article};
use super::plan::{relation_called, sense_of};
use super::value::Sense;
use crate::error::Result;
use crate::words::opened;

/// Whatever a relation leads to: *whose milk is something*.
const SOMETHING: &str = "something";

/// Labels whose extremes have words of their own: of the largest, and of the smallest.
const SUPERLATIVES: [(&str, &str, &str); 4] = [
    ("age", "oldest", "youngest"),
    ("depth", "deepest", "shallowest"),
    ("elevation", "highest", "lowest"),
    ("length", "longest", "shortest"),
];

impl Form {
    /// The form in words, with the graph's labels for its names.
    pub fn english(&self, graph: &dyn Graph) -> Result<String> {
        Speaker { graph }.root(self)
    }
}

impl Measure {
    /// The measure in words, to be said after *the*.
    pub fn english(&self, graph: &dyn Graph) -> Result<String> {
        Speaker { graph }.measure(self, Of::One, true)
    }
}

struct Speaker<'a> {
    graph: &'a dyn Graph,
}

/// A phrase, and whether more than one thing is said in it: these then stand in parentheses where
/// something else follows or is said with it.
struct Phrase {
    text: String,
    is_joined: bool,
}

impl Speaker<'_> {
    fn root(&self, form: &Form) -> Result<String> {
        match form {
            Form::Name(name) => self.entity(name),
            Form::Number(Number::Count(of)) => Ok(match self.indefinite(of)? {
                Some(several) => format!("how many {several}"),
                None => {
                    let of = self.set(of, true)?;
                    format!(
                        "how many of {}",
                        of.strip_prefix("those of ").unwrap_or(&of)
                    )
                }
            }),
            Form::Number(number) => self.number(number),
            Form::Any(of) => self.whether(of),
            Form::Is(is, a, b) => self.whether_so(*is, a, b),
            Form::Table(table) => self.table(table),
            set => self.set(set, true),
        }
    }

    /// A set where a name is a class; whether it is the `last` that is said.
    fn set(&self, form: &Form, last: bool) -> Result<String> {
        match self.noun(form, Of::Many, last)? {
            Some(noun) => Ok(noun.text),
            None => self.definite(form, last),
        }
    }

    /// A set where a name is a class, in parentheses where it has conditions or several parts.
    fn closed(&self, form: &Form) -> Result<String> {
        let text = self.set(form, true)?;
        Ok(match form {
            Form::Name(_) | Form::Constant(_) => text,
            Form::Join(..) if !self.is_condition(form)? => text,
            Form::Or(all) if all.len() == 1 => text,
            _ => format!("({text})"),
        })
    }

    /// Classes and conditions: a noun without an article, and what is true of it.
    fn noun(&self, form: &Form, of: Of, last: bool) -> Result<Option<Phrase>> {
        let joined = |text: String, is_joined: bool| Some(Phrase { text, is_joined });
        Ok(match form {
            Form::Name(class) => joined(self.class(class, of)?, false),
            Form::Except(class, not) if matches!(**class, Form::Name(_)) => {
                let class = self.set_of(class, of)?;
                joined(format!("{class} other than {}", self.others(not)?), true)
            }
            Form::And(all) => match self.head(all)? {
                Head::Class(at) => {
                    let class = self.set_of(&all[at], of)?;
                    let rest = all.iter().enumerate().filter(|(i, _)| *i != at);
                    let rest: Vec<&Form> = rest.map(|(_, form)| form).collect();
                    if rest.is_empty() {
                        return Ok(joined(class, false));
                    }
                    let conditions = self.conditions(&rest, of, last)?;
                    joined(format!("{class} {conditions}"), rest.len() > 1)
                }
                Head::Things => {
                    let rest: Vec<&Form> = all.iter().collect();
                    let conditions = self.conditions(&rest, of, last)?;
                    joined(format!("{} {conditions}", of.thing()), rest.len() > 1)
                }
                Head::Other(_) => None,
            },
            form => (self.condition(form, of, last)?).map(|condition| Phrase {
                text: format!("{} {}", of.thing(), condition.text),
                is_joined: condition.is_joined,
            }),
        })
    }

    fn head(&self, all: &[Form]) -> Result<Head> {
        if let Some(at) = all.iter().position(|form| matches!(form, Form::Name(_))) {
            return Ok(Head::Class(at));
        }
        for (at, form) in all.iter().enumerate() {
            if !self.is_condition(form)? {
                return Ok(Head::Other(at));
            }
        }
        Ok(Head::Things)
    }

    /// Whether a form says what is true of things, and not which they are.
    fn is_condition(&self, form: &Form) -> Result<bool> {
        Ok(match form {
            Form::Compare(..) => true,
            Form::Join(relation, _) => !relation.reversed || !self.relation(relation)?.is_noun(),
            Form::Or(all) => all.len() > 1 && self.are_conditions(all)?,
            _ => false,
        })
    }

    fn are_conditions(&self, all: &[Form]) -> Result<bool> {
        for form in all {
            if !self.is_condition(form)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn set_of(&self, form: &Form, of: Of) -> Result<String> {
        match form {
            Form::Name(class) => self.class(class, of),
            form => self.set(form, false),
        }
    }

    /// What is true of a thing, to be said after it: `whose capital is Paris`.
    fn condition(&self, form: &Form, of: Of, last: bool) -> Result<Option<Phrase>> {
        let text = match form {
            Form::Join(relation, to) if !relation.reversed => {
                let label = self.relation(relation)?;
                let (to, _) = self.object(to, last, true)?;
                label.is(&to, of)
            }
            Form::Join(relation, from) => {
                let label = self.relation(relation)?;
                if label.is_noun() {
                    return Ok(None);
                }
                let (from, number) = self.object(from, false, false)?;
                format!("that {}", label.leads(&from, number))
            }
            Form::Compare(Comparison::AtLeast, Measure::HowMany(path, None), than)
                if path.len() == 1 && than.is_one() =>
            {
                let label = self.relation(&path[0])?;
                match (path[0].reversed, label.is_noun()) {
                    (false, _) => label.is(SOMETHING, of),
                    (true, true) => format!("that {} the {} of {SOMETHING}", of.is(), label.text),
                    (true, false) => format!("that {}", label.leads(SOMETHING, Of::One)),
                }
            }
            Form::Compare(is, by, than) => {
                let is = compared(*is, self.sense(by)?);
                let than = match than {
                    Than::Number(number) => self.than(number, by, last)?,
                    Than::Measure(measure) => self.own(measure, of, last)?,
                };
                match by {
                    Measure::Path(path) if path.len() == 1 && !path[0].reversed => {
                        self.relation(&path[0])?.stands(&format!("{is}{than}"))
                    }
                    by => format!("whose {} is {is}{than}", self.measure(by, of, false)?),
                }
            }
            Form::Or(all) if self.is_condition(form)? => {
                let mut parts = Vec::with_capacity(all.len());
                for (i, form) in all.iter().enumerate() {
                    let last = last && i + 1 == all.len();
                    if let Some(part) = self.condition(form, of, last)? {
                        parts.push(part.text_within());
                    }
                }
                let text = parts.join(" or ");
                return Ok(Some(Phrase {
                    text,
                    is_joined: true,
                }));
            }
            _ => return Ok(None),
        };
        Ok(Some(Phrase {
            text,
            is_joined: false,
        }))
    }

    /// All that is true of a thing.
    fn conditions(&self, all: &[&Form], of: Of, last: bool) -> Result<String> {
        let mut parts = Vec::with_capacity(all.len());
        for (i, form) in all.iter().enumerate() {
            let last = last && i + 1 == all.len();
            parts.push(match self.condition(form, of, last)? {
                Some(condition) if all.len() > 1 => condition.text_within(),
                Some(condition) => condition.text,
                None => match form {
                    Form::Name(class) if of == Of::One => {
                        format!("that is {}", with_article(&self.class(class, of)?))
                    }
                    form => format!("that {} {}", of.is(), self.closed(form)?),
                },
            });
        }
        Ok(parts.join(" and "))
    }

    /// What is no noun with conditions.
    fn definite(&self, form: &Form, last: bool) -> Result<String> {
        Ok(match form {
            Form::Name(name) => self.entity(name)?,
            Form::Constant(constant) => spoken(constant),
            Form::Join(relation, from) => {
                let label = self.relation(relation)?;
                let (from, _) = self.object(from, last, false)?;
                format!("the {} of {from}", label.text)
            }
            Form::And(all) => match self.head(all)? {
                Head::Other(at) => {
                    let first = self.closed(&all[at])?;
                    let rest = all.iter().enumerate().filter(|(i, _)| *i != at);
                    let rest: Vec<&Form> = rest.map(|(_, form)| form).collect();
                    let conditions = self.conditions(&rest, Of::Many, last)?;
                    format!("those of {first} {conditions}")
                }
                _ => self.set(form, last)?,
            },
            Form::Or(all) => match all.as_slice() {
                [one] => self.object(one, last, false)?.0,
                all => {
                    let mut parts = Vec::with_capacity(all.len());
                    for form in all {
                        parts.push(match form {
                            Form::Name(_) | Form::Constant(_) => self.definite(form, false)?,
                            form => format!("({})", self.set(form, true)?),
                        });
                    }
                    parts.join(" or ")
                }
            },
            Form::Except(of, not) => {
                format!("{} other than {}", self.closed(of)?, self.others(not)?)
            }
            Form::Best(rank, of, by) => self.best(*rank, of, by, last)?,
            Form::At(of, _, time) => {
                let of = match &**of {
                    Form::And(_) | Form::Or(_) | Form::Except(..) | Form::Best(..) => {
                        self.closed(of)?
                    }
                    of => self.set(of, true)?,
                };
                match time {
                    Constant::Now => format!("{of}, now"),
                    time => format!("{of}, as of {}", spoken(time)),
                }
            }
            root => self.root(root)?,
        })
    }

    /// What a relation leads to or comes from, where a name is an entity; and how many it seems to
    /// be. Where it `may_choose`, *A or B* needs no parentheses at the end.
    fn object(&self, form: &Form, last: bool, may_choose: bool) -> Result<(String, Of)> {
        let one = |text: String| Ok((text, Of::One));
        match form {
            Form::Name(name) => one(self.entity(name)?),
            Form::Or(all) if all.len() == 1 => self.object(&all[0], last, may_choose),
            Form::Constant(_) => one(self.definite(form, last)?),
            Form::Join(..) if !self.is_condition(form)? => one(self.definite(form, last)?),
            Form::Best(..) if last => one(self.definite(form, last)?),
            Form::Or(all) if !self.are_conditions(all)? => {
                let text = self.definite(form, true)?;
                let is_plain = all
                    .iter()
                    .all(|f| matches!(f, Form::Name(_) | Form::Constant(_)));
                one(match last && may_choose && is_plain {
                    true => text,
                    false => format!("({text})"),
                })
            }
            form => Ok(match self.noun(form, Of::Many, last)? {
                Some(noun) if last && !noun.is_joined => (noun.text, Of::Many),
                Some(noun) => (format!("({})", noun.text), Of::Many),
                None => (format!("({})", self.definite(form, true)?), Of::Many),
            }),
        }
    }

    /// What is left out.
    fn others(&self, not: &Form) -> Result<String> {
        match not {
            Form::Or(all) if all.iter().all(|f| matches!(f, Form::Name(_))) => {
                self.definite(not, true)
            }
            not => match self.condition(not, Of::Many, true)? {
                Some(condition) => Ok(format!("those {}", condition.text)),
                None => self.closed(not),
            },
        }
    }

    /// `the 3 cities with the largest population among those located in France`.
    fn best(&self, rank: Rank, among: &Form, by: &Measure, last: bool) -> Result<String> {
        let (many, nth, of) = match rank.place {
            Place::Best => (String::new(), String::new(), Of::One),
            Place::First(k) if k.get() == 1 => ("1 ".into(), String::new(), Of::One),
            Place::First(k) => (format!("{k} "), String::new(), Of::Many),
            Place::Nth(k) => (String::new(), format!("{} ", ordinal(k.get())), Of::One),
        };
        let sole = std::slice::from_ref(among);
        let all = match among {
            Form::And(all) => all.as_slice(),
            _ => sole,
        };
        let (noun, rest) = match self.head(all)? {
            Head::Class(at) => {
                let rest = all.iter().enumerate().filter(|(i, _)| *i != at);
                let rest: Vec<&Form> = rest.map(|(_, form)| form).collect();
                (Some(self.set_of(&all[at], of)?), rest)
            }
            Head::Things => (Some(of.thing().to_owned()), all.iter().collect()),
            Head::Other(_) => (None, Vec::new()),
        };
        let among = match &noun {
            Some(_) if rest.is_empty() => String::new(),
            Some(_) => format!(" among those {}", self.conditions(&rest, Of::Many, last)?),
            None => format!(" among {}", self.set(among, last)?),
        };
        let superlative = match by {
            Measure::Path(path) if path.len() == 1 && !path[0].reversed => {
                let label = self.relation(&path[0])?.text;
                let found = SUPERLATIVES.iter().find(|(word, ..)| *word == label);
                found.map(|(_, largest, smallest)| match rank.extreme {
                    Extreme::Largest => *largest,
                    Extreme::Smallest => *smallest,
                })
            }
            _ => None,
        };
        if let (Some(noun), Some(word)) = (&noun, superlative) {
            return Ok(format!("the {many}{nth}{word} {noun}{among}"));
        }
        let degree = degree(rank.extreme, self.sense(by)?);
        let by = self.phrase(by, of, last && among.is_empty())?;
        let noun = match (noun, of) {
            (Some(noun), _) => format!("{noun} "),
            (None, Of::One) if many.is_empty() => "one ".into(),
            (None, _) => String::new(),
        };
        Ok(format!(
            "the {many}{noun}with the {nth}{degree} {by}{among}"
        ))
    }

    /// Several things without an article: `cities of France`.
    fn indefinite(&self, form: &Form) -> Result<Option<String>> {
        if let Form::Join(relation, from) = form
            && relation.reversed
        {
            let label = self.relation(relation)?;
            if label.is_noun() {
                let (from, _) = self.object(from, true, false)?;
                return Ok(Some(format!("{} of {from}", label.plural())));
            }
        }
        Ok(self.noun(form, Of::Many, true)?.map(|noun| noun.text))
    }

    /// A measure, to be said after *the* or *whose*.
    fn measure(&self, measure: &Measure, of: Of, last: bool) -> Result<String> {
        Ok(match measure {
            Measure::Path(path) => self.way(path, of)?,
            Measure::HowMany(path, among) => {
                let (several, has_clause) = self.reached(path, among.as_deref(), of, last)?;
                match has_clause && !last {
                    true => format!("number of ({several})"),
                    false => format!("number of {several}"),
                }
            }
            Measure::Over(aggregate, path, by) => {
                let made = made(*aggregate, self.sense(by)?);
                let by = self.inner(by, Of::One)?;
                let (path, is_clause) = self.reached(path, None, of, last)?;
                let owner = if is_clause { "all" } else { of.its() };
                match aggregate {
                    Aggregate::Largest | Aggregate::Smallest => {
                        format!("{made} {by} among {owner} {path}")
                    }
                    _ => format!("{made} {by} of {owner} {path}"),
                }
            }
            Measure::Arithmetic(operator, a, b) => {
                let are_measures = [a, b]
                    .iter()
                    .all(|side| !matches!(***side, Measure::Constant(_)));
                let [a, b] = [self.inner(a, of)?, self.inner(b, of)?];
                match operator {
                    Operator::Add if are_measures => format!("sum of {a} and {b}"),
                    Operator::Multiply if are_measures => format!("product of {a} and {b}"),
                    Operator::Divide if are_measures => format!("ratio of {a} to {b}"),
                    operator => format!("{a} {} {b}", said(*operator)),
                }
            }
            Measure::Constant(constant) => spoken(constant),
        })
    }

    /// A measure inside of another, in parentheses where it is more than one word's thing.
    fn inner(&self, measure: &Measure, of: Of) -> Result<String> {
        let text = self.measure(measure, of, true)?;
        Ok(match measure {
            Measure::Path(path) if path.len() == 1 => text,
            Measure::Constant(_) => text,
            _ => format!("({text})"),
        })
    }

    /// A measure after *largest* or *total*: `a minus b` stands in parentheses.
    fn phrase(&self, measure: &Measure, of: Of, last: bool) -> Result<String> {
        let text = self.measure(measure, of, last)?;
        let is_infix = match measure {
            Measure::Arithmetic(operator, a, b) => {
                *operator == Operator::Subtract
                    || [a, b]
                        .iter()
                        .any(|side| matches!(***side, Measure::Constant(_)))
            }
            _ => false,
        };
        Ok(if is_infix { format!("({text})") } else { text })
    }

    /// A measure of the same thing: `3 times their area`.
    fn own(&self, measure: &Measure, of: Of, last: bool) -> Result<String> {
        let side = |measure: &Measure| -> Result<String> {
            Ok(match measure {
                Measure::Constant(constant) => spoken(constant),
                measure => format!("{} {}", of.its(), self.inner(measure, of)?),
            })
        };
        Ok(match measure {
            Measure::Arithmetic(operator, a, b) => {
                let text = format!("{} {} {}", side(a)?, said(*operator), side(b)?);
                if last { text } else { format!("({text})") }
            }
            measure => format!("{} {}", of.its(), self.measure(measure, of, last)?),
        })
    }

    /// What a path leads to, of those in a set, as several things: `cities`, `things located in
    /// it`; and whether it says by itself whose they are, or has conditions.
    fn reached(
        &self,
        path: &[Relation],
        among: Option<&Form>,
        of: Of,
        last: bool,
    ) -> Result<(String, bool)> {
        let Some((end, before)) = path.split_last() else {
            return Ok((String::new(), false));
        };
        let label = self.relation(end)?;
        let all: &[Form] = match among {
            Some(Form::And(all)) => all,
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        let class = all.iter().position(|form| matches!(form, Form::Name(_)));
        let mut conditions: Vec<&Form> = all.iter().collect();
        let is_noun = !end.reversed && label.is_noun();
        let mut text = if is_noun {
            match before.is_empty() {
                true => label.plural(),
                false => format!("{} of the {}", label.plural(), self.way(before, of)?),
            }
        } else {
            let class = class.map(|at| conditions.remove(at));
            let head = match class {
                Some(class) => self.set_of(class, Of::Many)?,
                None => "things".into(),
            };
            let (at, it, number) = match before.is_empty() {
                true => (of.it().to_owned(), of.pick("it", "they").to_owned(), of),
                false => {
                    let way = format!("the {}", self.way(before, of)?);
                    (way.clone(), way, Of::One)
                }
            };
            match end.reversed {
                true => format!("{head} {}", label.owned(&at, Of::Many)),
                false => format!("{head} {}", label.leads(&it, number)),
            }
        };
        if !conditions.is_empty() {
            let joint = if is_noun { "" } else { "and " };
            text += &format!(" {joint}{}", self.conditions(&conditions, Of::Many, last)?);
        }
        Ok((
            text,
            !is_noun || !conditions.is_empty() || !before.is_empty(),
        ))
    }

    fn number(&self, number: &Number) -> Result<String> {
        Ok(match number {
            Number::Constant(constant) => spoken(constant),
            Number::Count(of) => match self.indefinite(of)? {
                Some(several) => format!("the number of {several}"),
                None => format!("the number of {}", self.set(of, true)?),
            },
            Number::Of(aggregate, of, by) => {
                let made = made(*aggregate, self.sense(by)?);
                let by_text = self.phrase(by, Of::One, false)?;
                let of = self.set(of, true)?;
                match (aggregate, by) {
                    (Aggregate::Largest | Aggregate::Smallest, _) => {
                        format!("the {made} {by_text} among {of}")
                    }
                    (Aggregate::Only, _) => format!("the {by_text} of {of}"),
                    (_, Measure::Path(_)) => format!("the {made} {by_text} of {of}"),
                    _ => format!("the {made} {by_text} over {of}"),
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
    fn side(&self, number: &Number, last: bool) -> Result<String> {
        let text = self.number(number)?;
        let is_open = match number {
            Number::Constant(_) => false,
            Number::Count(of) | Number::Of(_, of, _) => !last && reaches_on(of),
            Number::Arithmetic(..) => true,
        };
        Ok(if is_open { format!("({text})") } else { text })
    }

    /// What a measure is compared with; *that of France* where it is the same of something else.
    fn than(&self, number: &Number, by: &Measure, last: bool) -> Result<String> {
        if let Number::Of(Aggregate::Only, of, own) = number
            && own == by
            && let Measure::Path(path) = by
            && !reaches_on(of)
        {
            let label = path.last().map(|last| self.relation(last)).transpose()?;
            let that = match label.map(|label| label.shape) {
                Some(Shape::Several) => "those",
                _ => "that",
            };
            return Ok(format!("{that} of {}", self.set(of, last)?));
        }
        self.side(number, last)
    }

    /// Yes or no: *whether Berlin is the capital of Germany*.
    fn whether(&self, of: &Form) -> Result<String> {
        if let Form::And(all) = of
            && let [Form::Or(entity), rest @ ..] = all.as_slice()
            && let ([Form::Name(name)], false) = (entity.as_slice(), rest.is_empty())
        {
            let name = self.entity(name)?;
            return Ok(format!("whether {name} is {}", self.predicate(rest)?));
        }
        Ok(match self.indefinite(of)? {
            Some(several) => format!("whether there are any {several}"),
            None => {
                let of = self.set(of, true)?;
                let of = of.strip_prefix("those of ").unwrap_or(&of);
                format!("whether there are any of {of}")
            }
        })
    }

    /// What one thing is said to be.
    fn predicate(&self, all: &[Form]) -> Result<String> {
        if let [Form::Join(relation, to)] = all {
            let label = self.relation(relation)?;
            match (relation.reversed, &label.shape) {
                (true, Shape::Several) => {
                    return Ok(format!("one of {}", self.definite(&all[0], true)?));
                }
                (true, Shape::Noun) => return self.definite(&all[0], true),
                (false, Shape::Participle) => {
                    return Ok(label.is(&self.object(to, true, true)?.0, Of::One));
                }
                (false, Shape::NounOf(noun)) => {
                    let (to, _) = self.object(to, true, true)?;
                    return Ok(format!("{} of {to}", with_article(noun)));
                }
                _ => {}
            }
        }
        let class = all.iter().position(|form| matches!(form, Form::Name(_)));
        let mut conditions: Vec<&Form> = all.iter().collect();
        let noun = match class.map(|at| conditions.remove(at)) {
            Some(class) => with_article(&self.set_of(class, Of::One)?),
            None => match conditions.as_slice() {
                [one] if !self.is_condition(one)? => return self.closed(one),
                _ => "something".into(),
            },
        };
        if conditions.is_empty() {
            return Ok(noun);
        }
        let conditions = self.conditions(&conditions, Of::One, true)?;
        Ok(format!("{noun} {conditions}"))
    }

    /// Whether two numbers compare so.
    fn whether_so(&self, is: Comparison, a: &Number, b: &Number) -> Result<String> {
        if let (Number::Count(of), Number::Constant(constant)) = (a, b)
            && let Some(several) = self.indefinite(of)?
        {
            let many = match is {
                Comparison::Less => "fewer than",
                Comparison::AtMost => "at most",
                Comparison::Greater => "more than",
                Comparison::AtLeast => "at least",
                Comparison::Equal => "exactly",
                Comparison::NotEqual => "not exactly",
            };
            return Ok(format!(
                "whether there are {many} {} {several}",
                spoken(constant)
            ));
        }
        let sense = match self.sense_of_number(a)? {
            Some(sense) => Some(sense),
            None => self.sense_of_number(b)?,
        };
        let than = match a {
            Number::Of(Aggregate::Only, _, by) => self.than(b, by, true)?,
            _ => self.side(b, true)?,
        };
        let verb = match a {
            Number::Of(Aggregate::Only, _, Measure::Path(path)) => match path.last() {
                Some(last) => self.relation(last)?.verb(),
                None => "is",
            },
            _ => "is",
        };
        let a = self.side(a, false)?;
        Ok(format!("whether {a} {verb} {}{than}", compared(is, sense)))
    }

    fn table(&self, table: &Table) -> Result<String> {
        let each = match (&table.of, self.noun(&table.of, Of::One, true)?) {
            (_, Some(noun)) => noun.text,
            (Form::Join(relation, from), None)
                if matches!(self.relation(relation)?.shape, Shape::Noun) =>
            {
                let (from, _) = self.object(from, true, false)?;
                format!("{} of {from}", self.relation(relation)?.text)
            }
            (of, None) => {
                let of = self.set(of, true)?;
                format!("of {}", of.strip_prefix("those of ").unwrap_or(&of))
            }
        };
        let mut text = match (table.columns.is_empty(), each.contains(": ")) {
            (true, _) => match self.indefinite(&table.of)? {
                Some(several) => format!("a list of {several}"),
                None => format!("a list of {}", self.set(&table.of, true)?),
            },
            (false, true) => format!("for each ({each}): "),
            (false, false) => format!("for each {each}: "),
        };
        for (i, column) in table.columns.iter().enumerate() {
            let column = self.column(column)?;
            text += &match i {
                0 => column,
                i if i + 1 == table.columns.len() => format!(" and {column}"),
                _ => format!(", {column}"),
            };
        }
        if let Some((by, extreme)) = &table.order {
            let degree = degree(*extreme, self.sense(by)?);
            let by = self.phrase(by, Of::One, false)?;
            text += &format!(", ordered by {by}, {degree} first");
        }
        match table.slice {
            Some((from, to)) if from == to => text += &format!(", only row {from}"),
            Some((from, to)) if from.get() == 1 => text += &format!(", only the first {to} rows"),
            Some((from, to)) => text += &format!(", only rows {from} to {to}"),
            None => {}
        }
        Ok(text)
    }

    /// A measure by itself, among others.
    fn column(&self, measure: &Measure) -> Result<String> {
        Ok(match measure {
            Measure::Constant(constant) => spoken(constant),
            measure => format!("the {}", self.phrase(measure, Of::One, false)?),
        })
    }

    /// A class as a noun; `instances of Q5` where its label is none.
    fn class(&self, name: &str, of: Of) -> Result<String> {
        let label = self.entity(name)?;
        Ok(match (plural(&label), of) {
            (Some(many), Of::Many) => many,
            (Some(_), Of::One) => label,
            (None, of) => format!("{} of {label}", of.pick("instance", "instances")),
        })
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
    fn relation(&self, relation: &Relation) -> Result<Label> {
        let label = match relation_called(&relation.name, self.graph)? {
            Some(found) => self.graph.relation_label(found)?.into_owned(),
            None => relation.name.clone(),
        };
        let local = local_part(&label);
        let last = local.rsplit('.').next().unwrap_or(&local);
        Ok(Label::new(opened(last)))
    }

    /// `capacity of the venue record`; `capacity of the one that has it as owner` where a relation
    /// is read from tail to head.
    fn way(&self, by: &[Relation], of: Of) -> Result<String> {
        let mut words: Option<String> = None;
        for (i, relation) in by.iter().enumerate() {
            let label = self.relation(relation)?;
            let is_noun = label.is_noun() || i + 1 == by.len();
            words = Some(match (words, relation.reversed) {
                (None, false) if is_noun => label.text,
                (None, false) => format!("thing {}", label.leads(of.pick("it", "they"), of)),
                (None, true) => format!("one {}", label.owned(of.it(), Of::One)),
                (Some(words), false) if is_noun => format!("{} of the {words}", label.text),
                (Some(words), false) => {
                    format!("thing {}", label.leads(&format!("the {words}"), Of::One))
                }
                (Some(words), true) => {
                    format!("one {}", label.owned(&format!("the {words}"), Of::One))
                }
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

impl Phrase {
    /// Among others that are joined to it.
    fn text_within(self) -> String {
        match self.is_joined {
            true => format!("({})", self.text),
            false => self.text,
        }
    }
}

/// What a conjunction is said of.
enum Head {
    /// The class at this place.
    Class(usize),
    /// Whatever meets its conditions.
    Things,
    /// The set at this place, which is neither.
    Other(usize),
}

/// Whether what is said after it would seem to belong to its last part.
fn reaches_on(form: &Form) -> bool {
    match form {
        Form::Name(_) | Form::Constant(_) => false,
        Form::Or(all) => all.len() > 1,
        Form::Join(relation, of) => !relation.reversed || reaches_on(of),
        _ => true,
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

fn spoken(constant: &Constant) -> String {
    match constant {
        Constant::Now => "now".into(),
        Constant::Bare(text) => text.clone(),
        Constant::Literal(literal) => literal.value.clone(),
    }
}
