//! A comparison on disk.
//!
//! ```text
//! comparison.md comparison.csv comparison.tex   the tables
//! comparison.html                               tables and pictures on one page
//! figures/                                      curves as PNG and SVG
//! ```

use std::{fs, path::Path};

use super::{Comparison, Format, html};
use crate::{
    error::{Error, Result},
    model::weights::write_atomically,
};

/// Writes the tables in every form, and the pictures.
pub fn write(comparison: &Comparison, folder: &Path) -> Result<()> {
    let figures = folder.join("figures");
    fs::create_dir_all(&figures).map_err(Error::file("create", &figures))?;
    let pictures = html::Pictures::default();
    let forms = [("md", Format::Markdown), ("csv", Format::Csv), ("tex", Format::Latex)];
    for (ending, format) in forms {
        let text = comparison.render(format);
        write_atomically(&folder.join(format!("comparison.{ending}")), text.as_bytes())?;
    }
    let page = html::page(comparison, &pictures);
    write_atomically(&folder.join("comparison.html"), page.as_bytes())
}
