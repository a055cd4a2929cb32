//! The segments of a JPEG file.

use std::io::{self, BufRead, Read, Seek};

/// Whether the file reaches its end-of-image marker.
///
/// The decoder fills whatever is missing with grey and calls it a success; Pillow
/// refuses such a file, and so do we. Thumbnails have end markers of their own, so
/// segments are stepped over rather than searched.
pub(super) fn is_complete(file: &mut (impl BufRead + Seek)) -> io::Result<bool> {
    match walk_to_end(file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Steps from marker to marker until the end of the image.
fn walk_to_end(file: &mut (impl BufRead + Seek)) -> io::Result<()> {
    loop {
        file.skip_until(0xFF)?;
        let mut code = 0xFF;
        while code == 0xFF {
            let [byte] = take(file)?;
            code = byte;
        }
        match code {
            0xD9 => return Ok(()),
            // A stuffed zero in the pixel data, and markers without a segment.
            0x00 | 0x01 | 0xD0..=0xD8 => {}
            _ => {
                let length = u16::from_be_bytes(take(file)?); // counts itself
                file.seek_relative(i64::from(length.saturating_sub(2)))?;
            }
        }
    }
}

fn take<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// Start, an application segment, a scan with a stuffed zero and a restart, end.
    const FILE: &[u8] =
        b"\xFF\xD8\xFF\xE1\x00\x04\xFF\xD9\xFF\xDA\x00\x02ab\xFF\x00c\xFF\xD0d\xFF\xD9";

    #[test]
    fn a_file_with_its_end_marker_is_complete() {
        assert!(is_complete(&mut Cursor::new(FILE)).unwrap());
    }

    #[test]
    fn an_end_marker_inside_a_segment_does_not_count() {
        for length in 0..FILE.len() {
            assert!(!is_complete(&mut Cursor::new(&FILE[..length])).unwrap(), "{length} bytes");
        }
    }
}
