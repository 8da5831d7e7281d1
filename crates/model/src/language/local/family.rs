//! What tells one family of decoders from another, as the file's own keys say it.

use super::attention::Heads;
use super::gguf::Gguf;
use crate::{Error, Result};

/// The families, by the name in `general.architecture`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Llama,
    Qwen2,
    Qwen3,
    Gemma,
    Gemma2,
    Gemma3,
}

const KNOWN: &str = "`llama`, `qwen2`, `qwen3`, `gemma`, `gemma2` and `gemma3`";

/// The sizes and habits of one model.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) family: Family,
    pub(super) layers: usize,
    pub(super) width: usize,
    pub(super) feed_forward: usize,
    pub(super) heads: Heads,
    pub(super) epsilon: f32,
    pub(super) context: usize,
    /// Angles of far-seeing layers, and of those with a window where they differ.
    pub(super) rotation: Rotation,
    pub(super) window_rotation: Rotation,
    /// Every so many layers, the last one sees far (and in Gemma 2 the second of two).
    window_every: usize,
    window: Option<usize>,
    /// The logits are capped at this.
    pub(super) final_cap: Option<f32>,
}

/// How positions turn queries and keys.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rotation {
    pub(super) base: f32,
    /// Positions are divided by this.
    pub(super) factor: f32,
    /// Numbers of a head that are turned.
    pub(super) size: usize,
    /// Whether the pairs are neighbours, and not half a head apart.
    pub(super) neighbours: bool,
}

impl Shape {
    pub(super) fn read(gguf: &Gguf) -> Result<Self> {
        let family = match gguf.family.as_str() {
            "llama" => Family::Llama,
            "qwen2" => Family::Qwen2,
            "qwen3" => Family::Qwen3,
            "gemma" => Family::Gemma,
            "gemma2" => Family::Gemma2,
            "gemma3" => Family::Gemma3,
            other => {
                return Err(Error::UnknownFamily {
                    path: gguf.path.clone(),
                    found: other.to_owned(),
                    known: KNOWN,
                });
            }
        };
        let number = |rest: &str| gguf.number_or_none(&gguf.key(rest));
        let float = |rest: &str| gguf.float_or_none(&gguf.key(rest));
        if number("expert_count").is_some_and(|count| count > 0) {
            return Err(gguf.bad("it is a mixture of experts, which is not known here"));
        }
        let layers = gguf.size("block_count", 1000)?;
        let width = gguf.size("embedding_length", 1 << 20)?;
        let queries = gguf.size("attention.head_count", 4096)?;
        let keys = number("attention.head_count_kv").unwrap_or(queries);
        let size = number("attention.key_length").unwrap_or(width / queries);
        let values = number("attention.value_length").unwrap_or(size);
        if keys == 0 || queries % keys != 0 || size == 0 || size % 2 != 0 || size > 4096 {
            return Err(gguf.bad("its numbers of heads do not fit together"));
        }
        if values != size {
            return Err(gguf.bad("its keys and values have another length"));
        }
        let epsilon = float("attention.layer_norm_rms_epsilon")
            .ok_or_else(|| gguf.bad("there is no usable epsilon in it"))?;
        let turned = number("rope.dimension_count").unwrap_or(size);
        if turned > size || turned % 2 != 0 {
            return Err(gguf.bad("its `rope.dimension_count` does not fit its heads"));
        }
        let factor = match gguf.text_or_none(&gguf.key("rope.scaling.type")) {
            None | Some("none") => 1.0,
            Some("linear") => float("rope.scaling.factor").unwrap_or(1.0),
            Some(other) => {
                return Err(gguf.bad(format!("its rope scaling `{other}` is not known here")));
            }
        };
        let rotation = Rotation {
            base: float("rope.freq_base").unwrap_or(10_000.0),
            factor,
            size: turned,
            neighbours: family == Family::Llama,
        };
        let window_rotation = match family {
            Family::Gemma3 => Rotation {
                base: float("rope.freq_base_swa").unwrap_or(10_000.0),
                factor: 1.0,
                ..rotation.clone()
            },
            _ => rotation.clone(),
        };
        // the largest of both generations divides by the width of a head of the plain layout
        let wide = matches!(
            (family, layers),
            (Family::Gemma2, 46) | (Family::Gemma3, 62)
        );
        let divisor = if wide { width / queries } else { size };
        let windowed = matches!(family, Family::Gemma2 | Family::Gemma3);
        Ok(Self {
            family,
            layers,
            width,
            feed_forward: gguf.size("feed_forward_length", 1 << 22)?,
            heads: Heads {
                queries,
                keys,
                size,
                scale: 1.0 / (divisor as f32).sqrt(),
                cap: float("attn_logit_softcapping").filter(|_| family == Family::Gemma2),
                window: None,
            },
            epsilon,
            context: gguf.size("context_length", 1 << 24)?,
            rotation,
            window_rotation,
            window_every: if family == Family::Gemma2 { 2 } else { 6 },
            window: number("attention.sliding_window").filter(|w| windowed && *w > 0),
            final_cap: float("final_logit_softcapping").filter(|_| windowed),
        })
    }

    /// How many positions a layer sees.
    pub(super) fn window(&self, layer: usize) -> Option<usize> {
        self.window
            .filter(|_| layer % self.window_every != self.window_every - 1)
    }

    pub(super) fn is_gemma(&self) -> bool {
        matches!(self.family, Family::Gemma | Family::Gemma2 | Family::Gemma3)
    }
}

impl Rotation {
    /// Cosine and sine of each pair at each position, `[tokens, pairs]`; angles are divided by
    /// `stretch` too, where a file has it.
    pub(super) fn angles(
        &self,
        stretch: Option<&[f32]>,
        before: usize,
        tokens: usize,
    ) -> Vec<(f32, f32)> {
        let pairs = self.size / 2;
        let speeds: Vec<f32> = (0..pairs)
            .map(|i| {
                let speed = self.base.powf(-2.0 * i as f32 / self.size as f32);
                speed / (stretch.map_or(1.0, |s| s[i]) * self.factor)
            })
            .collect();
        let mut angles = Vec::with_capacity(tokens * pairs);
        for position in before..before + tokens {
            for speed in &speeds {
                let (sine, cosine) = (position as f32 * speed).sin_cos();
                angles.push((cosine, sine));
            }
        }
        angles
    }
}
