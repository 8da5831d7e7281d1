//! Runs tables: a row for each member of a set.

use wherefore_graph::{Direction, EntityId};

use super::form::Extreme;
use super::plan::{Measure, Table};
use super::rows::{Cell, Rows};
use super::run::{AHEAD, Runner};
use super::value::{Quantity, first, order};
use crate::error::{Error, Result};

impl Runner<'_> {
    pub(super) fn rows(&mut self, table: &Table) -> Result<Rows> {
        let all = self.extension(&table.of)?;
        let mut members = match &table.order {
            None => all.to_vec(),
            Some((by, extreme)) => self.ordered(&all, by, *extreme)?,
        };
        if let Some((before, many)) = table.slice {
            members.drain(..before.min(members.len()));
            members.truncate(many);
        }
        let mut filled = 0;
        let mut cells = Vec::with_capacity(members.len());
        for things in members.chunks(AHEAD) {
            self.graph.prefetch(things, Direction::Both)?;
            for &thing in things {
                let mut row = Vec::with_capacity(table.columns.len());
                for column in &table.columns {
                    let cell: Vec<Cell> = match &column.measure {
                        Measure::Path(ways, _) => {
                            let ends = self.reached(thing, ways)?;
                            ends.into_iter().map(Cell::Entity).collect()
                        }
                        measure => {
                            let values = self.values(Some(thing), measure)?;
                            values.into_iter().map(Cell::Value).collect()
                        }
                    };
                    filled += cell.len();
                    row.push(cell);
                }
                if filled > self.limits.rows {
                    return Err(Error::FormTooLarge {
                        limit: self.limits.rows,
                    });
                }
                cells.push(row);
            }
        }
        Ok(Rows {
            columns: std::iter::once(&table.title)
                .chain(table.columns.iter().map(|c| &c.title))
                .cloned()
                .collect(),
            left_out: all.len() - members.len(),
            members,
            cells,
        })
    }

    /// By the largest or smallest value of each; what has none comes last, equal ones as they come.
    fn ordered(
        &mut self,
        all: &[EntityId],
        by: &Measure,
        extreme: Extreme,
    ) -> Result<Vec<EntityId>> {
        let mut rated: Vec<(Option<Quantity>, EntityId)> = Vec::with_capacity(all.len());
        for things in all.chunks(AHEAD) {
            self.graph.prefetch(things, Direction::Both)?;
            for &thing in things {
                rated.push((first(&self.values(Some(thing), by)?, extreme), thing));
            }
        }
        rated.sort_by(|(a, _), (b, _)| match (a, b) {
            (Some(a), Some(b)) => match extreme {
                Extreme::Largest => order(b, a),
                Extreme::Smallest => order(a, b),
            },
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
        Ok(rated.into_iter().map(|(_, thing)| thing).collect())
    }
}
