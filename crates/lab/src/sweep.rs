//! Sweeps: one file that names many runs, and the table of their means.
//!
//! ```toml
//! configs = ["../configs/similarity.toml"]   # each is a column of its own; the default if none
//! seeds = [0, 1, 2]                       # each draws its own sample
//! sample = 500                            # questions of each run; all if left out
//!
//! [vary]                                  # every combination is run
//! "select.k" = [10, 20, 30]
//! "retrieve.hops" = [1, 2, 3]
//! ```
//!
//! Paths are relative to the file. A setting is named by its place in the configuration. Runs that
//! differ in their seed alone are one row of the table, with mean and standard deviation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wherefore::PipelineConfig;
use wherefore::model::Random;

use crate::error::{Error, Result};
use crate::metrics::Metrics;
use crate::questions::GoldQuestion;

/// Most runs of one sweep: more is a mistake in the lists.
const MOST_RUNS: usize = 10_000;

/// What a sweep file says.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sweep {
    /// Configuration files, relative to the sweep file.
    pub configs: Vec<PathBuf>,
    /// Seeds; each is a run of its own.
    pub seeds: Vec<u64>,
    /// How many questions each run asks, drawn by its seed.
    pub sample: Option<usize>,
    /// Settings by their place in the configuration, with the values they take.
    pub vary: BTreeMap<String, Vec<toml::Value>>,
}

/// One run of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// What tells it from the others but for its seed: the row of the table.
    pub row: String,
    /// Name of its folder.
    pub folder: String,
    /// Its configuration.
    pub config: PipelineConfig,
    /// Its seed.
    pub seed: u64,
}

impl Sweep {
    /// Reads a sweep file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(Error::io("read", path))?;
        toml::from_str(&text).map_err(|e| {
            let fault = wherefore::config::toml_fault(&text, &e);
            Error::BadSetting(format!("`{}` is no sweep: {fault}", path.display()))
        })
    }

    /// All runs, in the order of the lists. `beside` is the folder of the sweep file.
    pub fn plan(&self, beside: &Path) -> Result<Vec<Planned>> {
        let mut bases = Vec::new();
        for path in &self.configs {
            let path = beside.join(path);
            let text = std::fs::read_to_string(&path).map_err(Error::io("read", &path))?;
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            bases.push((name, parse(&text)?));
        }
        if bases.is_empty() {
            bases.push((
                "default".into(),
                parse(&PipelineConfig::default().to_toml())?,
            ));
        }
        let seeds = if self.seeds.is_empty() {
            &[0][..]
        } else {
            &self.seeds
        };
        let count = self
            .vary
            .values()
            .map(Vec::len)
            .chain([bases.len(), seeds.len()])
            .try_fold(1usize, usize::checked_mul)
            .filter(|&n| n <= MOST_RUNS);
        if count.is_none() {
            return Err(Error::BadSetting(format!(
                "a sweep has at most {MOST_RUNS} runs"
            )));
        }
        if let Some((name, _)) = self.vary.iter().find(|(_, values)| values.is_empty()) {
            return Err(Error::BadSetting(format!(
                "the sweep gives `{name}` no values"
            )));
        }
        let mut rows = bases;
        for (setting, values) in &self.vary {
            let mut longer = Vec::with_capacity(rows.len() * values.len());
            for (row, config) in &rows {
                for value in values {
                    let mut config = config.clone();
                    set(&mut config, setting, value)?;
                    longer.push((format!("{row} {setting}={}", plain(value)), config));
                }
            }
            rows = longer;
        }
        let mut runs = Vec::new();
        for (row, config) in rows {
            let text = toml::to_string(&config)
                .map_err(|e| Error::BadSetting(format!("`{row}` is no configuration: {e}")))?;
            let config = PipelineConfig::from_toml(&text)?;
            config.build()?;
            for &seed in seeds {
                runs.push(Planned {
                    folder: format!("{} seed={seed}", row.replace(['/', '\\'], "-")),
                    row: row.clone(),
                    config: config.clone(),
                    seed,
                });
            }
        }
        Ok(runs)
    }
}

fn parse(text: &str) -> Result<toml::Table> {
    // a file may leave out what has its default, and a varied setting may be among it
    let config = PipelineConfig::from_toml(text)?;
    toml::from_str(&config.to_toml())
        .map_err(|e| Error::BadSetting(format!("the configuration is not valid: {e}")))
}

/// Sets `a.b.c`; all but the last part must be there.
pub(crate) fn set(config: &mut toml::Table, setting: &str, value: &toml::Value) -> Result<()> {
    let missing = || Error::BadSetting(format!("no configuration has a setting `{setting}`"));
    let mut parts: Vec<&str> = setting.split('.').collect();
    let last = parts.pop().ok_or_else(missing)?;
    let mut table = config;
    for part in parts {
        table = table
            .get_mut(part)
            .and_then(toml::Value::as_table_mut)
            .ok_or_else(missing)?;
    }
    table.insert(last.to_owned(), value.clone());
    Ok(())
}

fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// `count` questions, drawn by the seed, in their old order; all if there are fewer.
pub fn sample(questions: &[GoldQuestion], count: usize, seed: u64) -> Vec<GoldQuestion> {
    let mut random = Random::new(seed);
    let mut keyed: Vec<(u64, usize)> = (0..questions.len()).map(|at| (random.bits(), at)).collect();
    keyed.sort_unstable();
    keyed.truncate(count);
    let mut chosen: Vec<usize> = keyed.into_iter().map(|(_, at)| at).collect();
    chosen.sort_unstable();
    chosen.into_iter().map(|at| questions[at].clone()).collect()
}

/// One row of a sweep's table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What was run.
    pub row: String,
    /// How many seeds.
    pub runs: usize,
    /// Mean and standard deviation over the seeds, by metric; the deviation is of the sample
    /// (n − 1), and 0 for one run.
    pub metrics: Vec<(String, f64, f64)>,
}

/// Means and standard deviations over seeds, rows in the order they came.
pub fn table(runs: &[(Planned, Metrics)]) -> Vec<Row> {
    let mut rows: Vec<(&str, Vec<&Metrics>)> = Vec::new();
    for (planned, metrics) in runs {
        match rows.iter_mut().find(|(row, _)| *row == planned.row) {
            Some((_, all)) => all.push(metrics),
            None => rows.push((&planned.row, vec![metrics])),
        }
    }
    rows.into_iter()
        .map(|(row, all)| {
            let names = all[0].overall.metrics.0.iter().map(|(name, _)| name);
            let metrics = names
                .filter_map(|name| {
                    let values: Option<Vec<f64>> =
                        all.iter().map(|m| m.overall.value(name)).collect();
                    let (mean, deviation) = mean_and_deviation(&values?);
                    Some((name.clone(), mean, deviation))
                })
                .collect();
            Row {
                row: row.to_owned(),
                runs: all.len(),
                metrics,
            }
        })
        .collect()
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 {
        return (mean, 0.0);
    }
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_is_planned() {
        let sweep: Sweep = toml::from_str(
            "seeds = [0, 1]\n[vary]\n\"select.k\" = [5, 10]\n\"retrieve.answers\" = [1, 2, 3]\n",
        )
        .unwrap();
        let plan = sweep.plan(Path::new(".")).unwrap();
        assert_eq!(plan.len(), 12);
        assert_eq!(plan[0].row, "default retrieve.answers=1 select.k=5");
        assert_eq!(
            plan[1].folder,
            "default retrieve.answers=1 select.k=5 seed=1"
        );
        let folders: std::collections::HashSet<_> = plan.iter().map(|p| &p.folder).collect();
        assert_eq!(folders.len(), 12);
        let wherefore::config::SelectorConfig::TopK(top) = &plan[2].config.select else {
            panic!("top-k is the default");
        };
        assert_eq!(top.k, 10);
    }

    #[test]
    fn mistakes_in_a_sweep_are_named() {
        let plan = |text: &str| {
            let sweep: Sweep = toml::from_str(text).unwrap();
            sweep.plan(Path::new(".")).unwrap_err().to_string()
        };
        assert!(plan("[vary]\n\"selekt.k\" = [5]").contains("`selekt.k`"));
        assert!(plan("[vary]\n\"select.k\" = []").contains("no values"));
        assert!(plan("[vary]\n\"select.kay\" = [1]").contains("unknown field `kay`"));
        assert!(plan("[vary]\n\"select.k\" = [0]").contains("select.k"));
        assert!(toml::from_str::<Sweep>("seed = 1").is_err());
    }

    #[test]
    fn samples_follow_their_seed_and_keep_the_order() {
        let questions: Vec<GoldQuestion> = (0..100)
            .map(|i| GoldQuestion {
                id: format!("{i:03}"),
                ..GoldQuestion::default()
            })
            .collect();
        let ids = |seed| {
            let drawn = sample(&questions, 10, seed);
            drawn.into_iter().map(|q| q.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(1), ids(1));
        assert_ne!(ids(1), ids(2));
        assert!(ids(1).is_sorted() && ids(1).len() == 10);
        assert_eq!(sample(&questions, 1000, 1).len(), 100);
    }

    #[test]
    fn deviations_are_of_the_sample() {
        // mean of 1, 2, 3 is 2; squares 1 + 0 + 1 = 2; √(2/2) = 1
        assert_eq!(mean_and_deviation(&[1.0, 2.0, 3.0]), (2.0, 1.0));
        assert_eq!(mean_and_deviation(&[0.5]), (0.5, 0.0));
    }
}
