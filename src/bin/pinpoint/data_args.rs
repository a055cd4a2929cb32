//! Flags that say how a dataset is read, shared by every verb that reads one.

use std::path::{Path, PathBuf};

use pinpoint::{
    config::DataConfig,
    data::{Layout, MaskRule},
    run::DataSource,
};

use crate::choice::{self, named};

const MASK_RULES: &[&str] = &["non-zero", "votes", "not-blue", "trimap", "void255"];

/// How the dataset given as `data` is arranged
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct LayoutArgs {
    /// Layout of the dataset; recognized from its files by default
    #[arg(long, requires = "data", value_parser = choice::layout())]
    pub(crate) layout: Option<Layout>,

    /// Where the images of list files are, when not beside the lists
    #[arg(long, requires = "data", value_name = "DIR")]
    pub(crate) images: Option<PathBuf>,
}

impl LayoutArgs {
    /// The dataset at `path`, arranged like this.
    pub(crate) fn of(&self, path: &Path) -> DataSource {
        DataSource { path: path.to_owned(), layout: self.layout, images: self.images.clone() }
    }
}

/// How masks are told from images, and the object from the rest
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct MaskArgs {
    /// What counts as foreground in a mask file; by default the layout's own rule
    #[arg(long, value_name = "RULE", value_parser = named::<MaskRule>(MASK_RULES))]
    pub(crate) mask_rule: Option<MaskRule>,

    /// Take pictures in class folders that are named like masks (`x_mask.png`) for images
    #[arg(long)]
    pub(crate) no_mask_names: bool,
}

impl MaskArgs {
    /// Applies the flags to settings.
    pub(crate) fn apply(self, settings: &mut DataConfig) {
        let Self { mask_rule, no_mask_names } = self;
        settings.mask_rule = mask_rule.or(settings.mask_rule);
        settings.mask_names &= !no_mask_names;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_stays_as_it_was() {
        let mut settings = DataConfig { mask_rule: Some(MaskRule::Votes), ..DataConfig::default() };
        MaskArgs::default().apply(&mut settings);
        assert_eq!((settings.mask_rule, settings.mask_names), (Some(MaskRule::Votes), true));
        let said = MaskArgs { mask_rule: Some(MaskRule::Trimap), no_mask_names: true };
        said.apply(&mut settings);
        assert_eq!((settings.mask_rule, settings.mask_names), (Some(MaskRule::Trimap), false));
    }
}
