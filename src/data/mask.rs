//! Decoding of ground-truth masks: one meaning, whatever the file's.

use serde::{Deserialize, Serialize};

/// What counts as foreground in a mask file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaskRule {
    /// Everything but 0: binary masks, instance ids, palette indices.
    NonZero,
    /// Grey is the share of annotators who marked the pixel; a majority decides (> 127.5).
    Votes,
    /// Everything far enough from Oxford's blue background.
    NotBlue,
    /// 1 is foreground, 2 background, 3 undecided and therefore not scored.
    Trimap,
}

/// Ground truth of one image: 1 is foreground, 0 background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mask {
    /// Width in pixels, equal to the image's.
    pub width: u32,
    /// Height in pixels, equal to the image's.
    pub height: u32,
    /// Row by row, `true` where the object is.
    pub foreground: Vec<bool>,
    /// Row by row, `true` where no verdict was given; such pixels are not scored.
    pub ignored: Option<Vec<bool>>,
}
