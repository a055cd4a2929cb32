//! The two kernels of the model: the features of a pixel, and the lattices that filter them.

use crate::{
    error::{Error, Result},
    lattice::{BATCH, Features, Lattice, Scratch},
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
        params.active_smoothness().map_or(0, |_| Lattice::<3>::bytes_per_pixel(channels))
            + params.active_appearance().map_or(0, |_| Lattice::<6>::bytes_per_pixel(channels))
    }

    /// Whether [`Kernels::build`] would succeed on a window.
    pub(crate) fn check(window: &Window, params: &Params) -> Result<()> {
        let smoothness = params.active_smoothness();
        let appearance = params.active_appearance();
        let fit = smoothness.is_none_or(|kernel| Lattice::<3>::fits(&positions(kernel, window)))
            && appearance.is_none_or(|kernel| {
                Lattice::<6>::fits(&positions_and_colours(kernel, window, &[], 0))
            });
        if fit { Ok(()) } else { Err(Error::TooNarrow) }
    }

    /// Builds the lattices of the active kernels over `window` of an image `stride` pixels wide.
    pub(crate) fn build(
        rgb: &[u8],
        stride: usize,
        window: &Window,
        params: &Params,
    ) -> Result<Self> {
        let smoothness = params
            .active_smoothness()
            .map(|kernel| Lattice::build(&positions(kernel, window), kernel.weight));
        let appearance = params.active_appearance().map(|kernel| {
            let pixels = positions_and_colours(kernel, window, rgb, stride);
            Lattice::build(&pixels, kernel.weight)
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

fn positions(kernel: Smoothness, window: &Window) -> Pixels<'_> {
    Pixels { window, theta: kernel.theta_gamma, colours: None }
}

fn positions_and_colours<'a>(
    kernel: Appearance,
    window: &'a Window,
    rgb: &'a [u8],
    stride: usize,
) -> Pixels<'a> {
    let colours = Some(Colours { rgb, stride, theta: kernel.theta_beta });
    Pixels { window, theta: kernel.theta_alpha, colours }
}

/// The pixels of a window as points to filter, in features `(x/θ, y/θ)` or
/// `(x/θα, y/θα, r/θβ, g/θβ, b/θβ)`.
///
/// Positions count from the corner of the *image*, so that all its tiles share one lattice.
pub(crate) struct Pixels<'a> {
    pub(crate) window: &'a Window,
    theta: f32,
    colours: Option<Colours<'a>>,
}

struct Colours<'a> {
    rgb: &'a [u8],
    /// Pixels per row of `rgb`.
    stride: usize,
    theta: f32,
}

impl Pixels<'_> {
    /// Least and greatest value of each of the `V − 1` features.
    pub(crate) fn bounds<const V: usize>(&self) -> ([f32; V], [f32; V]) {
        let (mut low, mut high) = ([0.0; V], [0.0; V]);
        let Window { x, y, width, height } = *self.window;
        for (axis, (first, length)) in [(x, width), (y, height)].into_iter().enumerate() {
            low[axis] = first as f32 / self.theta;
            // A batch may look up to one batch past the last column.
            high[axis] = (first + length + BATCH) as f32 / self.theta;
        }
        if let Some(colours) = &self.colours {
            high[2..V - 1].fill(255.0 / colours.theta);
        }
        (low, high)
    }

    /// Features of pixels `x..x + BATCH` in row `y`; columns past the last may hold anything
    /// within the bounds.
    pub(crate) fn features<const V: usize>(&self, x: usize, y: usize) -> Features<V> {
        let mut features = [[0.0; BATCH]; V];
        let (left, top) = (self.window.x + x, self.window.y + y);
        for (lane, value) in features[0].iter_mut().enumerate() {
            *value = (left + lane) as f32 / self.theta;
        }
        features[1] = [top as f32 / self.theta; BATCH];
        if let Some(Colours { rgb, stride, theta }) = self.colours {
            let columns = (self.window.width - x).min(BATCH);
            let pixels = rgb[(top * stride + left) * 3..].chunks_exact(3).take(columns);
            for (lane, pixel) in pixels.enumerate() {
                for (channel, &value) in pixel.iter().enumerate() {
                    features[2 + channel][lane] = f32::from(value) / theta;
                }
            }
        }
        features
    }
}
