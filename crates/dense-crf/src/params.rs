//! The parameters of the model, named as in the paper.

use crate::error::{Error, Result};

/// One gibibyte, the default of [`Params::max_bytes`].
const GIB: usize = 1 << 30;

/// Everything that decides how a labelling is refined.
///
/// The energy is a unary term, `−ln p`, plus up to two Potts terms.
/// Each rewards two pixels for sharing a label, more so the nearer they are:
///
/// ```text
/// smoothness   w₂ · exp(−|xᵢ−xⱼ|² / 2θγ²)
/// appearance   w₁ · exp(−|xᵢ−xⱼ|² / 2θα² − |cᵢ−cⱼ|² / 2θβ²)
/// ```
///
/// with positions `x` in pixels and colours `c` in 0…255.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    /// The kernel that removes specks, whatever their colour.
    pub smoothness: Option<Smoothness>,
    /// The kernel that snaps labels to colour edges.
    pub appearance: Option<Appearance>,
    /// Mean-field updates; zero returns the input.
    pub iterations: usize,
    /// Working memory allowed, in bytes; images that need more are done in overlapping tiles.
    pub max_bytes: usize,
    /// Overlap of tiles as a multiple of the largest spatial θ, see [`Params::halo`].
    pub halo_thetas: f32,
}

/// Nearby pixels want the same label.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Smoothness {
    /// `w₂`, how strongly; zero switches the kernel off.
    pub weight: f32,
    /// `θγ`, the spread in position, in pixels.
    pub theta_gamma: f32,
}

/// Nearby pixels *of similar colour* want the same label.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Appearance {
    /// `w₁`, how strongly; zero switches the kernel off.
    pub weight: f32,
    /// `θα`, the spread in position, in pixels.
    pub theta_alpha: f32,
    /// `θβ`, the spread in colour, in grey levels (0…255) per channel.
    pub theta_beta: f32,
}

impl Params {
    /// For stained tissue at 20× (GlaS): fine colour differences count, two updates.
    pub fn glas() -> Self {
        Self::published(3.0, 13.0, 3.0, 2)
    }

    /// For photographs of birds and flowers (CUB, Oxford flowers): wider kernels, five updates.
    pub fn natural() -> Self {
        Self::published(5.0, 19.0, 11.0, 5)
    }

    fn published(theta_gamma: f32, theta_alpha: f32, theta_beta: f32, iterations: usize) -> Self {
        Self {
            smoothness: Some(Smoothness { weight: 3.0, theta_gamma }),
            appearance: Some(Appearance { weight: 10.0, theta_alpha, theta_beta }),
            iterations,
            max_bytes: GIB,
            halo_thetas: 4.0,
        }
    }

    /// Pixels that a tile sees beyond its own border: `halo_thetas` times the largest spatial θ.
    ///
    /// Four θ keep what lies beyond below 0.1 % of a kernel's weight; influence handed on from
    /// update to update reaches further, so raise it where tiles must agree to the last digit.
    pub fn halo(&self) -> usize {
        let gamma = self.active_smoothness().map_or(0.0, |kernel| kernel.theta_gamma);
        let alpha = self.active_appearance().map_or(0.0, |kernel| kernel.theta_alpha);
        (gamma.max(alpha) * self.halo_thetas).ceil() as usize
    }

    /// Rejects values for which the model is not defined.
    pub fn check(&self) -> Result<()> {
        if let Some(Smoothness { weight, theta_gamma }) = self.smoothness {
            require_weight("smoothness.weight", weight)?;
            require_width("smoothness.theta_gamma", theta_gamma)?;
        }
        if let Some(Appearance { weight, theta_alpha, theta_beta }) = self.appearance {
            require_weight("appearance.weight", weight)?;
            require_width("appearance.theta_alpha", theta_alpha)?;
            require_width("appearance.theta_beta", theta_beta)?;
        }
        require_weight("halo_thetas", self.halo_thetas)
    }

    pub(crate) fn active_smoothness(&self) -> Option<Smoothness> {
        self.smoothness.filter(|kernel| kernel.weight > 0.0)
    }

    pub(crate) fn active_appearance(&self) -> Option<Appearance> {
        self.appearance.filter(|kernel| kernel.weight > 0.0)
    }

    /// Whether the result is the input, as no kernel is active or no update is made.
    pub(crate) fn is_identity(&self) -> bool {
        let no_kernel = self.active_smoothness().is_none() && self.active_appearance().is_none();
        self.iterations == 0 || no_kernel
    }
}

impl Default for Params {
    /// The preset for photographs, [`Params::natural`].
    fn default() -> Self {
        Self::natural()
    }
}

fn require_weight(name: &'static str, value: f32) -> Result<()> {
    let holds = value.is_finite() && value >= 0.0;
    require(holds, name, value, "finite and not negative")
}

fn require_width(name: &'static str, value: f32) -> Result<()> {
    require(value.is_finite() && value > 0.0, name, value, "finite and positive")
}

fn require(holds: bool, name: &'static str, value: f32, rule: &'static str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::Parameter { name, value, rule }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_presets_are_valid_and_reach_four_theta_alpha() {
        for (params, halo) in [(Params::glas(), 52), (Params::natural(), 76)] {
            params.check().unwrap();
            assert_eq!(params.halo(), halo);
        }
    }

    #[test]
    fn a_bad_value_is_reported_under_its_own_name() {
        let mut params = Params::glas();
        params.appearance = Some(Appearance { weight: 1.0, theta_alpha: 2.0, theta_beta: 0.0 });
        let error = params.check().unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "appearance.theta_beta", .. }), "{error}");
        params.appearance =
            Some(Appearance { weight: f32::NAN, theta_alpha: 2.0, theta_beta: 1.0 });
        assert!(params.check().is_err());
    }

    #[test]
    fn a_kernel_of_weight_zero_is_no_kernel() {
        let mut params = Params::glas();
        params.smoothness = Some(Smoothness { weight: 0.0, theta_gamma: 3.0 });
        assert!(!params.is_identity());
        params.appearance = None;
        assert!(params.is_identity());
    }
}
