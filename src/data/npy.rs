//! Score maps as NumPy's `.npy` files: ours, and those of other tools.
//!
//! | in the file | becomes |
//! |---|---|
//! | `float16`, `float32`, `float64`, either byte order | the number, as 32-bit float |
//! | `uint8` | the number / 255 |
//! | `bool` | 0 or 1 |
//! | shape `(height, width)` | as it is |
//! | shape with further axes of length 1 | without them |
//!
//! Files are not trusted: the header is bounded, and memory is only taken for as many values as the
//! file has. No crate is used, as those for this format (`npyz`, `ndarray-npy`) bring a parser of
//! Python literals or an array library. Whether the numbers are scores is checked by
//! [`ScoreMap`](crate::metrics::ScoreMap).

use std::{
    io::{self, Read},
    path::Path,
};

use half::f16;

use crate::{
    error::{Error, Result},
    regular,
};

/// Numbers in rows, as they were read.
#[derive(Debug, Clone, PartialEq)]
pub struct Map {
    /// Length of a row.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
    /// The numbers, row by row.
    pub values: Vec<f32>,
}

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Far more than any two-dimensional array needs.
const LONGEST_HEADER: usize = 1 << 16;

/// The bytes of a `.npy` file with `values` in rows of `width`, as `float32`.
pub fn encode(width: usize, values: &[f32]) -> Vec<u8> {
    assert!(width > 0 && values.len().is_multiple_of(width), "rows are of equal length");
    let height = values.len() / width;
    let mut header =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({height}, {width}), }}");
    // The data starts at a multiple of 64 bytes, after a line end.
    let unpadded = MAGIC.len() + 4 + header.len() + 1;
    header.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');

    let length = u16::try_from(header.len()).expect("two numbers fit into a short header");
    let mut bytes = Vec::with_capacity(MAGIC.len() + 4 + header.len() + 4 * values.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[1, 0]);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

/// Reads a `.npy` file; one with more than `max_megapixels` numbers is refused unread.
pub fn read(path: &Path, max_megapixels: u32) -> Result<Map> {
    let file = regular::open(path).map_err(Error::file("read", path))?;
    let size = file.metadata().map_err(Error::file("read", path))?.len();
    decode(io::BufReader::new(file), size, max_megapixels).map_err(|problem| {
        let problem = format!("unusable score map ({problem})");
        let remedy = "save it with `np.save`, as a C-ordered float array of shape (height, width)";
        Error::image(path, problem, remedy)
    })
}

fn decode(mut file: impl Read, size: u64, max_megapixels: u32) -> Result<Map, String> {
    let (length, prefix) = header_length(&mut file)?;
    let mut text = vec![0; length];
    file.read_exact(&mut text).map_err(ended)?;
    let text = String::from_utf8_lossy(&text);
    let Header { dtype, height, width } = parse_header(&text)?;

    let area = height.checked_mul(width).ok_or("its shape is impossible")?;
    if area as u64 > u64::from(max_megapixels) * 1_000_000 {
        return Err(format!("{width}×{height} is over the limit of {max_megapixels} megapixels"));
    }
    let length = area * size_of_number(dtype)?;
    let (promised, held) = (length as u64, size.saturating_sub(prefix));
    if promised != held {
        return Err(format!("its header promises {promised} bytes but it holds {held}"));
    }
    let mut bytes = vec![0; length];
    file.read_exact(&mut bytes).map_err(ended)?;
    Ok(Map { width, height, values: numbers(&bytes, dtype) })
}

/// The length of the header's text, and where the data starts.
fn header_length(file: &mut impl Read) -> Result<(usize, u64), String> {
    let mut start = [0; 8];
    file.read_exact(&mut start).map_err(ended)?;
    if start[..6] != *MAGIC {
        return Err("it is no `.npy` file".to_owned());
    }
    let field = match start[6] {
        1 => 2,
        2 | 3 => 4,
        version => return Err(format!("version {version} of the format is not known")),
    };
    let mut length = [0; 4];
    file.read_exact(&mut length[..field]).map_err(ended)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST_HEADER {
        return Err(format!("its header of {length} bytes is too long"));
    }
    Ok((length, (8 + field + length) as u64))
}

fn ended(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "it ends early".to_owned(),
        _ => error.to_string(),
    }
}

/// Bytes of a number of a type; the problem if such numbers are no scores.
fn size_of_number(dtype: &str) -> Result<usize, String> {
    match dtype {
        "|b1" | "?" | "|u1" | "u1" | "<u1" | ">u1" => Ok(1),
        "<f2" | ">f2" => Ok(2),
        "<f4" | ">f4" => Ok(4),
        "<f8" | ">f8" => Ok(8),
        _ => Err(format!("numbers of type `{dtype}` are no scores")),
    }
}

fn numbers(bytes: &[u8], dtype: &str) -> Vec<f32> {
    let big_endian = dtype.starts_with('>');
    match dtype.trim_start_matches(['<', '>', '|']) {
        "b1" | "?" => bytes.iter().map(|&byte| f32::from(u8::from(byte != 0))).collect(),
        "u1" => bytes.iter().map(|&byte| f32::from(byte) / 255.0).collect(),
        "f2" => each(bytes, big_endian, |bytes| f16::from_le_bytes(bytes).to_f32()),
        "f4" => each(bytes, big_endian, f32::from_le_bytes),
        _ => each(bytes, big_endian, |bytes| f64::from_le_bytes(bytes) as f32),
    }
}

/// `bytes` cut into numbers of `N` bytes, each brought to little endian.
pub(super) fn each<const N: usize, T>(
    bytes: &[u8],
    big_endian: bool,
    number: impl Fn([u8; N]) -> T,
) -> Vec<T> {
    let (chunks, _) = bytes.as_chunks::<N>();
    let in_order = |mut chunk: [u8; N]| {
        if big_endian {
            chunk.reverse();
        }
        chunk
    };
    chunks.iter().map(|chunk| number(in_order(*chunk))).collect()
}

/// What the data looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header<'a> {
    /// The type of the numbers: byte order, kind and bytes, as in `<f4`.
    dtype: &'a str,
    height: usize,
    width: usize,
}

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`, in any order.
fn parse_header(text: &str) -> Result<Header<'_>, String> {
    let dtype = quoted(value(text, "descr")?)?;
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
    use proptest::prelude::*;

    use super::*;

    /// A file with this header text and these bytes of data.
    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&[1, 0]);
        bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(data);
        bytes
    }

    fn header(descr: &str, shape: &str) -> String {
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n")
    }

    fn decoded(bytes: &[u8]) -> Result<Map, String> {
        decode(bytes, bytes.len() as u64, 1)
    }

    #[test]
    fn what_is_written_is_what_numpy_writes() {
        // np.save(f, np.array([[0, 0.5, 1]], "f4"))
        let mut expected = b"\x93NUMPY\x01\x00\x76\x00\
            {'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }"
            .to_vec();
        expected.resize(127, b' ');
        expected.push(b'\n');
        expected.extend([0.0_f32, 0.5, 1.0].iter().flat_map(|value| value.to_le_bytes()));
        assert_eq!(encode(3, &[0.0, 0.5, 1.0]), expected);
    }

    #[test]
    fn numbers_of_every_kind_are_read() {
        let read = |descr: &str, data: &[u8]| {
            decoded(&file(&header(descr, "(1, 2)"), data)).unwrap().values
        };
        assert_eq!(read("<f4", &[0, 0, 0, 63, 0, 0, 128, 63]), [0.5, 1.0]);
        assert_eq!(read(">f4", &[63, 0, 0, 0, 63, 128, 0, 0]), [0.5, 1.0]);
        let wide: Vec<u8> = [0.25_f64, 0.75].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(read("<f8", &wide), [0.25, 0.75]);
        assert_eq!(read("<f2", &[0, 0x38, 0, 0x3c]), [0.5, 1.0]);
        assert_eq!(read("|u1", &[51, 255]), [0.2, 1.0]);
        assert_eq!(read("|b1", &[0, 1]), [0.0, 1.0]);
    }

    #[test]
    fn axes_of_length_one_do_not_matter() {
        for shape in ["(2, 1, 1)", "(1, 2, 1)", "(2, 1)"] {
            let map = decoded(&file(&header("|u1", shape), &[0, 255])).unwrap();
            assert_eq!(map.values, [0.0, 1.0], "{shape}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_told_apart() {
        let problem = |bytes: &[u8]| decoded(bytes).unwrap_err();
        assert!(problem(b"\x89PNG....").contains("no `.npy` file"));
        assert!(problem(b"\x93NU").contains("ends early"));
        assert!(problem(&file(&header("<f4", "(2, 2)"), &[0; 12])).contains("promises 16 bytes"));
        assert!(problem(&file(&header("<c8", "(1, 1)"), &[0; 8])).contains("`<c8`"));
        assert!(problem(&file(&header("|u1", "(2, 2, 2)"), &[0; 8])).contains("shape"));
        assert!(problem(&file(&header("|u1", "(0, 2)"), &[])).contains("shape"));
        let fortran = header("|u1", "(2, 2)").replace("False", "True");
        assert!(problem(&file(&fortran, &[0; 4])).contains("Fortran"));
    }

    #[test]
    fn a_header_that_promises_the_moon_costs_nothing() {
        let problem = |shape: &str| decoded(&file(&header("<f8", shape), &[])).unwrap_err();
        assert!(problem("(999999, 999999)").contains("limit of 1 megapixels"));
        assert!(problem("(18446744073709551615, 9)").contains("impossible"));
        let mut long = b"\x93NUMPY\x02\x00".to_vec();
        long.extend_from_slice(&u32::MAX.to_le_bytes());
        assert!(decoded(&long).unwrap_err().contains("too long"));
    }

    proptest! {
        #[test]
        fn maps_survive_being_saved(width in 1_usize..9, height in 1_usize..9, first in 0.0_f32..1.0) {
            let values: Vec<f32> = (0..width * height).map(|i| first / (i + 1) as f32).collect();
            prop_assert_eq!(decoded(&encode(width, &values)).unwrap(), Map { width, height, values });
        }

        #[test]
        fn no_bytes_can_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decoded(&bytes);
            let mut started = b"\x93NUMPY\x01\x00".to_vec();
            started.extend_from_slice(&bytes);
            let _ = decoded(&started);
            let _ = parse_header(&String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn keys_may_come_in_any_order_and_spacing() {
        let expected = Header { dtype: "<f8", height: 2, width: 30 };
        for text in [
            "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 30), }",
            "{\"shape\":(1,2,30,1),\"fortran_order\" : False,\"descr\" :\"<f8\"}",
        ] {
            assert_eq!(parse_header(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn the_order_of_a_single_row_does_not_matter() {
        let text = "{'descr': '|u1', 'fortran_order': True, 'shape': (1, 30), }";
        assert_eq!(parse_header(text).unwrap().width, 30);
    }

    #[test]
    fn a_header_with_something_missing_says_what() {
        assert!(
            parse_header("{'descr': '<f4', 'shape': (1, 1)}")
                .unwrap_err()
                .contains("fortran_order")
        );
        assert!(parse_header("{}").unwrap_err().contains("descr"));
        assert!(
            parse_header("{'descr': [('x', '<f4')], 'shape': (1, 1)}")
                .unwrap_err()
                .contains("plain")
        );
    }
}
