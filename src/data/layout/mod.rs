//! The dataset layouts that are read as they are.

use serde::{Deserialize, Serialize};

/// A way of arranging images, labels and masks on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// GlaS as distributed: `Grade.csv`, images and `_anno` masks.
    Glas,
    /// CUB-200-2011 as distributed: list files, `images/`, `segmentations/`.
    Cub,
    /// Oxford flowers 102 as distributed: `jpg/`, `segmim/`, two `.mat` files.
    OxfordFlowers,
    /// `train|valid|test/<class>/*`, with an optional parallel `masks/` tree.
    Folders,
    /// Header-less `image,mask,class` files, one per split, as published with the paper.
    Folds,
    /// One CSV file with a header: `image,label[,mask][,split]`.
    Table,
    /// Metadata folders of wsolevaluation.
    Wsol,
}
