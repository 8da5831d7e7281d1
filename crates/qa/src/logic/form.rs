//! Logical forms: S-expressions that stand for sets of entities.
//!
//! Gu et al., "Beyond I.I.D.: Three Levels of Generalization for Question Answering on Knowledge
//! Bases" (GrailQA), WWW 2021; AMAR adds `TC`:
//!
//! ```text
//! (JOIN r S)        { x : (x, r, y), y ∈ S }        (JOIN (R r) S)    { x : (y, r, x), y ∈ S }
//! (AND S T …)       S ∩ T ∩ …                       (COUNT S)         |S|
//! (ARGMAX S p)      the x ∈ S whose value by p is largest; all of them where several are
//! (ARGMIN S p)      … smallest
//! (OR S T …)        S ∪ T ∪ …
//! (lt p v)          { x : some value of x by p is < v }; le, gt, ge alike
//! (TC S r t)        the x ∈ S that hold at the time t: begun by then, and not ended before
//! ```
//!
//! p is a relation or `(JOIN r p)`, a way of several. A name below `JOIN` is an entity; a name
//! that stands alone below `AND`, `COUNT`, `ARGMAX`, `ARGMIN` or `TC` is a class, and means its
//! instances.
//!
//! Departures: `COUNT` stands only at the root, since a number is no set of entities; `AND` takes
//! two operands or more; `OR` is ours, for `which is larger, this or that`. Names below `OR` are
//! entities.

use wherefore_graph::Literal;

/// The deepest nesting that is read or run.
pub const MAX_DEPTH: usize = 32;
/// The most operators, names and literals of a form.
pub const MAX_PARTS: usize = 512;
/// The longest text of a form, in bytes.
pub const MAX_FORM_BYTES: usize = 64 << 10;

/// A logical form.
///
/// ```
/// use wherefore::logic::Form;
/// let text = "(AND (JOIN people.person.gender Male) (JOIN (R people.person.children) [Ada Lovelace]))";
/// let form: Form = text.parse()?;
/// assert_eq!(form.to_string(), text);
/// # Ok::<(), wherefore::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// The entities of this name; below a set operator, the instances of the class.
    Name(String),
    /// A value.
    Constant(Constant),
    /// Whatever is joined by a relation to a member of a set.
    Join(Relation, Box<Form>),
    /// Whatever is in all sets.
    And(Vec<Form>),
    /// Whatever is in any of the sets.
    Or(Vec<Form>),
    /// How many there are.
    Count(Box<Form>),
    /// The members with the largest or smallest value.
    Best(Extreme, Box<Form>, Vec<Relation>),
    /// Whatever has a value on this side of a constant.
    Compare(Comparison, Vec<Relation>, Constant),
    /// The members that hold at a time.
    At(Box<Form>, Relation, Constant),
}

/// A relation, and which way it is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Relation {
    /// Its identity or label.
    pub name: String,
    /// `(R name)`: read from tail to head.
    pub reversed: bool,
}

impl Relation {
    /// The relation from head to tail.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            reversed: false,
        }
    }

    /// The relation read the other way.
    #[must_use]
    pub fn reverse(mut self) -> Self {
        self.reversed = !self.reversed;
        self
    }
}

/// A value in a form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Constant {
    /// `NOW`: the time at which the form is run.
    Now,
    /// A number or date without a datatype: `1994`, `-3.5`, `1995-02-14`.
    Bare(String),
    /// Text, or a value with its datatype.
    Literal(Literal),
}

/// Largest or smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Extreme {
    /// `ARGMAX`.
    Largest,
    /// `ARGMIN`.
    Smallest,
}

/// How a value is compared with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Comparison {
    /// `lt`.
    Less,
    /// `le`.
    AtMost,
    /// `gt`.
    Greater,
    /// `ge`.
    AtLeast,
}

impl Form {
    /// `(JOIN r self)`.
    #[must_use]
    pub fn joined(self, relation: Relation) -> Self {
        Form::Join(relation, Box::new(self))
    }

    /// How deep it nests; a name is 1.
    pub fn depth(&self) -> usize {
        1 + self.operands().map(Form::depth).max().unwrap_or(0)
    }

    /// Operators, relations, names and constants in all.
    pub fn parts(&self) -> usize {
        let own = match self {
            Form::Name(_) | Form::Constant(_) => 1,
            Form::Join(..) => 2,
            Form::And(_) | Form::Or(_) | Form::Count(_) => 1,
            Form::Best(_, _, by) => 1 + by.len(),
            Form::Compare(_, by, _) => 2 + by.len(),
            Form::At(..) => 3,
        };
        own + self.operands().map(Form::parts).sum::<usize>()
    }

    /// The forms directly below.
    pub fn operands(&self) -> impl Iterator<Item = &Form> {
        let (one, many): (Option<&Form>, &[Form]) = match self {
            Form::Name(_) | Form::Constant(_) | Form::Compare(..) => (None, &[]),
            Form::Join(_, of) | Form::Count(of) | Form::Best(_, of, _) | Form::At(of, ..) => {
                (Some(of), &[])
            }
            Form::And(all) | Form::Or(all) => (None, all),
        };
        one.into_iter().chain(many)
    }

    /// Every relation, from the outside in; one that stands twice is told twice.
    pub fn relations(&self) -> Vec<&Relation> {
        let mut found: Vec<&Relation> = match self {
            Form::Join(relation, _) | Form::At(_, relation, _) => vec![relation],
            Form::Best(_, _, by) | Form::Compare(_, by, _) => by.iter().collect(),
            Form::Name(_) | Form::Constant(_) | Form::And(_) | Form::Or(_) | Form::Count(_) => {
                Vec::new()
            }
        };
        for operand in self.operands() {
            found.extend(operand.relations());
        }
        found
    }

    /// Every name of an entity or class, from the outside in.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Form::Name(name) => vec![name],
            _ => self.operands().flat_map(Form::names).collect(),
        }
    }

    /// Whether it is made of `JOIN`, `AND`, `R`, names and constants alone.
    pub fn is_plain(&self) -> bool {
        matches!(
            self,
            Form::Name(_) | Form::Constant(_) | Form::Join(..) | Form::And(_)
        ) && self.operands().all(Form::is_plain)
    }

    /// Whether a constant stands in it.
    pub fn has_constants(&self) -> bool {
        matches!(self, Form::Constant(_) | Form::Compare(..) | Form::At(..))
            || self.operands().any(Form::has_constants)
    }

    /// The same form with other names.
    #[must_use]
    pub fn renamed(
        &self,
        entity: &mut dyn FnMut(&str) -> String,
        relation: &mut dyn FnMut(&str) -> String,
    ) -> Self {
        let turn = |r: &Relation, relation: &mut dyn FnMut(&str) -> String| Relation {
            name: relation(&r.name),
            reversed: r.reversed,
        };
        match self {
            Form::Name(name) => Form::Name(entity(name)),
            Form::Constant(constant) => Form::Constant(constant.clone()),
            Form::Join(r, of) => {
                let r = turn(r, relation);
                Form::Join(r, Box::new(of.renamed(entity, relation)))
            }
            Form::And(all) => Form::And(all.iter().map(|f| f.renamed(entity, relation)).collect()),
            Form::Or(all) => Form::Or(all.iter().map(|f| f.renamed(entity, relation)).collect()),
            Form::Count(of) => Form::Count(Box::new(of.renamed(entity, relation))),
            Form::Best(extreme, of, by) => {
                let of = of.renamed(entity, relation);
                let by = by.iter().map(|r| turn(r, relation)).collect();
                Form::Best(*extreme, Box::new(of), by)
            }
            Form::Compare(is, by, than) => {
                let by = by.iter().map(|r| turn(r, relation)).collect();
                Form::Compare(*is, by, than.clone())
            }
            Form::At(of, r, time) => {
                let of = of.renamed(entity, relation);
                Form::At(Box::new(of), turn(r, relation), time.clone())
            }
        }
    }

    /// The form for exact match: nested `AND`s opened, their operands sorted, repeated ones
    /// dropped, an `AND` of one operand that operand; bare and typed numbers and dates written
    /// one way.
    ///
    /// ```
    /// use wherefore::logic::Form;
    /// let form = |text: &str| text.parse::<Form>().map(|f| f.normal());
    /// assert_eq!(form("(AND (JOIN r b) (AND (JOIN r a) (JOIN r b)))")?, form("(AND (JOIN r a) (JOIN r b))")?);
    /// assert_eq!(form("(lt p 5.0)")?, form("(lt p 5)")?);
    /// # Ok::<(), wherefore::Error>(())
    /// ```
    #[must_use]
    pub fn normal(&self) -> Self {
        match self {
            Form::Name(name) => Form::Name(name.clone()),
            // a name by itself, letter by letter; a value only where it is compared
            Form::Constant(constant) => Form::Constant(constant.clone()),
            Form::Join(relation, of) => {
                let of = match &**of {
                    Form::Constant(constant) if !relation.reversed => {
                        Form::Constant(constant.normal())
                    }
                    of => of.normal(),
                };
                Form::Join(relation.clone(), Box::new(of))
            }
            Form::And(all) => {
                let mut flat = Vec::with_capacity(all.len());
                for operand in all {
                    match operand.normal() {
                        Form::And(inner) => flat.extend(inner),
                        other => flat.push(other),
                    }
                }
                flat.sort();
                flat.dedup();
                match flat.len() {
                    // a name alone would no longer mean its instances
                    1 if !matches!(flat[0], Form::Name(_)) => flat.remove(0),
                    1 => Form::And(vec![flat[0].clone(), flat[0].clone()]),
                    _ => Form::And(flat),
                }
            }
            Form::Or(all) => {
                let mut flat = Vec::with_capacity(all.len());
                for operand in all {
                    match operand.normal() {
                        Form::Or(inner) => flat.extend(inner),
                        other => flat.push(other),
                    }
                }
                flat.sort();
                flat.dedup();
                match flat.len() {
                    1 => Form::Or(vec![flat[0].clone(), flat[0].clone()]),
                    _ => Form::Or(flat),
                }
            }
            Form::Count(of) => Form::Count(Box::new(of.normal())),
            Form::Best(extreme, of, by) => Form::Best(*extreme, Box::new(of.normal()), by.clone()),
            Form::Compare(is, by, than) => Form::Compare(*is, by.clone(), than.normal()),
            Form::At(of, relation, time) => {
                Form::At(Box::new(of.normal()), relation.clone(), time.normal())
            }
        }
    }
}
