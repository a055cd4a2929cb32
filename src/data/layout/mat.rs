//! Numbers out of MATLAB files, version 5 (`-v6`, `-v7`).
//!
//! Only what Oxford's lists need: named, real, numeric arrays, flattened. A file
//! is a header of 128 bytes and then elements, each a tag (type, length) and its
//! data, padded to 8 bytes. An element may be deflated as a whole.
//!
//! Files are not trusted: every length is checked against what is left, and what
//! is inflated is bounded. No crate that is kept up does this without MATLAB's other types.

use std::{collections::BTreeMap, io::Read, path::Path};

use flate2::read::ZlibDecoder;

use crate::{data::npy::each, regular::read_bounded};

/// Larger files are not lists of a few thousand labels.
const MAX_FILE: u64 = 16 << 20;
/// All inflated data of one file together.
const MAX_INFLATED: u64 = 16 << 20;
const HEADER: usize = 128;

/// Types of elements that hold others; those of numbers are told in [`Reader::array`].
const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;
/// Classes of arrays that hold numbers, from `double` to `uint64`.
const NUMERIC: std::ops::RangeInclusive<u32> = 6..=15;

type Parsed<T> = Result<T, String>;

/// The numeric arrays of a file by name, or what is wrong with it.
pub(super) fn read(path: &Path) -> Parsed<BTreeMap<String, Vec<f64>>> {
    parse(&read_bounded(path, MAX_FILE).map_err(|error| error.to_string())?)
}

fn parse(file: &[u8]) -> Parsed<BTreeMap<String, Vec<f64>>> {
    if file.starts_with(b"MATLAB 7.3") {
        return Err("is of MATLAB version 7.3; save it with `-v7`".to_owned());
    }
    let big_endian = match file.get(126..HEADER) {
        Some(b"IM") => false,
        Some(b"MI") => true,
        _ => return Err("is not a MATLAB file of version 5".to_owned()),
    };
    let mut budget = MAX_INFLATED;
    let mut arrays = BTreeMap::new();
    let mut rest = Reader { bytes: &file[HEADER..], big_endian };
    while !rest.bytes.is_empty() {
        let (kind, data) = rest.element()?;
        let array = match kind {
            MATRIX => Reader { bytes: data, ..rest }.array()?,
            COMPRESSED => {
                let inflated = inflate(data, &mut budget)?;
                let (kind, data) = Reader { bytes: &inflated, ..rest }.element()?;
                if kind == MATRIX { Reader { bytes: data, ..rest }.array()? } else { None }
            }
            _ => None,
        };
        arrays.extend(array);
    }
    Ok(arrays)
}

fn inflate(data: &[u8], budget: &mut u64) -> Parsed<Vec<u8>> {
    let mut inflated = Vec::new();
    let read = ZlibDecoder::new(data).take(*budget + 1).read_to_end(&mut inflated);
    read.map_err(|error| format!("holds damaged compressed data ({error})"))?;
    *budget = budget
        .checked_sub(inflated.len() as u64)
        .ok_or_else(|| format!("holds more than {} MiB of data", MAX_INFLATED >> 20))?;
    Ok(inflated)
}

/// What is left of a sequence of elements.
#[derive(Clone, Copy)]
struct Reader<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

impl<'a> Reader<'a> {
    /// Takes type and data of the next element.
    fn element(&mut self) -> Parsed<(u32, &'a [u8])> {
        let tag = self.u32()?;
        // Up to four bytes of data are packed into the tag, the length above the type.
        if tag >> 16 != 0 {
            let data = self.take(4)?;
            let length = (tag >> 16) as usize;
            return Ok((tag & 0xFFFF, data.get(..length).ok_or_else(truncated)?));
        }
        let length = self.u32()? as usize;
        let data = self.take(length)?;
        if tag != COMPRESSED {
            // The last element may lack its padding.
            let padding = (length.wrapping_neg() % 8).min(self.bytes.len());
            self.take(padding)?;
        }
        Ok((tag, data))
    }

    /// Name and values of an array; nothing if it does not hold real numbers.
    fn array(mut self) -> Parsed<Option<(String, Vec<f64>)>> {
        let (_, flags) = self.element()?;
        let class = Reader { bytes: flags, ..self }.u32()? & 0xFF;
        let (_, _dimensions) = self.element()?;
        let (_, name) = self.element()?;
        if !NUMERIC.contains(&class) {
            return Ok(None);
        }
        let (kind, data) = self.element()?;
        let name = String::from_utf8_lossy(name).into_owned();
        let big_endian = self.big_endian;
        let numbers = match kind {
            1 => data.iter().map(|&byte| f64::from(byte.cast_signed())).collect(),
            2 => data.iter().map(|&byte| f64::from(byte)).collect(),
            3 => each(data, big_endian, |bytes| f64::from(i16::from_le_bytes(bytes))),
            4 => each(data, big_endian, |bytes| f64::from(u16::from_le_bytes(bytes))),
            5 => each(data, big_endian, |bytes| f64::from(i32::from_le_bytes(bytes))),
            6 => each(data, big_endian, |bytes| f64::from(u32::from_le_bytes(bytes))),
            7 => each(data, big_endian, |bytes| f64::from(f32::from_le_bytes(bytes))),
            9 => each(data, big_endian, f64::from_le_bytes),
            12 => each(data, big_endian, |bytes| i64::from_le_bytes(bytes) as f64),
            13 => each(data, big_endian, |bytes| u64::from_le_bytes(bytes) as f64),
            _ => return Err(format!("holds numbers of unknown type {kind}")),
        };
        Ok(Some((name, numbers)))
    }

    fn u32(&mut self) -> Parsed<u32> {
        let bytes = self.take(4)?.try_into().expect("four bytes were taken");
        Ok(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn take(&mut self, length: usize) -> Parsed<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or_else(truncated)?;
        self.bytes = rest;
        Ok(taken)
    }
}

fn truncated() -> String {
    "is truncated".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Written by SciPy, see the script beside it.
    const PLAIN: &[u8] = include_bytes!("../../../tests/it/fixtures/mat/plain.mat");
    const COMPRESSED: &[u8] = include_bytes!("../../../tests/it/fixtures/mat/compressed.mat");

    #[test]
    fn arrays_written_by_scipy_are_read_plain_and_compressed() {
        for file in [PLAIN, COMPRESSED] {
            let arrays = parse(file).unwrap();
            assert_eq!(arrays["labels"], [77.0, 2.0, 102.0, 1.0, 5.0]);
            assert_eq!(arrays["trnid"], [1.0, 3.0]);
            assert_eq!(arrays["valid"], [-2.5]);
            assert_eq!(arrays["tstid"], [300.0, 70_000.0, 4.0]);
            assert!(!arrays.contains_key("text"), "text is not numbers");
        }
    }

    #[test]
    fn a_file_in_the_other_byte_order_is_read() {
        let mut file = vec![0; 126];
        file.extend(b"MI");
        let [int8, uint16, int32, uint32] = [1, 4, 5, 6];
        let array: Vec<u32> = [
            [uint32, 8, 6, 0].as_slice(), // flags: class double
            &[int32, 8, 1, 1],            // dimensions
            &[2 << 16 | int8, u32::from_be_bytes(*b"id\0\0")],
            &[uint16, 2, 300 << 16, 0],
        ]
        .concat();
        let length = (array.len() * 4) as u32;
        for word in [MATRIX, length].into_iter().chain(array) {
            file.extend(word.to_be_bytes());
        }
        assert_eq!(parse(&file).unwrap()["id"], [300.0]);
    }

    #[test]
    fn files_of_other_kinds_and_cut_files_are_refused() {
        assert!(parse(b"").is_err());
        assert!(parse(&[0; 300]).is_err());
        assert!(parse(b"MATLAB 7.3 MAT-file").unwrap_err().contains("-v7"));
        for length in HEADER + 1..PLAIN.len().min(HEADER + 60) {
            assert!(parse(&PLAIN[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn a_bomb_does_not_go_off() {
        use std::io::Write;
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&vec![0; 2 * MAX_INFLATED as usize]).unwrap();
        let bomb = encoder.finish().unwrap();
        let mut file = PLAIN[..HEADER].to_vec();
        file.extend(super::COMPRESSED.to_le_bytes());
        file.extend((bomb.len() as u32).to_le_bytes());
        file.extend(bomb);
        assert!(parse(&file).unwrap_err().contains("more than"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(
            flips in prop::collection::vec((HEADER..PLAIN.len(), any::<u8>()), 1..20),
            compressed in any::<bool>(),
        ) {
            let mut file = if compressed { COMPRESSED.to_vec() } else { PLAIN.to_vec() };
            for (at, byte) in flips {
                let length = file.len();
                file[at % length] = byte;
            }
            let _ = parse(&file);
        }
    }
}
