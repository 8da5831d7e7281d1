//! What readings are weighed by: named features, and one file of weights.

use std::path::Path;
use std::rc::Rc;
use std::sync::OnceLock;

use super::cat::Cat;

/// Declares features with their names.
macro_rules! features {
    ($($name:ident),+ $(,)?) => {
        /// What a step of a reading does that speaks for it or against it.
        #[allow(non_camel_case_types, reason = "they are written so in the file of weights")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(super) enum Feature { $($name),+ }

        /// Their names, in order.
        pub(super) const NAMES: &[&str] = &[$(stringify!($name)),+];
    };
}

features! {
    // words that no part accounts for
    skip_unknown, skip_word, skip_name, skip_number, skip_operator, skip_silent, skip_light, skip_light_said, skip_modifier, skip_asking,
    // names
    name, name_word, name_rare, name_unsure, name_namesakes, name_lower, name_literal, name_number, name_prominent,
    // classes and relations
    class, class_soft, class_group, class_said, class_missing, relation, relation_group, relation_said, relation_missing, relation_missing_extreme, relation_only_extreme, relation_soft, relation_fits, inside_label, preposition, preposition_differs,
    relation_named_as_class, value_named_as_class,
    compound, unnamed, unnamed_far, named_otherwise, role,
    // joins: relation or set first, what stands between, along or against the relation
    join_r_none_along, join_r_none_against, join_r_of_along, join_r_of_against,
    join_r_by_along, join_r_by_against, join_r_in_along, join_r_in_against,
    join_r_with_along, join_r_with_against,
    join_s_none_along, join_s_none_against, join_s_of_along, join_s_of_against,
    join_s_by_along, join_s_by_against, join_s_in_along, join_s_in_against,
    join_s_with_along, join_s_with_against,
    // unspoken ways
    bridge, bridge_hop, bridge_rare, bridge_fits, bridge_unsaid, bridge_no_place, bridge_left, bridge_alike, join_bridge, detour, detour_said, sharing, join_apart, join_after_phrase, attached_far, noun_against, picked_against,
    // sets with sets
    and, apposition, open, merged, merged_apart, confirmed, said_twice, conjunction_and, conjunction_or, conjunction_union, pair_and, either_for_both,
    except, under,
    // extremes
    top_measure, top_rank, measure_fits, top_relation, top_other, top_count, top_all, top_after, number_disagrees, ordinal,
    // comparisons
    compare_relation, compare_unspoken, compare_count, compare_degree, compare_average, equal_unspoken, equal_relation, event, event_alone,
    // numbers
    aggregate, count_set, count_value, many_values, how_measure, how_rank, value_extreme,
    // places and times that are asked for
    asked_for_another, asks_place, asks_place_said, asks_time, place_mismatch, time_mismatch, person_mismatch, place_fits, place_of_person, person_fits, person_of_place, noun_fits,
    // what is computed
    empty, idle_comparison, empty_answer, nameless_answer, unknown_answer,
    // the question as a whole beside a way
    matched, matched_far, matched_long, matched_word, matched_said, matched_other, matched_against,
    // all steps of a reading beside the question as a whole
    whole_fits, whole_none, explained,
    // the whole
    answer_is_name, answer_is_around, answer_is_class, truth, truth_missed, order, columns, exists, subject_unsaid,
}

/// A weight for each feature, for graphs whose things have classes and for those whose have none:
/// where no class says what a word may stand for, other things speak for a reading.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights([Vec<f32>; 2]);

/// The tables of a file of weights.
const TABLES: [&str; 2] = ["with_classes", "without_classes"];

impl Weights {
    /// The weights that are shipped.
    pub fn shipped() -> &'static Self {
        static SHIPPED: OnceLock<Weights> = OnceLock::new();
        SHIPPED.get_or_init(|| {
            let text = include_str!("weights.toml");
            Self::read(text).expect("the shipped weights are sound, a test reads them")
        })
    }

    /// Reads the file at a path.
    pub fn load(path: &Path) -> crate::error::Result<Self> {
        let read = std::fs::read_to_string(path).map_err(|e| e.to_string());
        read.and_then(|text| Self::read(&text))
            .map_err(|fault| crate::error::Error::BadSetting {
                name: "retrieve.weights",
                value: format!("{}: {fault}", path.display()),
                wanted: "a file of lines `feature = weight`, as `wherefore train read` writes it",
            })
    }

    /// Reads lines `feature = weight`, in a table for each kind of graph or in none for both.
    /// Features that are not named weigh nothing.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut file: toml::Table = toml::from_str(text).map_err(|e| e.to_string())?;
        match TABLES.map(|name| file.remove(name)) {
            [None, None] => {
                let both = values(file)?;
                Ok(Self([both.clone(), both]))
            }
            [
                Some(toml::Value::Table(with)),
                Some(toml::Value::Table(without)),
            ] if file.is_empty() => Ok(Self([values(with)?, values(without)?])),
            _ => Err(format!(
                "it has to have the tables `{}` and nothing else",
                TABLES.join("` and `")
            )),
        }
    }

    /// One weight for each feature, in order.
    pub(super) fn values(&self, is_untyped: bool) -> &[f32] {
        &self.0[usize::from(is_untyped)]
    }

    /// Weights for graphs with classes and for those without.
    pub(super) fn from_values(values: [Vec<f32>; 2]) -> Self {
        Self(values)
    }

    /// The file's text.
    pub fn written(&self) -> String {
        let mut text = String::new();
        for (table, values) in TABLES.iter().zip(&self.0) {
            text.push_str(&format!("[{table}]\n"));
            for (name, weight) in NAMES.iter().zip(values) {
                text.push_str(&format!("{name} = {weight:.4}\n"));
            }
        }
        text
    }
}

/// The weights of one table.
fn values(table: toml::Table) -> Result<Vec<f32>, String> {
    let mut weights = vec![0.0; NAMES.len()];
    for (name, value) in table {
        let place = NAMES.iter().position(|n| *n == name);
        let place = place.ok_or_else(|| format!("there is no feature `{name}`"))?;
        let weight: f32 = value.try_into().map_err(|e| format!("`{name}`: {e}"))?;
        if !weight.is_finite() {
            return Err(format!("the weight of `{name}` is no number"));
        }
        weights[place] = weight;
    }
    Ok(weights)
}

/// How a part came about: what of, and by which features.
#[derive(Debug)]
pub(super) struct Derivation {
    pub(super) parts: [Option<Rc<Derivation>>; 2],
    pub(super) own: Vec<(Feature, f32)>,
    /// The words from, to, that stand for a part by themselves, and the part.
    pub(super) anchor: Option<((usize, usize), Cat)>,
}

impl Derivation {
    /// All features of it and its parts, summed.
    pub(super) fn features(&self) -> Vec<f32> {
        let mut sum = vec![0.0; NAMES.len()];
        self.add_to(&mut sum);
        sum
    }

    fn add_to(&self, sum: &mut [f32]) {
        for &(feature, value) in &self.own {
            sum[feature as usize] += value;
        }
        for part in self.parts.iter().flatten() {
            part.add_to(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_weights_are_read_and_written() {
        let shipped = Weights::shipped();
        for is_untyped in [false, true] {
            assert!(shipped.values(is_untyped)[Feature::skip_name as usize] < 0.0);
        }
        let again = Weights::read(&shipped.written()).unwrap();
        assert_eq!(&again, shipped);
        assert!(
            Weights::read("nonsense = 1")
                .unwrap_err()
                .contains("nonsense")
        );
        assert!(Weights::read("skip_name = nan").is_err());
        assert!(Weights::read("skip_name = 'x'").is_err());
        let both = Weights::read("skip_name = -2").unwrap();
        assert_eq!(both.values(false), both.values(true));
        let each = "[with_classes]\nname = 1\n[without_classes]\nname = 2\n";
        let each = Weights::read(each).unwrap();
        assert_eq!(each.values(false)[Feature::name as usize], 1.0);
        assert_eq!(each.values(true)[Feature::name as usize], 2.0);
        assert!(Weights::read("[with_classes]\nname = 1\n").is_err());
    }

    #[test]
    fn features_of_parts_add_up() {
        let leaf = |f, v| {
            Some(Rc::new(Derivation {
                parts: [None, None],
                own: vec![(f, v)],
                anchor: None,
            }))
        };
        let whole = Derivation {
            parts: [leaf(Feature::name, 1.0), leaf(Feature::bridge, 0.5)],
            own: vec![(Feature::bridge, 0.25)],
            anchor: None,
        };
        let sum = whole.features();
        assert_eq!(sum[Feature::bridge as usize], 0.75);
        assert_eq!(sum.iter().sum::<f32>(), 1.75);
    }
}
