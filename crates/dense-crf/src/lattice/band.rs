//! Bands of rows, embedded independently of each other.

use super::simplex::{BATCH, Embedding, Simplices};
use crate::kernel::Pixels;

/// Embeds the rows from `top` on, as many as `shares` and `corners` have room for.
///
/// Returns the keys of the points touched, in order of first touch; corners become numbers into
/// that list.
pub(super) fn embed_rows<const V: usize>(
    pixels: &Pixels<'_>,
    embedding: &Embedding<V>,
    top: usize,
    table: &mut Table,
    (shares, corners): (&mut [f32], &mut [u32]),
) -> Vec<u64> {
    let mut found = Vec::new();
    // Key and number of each corner of the pixel before: mostly the same simplex, in a lattice
    // much coarser than the pixels.
    let mut last = [(u64::MAX, 0); V];
    table.clear();
    let row = pixels.window.width * V;
    let rows = shares.chunks_exact_mut(row).zip(corners.chunks_exact_mut(row));
    for (y, (shares, corners)) in (top..).zip(rows) {
        let batches = shares.chunks_mut(BATCH * V).zip(corners.chunks_mut(BATCH * V));
        for (batch, (shares, corners)) in batches.enumerate() {
            let Simplices { keys, weights } = embedding.embed(&pixels.features(batch * BATCH, y));
            shares.copy_from_slice(&weights.as_flattened()[..shares.len()]);
            for (keys, corners) in keys.iter().zip(corners.as_chunks_mut::<V>().0) {
                for ((&key, corner), last) in keys.iter().zip(corners).zip(&mut last) {
                    if last.0 != key {
                        *last = (key, table.number(key, &mut found));
                    }
                    *corner = last.1;
                }
            }
        }
    }
    found
}

/// A hash table from keys to their numbers; the keys themselves live in the caller's list.
pub(super) struct Table {
    /// Number plus one; zero is empty. The length is a power of two.
    slots: Vec<u32>,
}

impl Default for Table {
    fn default() -> Self {
        Self { slots: vec![0; 1 << 10] }
    }
}

impl Table {
    /// Forgets every key.
    pub(super) fn clear(&mut self) {
        self.slots.fill(0);
    }

    /// The position of `key` in `keys`, appending it if it is new.
    #[inline(always)]
    pub(super) fn number(&mut self, key: u64, keys: &mut Vec<u64>) -> u32 {
        let mut at = self.home(key);
        loop {
            match self.slots[at] {
                0 => return self.insert(at, key, keys),
                entry if keys[entry as usize - 1] == key => return entry - 1,
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
    }

    fn insert(&mut self, at: usize, key: u64, keys: &mut Vec<u64>) -> u32 {
        keys.push(key);
        self.slots[at] = keys.len() as u32;
        if keys.len() * 2 > self.slots.len() {
            self.grow(keys);
        }
        keys.len() as u32 - 1
    }

    #[cold]
    fn grow(&mut self, keys: &[u64]) {
        self.slots = vec![0; self.slots.len() * 4];
        for (entry, &key) in (1..).zip(keys) {
            let mut at = self.home(key);
            while self.slots[at] != 0 {
                at = (at + 1) & (self.slots.len() - 1);
            }
            self.slots[at] = entry;
        }
    }

    #[inline(always)]
    fn home(&self, key: u64) -> usize {
        let bits = self.slots.len().trailing_zeros();
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_share_a_number_however_many_there_are() {
        let (mut table, mut keys) = (Table::default(), Vec::new());
        for round in 0..2 {
            for i in 0..5000_u64 {
                assert_eq!(table.number(i * 977, &mut keys), i as u32, "round {round}");
            }
        }
        assert_eq!(keys.len(), 5000);
        table.clear();
        keys.clear();
        assert_eq!(table.number(7, &mut keys), 0);
    }
}
