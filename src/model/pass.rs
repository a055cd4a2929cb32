//! What a forward pass is for, as batch norm has to know it.

use crate::collective::Share;

/// How a forward pass treats batch norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Normalizes by the batch, and moves the running statistics of these images towards it.
    Train(Branch, Share),
    /// Normalizes by the batch, and leaves the running statistics alone.
    TrainOnly(Share),
    /// Normalizes by the batch, and averages it into the statistics of the batches `seen` before.
    Calibrate {
        /// How many batches the statistics already stand for.
        seen: usize,
        /// What of each batch this rank has.
        share: Share,
    },
    /// Normalizes by the running statistics of these images.
    Evaluate(Branch),
}

impl Pass {
    /// The same pass, for a network that is to stay as it is: by the running statistics, which
    /// do not move.
    pub fn frozen(self) -> Self {
        match self {
            Self::Train(branch, _) | Self::Evaluate(branch) => Self::Evaluate(branch),
            Self::TrainOnly(_) | Self::Calibrate { .. } => Self::Evaluate(Branch::Whole),
        }
    }

    /// What of the batch this rank has; a batch that is not normalized by itself is nobody's.
    pub(super) fn share(self) -> Share {
        match self {
            Self::Train(_, share) | Self::TrainOnly(share) | Self::Calibrate { share, .. } => share,
            Self::Evaluate(_) => Share::whole(0),
        }
    }
}

/// Which images a pass sees; they may have statistics of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Branch {
    /// Whole images, seen by the localizer.
    Whole,
    /// What masks show of them, seen by the classifier.
    Foreground,
}
