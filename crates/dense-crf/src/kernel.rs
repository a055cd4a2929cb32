//! The two kernels of the model: what a pixel's features are, and the lattice they live in.

use crate::{
    error::{Error, Result},
    lattice::{BATCH, Features, Lattice, Scratch, Source},
    params::{Appearance, Params, Smoothness},
    tile::Window,
};

/// Both kernels over one window of the image, normalized and weighted.
pub(crate) struct Kernels {
    smoothness: Option<Lattice<3>>,
    appearance: Option<Lattice<6>>,
}

impl Kernels {
    /// Working memory of the active kernels' lattices, filtering `channels` at a time.
    pub(crate) fn bytes_per_pixel(params: &Params, channels: usize) -> usize {
        let smoothness =
            params.active_smoothness().map(|_| Lattice::<3>::bytes_per_pixel(channels));
        let appearance =
            params.active_appearance().map(|_| Lattice::<6>::bytes_per_pixel(channels));
        smoothness.unwrap_or(0) + appearance.unwrap_or(0)
    }

    /// Whether [`Kernels::build`] would succeed on a window.
    pub(crate) fn check(window: &Window, params: &Params) -> Result<()> {
        let smoothness = params
            .active_smoothness()
            .is_none_or(|kernel| Lattice::fits(&Positions { window, theta: kernel.theta_gamma }));
        let appearance = params.active_appearance().is_none_or(|kernel| {
            let positions = Positions { window, theta: kernel.theta_alpha };
            Lattice::fits(&Colours { positions, rgb: &[], stride: 0, theta: kernel.theta_beta })
        });
        if smoothness && appearance { Ok(()) } else { Err(Error::TooNarrow) }
    }

    /// Builds the lattices of the active kernels over `window` of an image `stride` pixels wide.
    pub(crate) fn build(
        rgb: &[u8],
        stride: usize,
        window: &Window,
        params: &Params,
    ) -> Result<Self> {
        let smoothness = params.active_smoothness().map(|kernel| {
            let Smoothness { weight, theta_gamma } = kernel;
            normalized(&Positions { window, theta: theta_gamma }, weight)
        });
        let appearance = params.active_appearance().map(|kernel| {
            let Appearance { weight, theta_alpha, theta_beta } = kernel;
            let positions = Positions { window, theta: theta_alpha };
            normalized(&Colours { positions, rgb, stride, theta: theta_beta }, weight)
        });
        Ok(Self { smoothness: smoothness.transpose()?, appearance: appearance.transpose()? })
    }

    /// Adds what all other pixels say about each, `Σ_m w_m D^−½ K_m D^−½ q`, to `energy`.
    pub(crate) fn add_messages<const C: usize>(
        &self,
        q: &[[f32; C]],
        scratch: &mut Scratch<C>,
        energy: &mut [[f32; C]],
    ) {
        if let Some(lattice) = &self.smoothness {
            lattice.filter(q, scratch, energy);
        }
        if let Some(lattice) = &self.appearance {
            lattice.filter(q, scratch, energy);
        }
    }
}

fn normalized<const V: usize>(source: &impl Source<V>, weight: f32) -> Result<Lattice<V>> {
    let mut lattice = Lattice::build(source).ok_or(Error::TooNarrow)?;
    lattice.normalize(weight);
    Ok(lattice)
}

/// Features `(x/θ, y/θ)`, counted from the corner of the *image*, so that all tiles of an image
/// share one lattice.
struct Positions<'a> {
    window: &'a Window,
    theta: f32,
}

impl Positions<'_> {
    fn bounds_of(&self) -> [(f32, f32); 2] {
        let Window { x, y, width, height } = self.window;
        // A batch may look up to one batch past the last column.
        let bound = |first: &usize, length: &usize| {
            (*first as f32 / self.theta, (first + length + BATCH) as f32 / self.theta)
        };
        [bound(x, width), bound(y, height)]
    }

    fn fill<const V: usize>(&self, x: usize, y: usize, features: &mut Features<V>) {
        for (lane, value) in features[0].iter_mut().enumerate() {
            *value = (self.window.x + x + lane) as f32 / self.theta;
        }
        features[1] = [(self.window.y + y) as f32 / self.theta; BATCH];
    }
}

impl Source<3> for Positions<'_> {
    fn size(&self) -> (usize, usize) {
        (self.window.width, self.window.height)
    }

    fn bounds(&self) -> ([f32; 3], [f32; 3]) {
        let [x, y] = self.bounds_of();
        ([x.0, y.0, 0.0], [x.1, y.1, 0.0])
    }

    fn features(&self, x: usize, y: usize) -> Features<3> {
        let mut features = Features::<3>::default();
        self.fill(x, y, &mut features);
        features
    }
}

/// Features `(x/θα, y/θα, r/θβ, g/θβ, b/θβ)`.
struct Colours<'a> {
    positions: Positions<'a>,
    rgb: &'a [u8],
    /// Pixels per row of `rgb`.
    stride: usize,
    theta: f32,
}

impl Source<6> for Colours<'_> {
    fn size(&self) -> (usize, usize) {
        (self.positions.window.width, self.positions.window.height)
    }

    fn bounds(&self) -> ([f32; 6], [f32; 6]) {
        let [x, y] = self.positions.bounds_of();
        let white = 255.0 / self.theta;
        ([x.0, y.0, 0.0, 0.0, 0.0, 0.0], [x.1, y.1, white, white, white, 0.0])
    }

    fn features(&self, x: usize, y: usize) -> Features<6> {
        let mut features = Features::<6>::default();
        self.positions.fill(x, y, &mut features);
        let window = self.positions.window;
        let first = (window.y + y) * self.stride + window.x + x;
        let columns = (window.width - x).min(BATCH);
        let pixels = self.rgb[first * 3..(first + columns) * 3].chunks_exact(3);
        for (lane, pixel) in pixels.enumerate() {
            for (channel, &value) in pixel.iter().enumerate() {
                features[2 + channel][lane] = f32::from(value) / self.theta;
            }
        }
        features
    }
}
