//! Agreement with the original implementation, see `make_fixtures.py`.

use dense_crf::{Appearance, DenseCrf, Params, Smoothness};

/// Both sum in `f32` but in different orders; over five updates that moves the last digits.
const TOLERANCE: f32 = 2e-5;

#[test]
fn answers_agree_with_pydensecrf2() {
    let mut bytes = &include_bytes!("fixtures.bin")[..];
    let mut cases = 0;
    while !bytes.is_empty() {
        let header = take(&mut bytes, 8, u32::from_le_bytes);
        let [width, height, labels, alpha, beta, gamma, iterations, _] = header[..] else {
            unreachable!("eight numbers were taken")
        };
        let params = Params {
            smoothness: Some(Smoothness { weight: 3.0, theta_gamma: gamma as f32 }),
            appearance: Some(Appearance {
                weight: 10.0,
                theta_alpha: alpha as f32,
                theta_beta: beta as f32,
            }),
            iterations: iterations as usize,
            ..Params::default()
        };
        let (width, height, labels) = (width as usize, height as usize, labels as usize);
        let rgb = take(&mut bytes, width * height * 3, |[byte]| byte);
        let probabilities = take(&mut bytes, width * height * labels, f32::from_le_bytes);
        let expected = take(&mut bytes, width * height * labels, f32::from_le_bytes);

        let crf = DenseCrf::new(width, height, &rgb, params).unwrap();
        let answer = crf.infer(&probabilities, labels).unwrap();
        let differences = answer.iter().zip(&expected).map(|(a, b)| (a - b).abs());
        let most = differences.fold(0.0, f32::max);
        assert!(most < TOLERANCE, "case {cases} is off by {most}");
        cases += 1;
    }
    assert_eq!(cases, 4);
}

fn take<T, const N: usize>(bytes: &mut &[u8], count: usize, read: fn([u8; N]) -> T) -> Vec<T> {
    let (taken, rest) = bytes.split_at(count * N);
    *bytes = rest;
    taken.as_chunks().0.iter().map(|chunk| read(*chunk)).collect()
}
