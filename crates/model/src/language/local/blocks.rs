//! The product with weights in blocks of 32 that are `d·q + m` with a whole number `q` ≥ 0:
//! the formats `Q4_0`, `Q4_1`, `Q5_0`, `Q5_1` and `Q8_0`.
//!
//! ```text
//! y_r = Σ_b d_{r,b} · a_b · (Σ_{i ∈ b} q_{r,i} · x̂_i) + m_{r,b} · a_b · Σ_{i ∈ b} x̂_i
//! a_b = max |x_i| / 127,   x̂_i = round(x_i / a_b)
//! ```
//!
//! d, m and q are the weights', x̂ is the input in eight bits. Sixteen rows r lie together, four
//! neighbours i of each side by side, so that one instruction multiplies 64 pairs and no sum runs
//! across a vector. Four-bit weights stay two to a byte: writing is bound by the reading of weights.
//! With q ≤ 31 and |x̂| ≤ 127 four products of pairs fit into 16 bits:
//! 4 · 2 · 31 · 127 = 31,496. Eight bits are multiplied half by half, which leaves
//! 8 · 2 · 15 · 127 = 30,480.
//!
//! Without AVX-512 there is none of this, and candle's own kernels serve.

use candle_core::quantized::{GgmlDType, QTensor};

use crate::Result;

/// Numbers in a block.
const BLOCK: usize = 32;

/// Rows that lie together.
const TILE: usize = 16;

/// Weights, tile after tile, block after block.
pub(super) struct Blocks {
    tiles: Tiles, // [out / TILE, in / BLOCK]
    inputs: usize,
    outputs: usize,
}

enum Tiles {
    Four(Vec<Tile<Four>>),
    Five(Vec<Tile<Five>>),
    Eight(Vec<Tile<Eight>>),
}

/// `[i / 8][row][i % 4]`, the lower four of eight neighbours in the low halves of the bytes.
type Four = [[u8; 4 * TILE]; BLOCK / 8];

/// `[i / 4][row][i % 4]`
type Five = [[u8; 4 * TILE]; BLOCK / 4];

/// The same with eight bits.
#[derive(Clone, Copy)]
struct Eight(Five);

/// One block of sixteen rows.
#[derive(Clone)]
#[repr(C, align(64))]
struct Tile<Q> {
    q: Q,
    /// Scales and offsets as half floats.
    d: [u16; TILE],
    m: [u16; TILE],
}

/// Inputs in eight bits.
struct Inputs {
    values: Vec<i8>,   // [rows, in]
    scales: Vec<f32>,  // [rows, in / BLOCK]
    offsets: Vec<f32>, // a_b · Σ x̂
}

impl Blocks {
    /// The weights in this form, where the format and the processor allow it.
    pub(super) fn of(weight: &QTensor, outputs: usize, inputs: usize) -> Result<Option<Self>> {
        let Some(block) = format(weight.dtype()) else {
            return Ok(None);
        };
        let fits = outputs.is_multiple_of(TILE) && inputs.is_multiple_of(BLOCK);
        if !fits || !kernel::is_there() {
            return Ok(None);
        }
        let size = weight.dtype().type_size();
        let data = weight.data()?;
        let per_row = inputs / BLOCK;
        let blocks_of = |first: usize, b: usize| -> [Block; TILE] {
            std::array::from_fn(|row| {
                let at = ((first + row) * per_row + b) * size;
                block(&data[at..at + size])
            })
        };
        let places = (0..outputs)
            .step_by(TILE)
            .flat_map(|first| (0..per_row).map(move |b| (first, b)));
        let tiles = match weight.dtype() {
            GgmlDType::Q4_0 | GgmlDType::Q4_1 => Tiles::Four(
                places
                    .map(|(first, b)| {
                        tile(
                            &blocks_of(first, b),
                            [[0; 4 * TILE]; BLOCK / 8],
                            |q, row, i, value| {
                                q[i / 8][row * 4 + i % 4] |= value << (i % 8 / 4 * 4);
                            },
                        )
                    })
                    .collect(),
            ),
            GgmlDType::Q8_0 => Tiles::Eight(
                places
                    .map(|(first, b)| {
                        let empty = Eight([[0; 4 * TILE]; BLOCK / 4]);
                        tile(&blocks_of(first, b), empty, |q, row, i, value| {
                            q.0[i / 4][row * 4 + i % 4] = value;
                        })
                    })
                    .collect(),
            ),
            _ => Tiles::Five(
                places
                    .map(|(first, b)| {
                        tile(
                            &blocks_of(first, b),
                            [[0; 4 * TILE]; BLOCK / 4],
                            |q, row, i, value| {
                                q[i / 4][row * 4 + i % 4] = value;
                            },
                        )
                    })
                    .collect(),
            ),
        };
        Ok(Some(Self {
            tiles,
            inputs,
            outputs,
        }))
    }

    /// `[rows, in]` to `[rows, out]`.
    pub(super) fn product(&self, x: &[f32]) -> Vec<f32> {
        kernel::product(self, x)
    }
}

type Block = (half::f16, half::f16, [u8; BLOCK]);

/// Sixteen blocks as a tile; `put` puts a number at its place.
fn tile<Q>(blocks: &[Block; TILE], empty: Q, put: impl Fn(&mut Q, usize, usize, u8)) -> Tile<Q> {
    let mut tile = Tile {
        q: empty,
        d: [0; TILE],
        m: [0; TILE],
    };
    for (row, (d, m, q)) in blocks.iter().enumerate() {
        tile.d[row] = d.to_bits();
        tile.m[row] = m.to_bits();
        for (i, value) in q.iter().enumerate() {
            put(&mut tile.q, row, i, *value);
        }
    }
    tile
}

/// How a block of a format is read: `d`, `m` and `q` in order.
fn format(kind: GgmlDType) -> Option<fn(&[u8]) -> Block> {
    use half::f16;
    fn scale(bytes: &[u8], at: usize) -> f16 {
        f16::from_le_bytes([bytes[at], bytes[at + 1]])
    }
    // the first half of a block is in the low halves of the bytes
    fn nibbles(bytes: &[u8]) -> [u8; BLOCK] {
        std::array::from_fn(|i| match i {
            0..16 => bytes[i] & 15,
            _ => bytes[i - 16] >> 4,
        })
    }
    fn with_fifth(bits: &[u8], q: [u8; BLOCK]) -> [u8; BLOCK] {
        std::array::from_fn(|i| q[i] | ((bits[i / 8] >> (i % 8)) & 1) << 4)
    }
    fn times(d: f16, factor: f32) -> f16 {
        // by a power of two: nothing is rounded
        f16::from_f32(d.to_f32() * factor)
    }
    match kind {
        GgmlDType::Q4_0 => Some(|b| {
            let d = scale(b, 0);
            (d, times(d, -8.0), nibbles(&b[2..]))
        }),
        GgmlDType::Q4_1 => Some(|b| (scale(b, 0), scale(b, 2), nibbles(&b[4..]))),
        GgmlDType::Q5_0 => Some(|b| {
            let d = scale(b, 0);
            (d, times(d, -16.0), with_fifth(&b[2..6], nibbles(&b[6..])))
        }),
        GgmlDType::Q5_1 => Some(|b| {
            let q = with_fifth(&b[4..8], nibbles(&b[8..]));
            (scale(b, 0), scale(b, 2), q)
        }),
        GgmlDType::Q8_0 => Some(|b| {
            let d = scale(b, 0);
            // q + 128 is the byte with its first bit turned
            let q = std::array::from_fn(|i| b[2 + i] ^ 0x80);
            (d, times(d, -128.0), q)
        }),
        _ => None,
    }
}

#[cfg(target_arch = "x86_64")]
mod kernel {
    use std::arch::x86_64::__m512i;
    use std::sync::OnceLock;

    use pulp::x86::V4;
    use pulp::{NullaryFnOnce, cast};

    use super::super::parallel::in_parts;
    use super::{BLOCK, Blocks, Eight, Five, Four, Inputs, TILE, Tile, Tiles};

    /// Rows of inputs that share one reading of the weights.
    const ROWS: usize = 4;

    fn processor() -> Option<V4> {
        static V4_HERE: OnceLock<Option<V4>> = OnceLock::new();
        *V4_HERE.get_or_init(V4::try_new)
    }

    pub(super) fn is_there() -> bool {
        processor().is_some()
    }

    /// Weights of a tile, as groups of four neighbours in sixteen rows.
    trait Groups: Copy + Sync {
        fn groups(self, simd: V4) -> [__m512i; BLOCK / 4];

        /// `Σ q·x̂` of each row; `four` gives four neighbours of x̂.
        #[inline(always)]
        fn dot(simd: V4, q: &[__m512i; BLOCK / 4], four: impl Fn(usize) -> __m512i) -> __m512i {
            let ones = simd.avx512f._mm512_set1_epi16(1);
            let pairs = |g: usize| simd.avx512bw._mm512_maddubs_epi16(q[g], four(g));
            let add = |a, b| simd.avx512bw._mm512_add_epi16(a, b);
            let low = add(add(pairs(0), pairs(1)), add(pairs(2), pairs(3)));
            let high = add(add(pairs(4), pairs(5)), add(pairs(6), pairs(7)));
            let low = simd.avx512bw._mm512_madd_epi16(low, ones);
            let high = simd.avx512bw._mm512_madd_epi16(high, ones);
            simd.avx512f._mm512_add_epi32(low, high)
        }
    }

    impl Groups for Eight {
        #[inline(always)]
        fn groups(self, _simd: V4) -> [__m512i; BLOCK / 4] {
            self.0.map(|q| cast!(q))
        }

        #[inline(always)]
        fn dot(simd: V4, q: &[__m512i; BLOCK / 4], four: impl Fn(usize) -> __m512i) -> __m512i {
            let ones = simd.avx512f._mm512_set1_epi16(1);
            let half = simd.avx512f._mm512_set1_epi32(0x0f0f_0f0f);
            let mut low = simd.avx512f._mm512_setzero_si512();
            let mut high = low;
            for (g, q) in q.iter().enumerate() {
                let x = four(g);
                let lower = simd.avx512f._mm512_and_si512(*q, half);
                let upper = simd.avx512f._mm512_srli_epi32::<4>(*q);
                let upper = simd.avx512f._mm512_and_si512(upper, half);
                let lower = simd.avx512bw._mm512_maddubs_epi16(lower, x);
                let upper = simd.avx512bw._mm512_maddubs_epi16(upper, x);
                low = simd.avx512bw._mm512_add_epi16(low, lower);
                high = simd.avx512bw._mm512_add_epi16(high, upper);
            }
            let low = simd.avx512bw._mm512_madd_epi16(low, ones);
            let high = simd.avx512bw._mm512_madd_epi16(high, ones);
            let high = simd.avx512f._mm512_slli_epi32::<4>(high);
            simd.avx512f._mm512_add_epi32(low, high)
        }
    }

    impl Groups for Five {
        #[inline(always)]
        fn groups(self, _simd: V4) -> [__m512i; BLOCK / 4] {
            self.map(|q| cast!(q))
        }
    }

    impl Groups for Four {
        #[inline(always)]
        fn groups(self, simd: V4) -> [__m512i; BLOCK / 4] {
            let half = simd.avx512f._mm512_set1_epi32(0x0f0f_0f0f);
            std::array::from_fn(|g| {
                let both: __m512i = cast!(self[g / 2]);
                let one = if g % 2 == 0 {
                    both
                } else {
                    simd.avx512f._mm512_srli_epi32::<4>(both)
                };
                simd.avx512f._mm512_and_si512(one, half)
            })
        }
    }

    pub(super) fn product(blocks: &Blocks, x: &[f32]) -> Vec<f32> {
        match &blocks.tiles {
            Tiles::Four(tiles) => product_of(blocks, tiles, x),
            Tiles::Five(tiles) => product_of(blocks, tiles, x),
            Tiles::Eight(tiles) => product_of(blocks, tiles, x),
        }
    }

    fn product_of<Q: Groups>(blocks: &Blocks, tiles: &[Tile<Q>], x: &[f32]) -> Vec<f32> {
        let simd = processor().expect("blocks are only made where it is there");
        let rows = x.len() / blocks.inputs;
        let inputs = quantize(simd, x);
        let per_tile = blocks.inputs / BLOCK;
        let mut y = vec![0.0; rows * blocks.outputs];
        // [tile][row][16], so that each tile writes a stretch of its own
        let tiles_at_once = (blocks.outputs / TILE).div_ceil(64).max(1);
        in_parts(&mut y, tiles_at_once * rows * TILE, |i, part| {
            for (j, out) in part.chunks_exact_mut(rows * TILE).enumerate() {
                let first = (i * tiles_at_once + j) * per_tile;
                let weights = &tiles[first..first + per_tile];
                simd.vectorize(TileProduct {
                    simd,
                    weights,
                    inputs: &inputs,
                    out,
                });
            }
        });
        if rows == 1 {
            return y;
        }
        let mut by_row = vec![0.0; y.len()];
        in_parts(&mut by_row, blocks.outputs, |row, out| {
            for (tile, out) in out.chunks_exact_mut(TILE).enumerate() {
                let from = (tile * rows + row) * TILE;
                out.copy_from_slice(&y[from..from + TILE]);
            }
        });
        by_row
    }

    /// `[rows, 16]` of one tile.
    struct TileProduct<'a, Q> {
        simd: V4,
        weights: &'a [Tile<Q>],
        inputs: &'a Inputs,
        out: &'a mut [f32],
    }

    impl<Q: Groups> NullaryFnOnce for TileProduct<'_, Q> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            let Self {
                simd,
                weights,
                inputs,
                out,
            } = self;
            let rows = out.len() / TILE;
            let mut row = 0;
            while row + ROWS <= rows {
                some_rows::<ROWS, Q>(simd, weights, inputs, row, &mut out[row * TILE..]);
                row += ROWS;
            }
            while row < rows {
                some_rows::<1, Q>(simd, weights, inputs, row, &mut out[row * TILE..]);
                row += 1;
            }
        }
    }

    #[inline(always)]
    fn some_rows<const N: usize, Q: Groups>(
        simd: V4,
        weights: &[Tile<Q>],
        inputs: &Inputs,
        row: usize,
        out: &mut [f32],
    ) {
        let per_row = weights.len();
        let mut sums = [simd.avx512f._mm512_setzero_ps(); N];
        for (b, tile) in weights.iter().enumerate() {
            let q = tile.q.groups(simd);
            let d = simd.avx512f._mm512_cvtph_ps(cast!(tile.d));
            let m = simd.avx512f._mm512_cvtph_ps(cast!(tile.m));
            for (n, sum) in sums.iter_mut().enumerate() {
                let at = (row + n) * per_row + b;
                let x = &inputs.values[at * BLOCK..(at + 1) * BLOCK];
                let four = |g: usize| {
                    let bytes = [x[4 * g], x[4 * g + 1], x[4 * g + 2], x[4 * g + 3]];
                    let bytes: i32 = cast!(bytes);
                    simd.avx512f._mm512_set1_epi32(bytes)
                };
                let whole = Q::dot(simd, &q, four);
                let whole = simd.avx512f._mm512_cvtepi32_ps(whole);
                let scale = simd.avx512f._mm512_set1_ps(inputs.scales[at]);
                let offset = simd.avx512f._mm512_set1_ps(inputs.offsets[at]);
                let scaled = simd.avx512f._mm512_mul_ps(d, scale);
                *sum = simd.avx512f._mm512_fmadd_ps(whole, scaled, *sum);
                *sum = simd.avx512f._mm512_fmadd_ps(m, offset, *sum);
            }
        }
        for (n, sum) in sums.into_iter().enumerate() {
            let sum: [f32; TILE] = cast!(sum);
            out[n * TILE..(n + 1) * TILE].copy_from_slice(&sum);
        }
    }

    fn quantize(simd: V4, x: &[f32]) -> Inputs {
        struct Quantize<'a>(&'a [f32]);

        impl NullaryFnOnce for Quantize<'_> {
            type Output = Inputs;

            #[inline(always)]
            fn call(self) -> Inputs {
                let count = self.0.len() / BLOCK;
                let mut inputs = Inputs {
                    values: vec![0; self.0.len()],
                    scales: Vec::with_capacity(count),
                    offsets: Vec::with_capacity(count),
                };
                let blocks = self.0.chunks_exact(BLOCK);
                for (x, out) in blocks.zip(inputs.values.chunks_exact_mut(BLOCK)) {
                    let most = x.iter().fold(0.0f32, |most, x| most.max(x.abs()));
                    let scale = most / 127.0;
                    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
                    let mut sum = 0i32;
                    for (x, out) in x.iter().zip(out) {
                        // adding 1.5·2²³ rounds to the nearest integer and leaves it in the low bits
                        let rounded = x * inverse + 12_582_912.0;
                        let value = rounded.to_bits() as i8;
                        *out = value;
                        sum += i32::from(value);
                    }
                    inputs.scales.push(scale);
                    inputs.offsets.push(scale * sum as f32);
                }
                inputs
            }
        }

        simd.vectorize(Quantize(x))
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod kernel {
    use super::Blocks;

    pub(super) fn is_there() -> bool {
        false
    }

    pub(super) fn product(_blocks: &Blocks, _x: &[f32]) -> Vec<f32> {
        unreachable!("blocks are only made where the kernel is there")
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Tensor};

    use super::*;
    use crate::Random;

    #[test]
    fn the_product_is_that_of_the_dequantized_weights() {
        let mut random = Random::new(3);
        let (outputs, inputs) = (48, 96);
        let weights: Vec<f32> = (0..outputs * inputs).map(|_| random.normal()).collect();
        let weights = Tensor::from_vec(weights, (outputs, inputs), &Device::Cpu).unwrap();
        for kind in [
            GgmlDType::Q4_0,
            GgmlDType::Q4_1,
            GgmlDType::Q5_0,
            GgmlDType::Q5_1,
            GgmlDType::Q8_0,
        ] {
            let weight = QTensor::quantize(&weights, kind).unwrap();
            let Some(blocks) = Blocks::of(&weight, outputs, inputs).unwrap() else {
                println!("skipped: this processor has no AVX-512");
                return;
            };
            let plain: Vec<Vec<f32>> = weight.dequantize(&Device::Cpu).unwrap().to_vec2().unwrap();
            for rows in [1, 3, 4, 9] {
                let x: Vec<f32> = (0..rows * inputs).map(|_| random.normal()).collect();
                let y = blocks.product(&x);
                for (row, x) in x.chunks_exact(inputs).enumerate() {
                    for (o, w) in plain.iter().enumerate() {
                        let want: f32 = w.iter().zip(x).map(|(w, x)| w * x).sum();
                        // eight bits: an error of 1/254 of the largest input for each of 96 products
                        // of size about 1, which mostly cancel
                        let error = (y[row * outputs + o] - want).abs();
                        assert!(error < 0.4, "{kind:?} {row} {o}: {error}");
                    }
                }
            }
        }
    }

    #[test]
    fn integers_come_out_exactly() {
        // inputs up to 127 are their own eight bits, and with d = 1, m = −16 the weights are whole
        let mut bytes = vec![];
        for row in 0..16u8 {
            bytes.extend(half::f16::from_f32(1.0).to_le_bytes());
            bytes.extend([0xff, 0, 0xff, 0]); // the fifth bits of 0..8 and 16..24
            bytes.extend((0..16).map(|i| ((i + row) % 16) | ((15 - i) << 4)));
        }
        let storage = candle_core::quantized::QStorage::from_data(
            bytes.into(),
            &Device::Cpu,
            GgmlDType::Q5_0,
        )
        .unwrap();
        let weight = QTensor::new(storage, (16, 32)).unwrap();
        let plain: Vec<Vec<f32>> = weight.dequantize(&Device::Cpu).unwrap().to_vec2().unwrap();
        let Some(blocks) = Blocks::of(&weight, 16, 32).unwrap() else {
            println!("skipped: this processor has no AVX-512");
            return;
        };
        let x: Vec<f32> = (0..32)
            .map(|i| {
                if i == 0 {
                    127.0
                } else {
                    (i * 7 % 50) as f32 - 25.0
                }
            })
            .collect();
        let want: Vec<f32> = plain
            .iter()
            .map(|w| w.iter().zip(&x).map(|(w, x)| w * x).sum())
            .collect();
        assert_eq!(blocks.product(&x), want);
    }
}
