//! Turning the colour circle in Pillow's 8-bit HSV, several times faster.
//!
//! Pillow converts to HSV in floating point and cuts off fractions, so the last
//! bit of a hue depends on its rounding errors, and one step of hue is up to six
//! grey levels. The conversion to hue and saturation is therefore tabulated with
//! Pillow's own arithmetic, once, for every input there is; what remains per
//! pixel is look-ups and one multiplication.

use std::sync::LazyLock;

use crate::data::preprocess::Planes;

/// Turns the hue of every pixel, `turns` in `[-0.5, 0.5]`.
pub(super) fn turn(planes: &mut Planes, turns: f64) {
    let tables = &*TABLES;
    // torchvision cuts the shift to a whole number and lets it wrap around as a byte.
    let shift = (turns * 255.0) as i32 as u8;
    let sectors: [Sector; 256] =
        std::array::from_fn(|hue| Sector::of_hue((hue as u8).wrapping_add(shift)));
    let [red, green, blue] = planes.channels_mut();
    for ((r, g), b) in red.iter_mut().zip(green).zip(blue) {
        [*r, *g, *b] = tables.turned([*r, *g, *b], &sectors);
    }
}

/// Where a hue lies on the colour circle, and which channel then has which value.
#[derive(Clone, Copy)]
struct Sector {
    /// How far the middle channel is from the largest, as a share of their spread.
    depth: f32,
    /// For red, green, blue: the bits to shift the packed largest, middle, smallest by.
    shifts: [u8; 3],
}

impl Sector {
    fn of_hue(hue: u8) -> Self {
        const LARGEST: u8 = 0;
        const MIDDLE: u8 = 8;
        const SMALLEST: u8 = 16;
        let position = f64::from(hue) * 6.0 / 255.0;
        let remainder = (position - position.floor()) as f32;
        let shifts = match position as u8 % 6 {
            0 => [LARGEST, MIDDLE, SMALLEST],
            1 => [MIDDLE, LARGEST, SMALLEST],
            2 => [SMALLEST, LARGEST, MIDDLE],
            3 => [SMALLEST, MIDDLE, LARGEST],
            4 => [MIDDLE, SMALLEST, LARGEST],
            _ => [LARGEST, SMALLEST, MIDDLE],
        };
        // Towards the next primary colour the middle channel rises, after it it falls.
        let rising = (position as u8).is_multiple_of(2);
        let depth = if rising { 1.0 - remainder } else { remainder };
        Self { depth, shifts }
    }
}

static TABLES: LazyLock<Tables> = LazyLock::new(Tables::new);

/// Pillow's conversion to hue and saturation, for every input there is.
struct Tables {
    /// Hue by order of the channels, spread (largest − smallest) and gap (largest − middle).
    hue: Vec<[[u8; 256]; 256]>,
    /// Saturation as a share in `[0, 1]`, by largest channel and spread.
    saturation: Vec<[f32; 256]>,
}

/// The orders that red, green and blue can have, as written by [`order_of`].
const ORDERS: usize = 6;

impl Tables {
    fn new() -> Self {
        let mut hue = vec![[[0; 256]; 256]; ORDERS];
        let mut saturation = vec![[0.0; 256]; 256];
        for spread in 1..=255_u8 {
            for gap in 0..=spread {
                for (order, table) in hue.iter_mut().enumerate() {
                    table[usize::from(spread)][usize::from(gap)] = hue_byte(order, spread, gap);
                }
            }
            for largest in spread..=255 {
                let share = f32::from(spread) / f32::from(largest);
                let byte = (f64::from(share) * 255.0) as u8;
                saturation[usize::from(largest)][usize::from(spread)] =
                    (f64::from(byte) / 255.0) as f32;
            }
        }
        Self { hue, saturation }
    }

    #[inline(always)]
    fn turned(&self, pixel: [u8; 3], sectors: &[Sector; 256]) -> [u8; 3] {
        let [red, green, blue] = pixel;
        let largest = red.max(green).max(blue);
        let smallest = red.min(green).min(blue);
        let middle = red.max(green).min(red.min(green).max(blue));
        let spread = usize::from(largest - smallest);
        let hue = self.hue[order_of(pixel)][spread][usize::from(largest - middle)];
        let saturation = self.saturation[usize::from(largest)][spread];
        let Sector { depth, shifts } = sectors[usize::from(hue)];

        let value = f32::from(largest);
        let at = |share: f32| (value * (1.0 - saturation * share) + 0.5) as u32;
        let packed = u32::from(largest) | at(depth) << 8 | at(1.0) << 16;
        shifts.map(|bits| (packed >> bits) as u8)
    }
}

/// Which channel is the largest and which the smallest, as a number below [`ORDERS`].
#[inline(always)]
fn order_of([red, green, blue]: [u8; 3]) -> usize {
    let red_leads = red >= green && red >= blue;
    let green_leads = !red_leads && green >= blue;
    let (leader, second, third) = if red_leads {
        (0, green, blue)
    } else if green_leads {
        (2, blue, red)
    } else {
        (4, red, green)
    };
    leader + usize::from(second < third)
}

/// Pillow's hue, in its own mixture of single and double precision.
fn hue_byte(order: usize, spread: u8, gap: u8) -> u8 {
    // Distances below the largest channel: the smallest channel's is the whole spread.
    let gap = f32::from(gap) / f32::from(spread);
    let (second, third) = if order.is_multiple_of(2) { (gap, 1.0) } else { (1.0, gap) };
    let (second, third): (f32, f32) = (second, third);
    let sixths = match order / 2 {
        0 => third - second,
        leader => ((2 * leader) as f64 + f64::from(third) - f64::from(second)) as f32,
    };
    let turns = ((f64::from(sixths) / 6.0 + 1.0) % 1.0) as f32;
    (f64::from(turns) * 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turned(pixel: [u8; 3], turns: f64) -> [u8; 3] {
        let shift = (turns * 255.0) as i32 as u8;
        let sectors = std::array::from_fn(|hue| Sector::of_hue((hue as u8).wrapping_add(shift)));
        TABLES.turned(pixel, &sectors)
    }

    #[test]
    fn a_third_of_a_turn_makes_red_green_and_green_blue() {
        assert_eq!(turned([255, 0, 0], 1.0 / 3.0 + 1e-9), [0, 255, 0]);
        assert_eq!(turned([0, 255, 0], 1.0 / 3.0 + 1e-9), [0, 0, 255]);
    }

    #[test]
    fn half_a_turn_makes_the_complement() {
        // 127 of 255 steps are a little less than half a turn: cyan gets one step of green less.
        assert_eq!(turned([255, 0, 0], 0.5), [0, 255, 252]);
    }
}
