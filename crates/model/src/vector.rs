//! Rows of plain numbers: products, shares and confidences.

/// The dot product.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    // eight sums side by side, so that the compiler can use wide registers
    let mut sums = [0.0f32; 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest = a8.remainder().iter().zip(b8.remainder());
    let rest: f32 = rest.map(|(x, y)| x * y).sum();
    for (x, y) in a8.zip(b8) {
        for i in 0..8 {
            sums[i] += x[i] * y[i];
        }
    }
    rest + sums.iter().sum::<f32>()
}

/// Scales a row to length 1; a row of nothing but zeros stays.
pub fn normalise(row: &mut [f32]) {
    let length = dot(row, row).sqrt();
    if length > 0.0 {
        row.iter_mut().for_each(|v| *v /= length);
    }
}

/// Shares of one, greater where the number is greater: `exp(x) / Σ exp(x)`.
pub fn softmax(x: &mut [f32]) {
    let max = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    x.iter_mut().for_each(|x| *x = (*x - max).exp());
    let sum: f32 = x.iter().sum();
    x.iter_mut().for_each(|x| *x /= sum);
}

/// A logit as a confidence: `1 / (1 + exp(−x))`.
pub fn sigmoid(logit: f32) -> f32 {
    1.0 / (1.0 + (-logit).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_shares_and_confidences_have_their_hand_made_values() {
        // 1·2 nine times, and 3·5
        let (a, b) = (
            [&[1.0; 9][..], &[3.0]].concat(),
            [&[2.0; 9][..], &[5.0]].concat(),
        );
        assert_eq!(dot(&a, &b), 33.0);
        assert_eq!(dot(&[], &[]), 0.0);
        let (mut row, mut zero) = ([3.0, -4.0], [0.0; 2]);
        normalise(&mut row);
        normalise(&mut zero);
        assert_eq!((row, zero), ([0.6, -0.8], [0.0; 2]));
        // e^0 and e^ln 3
        let mut shares = [0.0, 3f32.ln()];
        softmax(&mut shares);
        assert!((shares[0] - 0.25).abs() < 1e-6 && (shares[1] - 0.75).abs() < 1e-6);
        assert!((sigmoid(3f32.ln()) - 0.75).abs() < 1e-6);
    }
}
