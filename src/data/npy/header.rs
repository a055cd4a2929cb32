//! The header of a `.npy` file: a Python dictionary of three known keys.

/// What the data looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) dtype: Dtype,
    pub(super) height: usize,
    pub(super) width: usize,
}

/// What one number looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dtype {
    Bool,
    Uint8,
    Float { bytes: usize, big_endian: bool },
}

impl Dtype {
    /// Length of one number in bytes.
    pub(super) fn size(self) -> usize {
        match self {
            Self::Bool | Self::Uint8 => 1,
            Self::Float { bytes, .. } => bytes,
        }
    }

    fn named(name: &str) -> Result<Self, String> {
        let float = |bytes, big_endian| Ok(Self::Float { bytes, big_endian });
        match name {
            "|b1" | "?" => Ok(Self::Bool),
            "|u1" | "u1" | "<u1" | ">u1" => Ok(Self::Uint8),
            "<f2" => float(2, false),
            ">f2" => float(2, true),
            "<f4" => float(4, false),
            ">f4" => float(4, true),
            "<f8" => float(8, false),
            ">f8" => float(8, true),
            _ => Err(format!("numbers of type `{name}` are no scores")),
        }
    }
}

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`, in any order.
pub(super) fn parse(text: &str) -> Result<Header, String> {
    let dtype = Dtype::named(quoted(value(text, "descr")?)?)?;
    let (height, width) = plane(&shape(value(text, "shape")?)?)?;
    let order = value(text, "fortran_order")?;
    if order.starts_with("True") && height > 1 && width > 1 {
        return Err("it is in Fortran order".to_owned());
    }
    if !order.starts_with("True") && !order.starts_with("False") {
        return Err("its header does not say in which order it is".to_owned());
    }
    Ok(Header { dtype, height, width })
}

/// The text after a key's colon.
fn value<'a>(text: &'a str, key: &str) -> Result<&'a str, String> {
    let find = |quote: char| text.split_once(&format!("{quote}{key}{quote}"));
    let (_, after) = find('\'').or_else(|| find('"')).ok_or(format!("its header lacks `{key}`"))?;
    let after = after.trim_start().strip_prefix(':').ok_or("its header is malformed")?;
    Ok(after.trim_start())
}

fn quoted(text: &str) -> Result<&str, String> {
    let quote = text.chars().next().filter(|letter| ['\'', '"'].contains(letter));
    let inner = quote.and_then(|quote| text[1..].split_once(quote));
    // A type of several fields is a list here.
    inner.map(|(inner, _)| inner).ok_or("its numbers are not of one plain type".to_owned())
}

fn shape(text: &str) -> Result<Vec<usize>, String> {
    let inner = text.strip_prefix('(').and_then(|text| text.split_once(')'));
    let (inner, _) = inner.ok_or("its header has no readable shape")?;
    let lengths = inner.split(',').map(str::trim).filter(|length| !length.is_empty());
    let lengths = lengths.map(|length| length.trim_end_matches('L').parse().ok());
    lengths.collect::<Option<_>>().ok_or("its shape is impossible".to_owned())
}

/// Height and width of an array, of whose axes two at most are longer than 1.
fn plane(shape: &[usize]) -> Result<(usize, usize), String> {
    let unusable = || Err(format!("its shape {shape:?} is not that of an image"));
    if shape.len() < 2 || shape.contains(&0) {
        return unusable();
    }
    match *shape {
        [height, width] | [1, height, width] | [height, width, 1] => Ok((height, width)),
        [1, 1, height, width] | [1, height, width, 1] => Ok((height, width)),
        _ => unusable(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_may_come_in_any_order_and_spacing() {
        let expected =
            Header { dtype: Dtype::Float { bytes: 8, big_endian: false }, height: 2, width: 30 };
        for text in [
            "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 30), }",
            "{\"shape\":(1,2,30,1),\"fortran_order\" : False,\"descr\" :\"<f8\"}",
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn the_order_of_a_single_row_does_not_matter() {
        let text = "{'descr': '|u1', 'fortran_order': True, 'shape': (1, 30), }";
        assert_eq!(parse(text).unwrap().width, 30);
    }

    #[test]
    fn a_header_with_something_missing_says_what() {
        assert!(parse("{'descr': '<f4', 'shape': (1, 1)}").unwrap_err().contains("fortran_order"));
        assert!(parse("{}").unwrap_err().contains("descr"));
        assert!(parse("{'descr': [('x', '<f4')], 'shape': (1, 1)}").unwrap_err().contains("plain"));
    }
}
