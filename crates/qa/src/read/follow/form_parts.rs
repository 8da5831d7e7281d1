//! Names in a logical form, and others in their place.

use wherefore_graph::{EntityId, Graph, NameMatch};

use crate::error::Result;
use crate::logic::{Form, Measure, Number, Than, entity_name};

/// Things as a form: below a set operator too.
pub(super) fn named(things: &[EntityId], graph: &dyn Graph) -> Result<Form> {
    let names = things
        .iter()
        .map(|&thing| Ok(Form::Name(entity_name(thing, graph)?)));
    Ok(Form::Or(names.collect::<Result<_>>()?))
}

/// A set as it may stand below any operator: `is_class` says what a name alone means where it stands.
pub(super) fn operand(set: &Form, is_class: bool) -> Form {
    match set {
        Form::Name(_) | Form::Constant(_) if !is_class => Form::Or(vec![set.clone()]),
        Form::Name(_) => Form::And(vec![set.clone()]),
        other => other.clone(),
    }
}

/// The names of things in a form, in their order, each once, with the things.
pub(super) fn names(form: &Form, graph: &dyn Graph) -> Result<Vec<(String, Vec<EntityId>)>> {
    let mut all: Vec<String> = Vec::new();
    walk(form, false, &mut |name| {
        if !all.iter().any(|n| n == name) {
            all.push(name.to_owned());
        }
    });
    let mut found = Vec::new();
    for name in all {
        let mut things = graph.entities_named(&name, NameMatch::Exact)?;
        if things.is_empty() {
            things = graph.entities_named(&name, NameMatch::Normalised)?;
        }
        if !things.is_empty() {
            found.push((name, things));
        }
    }
    Ok(found)
}

/// Whether a form looks anything up but names.
pub(super) fn rests_on_graph(form: &Form) -> bool {
    match form {
        Form::Constant(_) => false,
        // a name is one by itself below the operators that take sets of names
        Form::Name(_) => true,
        Form::Or(all) => all.iter().any(|of| !is_name(of) && rests_on_graph(of)),
        Form::And(all) => all.iter().any(rests_on_graph),
        Form::Any(of) | Form::Number(Number::Count(of)) => rests_on_graph(of),
        Form::Except(a, b) => rests_on_graph(a) || rests_on_graph(b),
        _ => true,
    }
}

fn is_name(form: &Form) -> bool {
    matches!(form, Form::Name(_) | Form::Constant(_))
}

/// The form with other things in the place of a name.
pub(super) fn with(form: &Form, name: &str, things: &Form) -> Form {
    let mut form = form.clone();
    put(&mut form, false, name, things);
    form
}

fn walk(form: &Form, is_class: bool, see: &mut dyn FnMut(&str)) {
    match form {
        Form::Name(name) if !is_class => see(name),
        Form::Name(_) | Form::Constant(_) => {}
        Form::Join(_, of) => walk(of, false, see),
        Form::Or(all) => all.iter().for_each(|of| walk(of, false, see)),
        Form::And(all) => all.iter().for_each(|of| walk(of, true, see)),
        Form::Except(a, b) => [a, b].into_iter().for_each(|of| walk(of, true, see)),
        Form::Best(_, of, by) => {
            walk(of, true, see);
            walk_measure(by, see);
        }
        Form::At(of, ..) | Form::Any(of) => walk(of, true, see),
        Form::Compare(_, by, than) => {
            walk_measure(by, see);
            match than {
                Than::Number(number) => walk_number(number, see),
                Than::Measure(measure) => walk_measure(measure, see),
            }
        }
        Form::Number(number) => walk_number(number, see),
        Form::Is(_, a, b) => [a, b].into_iter().for_each(|n| walk_number(n, see)),
        Form::Table(table) => walk(&table.of, true, see),
    }
}

fn walk_measure(measure: &Measure, see: &mut dyn FnMut(&str)) {
    match measure {
        Measure::HowMany(_, Some(of)) => walk(of, true, see),
        Measure::Over(_, _, by) => walk_measure(by, see),
        Measure::Arithmetic(_, a, b) => [a, b].into_iter().for_each(|m| walk_measure(m, see)),
        Measure::Path(_) | Measure::HowMany(_, None) | Measure::Constant(_) => {}
    }
}

fn walk_number(number: &Number, see: &mut dyn FnMut(&str)) {
    match number {
        Number::Constant(_) => {}
        Number::Count(of) => walk(of, true, see),
        Number::Of(_, of, by) => {
            walk(of, true, see);
            walk_measure(by, see);
        }
        Number::Arithmetic(_, a, b) => [a, b].into_iter().for_each(|n| walk_number(n, see)),
    }
}

fn put(form: &mut Form, is_class: bool, name: &str, things: &Form) {
    match form {
        Form::Name(own) if !is_class && own == name => *form = things.clone(),
        Form::Name(_) | Form::Constant(_) => {}
        Form::Join(_, of) => put(of, false, name, things),
        Form::Or(all) => {
            let mut others = Vec::new();
            for mut of in std::mem::take(all) {
                put(&mut of, false, name, things);
                match of {
                    // one of several names
                    Form::Or(inner) => others.extend(inner),
                    of => others.push(of),
                }
            }
            *all = others;
        }
        Form::And(all) => all.iter_mut().for_each(|of| put(of, true, name, things)),
        Form::Except(a, b) => {
            put(a, true, name, things);
            put(b, true, name, things);
        }
        Form::Best(_, of, by) => {
            put(of, true, name, things);
            put_measure(by, name, things);
        }
        Form::At(of, ..) | Form::Any(of) => put(of, true, name, things),
        Form::Compare(_, by, than) => {
            put_measure(by, name, things);
            match than {
                Than::Number(number) => put_number(number, name, things),
                Than::Measure(measure) => put_measure(measure, name, things),
            }
        }
        Form::Number(number) => put_number(number, name, things),
        Form::Is(_, a, b) => {
            put_number(a, name, things);
            put_number(b, name, things);
        }
        Form::Table(table) => put(&mut table.of, true, name, things),
    }
}

fn put_measure(measure: &mut Measure, name: &str, things: &Form) {
    match measure {
        Measure::HowMany(_, Some(of)) => put(of, true, name, things),
        Measure::Over(_, _, by) => put_measure(by, name, things),
        Measure::Arithmetic(_, a, b) => {
            put_measure(a, name, things);
            put_measure(b, name, things);
        }
        Measure::Path(_) | Measure::HowMany(_, None) | Measure::Constant(_) => {}
    }
}

fn put_number(number: &mut Number, name: &str, things: &Form) {
    match number {
        Number::Constant(_) => {}
        Number::Count(of) => put(of, true, name, things),
        Number::Of(_, of, by) => {
            put(of, true, name, things);
            put_measure(by, name, things);
        }
        Number::Arithmetic(_, a, b) => {
            put_number(a, name, things);
            put_number(b, name, things);
        }
    }
}
