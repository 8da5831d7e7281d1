//! Directional distance encoding: how topics spread along and against the triples.

use super::Config;

/// Writes d of every entity, `[entities, width]`, side by side.
pub(super) fn encode(config: &Config, topics: &[bool], triples: &[[u32; 3]], out: &mut Vec<f32>) {
    let width = config.distances();
    let nodes = topics.len();
    out.clear();
    out.resize(nodes * width, 0.0);
    for (row, topic) in out.chunks_exact_mut(width).zip(topics) {
        row[usize::from(*topic)] = 1.0;
    }
    let mut count = vec![0.0f32; nodes];
    for (rounds, first, from, to) in [
        (config.rounds, 2, 0, 2),
        (config.rounds_back, 2 + 2 * config.rounds, 2, 0),
    ] {
        count.fill(0.0);
        for triple in triples {
            count[triple[to] as usize] += 1.0;
        }
        for round in 0..rounds {
            let column = first + 2 * round;
            let before = if round == 0 { 0 } else { column - 2 };
            for triple in triples {
                let source = triple[from] as usize * width + before;
                let [a, b] = [out[source], out[source + 1]];
                let target = triple[to] as usize * width + column;
                out[target] += a;
                out[target + 1] += b;
            }
            for (row, count) in out.chunks_exact_mut(width).zip(&count) {
                let share = 1.0 / count.max(1.0);
                row[column] *= share;
                row[column + 1] *= share;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_spread_by_means_along_and_against() {
        // 0 → 1 → 2, 3 → 1; the topic is 0
        let config = Config::default();
        let mut d = Vec::new();
        encode(
            &config,
            &[true, false, false, false],
            &[[0, 0, 1], [1, 0, 2], [3, 0, 1]],
            &mut d,
        );
        let rows: Vec<&[f32]> = d.chunks_exact(10).collect();
        // p⁰, along 1, along 2, against 1, against 2
        assert_eq!(rows[0], [0., 1., 0., 0., 0., 0., 1., 0., 1., 0.]);
        // 1 hears 0 and 3: half a topic; against, 2 is no topic, and 2 has nothing behind it
        assert_eq!(rows[1], [1., 0., 0.5, 0.5, 0., 0., 1., 0., 0., 0.]);
        assert_eq!(rows[2], [1., 0., 1., 0., 0.5, 0.5, 0., 0., 0., 0.]);
        assert_eq!(rows[3], [1., 0., 0., 0., 0., 0., 1., 0., 1., 0.]);
    }
}
