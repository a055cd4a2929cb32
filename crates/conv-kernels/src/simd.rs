//! Vector operations of AVX-512, AVX2, NEON and plain Rust, chosen at run time.
//!
//! A kernel is written once against [`Simd`] and compiled once for each instruction set. It runs by
//! [`Isa::run`] alone, which checks the processor, then calls a function compiled with the matching
//! target features, into which the whole kernel is inlined.

/// Implements [`Simd`] for the proof of an instruction set, each operation by an expression.
macro_rules! vectors {
    ($proof:ident, $vector:ty, $lanes:expr;
     splat($number:ident) => $splat:expr;
     load($from:ident) => $load:expr;
     store($to:ident, $value:ident) => $store:expr;
     $($operation:ident($($operand:ident),+) => $result:expr;)+) => {
        #[allow(unused_unsafe, reason = "plain Rust needs none")]
        impl Simd for $proof {
            type Vector = $vector;
            const LANES: usize = $lanes;

            #[inline(always)]
            fn splat(self, $number: f32) -> Self::Vector {
                // SAFETY: `self` proves that the processor has the instruction.
                unsafe { $splat }
            }

            $(#[inline(always)]
            fn $operation(self, $($operand: Self::Vector),+) -> Self::Vector {
                // SAFETY: `self` proves that the processor has the instructions.
                unsafe { $result }
            })+

            #[inline(always)]
            unsafe fn load_ptr(self, $from: *const f32) -> Self::Vector {
                // SAFETY: as above, and the caller vouches for `LANES` readable floats.
                unsafe { $load }
            }

            #[inline(always)]
            unsafe fn store_ptr(self, $to: *mut f32, $value: Self::Vector) {
                // SAFETY: as above, and the caller vouches for `LANES` writable floats.
                unsafe { $store }
            }
        }
    };
}

mod portable;

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod x86;

/// An instruction set the kernels can be told to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// Plain Rust, runs everywhere.
    Portable,
    /// 128-bit vectors of 64-bit ARM.
    Neon,
    /// 256-bit vectors with fused multiply-add.
    Avx2,
    /// 512-bit vectors.
    Avx512,
}

impl Isa {
    /// The fastest instruction set of this processor.
    pub fn detect() -> Self {
        *Self::available().last().expect("the portable path is always available")
    }

    /// Every instruction set of this processor, slowest first.
    pub fn available() -> Vec<Self> {
        [Self::Portable, Self::Neon, Self::Avx2, Self::Avx512]
            .into_iter()
            .filter(|isa| isa.is_available())
            .collect()
    }

    /// Whether this processor can run it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => is_x86_feature_detected!("avx512f") && Self::Avx2.is_available(),
            _ => false,
        }
    }

    /// Rows and columns of the register tile: how matrices are cut into blocks and panels.
    pub(crate) fn tile(self) -> Tile {
        match self {
            Self::Portable => portable::TILE,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => neon::TILE,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => x86::AVX2_TILE,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => x86::AVX512_TILE,
            _ => panic!("{self:?} does not exist on this architecture"),
        }
    }

    /// Runs `kernel` compiled for this instruction set.
    pub(crate) fn run(self, kernel: impl Kernel) {
        assert!(self.is_available(), "this processor has no {self:?}");
        match self {
            #[cfg(target_arch = "aarch64")]
            // SAFETY: every 64-bit ARM processor has NEON.
            Self::Neon => unsafe { neon::run(kernel) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `is_available` found AVX2 and FMA.
            Self::Avx2 => unsafe { x86::run_avx2(kernel) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `is_available` found AVX-512F, AVX2 and FMA.
            Self::Avx512 => unsafe { x86::run_avx512(kernel) },
            _ => portable::run(kernel),
        }
    }
}

/// Size of the block of sums a micro-kernel keeps in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tile {
    /// Values broadcast one by one.
    pub(crate) rows: usize,
    /// Values held in vectors.
    pub(crate) columns: usize,
}

/// Lanes of the widest vector.
pub(crate) const MAX_LANES: usize = 16;

/// Work written once for every instruction set.
pub(crate) trait Kernel {
    /// Must be `#[inline(always)]`, as must every function it hands `simd` to.
    /// The register tile is `R` rows of `V` vectors.
    fn run<S: Simd, const R: usize, const V: usize>(self, simd: S);
}

/// Proof that the processor has an instruction set, and the operations on its vectors.
pub(crate) trait Simd: Copy {
    type Vector: Copy;
    const LANES: usize;

    fn splat(self, value: f32) -> Self::Vector;
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a * b + c`, rounded once where the processor can.
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// Negative values become zero; NaN stays NaN.
    fn relu(self, a: Self::Vector) -> Self::Vector;
    /// `a` where `gate` is above zero, zero elsewhere.
    fn where_positive(self, gate: Self::Vector, a: Self::Vector) -> Self::Vector;

    /// `x` where `a` is larger than `b` or NaN, `y` elsewhere.
    fn select_larger(
        self,
        a: Self::Vector,
        b: Self::Vector,
        x: Self::Vector,
        y: Self::Vector,
    ) -> Self::Vector;

    /// # Safety
    /// `LANES` floats can be read at `from`.
    unsafe fn load_ptr(self, from: *const f32) -> Self::Vector;
    /// # Safety
    /// `LANES` floats can be written at `to`.
    unsafe fn store_ptr(self, to: *mut f32, value: Self::Vector);

    #[inline(always)]
    fn zero(self) -> Self::Vector {
        self.splat(0.0)
    }

    /// The first `LANES` values of `from`.
    #[inline(always)]
    fn load(self, from: &[f32]) -> Self::Vector {
        assert!(from.len() >= Self::LANES);
        // SAFETY: the slice is long enough.
        unsafe { self.load_ptr(from.as_ptr()) }
    }

    /// The values from `at` on, zeros beyond the end of `from`.
    ///
    /// Slices of one length share the comparison: no cost in a loop over several of them.
    #[inline(always)]
    fn load_at(self, from: &[f32], at: usize) -> Self::Vector {
        if at + Self::LANES <= from.len() {
            // SAFETY: just compared.
            return unsafe { self.load_ptr(from.as_ptr().add(at)) };
        }
        let mut whole = [0.0; MAX_LANES];
        let rest = &from[at.min(from.len())..];
        whole[..rest.len()].copy_from_slice(rest);
        self.load(&whole)
    }

    /// Overwrites the values from `at` on, as many as `to` has.
    #[inline(always)]
    fn store_at(self, to: &mut [f32], at: usize, value: Self::Vector) {
        if at + Self::LANES <= to.len() {
            // SAFETY: just compared.
            return unsafe { self.store_ptr(to.as_mut_ptr().add(at), value) };
        }
        let mut whole = [0.0; MAX_LANES];
        self.store(&mut whole, value);
        let rest = &mut to[at..];
        rest.copy_from_slice(&whole[..rest.len()]);
    }

    /// Overwrites the first `LANES` values of `to`.
    #[inline(always)]
    fn store(self, to: &mut [f32], value: Self::Vector) {
        assert!(to.len() >= Self::LANES);
        // SAFETY: the slice is long enough.
        unsafe { self.store_ptr(to.as_mut_ptr(), value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct EveryOperation;

    impl Kernel for EveryOperation {
        #[inline(always)]
        fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
            let a: Vec<f32> = (0..S::LANES).map(|i| i as f32 - 2.0).collect();
            let (mut out, va) = (vec![0.0; S::LANES], simd.load(&a));
            let mut check = |value, expected: fn(f32) -> f32| {
                simd.store(&mut out, value);
                assert_eq!(out, a.iter().map(|&x| expected(x)).collect::<Vec<_>>());
            };
            check(simd.zero(), |_| 0.0);
            check(simd.add(va, simd.splat(3.0)), |x| x + 3.0);
            check(simd.sub(va, simd.splat(3.0)), |x| x - 3.0);
            check(simd.mul(va, simd.splat(3.0)), |x| x * 3.0);
            check(simd.mul_add(va, va, simd.splat(1.0)), |x| x * x + 1.0);
            check(simd.relu(va), |x| x.max(0.0));
            check(simd.select_larger(va, simd.zero(), simd.splat(5.0), va), |x| {
                if x > 0.0 { 5.0 } else { x }
            });
            check(simd.where_positive(va, simd.splat(5.0)), |x| if x > 0.0 { 5.0 } else { 0.0 });
        }
    }

    #[test]
    fn every_instruction_set_computes_the_same_operations() {
        Isa::available().into_iter().for_each(|isa| isa.run(EveryOperation));
    }

    struct KeepsNan;

    impl Kernel for KeepsNan {
        #[inline(always)]
        fn run<S: Simd, const R: usize, const V: usize>(self, simd: S) {
            let (zero, nan) = (simd.zero(), simd.splat(f32::NAN));
            let mut out = vec![0.0; S::LANES];
            for kept in [
                simd.relu(nan),
                simd.select_larger(nan, zero, nan, zero),
                simd.select_larger(zero, nan, zero, nan),
            ] {
                simd.store(&mut out, kept);
                assert!(out[0].is_nan());
            }
        }
    }

    #[test]
    fn relu_and_maximum_do_not_hide_a_diverged_network() {
        Isa::available().into_iter().for_each(|isa| isa.run(KeepsNan));
    }
}
