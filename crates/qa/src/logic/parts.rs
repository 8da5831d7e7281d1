//! Walks over the parts of a form, and rebuilds forms with other parts.

use super::form::{Constant, Form, Measure, Number, Relation, Table, Than};

/// A part of a form.
#[derive(Clone, Copy)]
enum Part<'a> {
    Form(&'a Form),
    Measure(&'a Measure),
    Number(&'a Number),
    Relation(&'a Relation),
    Constant,
}

impl<'a> Part<'a> {
    /// The parts directly below: relations first, then constants, measures and forms.
    fn children(self) -> Vec<Part<'a>> {
        fn all<'a>(path: &'a [Relation]) -> impl Iterator<Item = Part<'a>> {
            path.iter().map(Part::Relation)
        }
        match self {
            Part::Relation(_) | Part::Constant => Vec::new(),
            Part::Form(form) => match form {
                Form::Name(_) => Vec::new(),
                Form::Constant(_) => vec![Part::Constant],
                Form::Join(relation, of) => vec![Part::Relation(relation), Part::Form(of)],
                Form::And(all) | Form::Or(all) => all.iter().map(Part::Form).collect(),
                Form::Except(of, not) => vec![Part::Form(of), Part::Form(not)],
                Form::Best(_, of, by) => vec![Part::Measure(by), Part::Form(of)],
                Form::Compare(_, by, Than::Number(than)) => {
                    vec![Part::Measure(by), Part::Number(than)]
                }
                Form::Compare(_, by, Than::Measure(than)) => {
                    vec![Part::Measure(by), Part::Measure(than)]
                }
                Form::At(of, relation, _) => {
                    vec![Part::Relation(relation), Part::Constant, Part::Form(of)]
                }
                Form::Number(number) => vec![Part::Number(number)],
                Form::Any(of) => vec![Part::Form(of)],
                Form::Is(_, a, b) => vec![Part::Number(a), Part::Number(b)],
                Form::Table(table) => {
                    let order = table.order.iter().map(|(by, _)| by);
                    let measures = table.columns.iter().chain(order);
                    (measures.map(Part::Measure))
                        .chain([Part::Form(&table.of)])
                        .collect()
                }
            },
            Part::Measure(measure) => match measure {
                Measure::Path(path) => all(path).collect(),
                Measure::HowMany(path, of) => {
                    all(path).chain(of.as_deref().map(Part::Form)).collect()
                }
                Measure::Over(_, path, by) => all(path).chain([Part::Measure(by)]).collect(),
                Measure::Arithmetic(_, a, b) => vec![Part::Measure(a), Part::Measure(b)],
                Measure::Constant(_) => vec![Part::Constant],
            },
            Part::Number(number) => match number {
                Number::Constant(_) => vec![Part::Constant],
                Number::Count(of) => vec![Part::Form(of)],
                Number::Of(_, of, by) => vec![Part::Measure(by), Part::Form(of)],
                Number::Arithmetic(_, a, b) => vec![Part::Number(a), Part::Number(b)],
            },
        }
    }

    /// This part and all below, from the outside in.
    fn walk(self, see: &mut dyn FnMut(Part<'a>)) {
        see(self);
        for child in self.children() {
            child.walk(see);
        }
    }

    /// Whether it is counted by itself: wrappers, and constants that are counted as forms, are not.
    fn counts(self) -> bool {
        !matches!(
            self,
            Part::Form(Form::Constant(_) | Form::Number(_))
                | Part::Measure(Measure::Path(_) | Measure::Constant(_))
                | Part::Number(Number::Constant(_))
        )
    }

    fn depth(self) -> usize {
        let own = usize::from(self.counts() && !matches!(self, Part::Relation(_)));
        let below = self.children().into_iter().map(Part::depth).max();
        own + below.unwrap_or(0)
    }
}

impl Form {
    /// How deep it nests; a name is 1.
    pub fn depth(&self) -> usize {
        Part::Form(self).depth()
    }

    /// Operators, relations, names and constants in all.
    pub fn parts(&self) -> usize {
        let mut count = 0;
        Part::Form(self).walk(&mut |part| count += usize::from(part.counts()));
        count
    }

    /// The forms directly below, those of its measures and numbers among them.
    pub fn operands(&self) -> Vec<&Form> {
        fn collect<'a>(part: Part<'a>, found: &mut Vec<&'a Form>) {
            for child in part.children() {
                match child {
                    Part::Form(form) => found.push(form),
                    other => collect(other, found),
                }
            }
        }
        let mut found = Vec::new();
        collect(Part::Form(self), &mut found);
        found
    }

    /// Every relation, from the outside in; one that stands twice is told twice.
    pub fn relations(&self) -> Vec<&Relation> {
        let mut found = Vec::new();
        Part::Form(self).walk(&mut |part| {
            if let Part::Relation(relation) = part {
                found.push(relation);
            }
        });
        found
    }

    /// Every name of an entity or class, from the outside in.
    pub fn names(&self) -> Vec<&str> {
        let mut found = Vec::new();
        Part::Form(self).walk(&mut |part| {
            if let Part::Form(Form::Name(name)) = part {
                found.push(name.as_str());
            }
        });
        found
    }

    /// Whether it is made of `JOIN`, `AND`, `R`, names and constants alone.
    pub fn is_plain(&self) -> bool {
        let mut plain = true;
        Part::Form(self).walk(&mut |part| {
            plain &= match part {
                Part::Form(form) => matches!(
                    form,
                    Form::Name(_) | Form::Constant(_) | Form::Join(..) | Form::And(_)
                ),
                Part::Measure(_) | Part::Number(_) => false,
                Part::Relation(_) | Part::Constant => true,
            }
        });
        plain
    }

    /// Whether a constant stands in it.
    pub fn has_constants(&self) -> bool {
        let mut found = false;
        Part::Form(self).walk(&mut |part| found |= matches!(part, Part::Constant));
        found
    }

    /// The same form with other names.
    #[must_use]
    pub fn renamed(
        &self,
        entity: &mut dyn FnMut(&str) -> String,
        relation: &mut dyn FnMut(&str) -> String,
    ) -> Self {
        Renamed { entity, relation }.form(self)
    }

    /// The form for exact match: nested `AND`s and `OR`s opened, their operands sorted, repeated
    /// ones dropped, an `AND` of one operand that operand; bare and typed numbers and dates written
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
        Normal.form(self)
    }
}

/// Makes a form anew, part by part.
trait Rebuild {
    fn name(&mut self, name: &str) -> String {
        name.to_owned()
    }

    fn relation(&mut self, relation: &Relation) -> Relation {
        relation.clone()
    }

    /// A constant that is compared or calculated with.
    fn constant(&mut self, constant: &Constant) -> Constant {
        constant.clone()
    }

    fn form(&mut self, form: &Form) -> Form {
        self.form_of_parts(form)
    }

    fn boxed(&mut self, form: &Form) -> Box<Form> {
        Box::new(self.form(form))
    }

    fn path(&mut self, path: &[Relation]) -> Vec<Relation> {
        path.iter().map(|r| self.relation(r)).collect()
    }

    fn form_of_parts(&mut self, form: &Form) -> Form {
        match form {
            Form::Name(name) => Form::Name(self.name(name)),
            // a name by itself, letter by letter; a value only where it is compared
            Form::Constant(constant) => Form::Constant(constant.clone()),
            Form::Join(relation, of) => {
                let of = match &**of {
                    Form::Constant(constant) if !relation.reversed => {
                        Form::Constant(self.constant(constant))
                    }
                    of => self.form(of),
                };
                of.joined(self.relation(relation))
            }
            Form::And(all) => Form::And(all.iter().map(|f| self.form(f)).collect()),
            Form::Or(all) => Form::Or(all.iter().map(|f| self.form(f)).collect()),
            Form::Except(of, not) => Form::Except(self.boxed(of), self.boxed(not)),
            Form::Best(rank, of, by) => Form::Best(*rank, self.boxed(of), self.measure(by)),
            Form::Compare(is, by, than) => {
                let by = self.measure(by);
                let than = match than {
                    Than::Number(number) => Than::Number(self.number(number)),
                    Than::Measure(measure) => Than::Measure(self.measure(measure)),
                };
                Form::Compare(*is, by, than)
            }
            Form::At(of, relation, time) => {
                Form::At(self.boxed(of), self.relation(relation), self.constant(time))
            }
            Form::Number(number) => Form::Number(self.number(number)),
            Form::Any(of) => Form::Any(self.boxed(of)),
            Form::Is(is, a, b) => Form::Is(*is, self.number(a), self.number(b)),
            Form::Table(table) => Form::Table(Box::new(Table {
                of: self.form(&table.of),
                columns: table.columns.iter().map(|by| self.measure(by)).collect(),
                order: (table.order.as_ref()).map(|(by, first)| (self.measure(by), *first)),
                slice: table.slice,
            })),
        }
    }

    fn measure(&mut self, measure: &Measure) -> Measure {
        match measure {
            Measure::Path(path) => Measure::Path(self.path(path)),
            Measure::HowMany(path, of) => {
                let path = self.path(path);
                Measure::HowMany(path, of.as_ref().map(|of| self.boxed(of)))
            }
            Measure::Over(aggregate, path, by) => {
                let path = self.path(path);
                Measure::Over(*aggregate, path, Box::new(self.measure(by)))
            }
            Measure::Arithmetic(operator, a, b) => {
                let [a, b] = [a, b].map(|m| Box::new(self.measure(m)));
                Measure::Arithmetic(*operator, a, b)
            }
            Measure::Constant(constant) => Measure::Constant(self.constant(constant)),
        }
    }

    fn number(&mut self, number: &Number) -> Number {
        match number {
            Number::Constant(constant) => Number::Constant(self.constant(constant)),
            Number::Count(of) => Number::Count(self.boxed(of)),
            Number::Of(aggregate, of, by) => {
                Number::Of(*aggregate, self.boxed(of), self.measure(by))
            }
            Number::Arithmetic(operator, a, b) => {
                let [a, b] = [a, b].map(|n| Box::new(self.number(n)));
                Number::Arithmetic(*operator, a, b)
            }
        }
    }
}

struct Renamed<'a> {
    entity: &'a mut dyn FnMut(&str) -> String,
    relation: &'a mut dyn FnMut(&str) -> String,
}

impl Rebuild for Renamed<'_> {
    fn name(&mut self, name: &str) -> String {
        (self.entity)(name)
    }

    fn relation(&mut self, relation: &Relation) -> Relation {
        Relation {
            name: (self.relation)(&relation.name),
            reversed: relation.reversed,
        }
    }
}

struct Normal;

impl Rebuild for Normal {
    fn constant(&mut self, constant: &Constant) -> Constant {
        constant.normal()
    }

    fn form(&mut self, form: &Form) -> Form {
        let sorted = |all: Vec<Form>, open: fn(Form) -> Vec<Form>| {
            let mut flat = Vec::with_capacity(all.len());
            for operand in all {
                flat.extend(open(operand));
            }
            flat.sort();
            flat.dedup();
            flat
        };
        match self.form_of_parts(form) {
            Form::And(all) => {
                let mut flat = sorted(all, |operand| match operand {
                    Form::And(inner) => inner,
                    other => vec![other],
                });
                match flat.as_slice() {
                    // a name alone would no longer mean its instances
                    [Form::Name(_)] => Form::And(flat),
                    [_] => flat.remove(0),
                    _ => Form::And(flat),
                }
            }
            Form::Or(all) => {
                let mut flat = sorted(all, |operand| match operand {
                    Form::Or(inner) => inner,
                    other => vec![other],
                });
                match flat.as_slice() {
                    // a name alone would mean its instances below a set operator
                    [Form::Name(_) | Form::Constant(_)] => Form::Or(flat),
                    [_] => flat.remove(0),
                    _ => Form::Or(flat),
                }
            }
            other => other,
        }
    }
}
