//! The rows that a table comes to.

use wherefore_graph::{EntityId, Graph};

use super::value::Quantity;
use crate::answer;
use crate::error::Result;

/// The rows of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// The titles of all columns. In the first stands the member itself.
    pub columns: Vec<String>,
    /// What the rows are about, in their order; sorted where there is none.
    pub members: Vec<EntityId>,
    /// For each row, for each further column, what stands in it.
    pub cells: Vec<Vec<Vec<Cell>>>,
    /// Rows before the slice and behind it.
    pub left_out: usize,
}

impl Rows {
    /// The table in words; at most so many rows.
    pub fn told(&self, graph: &dyn Graph, most: usize) -> Result<answer::Table> {
        let mut rows = Vec::with_capacity(self.members.len().min(most));
        for (&member, cells) in self.members.iter().zip(&self.cells).take(most) {
            let mut row = vec![vec![graph.entity_label(member)?.into_owned()]];
            for cell in cells {
                let mut texts = Vec::with_capacity(cell.len());
                for part in cell {
                    texts.push(match part {
                        Cell::Entity(entity) => graph.entity_label(*entity)?.into_owned(),
                        Cell::Value(value) => value.to_string(),
                    });
                }
                row.push(texts);
            }
            rows.push(row);
        }
        Ok(answer::Table {
            columns: self.columns.clone(),
            left_out: self.left_out + self.members.len() - rows.len(),
            rows,
        })
    }
}

/// One of the things that stand in a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell {
    /// What a path leads to.
    Entity(EntityId),
    /// A value of a measure.
    Value(Quantity),
}
