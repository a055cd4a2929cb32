//! The kinds of forward passes, which differ in batch norm.

use crate::collective::Share;

/// How a forward pass treats batch norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Normalizes by the batch, and updates the running statistics of the branch.
    Train(Branch, Share),
    /// Normalizes by the batch, and leaves the running statistics alone.
    TrainOnly(Share),
    /// Normalizes by the batch, and averages its statistics with those of the batches `seen`
    /// before.
    Calibrate {
        /// Number of batches that the statistics are the average of.
        seen: usize,
        /// This rank's share of the batch.
        share: Share,
    },
    /// Normalizes by the running statistics of the branch.
    Evaluate(Branch),
}

impl Pass {
    /// The same pass through a frozen network: normalizes by the running statistics, which are not
    /// updated.
    pub fn frozen(self) -> Self {
        match self {
            Self::Train(branch, _) | Self::Evaluate(branch) => Self::Evaluate(branch),
            Self::TrainOnly(_) | Self::Calibrate { .. } => Self::Evaluate(Branch::Whole),
        }
    }

    /// This rank's share of the batch; empty if the pass does not normalize by the batch.
    pub(super) fn share(self) -> Share {
        match self {
            Self::Train(_, share) | Self::TrainOnly(share) | Self::Calibrate { share, .. } => share,
            Self::Evaluate(_) => Share::whole(0),
        }
    }
}

/// The kind of images that are passed, which may have running statistics of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Branch {
    /// Whole images, the input of the localizer.
    Whole,
    /// Foregrounds, the input of the classifier.
    Foreground,
}
