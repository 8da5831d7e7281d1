//! Readings as logical forms.

use std::num::NonZeroU32;

use wherefore_graph::{EntityId, Term};

use super::arena::{Arena, Id, Measure, Node, Ranked};
use super::dates::written;
use super::vocabulary::Step;
use crate::error::Result;
use crate::logic::{
    Comparison, Constant, Extreme, Form, Measure as Written, Number, Place, Rank, Relation, Table,
    Than, entity_name, relation_name,
};

/// The form of a node.
pub(super) fn form(arena: &Arena<'_>, id: Id) -> Result<Form> {
    Ok(match arena.node(id) {
        Node::Const(_) | Node::Count(_) | Node::Of(..) | Node::Arithmetic(..) => {
            Form::Number(number(arena, id)?)
        }
        Node::Any(of) => Form::Any(Box::new(set(arena, *of)?)),
        Node::Table(of, columns, order) => {
            let columns = columns.iter().map(|by| measure(arena, by));
            let order = match order {
                Some((by, greatest)) => Some((measure(arena, by)?, extreme(*greatest))),
                None => None,
            };
            Form::Table(Box::new(Table {
                of: set(arena, *of)?,
                columns: columns.collect::<Result<_>>()?,
                order,
                slice: None,
            }))
        }
        _ => set(arena, id)?,
    })
}

fn extreme(greatest: bool) -> Extreme {
    match greatest {
        true => Extreme::Largest,
        false => Extreme::Smallest,
    }
}

fn set(arena: &Arena<'_>, id: Id) -> Result<Form> {
    Ok(match arena.node(id) {
        Node::Ents(all) => entities(arena, all)?,
        Node::Carried => arena.carried().clone(),
        // no reading is left with one
        Node::Whatever(_) => Form::Or(Vec::new()),
        Node::Class(class) => Form::And(class_names(arena, *class)?),
        Node::Side(r, tails) => {
            // whatever the relation joins to anything: it has one at least
            let one = Constant::Bare("1".into());
            let by = Written::HowMany(path(arena, &[(*r, !tails)])?, None);
            Form::Compare(Comparison::AtLeast, by, Than::from(one))
        }
        Node::Join((r, forward), of) => {
            let mut form = set(arena, *of)?;
            for step in path(arena, &[(*r, *forward)])? {
                form = form.joined(step.reverse());
            }
            form
        }
        Node::And(..) => {
            let mut all = Vec::new();
            flatten(arena, id, &mut all)?;
            Form::And(all)
        }
        Node::Or(a, b) => Form::Or(vec![set(arena, *a)?, set(arena, *b)?]),
        Node::Except(a, b) => {
            Form::Except(Box::new(operand(arena, *a)?), Box::new(operand(arena, *b)?))
        }
        Node::Top(of, by, greatest, ranked) => {
            let place = match ranked {
                Ranked::Nth(1) => Place::Best,
                Ranked::Nth(n) => Place::Nth(NonZeroU32::new(*n).unwrap_or(NonZeroU32::MIN)),
                Ranked::First(n) => Place::First(NonZeroU32::new(*n).unwrap_or(NonZeroU32::MIN)),
            };
            let extreme = extreme(*greatest);
            let of = Box::new(operand(arena, *of)?);
            Form::Best(Rank { extreme, place }, of, measure(arena, by)?)
        }
        Node::Where(of, by, is, than) => {
            let day = match arena.node(*than) {
                Node::Const(bits) if arena.is_time(by) => written(f64::from_bits(*bits)),
                _ => None,
            };
            let compared = match day {
                Some(day) => Than::from(Constant::Bare(day)),
                None => Than::Number(number(arena, *than)?),
            };
            let compare = Form::Compare(*is, measure(arena, by)?, compared);
            let mut all = Vec::new();
            flatten(arena, *of, &mut all)?;
            match (arena.is_time(by), is, arena.node(*than)) {
                // a year is any day of it
                (true, Comparison::Equal, Node::Const(bits)) => {
                    let year = f64::from_bits(*bits);
                    for (is, year) in [(Comparison::AtLeast, year), (Comparison::Less, year + 1.0)]
                    {
                        let than = Than::from(Constant::Bare(year.to_string()));
                        all.push(Form::Compare(is, measure(arena, by)?, than));
                    }
                }
                _ => all.push(compare),
            }
            Form::And(all)
        }
        Node::Table(of, ..) => set(arena, *of)?,
        Node::Const(_) | Node::Count(_) | Node::Of(..) | Node::Arithmetic(..) | Node::Any(_) => {
            form(arena, id)?
        }
    })
}

/// The operands of nested intersections.
fn flatten(arena: &Arena<'_>, id: Id, all: &mut Vec<Form>) -> Result<()> {
    if let Node::And(a, b) = arena.node(id) {
        flatten(arena, *a, all)?;
        return flatten(arena, *b, all);
    }
    let more = match operand(arena, id)? {
        Form::And(inner) => inner,
        other => vec![other],
    };
    for form in more {
        if !all.contains(&form) {
            all.push(form);
        }
    }
    Ok(())
}

/// Below a set operator, where a name alone is a class.
fn operand(arena: &Arena<'_>, id: Id) -> Result<Form> {
    Ok(match arena.node(id) {
        Node::Class(class) => {
            let mut names = class_names(arena, *class)?;
            match names.len() {
                1 => names.remove(0),
                _ => Form::And(names),
            }
        }
        Node::Ents(all) => match entities(arena, all)? {
            or @ Form::Or(_) => or,
            one => Form::Or(vec![one]),
        },
        _ => set(arena, id)?,
    })
}

/// A class by its name, or with its narrower ones.
fn class_names(arena: &Arena<'_>, class: super::vocabulary::ClassIx) -> Result<Vec<Form>> {
    let of = &arena.schema.classes[class as usize];
    let name = |entity| -> Result<Form> { Ok(Form::Name(entity_name(entity, arena.graph)?)) };
    if of.narrower.is_empty() {
        return Ok(vec![name(of.entity)?]);
    }
    let Some(&by) = arena.schema.typed_by.first() else {
        return Ok(vec![name(of.entity)?]);
    };
    let by = relation(arena, (by, false))?.reverse();
    let mut all = Vec::new();
    for &class in std::iter::once(&class).chain(&of.narrower) {
        let entity = arena.schema.classes[class as usize].entity;
        all.push(name(entity)?.joined(by.clone()));
    }
    Ok(vec![Form::Or(all)])
}

fn entities(arena: &Arena<'_>, all: &[EntityId]) -> Result<Form> {
    let one = |entity: EntityId| -> Result<Form> {
        Ok(match arena.graph.entity_term(entity)? {
            Term::Literal(literal) => Form::Constant(Constant::Literal(literal)),
            _ => Form::Name(entity_name(entity, arena.graph)?),
        })
    };
    match all {
        [entity] => one(*entity),
        _ => Ok(Form::Or(
            all.iter().map(|e| one(*e)).collect::<Result<_>>()?,
        )),
    }
}

/// A relation read so that it leads from what is measured.
fn relation(arena: &Arena<'_>, (r, forward): Step) -> Result<Relation> {
    let name = relation_name(r, arena.graph)?;
    Ok(Relation {
        name,
        reversed: !forward,
    })
}

fn path(arena: &Arena<'_>, steps: &[Step]) -> Result<Vec<Relation>> {
    let each = steps.iter().flat_map(|step| {
        let (first, second) = arena.schema.steps(*step);
        std::iter::once(first).chain(second)
    });
    each.map(|step| relation(arena, step)).collect()
}

fn measure(arena: &Arena<'_>, by: &Measure) -> Result<Written> {
    Ok(match by {
        Measure::Path(steps) => Written::Path(path(arena, steps)?),
        Measure::HowMany(steps, of) => {
            let of = match of {
                Some(of) => Some(Box::new(operand(arena, *of)?)),
                None => None,
            };
            Written::HowMany(path(arena, steps)?, of)
        }
    })
}

fn number(arena: &Arena<'_>, id: Id) -> Result<Number> {
    Ok(match arena.node(id) {
        Node::Count(of) => Number::Count(Box::new(operand(arena, *of)?)),
        Node::Of(aggregate, of, by) => {
            let of = Box::new(operand(arena, *of)?);
            Number::Of(*aggregate, of, measure(arena, by)?)
        }
        Node::Arithmetic(operator, a, b) => {
            let [a, b] = [number(arena, *a)?, number(arena, *b)?];
            Number::Arithmetic(*operator, Box::new(a), Box::new(b))
        }
        Node::Const(bits) => Number::Constant(Constant::Bare(f64::from_bits(*bits).to_string())),
        _ => Number::Count(Box::new(operand(arena, id)?)),
    })
}
