//! SHA-256, by which files and tensors are identified.

use std::{
    fmt::Write as _,
    io::{self, Read},
};

use sha2::{Digest as _, Sha256};

/// A digest that is being computed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Digest(Sha256);

impl Digest {
    /// Adds bytes.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds everything that is left to read.
    pub(crate) fn add_all(&mut self, mut from: impl Read) -> io::Result<()> {
        let mut block = vec![0; 1 << 20];
        loop {
            match from.read(&mut block)? {
                0 => return Ok(()),
                length => self.add(&block[..length]),
            }
        }
    }

    /// The digest in 64 hexadecimal digits.
    pub(crate) fn hex(self) -> String {
        self.0.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a string takes any text");
            text
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard() {
        // FIPS 180-2, appendix B.1.
        let digest = |pieces: [&[u8]; 2]| {
            let mut digest = Digest::default();
            digest.add(pieces[0]);
            digest.add_all(pieces[1]).unwrap();
            digest.hex()
        };
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        for pieces in [[&b"abc"[..], b""], [b"a", b"bc"]] {
            assert_eq!(digest(pieces), expected);
        }
    }
}
