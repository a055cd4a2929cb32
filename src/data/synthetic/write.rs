//! The synthetic set as files, in the layout of class folders.
//!
//! ```text
//! dir/<split>/<class>/00042.png          the image
//! dir/masks/<split>/<class>/00042.png    255 where the object is, else 0
//! ```

use std::{fs, io::Cursor, path::Path};

use image::{ExtendedColorType, ImageEncoder, codecs::png::PngEncoder};
use rayon::prelude::*;

use super::{SyntheticSample, SyntheticSpec};
use crate::{
    data::{
        manifest::Split,
        staging::{is_vacant, make_folder},
    },
    error::{Error, Result},
};

/// Draws the set into the new folder `dir`, which appears only when it is complete.
///
/// `progress` is called once per image, from any thread.
pub fn write(dir: &Path, spec: &SyntheticSpec, progress: impl Fn() + Sync) -> Result<()> {
    spec.check()?;
    if !is_vacant(dir)? {
        return Err(Error::data(dir, "folder is not empty", "name a new one"));
    }
    make_folder(dir, |root| {
        make_class_folders(root, spec)?;
        Split::ALL.into_iter().try_for_each(|split| {
            (0..spec.count(split)).into_par_iter().try_for_each(|index| {
                write_sample(root, spec, split, index)?;
                progress();
                Ok(())
            })
        })
    })
}

fn make_class_folders(root: &Path, spec: &SyntheticSpec) -> Result<()> {
    for split in Split::ALL.into_iter().filter(|&split| spec.count(split) > 0) {
        for class in spec.class_names() {
            for parent in [root.to_owned(), root.join("masks")] {
                let folder = parent.join(split.to_string()).join(class);
                fs::create_dir_all(&folder).map_err(Error::file("create", &folder))?;
            }
        }
    }
    Ok(())
}

fn write_sample(root: &Path, spec: &SyntheticSpec, split: Split, index: usize) -> Result<()> {
    let SyntheticSample { image, mask, label } = spec.draw(split, index);
    let name = format!("{split}/{}/{index:05}.png", spec.class_names()[label]);
    let grey: Vec<u8> = mask.foreground.iter().map(|&object| u8::from(object) * 255).collect();
    write_png(&root.join(&name), image.as_raw(), spec.side, ExtendedColorType::Rgb8)?;
    write_png(&root.join("masks").join(&name), &grey, spec.side, ExtendedColorType::L8)
}

fn write_png(path: &Path, pixels: &[u8], side: u32, colour: ExtendedColorType) -> Result<()> {
    let mut file = Cursor::new(Vec::new());
    PngEncoder::new(&mut file)
        .write_image(pixels, side, side, colour)
        .expect("memory takes any picture whose buffer fits its size");
    fs::write(path, file.into_inner()).map_err(Error::file("write", path))
}
