//! Erasing the mask from an image, and the values that erased pixels are filled with.

use burn::tensor::{Tensor, module::adaptive_avg_pool2d};

use crate::{
    config::Fill,
    model::{layers::tensor, mask::resize},
};

/// Side, in pixels, of the cells that an image is averaged over to blur it.
const BLUR_CELL: usize = 32;

/// The image that erased pixels are filled from; `None` if they become zero.
///
/// `mean` is the mean colour of the normalized training images.
/// Shapes: `images [B, 3, H, W]` → same.
pub fn fill(images: &Tensor<4>, rule: Fill, mean: [f32; 3]) -> Option<Tensor<4>> {
    match rule {
        Fill::Zero => None,
        Fill::Mean => {
            let colour: Tensor<4> = tensor(mean.to_vec(), [1, 3, 1, 1], &images.device());
            Some(images.zeros_like() + colour)
        }
        Fill::Blur => {
            let [_, _, height, width] = images.dims();
            let coarse = [height, width].map(|side| side.div_ceil(BLUR_CELL).max(2));
            let blurred = adaptive_avg_pool2d(images.clone(), coarse);
            Some(resize(blurred, [height, width]))
        }
    }
}

/// X ⊙ (1 − R), line 13 of Algorithm 1, plus the filling ⊙ R if there is one.
///
/// Shapes: `images`, `filling [B, 3, H, W]`, `mask [B, 1, H, W]`.
pub fn erase(images: Tensor<4>, mask: Tensor<4>, filling: Option<Tensor<4>>) -> Tensor<4> {
    let kept = images * (-mask.clone() + 1.0);
    match filling {
        Some(filling) => kept + filling * mask,
        None => kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{device, model::layers::values};

    fn ramp() -> Tensor<4> {
        let pixels = (0..3 * 64 * 64).map(|i| (i % 64) as f32 / 64.0).collect();
        tensor(pixels, [1, 3, 64, 64], &device::cpu())
    }

    fn erased(rule: Fill, mask: f32) -> Vec<f32> {
        let images = ramp();
        let mask = Tensor::full([1, 1, 64, 64], mask, &device::cpu());
        let filling = fill(&images, rule, [0.1, 0.2, 0.3]);
        values(erase(images, mask, filling))
    }

    #[test]
    fn a_full_mask_leaves_only_the_filling() {
        assert!(erased(Fill::Zero, 1.0).iter().all(|&x| x == 0.0));
        let mean = erased(Fill::Mean, 1.0);
        assert_eq!((mean[0], mean[64 * 64], mean[2 * 64 * 64]), (0.1, 0.2, 0.3));
    }

    #[test]
    fn an_empty_mask_erases_nothing() {
        for rule in [Fill::Zero, Fill::Mean, Fill::Blur] {
            assert_eq!(erased(rule, 0.0), values(ramp()));
        }
    }

    #[test]
    fn blur_removes_detail_and_keeps_the_mean() {
        let stripes: Vec<f32> = (0..3 * 64 * 64).map(|i| (i % 2) as f32).collect();
        let images = tensor(stripes, [1, 3, 64, 64], &device::cpu());
        let blurred = values(fill(&images, Fill::Blur, [0.0; 3]).unwrap());
        assert!(blurred.iter().all(|&x| (x - 0.5).abs() < 1e-5), "stripes must be gone");
    }
}
