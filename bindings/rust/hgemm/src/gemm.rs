//! What is to be computed: sizes, layout, scalars and epilogue of
//! `D = activation(alpha * op(A) * op(B) + beta * D + bias)`, for each problem of a batch.
use crate::error::{Error, Result};
use hgemm_sys as sys;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    RowMajor,
    ColMajor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    None,
    Transpose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    None,
    Relu,
    GeluTanh,
    GeluErf,
    Silu,
}

/// Which half of a symmetric D is computed. The other one keeps what it has; with `Both` it becomes the
/// transpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uplo {
    Upper,
    Lower,
    Both,
}

/// Half of the elements in a line of the product gate the other half: `D = activation(gate) * (other + offset)`, of
/// half the width. A line is a row, or a column of a column-major D.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gate {
    /// So many elements are gates of as many that follow, and so on along the line; 0: there are no gates. Half of
    /// a line: all gates lie in front.
    pub block: usize,
    /// Larger gates count as this, others are clamped to it and its negative; 0: there is no limit.
    pub limit: f32,
    /// Of `Activation::Silu`, `x / (1 + exp(-slope * x))`; 0 counts as 1.
    pub slope: f32,
    pub offset: f32,
}

/// A product of row-major matrices, contiguous and untransposed, until it is told otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Gemm {
    pub(crate) layout: Layout,
    pub(crate) transa: Op,
    pub(crate) transb: Op,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    pub(crate) activation: Activation,
    pub(crate) batch: usize,
    pub(crate) uplo: Option<Uplo>,
    pub(crate) gate: Gate,
    lda: Option<usize>,
    ldb: Option<usize>,
    ldd: Option<usize>,
}

/// A matrix as stored: `lines` lines of `length` elements, `ld` apart, and `stride` between problems.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub lines: usize,
    pub length: usize,
    pub ld: usize,
    pub stride: usize,
}

impl Gemm {
    /// op(A) is m x k, op(B) is k x n.
    pub fn new(m: usize, n: usize, k: usize) -> Gemm {
        Gemm {
            layout: Layout::RowMajor,
            transa: Op::None,
            transb: Op::None,
            m,
            n,
            k,
            alpha: 1.0,
            beta: 0.0,
            activation: Activation::None,
            batch: 1,
            uplo: None,
            gate: Gate::default(),
            lda: None,
            ldb: None,
            ldd: None,
        }
    }

    /// A symmetric D, n x n: `op(A) * transpose(op(A))` if the same slice is passed for A and B. Both
    /// matrices are stored alike, op(A) is n x k, and `trans` is op.
    pub fn symmetric(n: usize, k: usize, trans: Op) -> Gemm {
        let other = match trans {
            Op::None => Op::Transpose,
            Op::Transpose => Op::None,
        };
        Gemm::new(n, n, k).transa(trans).transb(other).uplo(Uplo::Both)
    }

    pub fn layout(self, layout: Layout) -> Gemm {
        Gemm { layout, ..self }
    }
    pub fn transa(self, transa: Op) -> Gemm {
        Gemm { transa, ..self }
    }
    pub fn transb(self, transb: Op) -> Gemm {
        Gemm { transb, ..self }
    }
    pub fn alpha(self, alpha: f32) -> Gemm {
        Gemm { alpha, ..self }
    }
    /// What D holds is added `beta` times; with 0 it is not read.
    pub fn beta(self, beta: f32) -> Gemm {
        Gemm { beta, ..self }
    }
    pub fn activation(self, activation: Activation) -> Gemm {
        Gemm { activation, ..self }
    }
    /// `count` problems; the matrices of one lie directly behind those of the one before.
    pub fn batch(self, count: usize) -> Gemm {
        Gemm { batch: count, ..self }
    }
    /// D is square and known to be symmetric. It has neither bias nor activation, and takes about half of the
    /// work.
    pub fn uplo(self, uplo: Uplo) -> Gemm {
        Gemm {
            uplo: Some(uplo),
            ..self
        }
    }
    /// D is half as wide as the product, and not added to it. The bias is as wide as the product.
    pub fn gate(self, gate: Gate) -> Gemm {
        Gemm { gate, ..self }
    }
    /// Elements from one stored line of A, B or D to the next.
    pub fn leading(self, lda: usize, ldb: usize, ldd: usize) -> Gemm {
        Gemm {
            lda: Some(lda),
            ldb: Some(ldb),
            ldd: Some(ldd),
            ..self
        }
    }

    fn stored(&self, rows: usize, columns: usize, op: Op, ld: Option<usize>) -> Result<Stored> {
        let by_rows = (self.layout == Layout::RowMajor) == (op == Op::None);
        let (lines, length) = if by_rows { (rows, columns) } else { (columns, rows) };
        let ld = ld.unwrap_or_else(|| length.max(1));
        let stride = lines
            .checked_mul(ld)
            .ok_or_else(|| Error::invalid("sizes overflow".into()))?;
        Ok(Stored {
            lines,
            length,
            ld,
            stride,
        })
    }

    pub(crate) fn stored_a(&self) -> Result<Stored> {
        self.stored(self.m, self.k, self.transa, self.lda)
    }
    pub(crate) fn stored_b(&self) -> Result<Stored> {
        self.stored(self.k, self.n, self.transb, self.ldb)
    }
    pub(crate) fn stored_d(&self) -> Result<Stored> {
        let halves = if self.gate.block == 0 { 1 } else { 2 };
        let (m, n) = match self.layout {
            Layout::RowMajor => (self.m, self.n / halves),
            Layout::ColMajor => (self.m / halves, self.n),
        };
        self.stored(m, n, Op::None, self.ldd)
    }
}

impl Stored {
    /// Does a slice of `elements` hold all problems of the batch?
    pub fn check(&self, name: &str, elements: usize, batch: usize) -> Result<()> {
        if self.lines == 0 || self.length == 0 || batch == 0 {
            return Ok(());
        }
        let last = (self.lines - 1) * self.ld;
        let needed = (batch - 1)
            .checked_mul(self.stride)
            .and_then(|before| before.checked_add(last)?.checked_add(self.length));
        match needed {
            Some(needed) if needed <= elements => Ok(()),
            Some(needed) => Err(Error::invalid(format!(
                "{} has {} elements, must have at least {}",
                name, elements, needed
            ))),
            None => Err(Error::invalid(format!("the size of {} overflows", name))),
        }
    }
}

pub(crate) fn to_layout(layout: Layout) -> sys::hgemm_layout_t {
    match layout {
        Layout::RowMajor => sys::HGEMM_ROW_MAJOR,
        Layout::ColMajor => sys::HGEMM_COL_MAJOR,
    }
}

pub(crate) fn to_op(op: Op) -> sys::hgemm_op_t {
    match op {
        Op::None => sys::HGEMM_NO_TRANS,
        Op::Transpose => sys::HGEMM_TRANS,
    }
}

pub(crate) fn to_uplo(uplo: Option<Uplo>) -> sys::hgemm_uplo_t {
    match uplo {
        None => sys::HGEMM_UPLO_NONE,
        Some(Uplo::Upper) => sys::HGEMM_UPPER,
        Some(Uplo::Lower) => sys::HGEMM_LOWER,
        Some(Uplo::Both) => sys::HGEMM_BOTH,
    }
}

pub(crate) fn to_activation(activation: Activation) -> sys::hgemm_activation_t {
    match activation {
        Activation::None => sys::HGEMM_ACTIVATION_NONE,
        Activation::Relu => sys::HGEMM_ACTIVATION_RELU,
        Activation::GeluTanh => sys::HGEMM_ACTIVATION_GELU_TANH,
        Activation::GeluErf => sys::HGEMM_ACTIVATION_GELU_ERF,
        Activation::Silu => sys::HGEMM_ACTIVATION_SILU,
    }
}
