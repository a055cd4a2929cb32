//! data_synth.
