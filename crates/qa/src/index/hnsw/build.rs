//! Linking vectors, on all cores and with the same result on any number of them.
//!
//! Vectors come in batches of at most a sixteenth of those already linked. All of a batch are
//! placed side by side against the links as they were before it; then links back to them are
//! added, gathered by target. Nothing is shared while it is written, so there are no locks and
//! the order of threads does not matter (Manohar et al., "ParlayANN", PPoPP 2024).
//!
//! Which of the candidates become links is the paper's heuristic (algorithm 4): one that lies
//! nearer to an earlier choice than to the vector itself is passed over, so that links lead in
//! all directions. Vectors come in strides of about 0.618 of the whole: labels are in
//! alphabetical order, and neighbours in one batch do not see each other.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use pulp::Arch;
use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Astray, Hnsw, HnswMark, HnswOptions, Layers, NONE, Near, Query, Rows, Visited, near};
use crate::error::{Error, Result};
use crate::index::dot::dot_rows;

/// The highest layer there can be.
pub(crate) const MAX_LEVEL: usize = 15;
/// A batch is this part of what is linked already, and at most [`MAX_BATCH`].
const BATCH_PART: usize = 16;
const MAX_BATCH: usize = 4096;

/// Links that overflow are thinned out to this part less than there is room for, so that the next
/// ones need only be added: choosing is most of the work.
const SLACK: usize = 4;

const REACHED: &str = "links that were made here lead to rows";

/// Links all rows that are not zero; none if there is no such row. `tell` hears how many are done.
pub(crate) fn build(
    rows: Rows<'_>,
    options: &HnswOptions,
    tell: &(dyn Fn(u64) + Sync),
) -> Result<Option<Hnsw<Vec<u32>>>> {
    for (name, value, least) in [
        ("links", options.links, 2),
        ("ef_construction", options.ef_construction, 1),
        ("ef_search", options.ef_search, 1),
    ] {
        if !(least..=1 << 16).contains(&value) {
            return Err(Error::BadSetting {
                name,
                value: value.to_string(),
                wanted: "between 2 and 65,536",
            });
        }
    }
    let m = options.links;
    let levels: Vec<u8> = (0..rows.len() as u32)
        .into_par_iter()
        .map(|node| level(node, options))
        .collect();
    let is_zero = |node: u32| rows.row(node).iter().all(|&bits| bits & 0x7fff == 0);
    // the highest first: then no layer is ever without a way in
    let entry = (0..rows.len() as u32)
        .filter(|&node| !is_zero(node))
        .max_by_key(|&node| (levels[node as usize], std::cmp::Reverse(node)));
    let Some(entry) = entry else { return Ok(None) };
    let top = usize::from(levels[entry as usize]);
    let mut work = Work {
        rows,
        options,
        layers: empty_layers(m, &levels),
        levels,
        entry,
        top,
    };
    let mut order = stride_order(rows.len()).filter(|&node| node != entry && !is_zero(node));
    let mut linked = 1;
    loop {
        let most = (linked / BATCH_PART).clamp(1, MAX_BATCH);
        let batch: Vec<u32> = order.by_ref().take(most).collect();
        if batch.is_empty() {
            break;
        }
        linked += batch.len();
        work.insert(&batch);
        tell(linked as u64);
    }
    let layers = work.layers;
    let mark = HnswMark {
        links: m,
        ef_search: options.ef_search,
        entry,
        top,
        upper_nodes: layers.upper_nodes.len() as u64,
        upper_rows: (layers.upper_links.len() / m) as u64,
    };
    Ok(Some(Hnsw { layers, mark }))
}

/// Writes the files of the links into a folder.
pub(crate) fn write(built: &Hnsw<Vec<u32>>, folder: &Path) -> Result<()> {
    for (name, values) in [
        ("links", &built.layers.base),
        ("upper.nodes", &built.layers.upper_nodes),
        ("upper.starts", &built.layers.upper_starts),
        ("upper.links", &built.layers.upper_links),
    ] {
        let path = folder.join(name);
        let file = File::create(&path).map_err(Error::io("create", &path))?;
        let mut file = BufWriter::new(file);
        file.write_all(bytemuck::cast_slice(values))
            .and_then(|()| file.flush())
            .and_then(|()| file.get_ref().sync_all())
            .map_err(Error::io("write", &path))?;
    }
    Ok(())
}

/// ⌊−ln(u)·mL⌋ with u drawn from the seed and the number.
fn level(node: u32, options: &HnswOptions) -> u8 {
    let hash = xxh3_64_with_seed(&node.to_le_bytes(), options.seed);
    let u = ((hash >> 11) + 1) as f64 / (1u64 << 53) as f64;
    let level = -u.ln() / (options.links as f64).ln();
    (level as usize).min(MAX_LEVEL) as u8
}

/// All numbers below `len`, far ones after each other.
fn stride_order(len: usize) -> impl Iterator<Item = u32> {
    let len = len as u64;
    let mut stride = (len as f64 * 0.618_034) as u64 | 1;
    while len > 0 && gcd(stride, len) != 1 {
        stride += 2;
    }
    (0..len).map(move |i| (i * stride % len) as u32)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn empty_layers(m: usize, levels: &[u8]) -> Layers<Vec<u32>> {
    let mut upper_nodes = Vec::new();
    let mut upper_starts = vec![0];
    let mut upper_rows = 0;
    for (node, &level) in levels.iter().enumerate().filter(|(_, level)| **level > 0) {
        upper_nodes.push(node as u32);
        upper_rows += u32::from(level);
        upper_starts.push(upper_rows);
    }
    Layers {
        m,
        base: vec![NONE; levels.len() * 2 * m],
        upper_links: vec![NONE; upper_rows as usize * m],
        upper_nodes,
        upper_starts,
    }
}

struct Work<'a> {
    rows: Rows<'a>,
    options: &'a HnswOptions,
    layers: Layers<Vec<u32>>,
    levels: Vec<u8>,
    entry: u32,
    top: usize,
}

/// The links that a vector chose in a layer.
struct Choice {
    layer: usize,
    node: u32,
    links: Vec<Near>,
}

impl Work<'_> {
    fn insert(&mut self, batch: &[u32]) {
        let this = &*self;
        let choices: Vec<Choice> = batch
            .par_iter()
            .map_init(
                || Visited::new(this.rows.len()),
                |visited, &node| this.choose(node, visited).expect(REACHED),
            )
            .flatten_iter()
            .collect();
        let mut back: Vec<(usize, u32, Near)> = Vec::new();
        for choice in &choices {
            for link in &choice.links {
                let to_us = Near {
                    score: link.score,
                    node: choice.node,
                };
                back.push((choice.layer, link.node, to_us));
            }
        }
        back.par_sort_unstable_by_key(|(layer, target, near)| (*layer, *target, near.node));
        for choice in &choices {
            self.set(choice.layer, choice.node, &choice.links);
        }
        let groups: Vec<_> = back.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).collect();
        let this = &*self;
        let answered: Vec<Choice> = groups
            .into_par_iter()
            .map(|group| this.link_back(group).expect(REACHED))
            .collect();
        for choice in &answered {
            self.set(choice.layer, choice.node, &choice.links);
        }
    }

    /// What a vector links to, layer by layer, given the links that are there.
    fn choose(&self, node: u32, visited: &mut Visited) -> Result<Vec<Choice>, Astray> {
        let (rows, layers) = (self.rows, &self.layers);
        let query = Query::of_row(rows.row(node));
        let mut from = near(rows, &query, self.entry)?;
        let level = usize::from(self.levels[node as usize]);
        for layer in (level + 1..=self.top).rev() {
            from = layers.greedy(rows, &query, from, layer)?;
        }
        let mut from = vec![from];
        let mut choices = Vec::with_capacity(level + 1);
        for layer in (0..=level).rev() {
            let ef = self.options.ef_construction;
            from = layers.search_layer(rows, &query, &from, ef, layer, visited)?;
            choices.push(Choice {
                layer,
                node,
                links: diverse(rows, &from, self.options.links),
            });
        }
        Ok(choices)
    }

    /// The links of a vector after new ones to it were made.
    fn link_back(&self, group: &[(usize, u32, Near)]) -> Result<Choice, Astray> {
        let (layer, node, _) = group[0];
        let most = if layer == 0 {
            2 * self.options.links
        } else {
            self.options.links
        };
        let query = Query::of_row(self.rows.row(node));
        let mut links = Vec::with_capacity(most + group.len());
        for &link in self.layers.links(node, layer)? {
            links.push(near(self.rows, &query, link)?);
        }
        links.extend(group.iter().map(|(_, _, near)| *near));
        if links.len() > most {
            links.sort_unstable_by(|a, b| b.cmp(a));
            links = diverse(self.rows, &links, most - most / SLACK);
        }
        Ok(Choice { layer, node, links })
    }

    fn set(&mut self, layer: usize, node: u32, links: &[Near]) {
        let place = self.layers.place(node, layer).expect(REACHED);
        let all = if layer == 0 {
            &mut self.layers.base
        } else {
            &mut self.layers.upper_links
        };
        let row = &mut all[place];
        row.fill(NONE);
        for (place, link) in row.iter_mut().zip(links) {
            *place = link.node;
        }
    }
}

/// At most `most` of the candidates, which come nearest first, none of them nearer to another
/// choice than to the vector they are chosen for.
fn diverse(rows: Rows<'_>, candidates: &[Near], most: usize) -> Vec<Near> {
    let arch = Arch::new();
    let mut chosen: Vec<Near> = Vec::with_capacity(most);
    for candidate in candidates {
        if chosen.len() == most {
            break;
        }
        let row = rows.row(candidate.node);
        let is_behind = |other: &Near| dot_rows(arch, row, rows.row(other.node)) > candidate.score;
        if !chosen.iter().any(is_behind) {
            chosen.push(*candidate);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::dot::to_f16;

    #[test]
    fn the_order_holds_every_number_once() {
        for len in [0, 1, 2, 3, 10, 97, 1000] {
            let mut order: Vec<u32> = stride_order(len).collect();
            order.sort_unstable();
            assert!(order.iter().copied().eq(0..len as u32), "{len}");
        }
    }

    #[test]
    fn one_in_m_vectors_rises_to_the_next_layer() {
        let options = HnswOptions::default();
        let risen = (0..100_000).filter(|&node| level(node, &options) > 0);
        // 100,000 / 16 = 6,250; three standard deviations are 230
        assert!(risen.count().abs_diff(6_250) < 230);
    }

    /// Random numbers from 0 to 1.
    fn random(state: &mut u64) -> f32 {
        *state = xxh3_64_with_seed(&state.to_le_bytes(), 7);
        (*state >> 40) as f32 / (1 << 24) as f32
    }

    /// Rows of length 1 around `clusters` random points, every 50th of them zero.
    fn clustered(rows: usize, dim: usize, clusters: usize, spread: f32, seed: u64) -> Vec<u16> {
        let mut state = seed;
        let centres: Vec<f32> = (0..clusters * dim)
            .map(|_| random(&mut state) - 0.5)
            .collect();
        let mut values = Vec::new();
        for i in 0..rows {
            let from = (random(&mut state) * clusters as f32) as usize % clusters * dim;
            let row: Vec<f32> = centres[from..from + dim]
                .iter()
                .map(|x| x + spread * (random(&mut state) - 0.5))
                .collect();
            let length = row.iter().map(|x| x * x).sum::<f32>().sqrt();
            let factor = if i % 50 == 0 { 0.0 } else { 1.0 / length };
            let row: Vec<f32> = row.iter().map(|x| x * factor).collect();
            to_f16(&row, &mut values);
        }
        values
    }

    fn recall(values: &[u16], dim: usize, built: &Hnsw<Vec<u32>>, queries: &[u16]) -> f64 {
        let rows = Rows { values, dim };
        let (mut hits, mut all) = (0, 0);
        for row in queries.chunks_exact(dim).filter(|row| row[0] != 0) {
            let query = Query::of_row(row);
            let mut exact: Vec<Near> = (0..rows.len() as u32)
                .map(|node| near(rows, &query, node).unwrap())
                .collect();
            exact.sort_unstable_by(|a, b| b.cmp(a));
            exact.truncate(10);
            let found = built.nearest(rows, &query, 10).unwrap();
            assert!(
                found.iter().all(|n| n.node % 50 != 0),
                "zero rows are left out"
            );
            hits += exact.iter().filter(|n| found.contains(n)).count();
            all += exact.len();
        }
        f64::from(hits as u32) / f64::from(all as u32)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn nine_in_ten_of_the_nearest_are_found_and_more(
            seed in 1u64..1000,
            rows in 500usize..3000,
            clusters in 1usize..60,
            spread in 0.2f32..2.0,
        ) {
            let dim = 24;
            let values = clustered(rows, dim, clusters, spread, seed);
            let rows = Rows { values: values.as_slice(), dim };
            let built = build(rows, &HnswOptions::default(), &|_| {}).unwrap().unwrap();
            let queries = clustered(60, dim, clusters, spread, seed);
            let recall = recall(&values, dim, &built, &queries);
            prop_assert!(recall >= 0.95, "{recall}");
        }
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let values = clustered(3000, 16, 20, 0.8, 5);
        let rows = Rows {
            values: values.as_slice(),
            dim: 16,
        };
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let pool = pool.build().unwrap();
            pool.install(|| build(rows, &HnswOptions::default(), &|_| {}))
                .unwrap()
                .unwrap()
        };
        let (one, three) = (with(1), with(3));
        assert_eq!(one.mark, three.mark);
        assert!(one.layers.base == three.layers.base);
        assert!(one.layers.upper_links == three.layers.upper_links);
    }

    #[test]
    fn nothing_but_zeros_has_no_links() {
        let rows = Rows {
            values: [0; 20].as_slice(),
            dim: 4,
        };
        assert!(
            build(rows, &HnswOptions::default(), &|_| {})
                .unwrap()
                .is_none()
        );
        let strange = HnswOptions {
            links: 1,
            ..HnswOptions::default()
        };
        assert!(matches!(
            build(rows, &strange, &|_| {}),
            Err(Error::BadSetting { name: "links", .. })
        ));
    }

    #[test]
    fn links_lead_in_all_directions() {
        // the vector is (1, 0); two candidates lie together on one side, one alone on the other
        let one = |x: f32, y: f32| {
            let mut row = Vec::new();
            to_f16(&[x, y], &mut row);
            row
        };
        let values = [one(0.8, 0.6), one(0.78, 0.62), one(0.6, -0.8)].concat();
        let rows = Rows {
            values: values.as_slice(),
            dim: 2,
        };
        let candidates = [(0.8, 0), (0.78, 1), (0.6, 2)].map(|(score, node)| Near { score, node });
        let chosen: Vec<u32> = diverse(rows, &candidates, 2)
            .iter()
            .map(|n| n.node)
            .collect();
        assert_eq!(chosen, [0, 2]);
    }
}
