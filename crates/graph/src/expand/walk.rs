//! The walk behind [`expand`](super::expand): hop by hop, each triple once.
//!
//! A triple has two ends, and both may be followed. When the second is, the mark of the first
//! tells that it gave all its edges, or, if it was cut, up to where in each relation.

use std::borrow::Cow;
use std::ops::Range;

use super::expansion::{Cut, CutHub, Expansion};
use crate::error::{Error, Result};
use crate::graph::{Adjacency, Direction, Edge, EntityId, RelationId, Triple};
use crate::marks::{Clock, Marks, reading_cost};

/// Most triples, and most seeds: own ids share 32 bits with two flags.
const MOST: usize = 1 << 29;

/// Beside an entity stand its own id + 1 and, once it was followed, one of these.
const WHOLE: u32 = 1 << 31;
const CUT: u32 = 1 << 30;
const OWN: u32 = CUT - 1;

/// Beside a relation stands its own id + 1, or this.
const SKIPPED: u32 = u32::MAX;

type Row<'a> = Cow<'a, [Edge]>;

/// The end of a triple that the followed entity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Head,
    Tail,
}

/// How following one entity went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Followed {
    Whole,
    /// Cut by `max_fan_out`.
    Cut,
    /// Cut by the number of triples it was allowed.
    Starved,
    OutOfTime,
}

/// One relation's edges of a cut entity; `next..until` are not yet looked at.
#[derive(Debug)]
struct Group {
    end: End,
    from: usize,
    next: usize,
    until: usize,
}

/// A cut entity gives the first edges of each relation: those up to `last` are taken.
#[derive(Debug)]
struct Prefix {
    end: End,
    relation: RelationId,
    last: EntityId,
}

/// Where a hop began, to go back to.
struct Beginning {
    entities: usize,
    relations: usize,
    triples: usize,
    hubs: usize,
    prefixes: usize,
}

/// Working memory of walks, all zero between two of them.
#[derive(Debug, Default)]
pub(super) struct WalkMarks {
    pub(super) entities: Marks,
    pub(super) relations: Marks,
}

pub(super) struct Walk<'a> {
    graph: &'a dyn Adjacency,
    expansion: &'a Expansion,
    max_triples: usize,
    marks: &'a mut WalkMarks,
    clock: Clock,
    pub(super) entities: Vec<EntityId>,
    pub(super) relations: Vec<RelationId>,
    pub(super) triples: Vec<Triple>,
    pub(super) cut: Cut,
    prefixes: Vec<Prefix>,
    /// Own id of a cut entity → its prefixes, by (end, relation).
    prefixes_of: Vec<Range<usize>>,
    groups: Vec<Group>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        graph: &'a dyn Adjacency,
        expansion: &'a Expansion,
        marks: &'a mut WalkMarks,
    ) -> Self {
        Walk {
            graph,
            expansion,
            max_triples: expansion.max_triples.min(MOST),
            marks,
            clock: Clock::new(expansion.time_limit),
            // room for a small neighbourhood, so that those do not spend their time on growing
            entities: Vec::with_capacity(256),
            relations: Vec::with_capacity(32),
            triples: Vec::with_capacity(256),
            cut: Cut::default(),
            prefixes: Vec::new(),
            prefixes_of: Vec::new(),
            groups: Vec::new(),
        }
    }

    /// Walks, and returns the distance of each entity.
    pub(super) fn run(&mut self, seeds: &[EntityId]) -> Result<Vec<u16>> {
        for &relation in &self.expansion.skip {
            *self.marks.relations.relation(self.graph, relation)? = SKIPPED;
        }
        for &seed in seeds {
            let mark = self.marks.entities.entity(self.graph, seed)?;
            if *mark == 0 {
                if self.entities.len() >= MOST {
                    return Err(Error::TooMany { what: "entities" });
                }
                self.entities.push(seed);
                *mark = self.entities.len() as u32;
            }
        }
        let mut distance = vec![0u16; self.entities.len()];
        let mut frontier = 0..self.entities.len();
        for hop in 1..=u16::try_from(self.expansion.hops).unwrap_or(u16::MAX) {
            if frontier.is_empty() || self.cut.out_of_time {
                break;
            }
            self.hop(frontier.clone())?;
            distance.resize(self.entities.len(), hop);
            frontier = frontier.end..self.entities.len();
        }
        Ok(distance)
    }

    /// Follows all of the frontier; smallest first if it turns out not to fit.
    fn hop(&mut self, frontier: Range<usize>) -> Result<()> {
        let beginning = Beginning {
            entities: self.entities.len(),
            relations: self.relations.len(),
            triples: self.triples.len(),
            hubs: self.cut.hubs.len(),
            prefixes: self.prefixes.len(),
        };
        let followed = &self.entities[frontier.clone()];
        self.graph.prefetch(followed, self.expansion.direction)?;
        for own in frontier.clone() {
            match self.follow(own, self.max_triples - self.triples.len())? {
                Followed::Whole | Followed::Cut => {}
                Followed::Starved => {
                    self.go_back(&beginning, frontier.clone());
                    return self.hop_smallest_first(frontier);
                }
                Followed::OutOfTime => {
                    self.cut.out_of_time = true;
                    self.cut.unfollowed += frontier.end - own;
                    break;
                }
            }
        }
        Ok(())
    }

    fn go_back(&mut self, to: &Beginning, frontier: Range<usize>) {
        let marks = &mut *self.marks;
        marks
            .entities
            .wipe(self.entities[to.entities..].iter().map(|e| e.index()));
        marks
            .relations
            .wipe(self.relations[to.relations..].iter().map(|r| r.index()));
        self.entities.truncate(to.entities);
        self.relations.truncate(to.relations);
        self.triples.truncate(to.triples);
        self.cut.hubs.truncate(to.hubs);
        self.prefixes.truncate(to.prefixes);
        for &entity in &self.entities[frontier] {
            if let Ok(mark) = marks.entities.entity(self.graph, entity) {
                *mark &= OWN;
            }
        }
    }

    fn hop_smallest_first(&mut self, frontier: Range<usize>) -> Result<()> {
        self.cut.out_of_triples = true;
        let mut order = Vec::with_capacity(frontier.len());
        for own in frontier.clone() {
            let (outgoing, incoming) = self.rows(own)?;
            if self
                .clock
                .is_over(reading_cost(&outgoing) + reading_cost(&incoming))
            {
                self.cut.out_of_time = true;
                self.cut.unfollowed += frontier.len();
                return Ok(());
            }
            let most = self.expansion.max_fan_out;
            order.push((outgoing.len().min(most) + incoming.len().min(most), own));
        }
        order.sort_unstable();
        for (i, &(_, own)) in order.iter().enumerate() {
            let left = self.max_triples - self.triples.len();
            let waiting = order.len() - i;
            let out_of_time =
                left > 0 && self.follow(own, left.div_ceil(waiting))? == Followed::OutOfTime;
            self.cut.out_of_time |= out_of_time;
            if left == 0 || out_of_time {
                self.cut.unfollowed += waiting;
                break;
            }
        }
        Ok(())
    }

    fn rows(&self, own: usize) -> Result<(Row<'a>, Row<'a>)> {
        let entity = self.entities[own];
        let none = Cow::Borrowed(&[][..]);
        Ok(match self.expansion.direction {
            Direction::Outgoing => (self.graph.outgoing(entity)?, none),
            Direction::Incoming => (none, self.graph.incoming(entity)?),
            Direction::Both => (self.graph.outgoing(entity)?, self.graph.incoming(entity)?),
        })
    }

    /// Takes the edges of one entity, at most `allowed`.
    fn follow(&mut self, own: usize, allowed: usize) -> Result<Followed> {
        let (outgoing, incoming) = self.rows(own)?;
        if self
            .clock
            .is_over(reading_cost(&outgoing) + reading_cost(&incoming))
        {
            return Ok(Followed::OutOfTime);
        }
        let most = self.expansion.max_fan_out;
        let fits = outgoing.len() <= most
            && incoming.len() <= most
            && outgoing.len() + incoming.len() <= allowed;
        let followed = if !fits {
            self.take_fairly(own, &outgoing, &incoming, allowed)?
        } else if self.take_all(own, &outgoing, End::Head)?
            && self.take_all(own, &incoming, End::Tail)?
        {
            Followed::Whole
        } else {
            Followed::OutOfTime
        };
        let flag = match followed {
            Followed::Whole => WHOLE,
            Followed::Cut | Followed::Starved => CUT,
            Followed::OutOfTime => 0,
        };
        *self.marks.entities.entity(self.graph, self.entities[own])? |= flag;
        Ok(followed)
    }

    /// Takes a whole row. False if time ran out on the way.
    fn take_all(&mut self, own: usize, row: &[Edge], end: End) -> Result<bool> {
        let (mut relation, mut own_relation) = (None, SKIPPED);
        for edges in row.chunks(Clock::STRIDE) {
            if self.clock.is_over(edges.len()) {
                return Ok(false);
            }
            self.triples.reserve(edges.len());
            for edge in edges {
                if relation != Some(edge.relation) {
                    relation = Some(edge.relation);
                    own_relation = self.own_relation(edge.relation)?;
                }
                if own_relation != SKIPPED {
                    self.take(own, own_relation, *edge, end)?;
                }
            }
        }
        Ok(true)
    }

    /// Takes edges of each relation and direction in turn, until a limit is reached.
    fn take_fairly(
        &mut self,
        own: usize,
        outgoing: &[Edge],
        incoming: &[Edge],
        allowed: usize,
    ) -> Result<Followed> {
        let mut groups = std::mem::take(&mut self.groups);
        groups.clear();
        for (row, end) in [(outgoing, End::Head), (incoming, End::Tail)] {
            let mut from = 0;
            while let Some(edge) = row.get(from) {
                let relation = edge.relation;
                let until = from + row[from..].partition_point(|e| e.relation == relation);
                if *self.marks.relations.relation(self.graph, relation)? != SKIPPED {
                    groups.push(Group {
                        end,
                        from,
                        next: from,
                        until,
                    });
                }
                from = until;
            }
        }
        let row = |end: End| match end {
            End::Head => outgoing,
            End::Tail => incoming,
        };
        let mut followed = Followed::Whole;
        let mut left = allowed;
        let mut left_at = [self.expansion.max_fan_out; 2];
        let mut active: Vec<usize> = (0..groups.len()).collect();
        while !active.is_empty() {
            if self.clock.is_over(active.len()) {
                return Ok(Followed::OutOfTime);
            }
            let mut kept = 0;
            for i in 0..active.len() {
                let group = &mut groups[active[i]];
                let edges = &row(group.end)[..group.until];
                while group.next < edges.len() && self.has(own, edges[group.next], group.end)? {
                    group.next += 1;
                }
                let Some(&edge) = edges.get(group.next) else {
                    continue;
                };
                let left_here = &mut left_at[group.end as usize];
                if left == 0 {
                    followed = Followed::Starved;
                } else if *left_here == 0 {
                    if followed == Followed::Whole {
                        followed = Followed::Cut;
                    }
                } else {
                    let own_relation = self.own_relation(edge.relation)?;
                    self.take(own, own_relation, edge, group.end)?;
                    group.next += 1;
                    left -= 1;
                    *left_here -= 1;
                    active[kept] = active[i];
                    kept += 1;
                }
            }
            active.truncate(kept);
        }
        if followed != Followed::Whole {
            let first = self.prefixes.len();
            for group in groups.iter().filter(|g| g.next > g.from) {
                let last = row(group.end)[group.next - 1];
                self.prefixes.push(Prefix {
                    end: group.end,
                    relation: last.relation,
                    last: last.entity,
                });
            }
            if self.prefixes_of.len() <= own {
                self.prefixes_of.resize(own + 1, 0..0);
            }
            self.prefixes_of[own] = first..self.prefixes.len();
            self.cut.hubs.push(CutHub {
                entity: self.entities[own],
                edges: groups.iter().map(|g| g.until - g.from).sum(),
                taken: allowed - left,
            });
        }
        self.groups = groups;
        Ok(followed)
    }

    #[inline]
    fn own_relation(&mut self, relation: RelationId) -> Result<u32> {
        let mark = self.marks.relations.relation(self.graph, relation)?;
        if *mark == 0 {
            self.relations.push(relation);
            *mark = self.relations.len() as u32;
        }
        // a skipped relation is known by its mark alone
        Ok(if *mark == SKIPPED { SKIPPED } else { *mark - 1 })
    }

    /// Takes one edge, unless its triple is there already.
    // the compiler judges it too large, yet it is the body of the hot loop
    #[inline(always)]
    fn take(&mut self, own: usize, relation: u32, edge: Edge, end: End) -> Result<()> {
        let mark = self.marks.entities.entity(self.graph, edge.entity)?;
        let other = if *mark == 0 {
            self.entities.push(edge.entity);
            *mark = self.entities.len() as u32;
            *mark - 1
        } else {
            let mark = *mark;
            if self.has_marked(own, mark, edge, end) {
                return Ok(());
            }
            (mark & OWN) - 1
        };
        let (head, tail) = match end {
            End::Head => (own as u32, other),
            End::Tail => (other, own as u32),
        };
        self.triples.push(Triple::new(head, relation, tail));
        Ok(())
    }

    /// Whether the triple of this edge was taken already.
    fn has(&mut self, own: usize, edge: Edge, end: End) -> Result<bool> {
        let mark = *self.marks.entities.entity(self.graph, edge.entity)?;
        Ok(mark != 0 && self.has_marked(own, mark, edge, end))
    }

    /// The same, with the mark of the edge's other end, which is not 0.
    #[inline]
    fn has_marked(&self, own: usize, mark: u32, edge: Edge, end: End) -> bool {
        if self.expansion.direction != Direction::Both {
            // followed from one end only, and each entity is followed once
            return false;
        }
        let other = (mark & OWN) as usize - 1;
        // a loop is in both rows of its entity
        mark & WHOLE != 0
            || (other == own && end == End::Tail)
            || (mark & CUT != 0 && self.cut_entity_gave(other, own, edge.relation, end))
    }

    /// Whether the cut entity `hub` gave its edge to `own`, which is the triple's `end`.
    #[cold]
    fn cut_entity_gave(&self, hub: usize, own: usize, relation: RelationId, end: End) -> bool {
        let hubs_end = match end {
            End::Head => End::Tail,
            End::Tail => End::Head,
        };
        let prefixes = &self.prefixes[self.prefixes_of[hub].clone()];
        prefixes
            .binary_search_by_key(&(hubs_end, relation), |p| (p.end, p.relation))
            .is_ok_and(|i| self.entities[own] <= prefixes[i].last)
    }
}
