//! One integer per lattice point, ordered so that neighbours in the image are neighbours in memory.
//!
//! A point of the `d`-dimensional lattice has `V = d + 1` integer coordinates `e` that sum to zero
//! and share their remainder modulo `V`. Its key packs `d` linear forms of them, `y` first:
//!
//! ```text
//! │ (−3e₂ − e₃ − … − e_d)/V │ (−2e₁ − e₂ − … − e_d)/V │ e₃ │ … │ e_d │
//! ╰──── follows y alone ────╯╰──── follows x alone ────╯╰── colours ──╯
//! ```
//!
//! Because the forms are linear, moving along an axis of the lattice adds a constant to the key.
//! Because `y` and `x` come first, points sorted by key lie in memory as they lie in the image.

/// The linear map from lattice coordinates to keys over one bounded region of features.
#[derive(Debug, Clone)]
pub(super) struct KeyMap<const V: usize> {
    /// Key of the lattice point at the origin.
    origin: i64,
    /// Added to the key for each `V` that coordinate `j` grows by.
    unit: [i64; V],
    /// Added to the key by one step along axis `j`: `+1` to every coordinate, then `−V` to `j`.
    pub(super) step: [i64; V],
    /// Keys are below two to this power.
    pub(super) bits: u32,
}

impl<const V: usize> KeyMap<V> {
    /// Lays out keys for scaled features between `low` and `high` (`x`, `y`, then colours).
    ///
    /// `None` if the coordinates do not fit into 63 bits. Only the first `V − 1` bounds count.
    pub(super) fn new(low: &[f32; V], high: &[f32; V]) -> Option<Self> {
        let mut map = Self { origin: 0, unit: [0; V], step: [0; V], bits: 0 };
        for field in (0..V - 1).rev() {
            map.push_field(field, low, high)?;
        }
        Some(map)
    }

    /// Adds a field above those already laid out.
    fn push_field(&mut self, field: usize, low: &[f32; V], high: &[f32; V]) -> Option<()> {
        // A point is within `V` of its simplex's corners in every coordinate, and their neighbours
        // within `V` of those; no form changes by more than the coordinates do. Two for rounding.
        let margin = 2 * V as i64 + 2;
        let (least, most) = field_bounds::<V>(field, low, high);
        // Beyond this, coordinates, which are whole numbers, might be rounded in `f32`.
        const LIMIT: f32 = (1 << 21) as f32;
        let exact = least > -LIMIT && most < LIMIT;
        if !exact {
            return None;
        }
        let least = least.floor() as i64 - margin;
        let most = most.ceil() as i64 + margin;
        let width = 64 - ((most - least) as u64).leading_zeros();
        let shift = self.bits;
        self.bits += width;
        if self.bits > 63 {
            return None;
        }
        self.origin -= least << shift;
        for axis in 0..V {
            let coefficient = field_coefficient::<V>(field, axis);
            self.unit[axis] += coefficient << shift;
            // The coefficients of a form over all coordinates sum to `−V` (y, x) or to 1 in
            // units of a coordinate, so one step changes it by this whole number.
            let ones = if field < 2 { -1 } else { 1 };
            self.step[axis] += (ones - coefficient) << shift;
        }
        Some(())
    }

    /// Key of the point whose coordinates are `V` times `quotients`.
    #[inline(always)]
    pub(super) fn key(&self, quotients: impl Fn(usize) -> i32) -> i64 {
        (0..V).fold(self.origin, |key, axis| key + self.unit[axis] * i64::from(quotients(axis)))
    }
}

/// What `V` more in coordinate `axis` adds to `field`.
fn field_coefficient<const V: usize>(field: usize, axis: usize) -> i64 {
    match (field, axis) {
        (0, 2) => -3,
        (0, 3..) => -1,
        (1, 1) => -2,
        (1, 2..) => -1,
        (2.., _) if axis == field + 1 => V as i64,
        _ => 0,
    }
}

/// The values `field` takes where the scaled features are between `low` and `high`.
fn field_bounds<const V: usize>(field: usize, low: &[f32; V], high: &[f32; V]) -> (f32, f32) {
    let v = V as f32;
    match field {
        0 => (low[1] * 6.0 / v, high[1] * 6.0 / v),
        1 => (low[0] * 2.0 / v, high[0] * 2.0 / v),
        // e_j = Σ_{k ≥ j} c_k − j · c_{j−1}, where c_k is scaled feature k.
        _ => {
            let j = field + 1;
            let below = |bounds: &[f32; V]| bounds[j..V - 1].iter().sum::<f32>();
            let weight = j as f32;
            (below(low) - weight * high[j - 1], below(high) - weight * low[j - 1])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_step_along_every_axis_leads_back() {
        let map = KeyMap::<6>::new(&[0.0; 6], &[200.0; 6]).unwrap();
        assert_eq!(map.step.iter().sum::<i64>(), 0);
        let flat = KeyMap::<3>::new(&[0.0; 3], &[200.0; 3]).unwrap();
        assert_eq!(flat.step.iter().sum::<i64>(), 0);
    }

    #[test]
    fn v_steps_along_an_axis_undo_v_units_of_it() {
        // V steps add V to every coordinate (nothing, as a key of quotients all one) and take
        // V·V from coordinate j.
        let map = KeyMap::<6>::new(&[0.0; 6], &[200.0; 6]).unwrap();
        for axis in 0..6 {
            let target = map.key(|j| if j == axis { 1 - 6 } else { 1 });
            assert_eq!(map.origin + 6 * map.step[axis], target, "axis {axis}");
        }
    }

    #[test]
    fn coordinates_beyond_63_bits_are_refused() {
        assert!(KeyMap::<6>::new(&[0.0; 6], &[1e5; 6]).is_none());
        assert!(KeyMap::<6>::new(&[0.0; 6], &[f32::NAN; 6]).is_none());
    }
}
