//! Safetensors files, with a note of ours and checksums beside the tensors.

use std::{
    cmp,
    collections::{BTreeMap, HashMap},
    fs,
    io::{self, Read as _, Seek as _, SeekFrom, Write},
    path::Path,
};

use half::f16;
use rayon::prelude::*;
use safetensors::{
    Dtype,
    tensor::{Metadata, TensorInfo},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Arrays, broken, decoder};
use crate::{
    digest::Digest,
    error::{Error, Result},
    model::params::Array,
    regular,
};

/// The one metadata key we write: several would come out in random order.
const METADATA_KEY: &str = "pinpoint";

/// Bytes read from a file at a time: small enough to stay in cache, and whole numbers of any kind.
const BLOCK: usize = 64 * 1024;

/// What [`write()`] wrote, read back.
#[derive(Debug)]
pub struct Noted<T> {
    /// The tensors.
    pub arrays: Arrays,
    /// What was noted beside them.
    pub note: T,
    /// Whether checksums have shown both to be what was written; older versions wrote none.
    pub verified: bool,
}

/// Reads the tensors of a safetensors file, and what [`write()`] noted beside them.
pub fn read_with_note<T: DeserializeOwned>(path: &Path) -> Result<Noted<T>> {
    let file = SafetensorsFile::open(path)?;
    let note = from_note(path, file.note.clone())?;
    Ok(Noted { arrays: file.arrays()?, note, verified: file.checksums.is_some() })
}

/// Reads what [`write()`] noted, unverified and without the tensors.
///
/// A file of a newer version may keep its checksums in another way, and still tells its version.
pub fn read_note<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let (header, _) = read_header(path)?;
    let note = noted(&header).map_err(|error| broken(path, &error))?;
    let note = note.map(|mut note| note.get_mut("note").map(Value::take).unwrap_or(note));
    from_note(path, note)
}

fn from_note<T: DeserializeOwned>(path: &Path, note: Option<Value>) -> Result<T> {
    let note = note.ok_or_else(|| broken(path, &"it was not written by pinpoint"))?;
    serde_json::from_value(note).map_err(|error| broken(path, &error))
}

/// Reads some tensors of a file that [`write()`] wrote, and no others.
pub(crate) fn read_some(path: &Path, names: &[String]) -> Result<Vec<Array>> {
    let file = SafetensorsFile::open(path)?;
    let mut open = regular::open(path).map_err(Error::file("read", path))?;
    let read = |name: &String| {
        let missing = || broken(path, &format!("`{name}` is missing"));
        let info = file.header.info(name).ok_or_else(missing)?;
        let array = file.array(name, &mut open, info).map_err(|error| broken(path, &error))?;
        array.ok_or_else(missing)
    };
    names.iter().map(read).collect()
}

/// Writes the safetensors file of tensors and a note, with checksums of both.
pub fn write(to: &mut impl Write, arrays: &Arrays, note: &impl Serialize) -> io::Result<()> {
    write_some_in_half(to, arrays, |_| false, note)
}

/// The same, with the tensors of some names in half precision.
pub(crate) fn write_some_in_half(
    to: &mut impl Write,
    arrays: &Arrays,
    in_half: impl Fn(&str) -> bool,
    note: &impl Serialize,
) -> io::Result<()> {
    let dtype = |name: &str| if in_half(name) { Dtype::F16 } else { Dtype::F32 };
    let mut tensors: Vec<(&str, &Array, Dtype)> =
        arrays.iter().map(|(name, array)| (name.as_str(), array, dtype(name))).collect();
    let sum = |&(name, array, dtype): &(&str, &Array, Dtype)| {
        let mut digest = Digest::default();
        let add = |block: &[u8]| {
            digest.add(block);
            Ok(())
        };
        each_block(&array.values, dtype, add).expect("adding to a digest does not fail");
        (name.to_owned(), digest.hex())
    };
    let sums = tensors.par_iter().map(sum).collect();
    let note = serde_json::to_value(note).expect("notes are plain data");
    let shapes = tensors.iter().map(|(name, array, dtype)| (*name, *dtype, &*array.shape));
    let checksums = Checksums::new(&note, sums, shapes);
    let metadata = serde_json::to_string(&NoteWithChecksums { note: &note, sha256: &checksums });
    let metadata = HashMap::from([(METADATA_KEY.to_owned(), metadata.expect("plain data"))]);

    // Wider types come first, so that each value is aligned.
    tensors.sort_by_key(|&(.., dtype)| cmp::Reverse(dtype));
    let mut end = 0;
    let infos = tensors.iter().map(|&(name, Array { shape, values }, dtype)| {
        let start = end;
        end += values.len() * dtype.bitsize() / 8;
        (name.to_owned(), TensorInfo { dtype, shape: shape.clone(), data_offsets: (start, end) })
    });
    let header = Metadata::new(Some(metadata), infos.collect());
    let header = header.expect("an array has as many values as its shape says");
    let mut header = serde_json::to_vec(&header).expect("headers are plain data");
    header.resize(header.len().next_multiple_of(8), b' ');
    to.write_all(&(header.len() as u64).to_le_bytes())?;
    to.write_all(&header)?;
    for (_, array, dtype) in tensors {
        each_block(&array.values, dtype, |block| to.write_all(block))?;
    }
    Ok(())
}

/// Gives the bytes of numbers, a block at a time, so that no copy of a large tensor is made.
fn each_block(
    values: &[f32],
    dtype: Dtype,
    mut give: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut block = Vec::with_capacity(BLOCK);
    for values in values.chunks(BLOCK / size_of::<f32>()) {
        block.clear();
        match dtype {
            Dtype::F16 => {
                block.extend(values.iter().flat_map(|&it| f16::from_f32(it).to_le_bytes()))
            }
            _ => block.extend(values.iter().flat_map(|value| value.to_le_bytes())),
        }
        give(&block)?;
    }
    Ok(())
}

/// A note and the checksums of the file, as the metadata keeps them.
#[derive(Serialize)]
struct NoteWithChecksums<'a> {
    note: &'a Value,
    sha256: &'a Checksums,
}

/// Checksums of a file that pinpoint wrote.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Checksums {
    /// Of the note, and of every tensor's name, type, shape and checksum.
    whole: String,
    /// Of the bytes of each tensor.
    tensors: BTreeMap<String, String>,
}

impl Checksums {
    /// Of a note and of tensors, which come in the order of their names.
    fn new<'a>(
        note: &Value,
        tensors: BTreeMap<String, String>,
        shapes: impl Iterator<Item = (&'a str, Dtype, &'a [usize])>,
    ) -> Self {
        let mut whole = Digest::default();
        whole.add(note.to_string().as_bytes());
        for (name, dtype, shape) in shapes {
            let sum = tensors.get(name).map_or("none", String::as_str);
            whole.add(format!("\n{name:?} {dtype:?} {shape:?} {sum}").as_bytes());
        }
        Self { whole: whole.hex(), tensors }
    }
}

/// A safetensors file whose header has been read.
pub(super) struct SafetensorsFile<'a> {
    path: &'a Path,
    header: Metadata,
    /// What pinpoint noted, if it wrote the file.
    note: Option<Value>,
    /// Its checksums; older versions wrote none.
    checksums: Option<Checksums>,
    /// Where the first tensor starts.
    start: u64,
}

impl<'a> SafetensorsFile<'a> {
    pub(super) fn open(path: &'a Path) -> Result<Self> {
        let (header, start) = read_header(path)?;
        let (note, checksums) = checked_note(&header).map_err(|error| broken(path, &error))?;
        Ok(Self { path, header, note, checksums, start })
    }

    /// Reads the tensors, several at a time and without a copy of the file beside them.
    pub(super) fn arrays(&self) -> Result<Arrays> {
        let open = || fs::File::open(self.path);
        let names = self.header.offset_keys();
        let read = names.par_iter().map_init(open, |file, name| {
            let file = file.as_mut().map_err(|error| io::Error::from(error.kind()))?;
            let info = self.header.info(name).expect("the header has its own names");
            let array = self.array(name, file, info)?;
            Ok(array.map(|array| (name.clone(), array)))
        });
        let read: io::Result<Vec<_>> = read.collect();
        let arrays = read.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => broken(self.path, &error),
            _ => Error::file("read", self.path)(error),
        })?;
        Ok(arrays.into_iter().flatten().collect())
    }

    /// Reads one tensor, unless it is a counter such as `num_batches_tracked`.
    fn array(
        &self,
        name: &str,
        file: &mut fs::File,
        info: &TensorInfo,
    ) -> io::Result<Option<Array>> {
        let Some(decode) = decoder(info.dtype) else { return Ok(None) };
        let (start, end) = info.data_offsets;
        file.seek(SeekFrom::Start(self.start + start as u64))?;
        let mut values = Vec::with_capacity(info.shape.iter().product());
        let mut block = [0; BLOCK];
        let mut digest = self.checksums.is_some().then(Digest::default);
        for from in (start..end).step_by(BLOCK) {
            let block = &mut block[..BLOCK.min(end - from)];
            file.read_exact(block)?;
            decode(block, &mut values);
            if let Some(digest) = &mut digest {
                digest.add(block);
            }
        }
        let expected = self.checksums.as_ref().and_then(|checksums| checksums.tensors.get(name));
        if digest.is_some_and(|digest| Some(&digest.hex()) != expected) {
            let problem = format!("the content of `{name}` is not what was written");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        Ok(Some(Array { shape: info.shape.clone(), values }))
    }
}

/// The header of a safetensors file, and where the first tensor starts.
fn read_header(path: &Path) -> Result<(Metadata, u64)> {
    let (mut file, length) = regular::open(path)
        .and_then(|file| file.metadata().map(|metadata| (file, metadata.len())))
        .map_err(Error::file("read", path))?;
    let mut size = [0; 8];
    file.read_exact(&mut size).map_err(|error| broken(path, &error))?;
    let size = u64::from_le_bytes(size);
    if size > length {
        return Err(broken(path, &"its header is cut short"));
    }
    let mut header = Vec::new();
    file.take(size).read_to_end(&mut header).map_err(Error::file("read", path))?;
    // Checks as well that tensors follow each other, each as long as its shape says.
    let header: Metadata = serde_json::from_slice(&header).map_err(|error| broken(path, &error))?;
    if 8 + size + header.data_len() as u64 != length {
        return Err(broken(path, &"it is not as long as its header says"));
    }
    Ok((header, 8 + size))
}

/// What pinpoint wrote into a header, if it did.
fn noted(header: &Metadata) -> Result<Option<Value>, String> {
    let text = header.metadata().as_ref().and_then(|notes| notes.get(METADATA_KEY));
    text.map(|text| serde_json::from_str(text)).transpose().map_err(|error| error.to_string())
}

/// The note and the checksums in a header, of which the checksum of the whole is checked.
fn checked_note(header: &Metadata) -> Result<(Option<Value>, Option<Checksums>), String> {
    let Some(mut value) = noted(header)? else { return Ok((None, None)) };
    // Older versions wrote the note alone, and none of their notes has this part.
    let Some(note) = value.get_mut("note").map(Value::take) else {
        return Ok((Some(value), None));
    };
    let checksums = value.get_mut("sha256").map(Value::take).unwrap_or_default();
    let checksums: Checksums =
        serde_json::from_value(checksums).map_err(|_| "its checksums are missing")?;
    let tensors: BTreeMap<String, &TensorInfo> = header.tensors().into_iter().collect();
    let shapes = tensors.iter().map(|(name, info)| (name.as_str(), info.dtype, &*info.shape));
    if Checksums::new(&note, checksums.tensors.clone(), shapes).whole != checksums.whole {
        return Err("its header is not what was written".to_owned());
    }
    Ok((Some(note), Some(checksums)))
}

#[cfg(test)]
mod tests {
    use safetensors::SafeTensors;

    use super::*;

    #[test]
    fn files_are_those_of_the_format_with_wider_numbers_first() {
        // More values than one block holds; names in another order than the types.
        let long = Array { shape: vec![3, 7000], values: (0..21_000).map(|i| i as f32).collect() };
        let short = Array { shape: vec![2], values: vec![1.5, -2.0] };
        let arrays = Arrays::from([("a".to_owned(), short), ("b".to_owned(), long)]);
        let mut bytes = Vec::new();
        write_some_in_half(&mut bytes, &arrays, |name| name == "a", &7).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let (a, b) = (file.tensor("a").unwrap(), file.tensor("b").unwrap());
        assert_eq!((a.dtype(), a.shape(), a.data()), (Dtype::F16, &[2][..], &[0, 62, 0, 192][..]));
        assert_eq!((b.dtype(), b.shape()), (Dtype::F32, &[3, 7000][..]));
        let values = b.data().as_chunks().0.iter().map(|&value| f32::from_le_bytes(value));
        assert!(values.eq(arrays["b"].values.iter().copied()));
        // The header is padded so that the values begin on 8 bytes.
        assert_eq!((bytes.len() - a.data().len() - b.data().len()) % 8, 0);
    }
}
