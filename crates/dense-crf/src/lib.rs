//! Fully connected CRF by mean field on the permutohedral lattice: slices in, slices out.
