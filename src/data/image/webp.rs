//! The chunks of a WebP file.

use std::io::{self, Read, Seek, SeekFrom};

/// Names of the file's chunks in order, or nothing if one of them reaches beyond the file.
///
/// The decoder makes room for a chunk before it finds out that the file is shorter.
pub(super) fn chunks(file: &mut (impl Read + Seek)) -> io::Result<Option<Vec<[u8; 4]>>> {
    let file_end = file.seek(SeekFrom::End(0))?;
    let Some((_, length)) = chunk_header(file, 0, file_end)? else { return Ok(None) };
    let mut end = 8 + length;
    let mut names = Vec::new();
    let mut position = 12; // behind `RIFF`, the length and `WEBP`
    while position + 8 <= end.min(file_end) {
        let Some((name, length)) = chunk_header(file, position, file_end)? else { return Ok(None) };
        let padded = length.next_multiple_of(2);
        if name == *b"VP8X" {
            end += padded; // how far the decoder looks beyond the end
        }
        names.push(name);
        position += 8 + padded;
    }
    Ok(Some(names))
}

/// Name and length of the chunk at `position`, if all of it lies before `file_end`.
fn chunk_header(
    file: &mut (impl Read + Seek),
    position: u64,
    file_end: u64,
) -> io::Result<Option<([u8; 4], u64)>> {
    if position + 8 > file_end {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(position))?;
    let (mut name, mut length) = ([0; 4], [0; 4]);
    file.read_exact(&mut name)?;
    file.read_exact(&mut length)?;
    let length = u64::from(u32::from_le_bytes(length));
    Ok((position + 8 + length <= file_end).then_some((name, length)))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// Two chunks, the first of odd length and therefore padded.
    const FILE: &[u8] = b"RIFF\x1A\0\0\0WEBPEXIF\x03\0\0\0abc\0VP8L\x02\0\0\0xy";

    #[test]
    fn chunks_are_listed_in_order() {
        assert_eq!(chunks(&mut Cursor::new(FILE)).unwrap(), Some(vec![*b"EXIF", *b"VP8L"]));
    }

    #[test]
    fn a_chunk_longer_than_the_file_is_noticed() {
        for length in 0..FILE.len() {
            assert_eq!(chunks(&mut Cursor::new(&FILE[..length])).unwrap(), None, "{length} bytes");
        }
        for length_at in [4, 16] {
            let mut greedy = FILE.to_vec();
            greedy[length_at..length_at + 4].fill(0x0F); // 252 MB
            assert_eq!(chunks(&mut Cursor::new(greedy)).unwrap(), None, "length at {length_at}");
        }
    }
}
