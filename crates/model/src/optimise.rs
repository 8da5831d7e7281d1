//! AdamW with gradient clipping and a warm-up and cosine schedule.
//!
//! Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019:
//!
//! ```text
//! g ← g·min(1, clip/‖g‖)                         ‖g‖ over all tensors together
//! m ← β₁·m + (1 − β₁)·g         v ← β₂·v + (1 − β₂)·g²
//! x ← x − η·(m/(1 − β₁ᵗ)/(√(v/(1 − β₂ᵗ)) + ε) + λ·x)
//! ```
//!
//! η is the rate that [`Schedule`] gives for the step t (from 1), λ is `weight_decay`.
//!
//! Departures: tensors of one dimension (biases, scales and shifts of norms) do not decay; ones with a
//! single row do. The schedule's rate need not fall to zero ([`Schedule::floor`]).

use std::collections::{BTreeMap, HashMap};

use candle_core::{CpuStorage, InplaceOp2, InplaceOp3, Layout, Tensor, Var};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::tensor::{Floats, floats, on_cpu};
use crate::{Error, Result};

/// Numbers that one thread takes at a time.
const BLOCK: usize = 1 << 14;

/// How steps are taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamWConfig {
    /// The highest step width, reached after the warm-up.
    pub learning_rate: f32,
    /// Memory of the mean gradient.
    pub beta_1: f32,
    /// Memory of its square.
    pub beta_2: f32,
    /// Keeps the division finite.
    pub epsilon: f32,
    /// Share of a weight that each step of width 1 takes away.
    pub weight_decay: f32,
    /// Longest gradient that is not scaled down; 0 never scales.
    pub clip: f32,
}

impl Default for AdamWConfig {
    fn default() -> Self {
        Self {
            learning_rate: 1e-3,
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.01,
            clip: 1.0,
        }
    }
}

/// The learning rate over the steps: up in a straight line, then down along half a cosine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Steps until the highest rate.
    pub warm_up: u64,
    /// Steps until the lowest rate.
    pub total: u64,
    /// The lowest rate, as a share of the highest.
    pub floor: f32,
}

impl Schedule {
    /// The rate of step `step` (from 1) as a share of the highest.
    pub fn share(&self, step: u64) -> f32 {
        if step < self.warm_up {
            return step as f32 / self.warm_up as f32;
        }
        let fall = self.total.saturating_sub(self.warm_up).max(1);
        let done = ((step - self.warm_up) as f32 / fall as f32).min(1.0);
        let cosine = 0.5 * (1.0 + (std::f32::consts::PI * done).cos());
        self.floor + (1.0 - self.floor) * cosine
    }
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Its number, from 1.
    pub number: u64,
    /// The loss before it.
    pub loss: f32,
    /// Length of the gradient before clipping.
    pub norm: f32,
    /// Its learning rate.
    pub learning_rate: f32,
}

/// The optimiser with its memory of past gradients.
pub struct AdamW {
    config: AdamWConfig,
    schedule: Schedule,
    taken: u64,
    slots: BTreeMap<String, Slot>,
}

struct Slot {
    parameter: Var,
    first: Tensor,  // m
    second: Tensor, // v
}

impl AdamW {
    /// An optimiser of `parameters` that has taken no step.
    pub fn new(
        parameters: &BTreeMap<String, Var>,
        config: AdamWConfig,
        schedule: Schedule,
    ) -> Result<Self> {
        let slot = |(name, parameter): (&String, &Var)| -> Result<(String, Slot)> {
            let slot = Slot {
                first: parameter.zeros_like()?,
                second: parameter.zeros_like()?,
                parameter: parameter.clone(),
            };
            Ok((name.clone(), slot))
        };
        Ok(Self {
            config,
            schedule,
            taken: 0,
            slots: parameters.iter().map(slot).collect::<Result<_>>()?,
        })
    }

    /// Steps taken so far.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Moves the parameters against the gradient of `loss`, a scalar.
    ///
    /// A loss or gradient that is not finite is an [`Error::Diverged`], and leaves everything as it
    /// was.
    pub fn step(&mut self, loss: &Tensor) -> Result<Step> {
        let number = self.taken + 1;
        let diverged = |what: String| Error::Diverged { what, step: number };
        let value = loss.to_scalar::<f32>()?;
        if !value.is_finite() {
            return Err(diverged("loss".into()));
        }
        let mut gradients = loss.backward()?;
        let mut own = Vec::with_capacity(self.slots.len());
        let mut square = 0.0f64;
        for (name, slot) in &self.slots {
            let Some(gradient) = gradients.remove(&slot.parameter) else {
                own.push(None);
                continue;
            };
            let gradient = gradient.contiguous()?;
            let length = square_of(&gradient)?;
            if !length.is_finite() {
                return Err(diverged(format!("gradient of `{name}`")));
            }
            square += length;
            own.push(Some(gradient));
        }
        let norm = square.sqrt() as f32;
        let clip = self.config.clip;
        let scale = match clip > 0.0 && norm > clip {
            true => clip / norm,
            false => 1.0,
        };
        let learning_rate = self.config.learning_rate * self.schedule.share(number);
        for (slot, gradient) in self.slots.values_mut().zip(own) {
            if let Some(gradient) = gradient {
                slot.update(&self.config, &gradient, scale, learning_rate, number)?;
            }
        }
        self.taken = number;
        Ok(Step {
            number,
            loss: value,
            norm,
            learning_rate,
        })
    }

    /// What [`AdamW::restore`] needs to go on from here, beside the parameters themselves.
    pub fn state(&self) -> HashMap<String, Tensor> {
        let both = |(name, slot): (&String, &Slot)| {
            [
                (format!("first.{name}"), slot.first.clone()),
                (format!("second.{name}"), slot.second.clone()),
            ]
        };
        self.slots.iter().flat_map(both).collect()
    }

    /// Goes on where an optimiser of the same parameters stood after `taken` steps.
    pub fn restore(&mut self, mut state: HashMap<String, Tensor>, taken: u64) -> Result<()> {
        for (name, slot) in &mut self.slots {
            for (moment, prefix) in [(&mut slot.first, "first"), (&mut slot.second, "second")] {
                let tensor = format!("{prefix}.{name}");
                let saved = state.remove(&tensor).ok_or_else(|| Error::Parameter {
                    tensor: tensor.clone(),
                    reason: "the saved training has none".into(),
                })?;
                if saved.dims() != moment.dims() {
                    let reason = format!(
                        "its shape is {:?} and not {:?}",
                        saved.dims(),
                        moment.dims()
                    );
                    return Err(Error::Parameter { tensor, reason });
                }
                // a copy: steps are taken in place
                *moment = saved.to_device(moment.device())?.copy()?;
            }
        }
        self.taken = taken;
        Ok(())
    }
}

fn square_of(gradient: &Tensor) -> Result<f64> {
    if !on_cpu(gradient) {
        return Ok(f64::from(gradient.sqr()?.sum_all()?.to_scalar::<f32>()?));
    }
    let values = Floats::of(gradient);
    let blocks: Vec<f64> = values
        .values()?
        .par_chunks(BLOCK)
        .map(|block| {
            let squares = block
                .chunks(64)
                .map(|part| part.iter().map(|x| x * x).sum::<f32>());
            squares.map(f64::from).sum()
        })
        .collect();
    Ok(blocks.iter().sum())
}

impl Slot {
    fn update(
        &mut self,
        config: &AdamWConfig,
        gradient: &Tensor,
        scale: f32,
        learning_rate: f32,
        step: u64,
    ) -> candle_core::Result<()> {
        let decay = match self.parameter.rank() {
            0 | 1 => 0.0,
            _ => config.weight_decay,
        };
        let step = i32::try_from(step).unwrap_or(i32::MAX);
        let first = Blend {
            keep: config.beta_1,
            scale,
            square: false,
        };
        let second = Blend {
            keep: config.beta_2,
            scale,
            square: true,
        };
        let advance = Advance {
            first: 1.0 / (1.0 - config.beta_1.powi(step)),
            second: 1.0 / (1.0 - config.beta_2.powi(step)),
            epsilon: config.epsilon,
            learning_rate,
            decay,
        };
        if on_cpu(gradient) {
            self.first.inplace_op2(gradient, &first)?;
            self.second.inplace_op2(gradient, &second)?;
            return self
                .parameter
                .inplace_op3(&self.first, &self.second, &advance);
        }
        self.first = first.composed(&self.first, gradient)?;
        self.second = second.composed(&self.second, gradient)?;
        let moved = advance.composed(&self.parameter, &self.first, &self.second)?;
        self.parameter.set(&moved)
    }
}

/// `m ← keep·m + (1 − keep)·(scale·g)`, or of its square.
struct Blend {
    keep: f32,
    scale: f32,
    square: bool,
}

impl Blend {
    fn composed(&self, moment: &Tensor, gradient: &Tensor) -> candle_core::Result<Tensor> {
        let gradient = (gradient * f64::from(self.scale))?;
        let new = if self.square {
            gradient.sqr()?
        } else {
            gradient
        };
        (moment * f64::from(self.keep))? + (new * f64::from(1.0 - self.keep))?
    }
}

impl InplaceOp2 for Blend {
    fn name(&self) -> &'static str {
        "adam-moment"
    }

    fn cpu_fwd(
        &self,
        moment: &mut CpuStorage,
        moment_layout: &Layout,
        gradient: &CpuStorage,
        gradient_layout: &Layout,
    ) -> candle_core::Result<()> {
        let gradient = floats(gradient, gradient_layout)?;
        floats_mut(moment, moment_layout)?
            .par_chunks_mut(BLOCK)
            .zip(gradient.par_chunks(BLOCK))
            .for_each(|(moments, gradients)| {
                for (m, g) in moments.iter_mut().zip(gradients) {
                    let g = g * self.scale;
                    let new = if self.square { g * g } else { g };
                    *m = self.keep * *m + (1.0 - self.keep) * new;
                }
            });
        Ok(())
    }
}

/// The step itself, from the moments.
struct Advance {
    /// 1/(1 − β₁ᵗ) and 1/(1 − β₂ᵗ).
    first: f32,
    second: f32,
    epsilon: f32,
    learning_rate: f32,
    decay: f32,
}

impl Advance {
    fn composed(&self, x: &Tensor, m: &Tensor, v: &Tensor) -> candle_core::Result<Tensor> {
        let root = ((v * f64::from(self.second))?.sqrt()? + f64::from(self.epsilon))?;
        let direction = ((m * f64::from(self.first))? / root)?;
        let kept = (x * f64::from(1.0 - self.learning_rate * self.decay))?;
        kept - (direction * f64::from(self.learning_rate))?
    }
}

impl InplaceOp3 for Advance {
    fn name(&self) -> &'static str {
        "adam-step"
    }

    fn cpu_fwd(
        &self,
        x: &mut CpuStorage,
        x_layout: &Layout,
        m: &CpuStorage,
        m_layout: &Layout,
        v: &CpuStorage,
        v_layout: &Layout,
    ) -> candle_core::Result<()> {
        let (m, v) = (floats(m, m_layout)?, floats(v, v_layout)?);
        floats_mut(x, x_layout)?
            .par_chunks_mut(BLOCK)
            .zip(m.par_chunks(BLOCK))
            .zip(v.par_chunks(BLOCK))
            .for_each(|((x, m), v)| {
                for ((x, m), v) in x.iter_mut().zip(m).zip(v) {
                    let direction = m * self.first / ((v * self.second).sqrt() + self.epsilon);
                    *x -= self.learning_rate * (direction + self.decay * *x);
                }
            });
        Ok(())
    }
}

fn floats_mut<'a>(
    storage: &'a mut CpuStorage,
    layout: &Layout,
) -> candle_core::Result<&'a mut [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(values), Some((start, end))) => Ok(&mut values[start..end]),
        _ => candle_core::bail!("parameters are contiguous and f32"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::Device;

    fn parameter(values: &[f32]) -> BTreeMap<String, Var> {
        let tensor = Tensor::from_slice(values, (1, values.len()), &Device::Cpu).unwrap();
        [("x".to_owned(), Var::from_tensor(&tensor).unwrap())].into()
    }

    const STEADY: Schedule = Schedule {
        warm_up: 0,
        total: u64::MAX,
        floor: 1.0,
    };

    fn config(clip: f32) -> AdamWConfig {
        AdamWConfig {
            learning_rate: 0.1,
            weight_decay: 0.5,
            clip,
            ..AdamWConfig::default()
        }
    }

    #[test]
    fn first_steps_have_their_hand_made_values() -> Result<()> {
        // L = 3x: g = 3. m̂ = 3 and √v̂ = 3 in every step, so each moves by 0.1·(1 + 0.5·x)
        let parameters = parameter(&[2.0]);
        let mut adam = AdamW::new(&parameters, config(0.0), STEADY)?;
        let loss = || parameters["x"].sum_all()? * 3.0;
        let step = adam.step(&loss()?)?;
        assert_eq!((step.number, step.loss, step.norm), (1, 6.0, 3.0));
        let x = |p: &BTreeMap<String, Var>| p["x"].flatten_all()?.to_vec1::<f32>();
        assert!((x(&parameters)?[0] - 1.8).abs() < 1e-6); // 2 − 0.1·(1 + 1)
        adam.step(&loss()?)?;
        assert!((x(&parameters)?[0] - 1.61).abs() < 1e-6); // 1.8 − 0.1·(1 + 0.9)
        Ok(())
    }

    #[test]
    fn long_gradients_are_clipped_together() -> Result<()> {
        // g = [3, 4] has length 5 and becomes [0.6, 0.8]: m = 0.1·g
        let parameters = parameter(&[1.0, 1.0]);
        let mut adam = AdamW::new(&parameters, config(1.0), STEADY)?;
        let weights = Tensor::new(&[[3.0f32, 4.0]], &Device::Cpu)?;
        let step = adam.step(&(parameters["x"].as_tensor() * weights)?.sum_all()?)?;
        assert_eq!(step.norm, 5.0);
        let first = adam.state()["first.x"].flatten_all()?.to_vec1::<f32>()?;
        assert!((first[0] - 0.06).abs() < 1e-6 && (first[1] - 0.08).abs() < 1e-6);
        let second = adam.state()["second.x"].flatten_all()?.to_vec1::<f32>()?;
        assert!((second[1] - 0.64e-3).abs() < 1e-8);
        Ok(())
    }

    #[test]
    fn fused_and_composed_updates_agree() -> Result<()> {
        let x = Tensor::new(&[0.5f32, -2.0, 3.0], &Device::Cpu)?;
        let g = Tensor::new(&[1.0f32, -0.2, 0.01], &Device::Cpu)?;
        let advance = Advance {
            first: 10.0,
            second: 1000.0,
            epsilon: 1e-8,
            learning_rate: 0.1,
            decay: 0.2,
        };
        let (mut m, mut v) = (g.affine(0.1, 0.2)?, g.sqr()?);
        for (moment, square) in [(&mut m, false), (&mut v, true)] {
            let blend = Blend {
                keep: 0.9,
                scale: 0.5,
                square,
            };
            let plain = blend.composed(moment, &g)?;
            moment.inplace_op2(&g, &blend)?;
            let worst = (plain - &*moment)?.abs()?.max_all()?.to_scalar::<f32>()?;
            assert!(worst < 1e-7, "{worst}");
        }
        let plain = advance.composed(&x, &m, &v)?;
        x.inplace_op3(&m, &v, &advance)?;
        let worst = (plain - x)?.abs()?.max_all()?.to_scalar::<f32>()?;
        assert!(worst < 1e-6, "{worst}");
        Ok(())
    }

    #[test]
    fn rate_rises_in_a_line_and_falls_along_a_cosine() {
        let schedule = Schedule {
            warm_up: 4,
            total: 12,
            floor: 0.1,
        };
        let near = |step, wanted: f32| assert!((schedule.share(step) - wanted).abs() < 1e-6);
        near(1, 0.25);
        near(4, 1.0);
        near(8, 0.55); // half way: ½·(1 + cos 90°) = 0.5, so 0.1 + 0.9·0.5
        near(12, 0.1);
        near(99, 0.1);
    }

    #[test]
    fn divergence_says_at_which_step_and_changes_nothing() -> Result<()> {
        let parameters = parameter(&[1.0, 0.0]);
        let mut adam = AdamW::new(&parameters, config(1.0), STEADY)?;
        adam.step(&parameters["x"].sum_all()?)?;
        let before = parameters["x"].flatten_all()?.to_vec1::<f32>()?;
        let nan = (parameters["x"].sum_all()? * f64::NAN)?;
        let error = adam.step(&nan).unwrap_err();
        assert_eq!(error.to_string(), "the loss of step 2 is not finite");
        // ln|x| would be finite, and its slope at 0 is not
        parameters["x"].set(&Tensor::new(&[[1.0f32, 0.0]], &Device::Cpu)?)?;
        let steep = parameters["x"].sqrt()?.sum_all()?;
        let error = adam.step(&steep).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the gradient of `x` of step 2 is not finite"
        );
        assert!(error.hint().is_some());
        assert_eq!(adam.taken(), 1);
        assert_eq!(before.len(), 2);
        assert_eq!(parameters["x"].flatten_all()?.to_vec1::<f32>()?, [1.0, 0.0]);
        Ok(())
    }

    #[test]
    fn a_restored_optimiser_goes_on_as_if_never_stopped() -> Result<()> {
        let run = |stop: bool| -> Result<Vec<f32>> {
            let parameters = parameter(&[1.0, -1.0]);
            let mut adam = AdamW::new(&parameters, config(1.0), STEADY)?;
            for step in 0..6 {
                if stop && step == 3 {
                    let (state, taken) = (adam.state(), adam.taken());
                    adam = AdamW::new(&parameters, config(1.0), STEADY)?;
                    adam.restore(state, taken)?;
                }
                adam.step(&parameters["x"].sqr()?.sum_all()?)?;
            }
            Ok(parameters["x"].flatten_all()?.to_vec1()?)
        };
        assert_eq!(run(false)?, run(true)?);
        let parameters = parameter(&[1.0]);
        let mut adam = AdamW::new(&parameters, config(1.0), STEADY)?;
        assert!(adam.restore(HashMap::new(), 1).is_err());
        Ok(())
    }
}
