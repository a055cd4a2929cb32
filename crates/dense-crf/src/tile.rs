//! Cutting images that exceed the memory bound into overlapping tiles.
//!
//! A tile owns its *core* and sees a *window*: the core plus a halo of [`Params::halo`] pixels.
//! Only the core of the result is kept. Windows keep the coordinates of the image, so all tiles
//! use the same lattice, and a pixel's result differs from the whole image's only by what lies
//! beyond the halo: there is no seam to blend.

use crate::{
    error::{Error, Result},
    kernel::Kernels,
    meanfield,
    params::Params,
};

/// A rectangle of pixels within an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// A part of the image that is refined on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tile {
    /// The pixels whose result is kept.
    pub(crate) core: Window,
    /// The pixels that are refined.
    pub(crate) window: Window,
}

impl Params {
    /// Working memory, in bytes, that an image needs at most when done in one piece.
    ///
    /// Reached where no two pixels share a lattice point (noise); photographs need a third.
    /// The caller's slices and the result come on top, and a few mebibytes per thread.
    ///
    /// ```
    /// # fn main() -> Result<(), dense_crf::Error> {
    /// let bytes = dense_crf::Params::glas().estimated_bytes(775, 522, 2)?;
    /// assert!(bytes < 300 << 20);
    /// # Ok(())
    /// # }
    /// ```
    pub fn estimated_bytes(&self, width: usize, height: usize, labels: usize) -> Result<usize> {
        let channels = if labels <= 2 { 1 } else { meanfield::LANES };
        let lattices = Kernels::bytes_per_pixel(self, channels);
        labels
            .checked_mul(meanfield::BYTES_PER_LABEL)
            .and_then(|bytes| bytes.checked_add(meanfield::BYTES_PER_PIXEL + lattices))
            .and_then(|bytes| bytes.checked_mul(width.checked_mul(height)?))
            .ok_or(Error::TooLarge { width, height, labels })
    }

    /// The tiles of an image, row by row; one if the whole image fits.
    pub(crate) fn tiles(&self, width: usize, height: usize, labels: usize) -> Result<Vec<Tile>> {
        let halo = self.halo();
        // Below this, a tile would be nearly all halo.
        let least = halo.max(16);
        let (mut columns, mut rows) = (1, 1);
        loop {
            let core = (width.div_ceil(columns), height.div_ceil(rows));
            let Err(error) = self.check_tile((width, height), core, labels) else {
                return Ok(grid((width, height), core, halo));
            };
            if core.0.max(core.1) <= least {
                return Err(error);
            }
            if core.0 >= core.1 {
                columns += 1;
            } else {
                rows += 1;
            }
        }
    }

    /// Whether the window of a core of this size can be handled.
    fn check_tile(
        &self,
        (width, height): (usize, usize),
        core: (usize, usize),
        labels: usize,
    ) -> Result<()> {
        let reach = self.halo().saturating_mul(2);
        let seen =
            (core.0.saturating_add(reach).min(width), core.1.saturating_add(reach).min(height));
        let needed = self.estimated_bytes(seen.0, seen.1, labels)?;
        if needed > self.max_bytes {
            return Err(Error::Memory { allowed: self.max_bytes, needed });
        }
        let last = Window { x: width - seen.0, y: height - seen.1, width: seen.0, height: seen.1 };
        Kernels::check(&last, self)
    }
}

/// Covers the image with cores of (at most) the given size, each with its halo.
fn grid((width, height): (usize, usize), core: (usize, usize), halo: usize) -> Vec<Tile> {
    let mut tiles = Vec::new();
    for (y, core_height, top, seen_height) in spans(height, core.1, halo) {
        for (x, core_width, left, seen_width) in spans(width, core.0, halo) {
            tiles.push(Tile {
                core: Window { x, y, width: core_width, height: core_height },
                window: Window { x: left, y: top, width: seen_width, height: seen_height },
            });
        }
    }
    tiles
}

/// Start and length of each core along one axis, then of its window.
fn spans(
    length: usize,
    core: usize,
    halo: usize,
) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    (0..length).step_by(core).map(move |start| {
        let end = (start + core).min(length);
        let left = start.saturating_sub(halo);
        let right = end.saturating_add(halo).min(length);
        (start, end - start, left, right - left)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_image_that_fits_is_one_tile() {
        let whole = Window { x: 0, y: 0, width: 775, height: 522 };
        let tiles = Params::glas().tiles(775, 522, 2).unwrap();
        assert_eq!(tiles, [Tile { core: whole, window: whole }]);
    }

    #[test]
    fn a_bound_too_small_for_any_tile_is_an_error_that_names_the_need() {
        let params = Params { max_bytes: 1000, ..Params::glas() };
        let error = params.tiles(775, 522, 2).unwrap_err();
        assert!(matches!(error, Error::Memory { allowed: 1000, .. }), "{error}");
    }

    #[test]
    fn sizes_that_overflow_are_an_error() {
        let error = Params::glas().estimated_bytes(usize::MAX / 2, 3, 2).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
        assert!(Params::glas().estimated_bytes(1 << 20, 1, usize::MAX / 8).is_err());
    }

    #[test]
    fn a_hundred_megapixels_are_cut_to_the_bound() {
        let params = Params::natural();
        let tiles = params.tiles(10_000, 10_000, 2).unwrap();
        for tile in &tiles {
            let Window { width, height, .. } = tile.window;
            assert!(params.estimated_bytes(width, height, 2).unwrap() <= params.max_bytes);
        }
        assert!(tiles.len() <= 100, "{}", tiles.len());
    }

    proptest! {
        #[test]
        fn cores_cover_every_pixel_once_and_windows_contain_them(
            width in 1_usize..90, height in 1_usize..90,
            core in (1_usize..40, 1_usize..40), halo in 0_usize..20,
        ) {
            let mut seen = vec![0; width * height];
            for Tile { core, window } in grid((width, height), core, halo) {
                prop_assert!(window.x <= core.x && window.y <= core.y);
                prop_assert!(window.x + window.width >= core.x + core.width);
                prop_assert!(window.y + window.height >= core.y + core.height);
                for y in core.y..core.y + core.height {
                    seen[y * width + core.x..][..core.width].iter_mut().for_each(|n| *n += 1);
                }
            }
            prop_assert!(seen.iter().all(|&n| n == 1));
        }
    }
}
