//! Half-precision matrix products: fp16 or bf16 in, exact products, fp32 sums, one rounding at the end.
//!
//! ```
//! use hgemm::{Bf16, Gemm, Handle, Op};
//!
//! // The linear layer D = A * transpose(B) of row-major data, fp32 out.
//! let (m, n, k) = (2, 3, 4);
//! let a = vec![Bf16::from_f32(2.0); m * k];
//! let b = vec![Bf16::from_f32(0.5); n * k];
//! let mut d = vec![0.0f32; m * n];
//! let mut handle = Handle::host()?;
//! handle.multiply(&Gemm::new(m, n, k).transb(Op::Transpose), &a, &b, &mut d)?;
//! assert!(d.iter().all(|&x| x == 4.0));
//! # Ok::<(), hgemm::Error>(())
//! ```
//!
//! A handle on a GPU takes device memory, which no slice can be: [`Handle::raw`] leads to the functions of
//! `hgemm-sys` for that.
mod error;
mod gemm;
mod handle;
mod number;

pub use error::{Error, Result, Status};
pub use gemm::{Activation, Gate, Gemm, Layout, Op, Uplo};
pub use handle::Handle;
pub use hgemm_sys as sys;
pub use number::{Bf16, Element, Half, F16};
