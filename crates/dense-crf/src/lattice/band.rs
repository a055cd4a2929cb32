//! Bands of rows, embedded independently of each other.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::simplex::{BATCH, Embedding, Simplices};
use crate::kernel::Pixels;

/// The number of each key in its band's list.
pub(super) type Table = HashMap<u64, u32, FixedState>;

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
                        let number = *table.entry(key).or_insert_with(|| {
                            found.push(key);
                            found.len() as u32 - 1
                        });
                        *last = (key, number);
                    }
                    *corner = last.1;
                }
            }
        }
    }
    found
}
