//! A handle of the library, and the products that it computes.
use crate::error::{check, Error, Result, Status};
use crate::gemm::{to_activation, to_layout, to_op, to_uplo, Gemm};
use crate::number::{Element, Half};
use hgemm_sys as sys;
use std::ffi::CStr;
use std::mem::{size_of, MaybeUninit};
use std::os::raw::c_int;
use std::ptr;

/// Used by one thread at a time, hence `&mut self`; may be sent to another one.
#[derive(Debug)]
pub struct Handle {
    raw: sys::hgemm_handle_t,
}

// SAFETY: the library ties a handle to no thread.
unsafe impl Send for Handle {}

impl Handle {
    /// On the current CUDA context's device, else on device 0, else on the CPU.
    pub fn new() -> Result<Handle> {
        let mut raw = ptr::null_mut();
        check(unsafe { sys::hgemm_create(&mut raw) })?;
        Ok(Handle { raw })
    }

    /// As `new`, with a workspace of `bytes` bytes instead of what the backend asks for.
    pub fn with_workspace(bytes: usize) -> Result<Handle> {
        let mut raw = ptr::null_mut();
        check(unsafe { sys::hgemm_create_sized(&mut raw, sys::HGEMM_DEVICE_CURRENT, bytes) })?;
        Ok(Handle { raw })
    }

    /// On the CPU.
    pub fn host() -> Result<Handle> {
        Handle::on(sys::HGEMM_DEVICE_HOST)
    }

    /// On CUDA device `device`, its primary context.
    pub fn on_device(device: u16) -> Result<Handle> {
        Handle::on(c_int::from(device))
    }

    fn on(device: c_int) -> Result<Handle> {
        let mut raw = ptr::null_mut();
        check(unsafe { sys::hgemm_create_on(&mut raw, device) })?;
        Ok(Handle { raw })
    }

    /// Such as "sm90" or "host".
    pub fn backend(&self) -> &'static str {
        // SAFETY: the text lives as long as the library.
        unsafe { CStr::from_ptr(sys::hgemm_backend(self.raw)) }
            .to_str()
            .unwrap_or("")
    }

    pub fn is_host(&self) -> bool {
        self.backend() == "host"
    }

    /// For the functions of `hgemm-sys`; the handle stays this object's.
    pub fn raw(&mut self) -> sys::hgemm_handle_t {
        self.raw
    }

    /// Results of an element no longer depend on m, n and the batch.
    pub fn set_batch_invariant(&mut self, on: bool) -> Result<()> {
        let mode = if on {
            sys::HGEMM_MODE_BATCH_INVARIANT
        } else {
            sys::HGEMM_MODE_DEFAULT
        };
        check(unsafe { sys::hgemm_set_mode(self.raw, mode) })
    }

    /// As `set_batch_invariant`, with k cut into halves whatever its size: processes that hold parts of k get
    /// the bits of one (`HGEMM_MODE_TREE` in `hgemm.h`).
    pub fn set_tree(&mut self, on: bool) -> Result<()> {
        let mode = if on {
            sys::HGEMM_MODE_TREE
        } else {
            sys::HGEMM_MODE_DEFAULT
        };
        check(unsafe { sys::hgemm_set_mode(self.raw, mode) })
    }

    /// In either of the two modes.
    pub fn is_batch_invariant(&self) -> Result<bool> {
        let mut mode = sys::HGEMM_MODE_DEFAULT;
        check(unsafe { sys::hgemm_get_mode(self.raw, &mut mode) })?;
        Ok(mode != sys::HGEMM_MODE_DEFAULT)
    }

    /// At most `count` SMs, or of the library's threads on the CPU; 0: all.
    pub fn set_sm_count(&mut self, count: u16) -> Result<()> {
        check(unsafe { sys::hgemm_set_sm_count(self.raw, c_int::from(count)) })
    }

    /// The limit as it was set; 0: none.
    pub fn sm_count(&self) -> Result<usize> {
        let mut count = 0;
        check(unsafe { sys::hgemm_get_sm_count(self.raw, &mut count) })?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// CUDA's number of the device; `None` on the CPU.
    pub fn device(&self) -> Result<Option<usize>> {
        let mut device = sys::HGEMM_DEVICE_HOST;
        check(unsafe { sys::hgemm_get_device(self.raw, &mut device) })?;
        Ok(usize::try_from(device).ok())
    }

    /// Bytes of the workspace in use.
    pub fn workspace_bytes(&self) -> Result<usize> {
        let (mut workspace, mut bytes) = (ptr::null_mut(), 0);
        check(unsafe { sys::hgemm_get_workspace(self.raw, &mut workspace, &mut bytes) })?;
        Ok(bytes)
    }

    /// D = activation(alpha * op(A) * op(B) + beta * D), on the CPU.
    pub fn multiply<T: Half, U: Element>(
        &mut self, gemm: &Gemm, a: &[T], b: &[T], d: &mut [U],
    ) -> Result<()> {
        self.run(gemm, a, b, d, ptr::null(), sys::HGEMM_BIAS_NONE)
    }

    /// The same with `bias[j]` added to column j before the activation.
    pub fn multiply_add_bias<T: Half, U: Element>(
        &mut self, gemm: &Gemm, a: &[T], b: &[T], bias: &[U], d: &mut [U],
    ) -> Result<()> {
        if bias.len() < gemm.n {
            let (has, needs) = (bias.len(), gemm.n);
            return Err(Error::invalid(format!(
                "bias has {} elements, must have at least {}",
                has, needs
            )));
        }
        self.run(gemm, a, b, d, bias.as_ptr(), sys::HGEMM_BIAS_N)
    }

    fn run<T: Half, U: Element>(
        &mut self, gemm: &Gemm, a: &[T], b: &[T], d: &mut [U], bias: *const U, bias_mode: sys::hgemm_bias_t,
    ) -> Result<()> {
        if !self.is_host() {
            let message = format!(
                "slices lie in host memory, the handle computes on {}",
                self.backend()
            );
            return Err(Error {
                status: Status::NotSupported,
                message,
            });
        }
        gemm.stored_a()?.check("a", a.len(), gemm.batch)?;
        gemm.stored_b()?.check("b", b.len(), gemm.batch)?;
        gemm.stored_d()?.check("d", d.len(), gemm.batch)?;
        let mut args = to_args::<T, U>(gemm)?;
        args.a = a.as_ptr().cast();
        args.b = b.as_ptr().cast();
        args.d = d.as_mut_ptr().cast();
        args.c = args.d;
        args.bias = bias.cast();
        args.bias_mode = bias_mode;
        // SAFETY: the slices hold all that the arguments describe, d is borrowed for this call alone, and
        // the call returns when it is done.
        check(unsafe { sys::hgemm_gemm_ex(self.raw, &args) })
    }

    /// One line about how the product would run.
    pub fn explain<T: Half, U: Element>(&mut self, gemm: &Gemm) -> Result<String> {
        let args = to_args::<T, U>(gemm)?;
        let mut text = [0; 1024];
        check(unsafe { sys::hgemm_explain(self.raw, &args, text.as_mut_ptr(), text.len()) })?;
        // SAFETY: the library ends the text with a NUL.
        Ok(unsafe { CStr::from_ptr(text.as_ptr()) }
            .to_string_lossy()
            .into_owned())
    }

    /// Bytes of workspace that the product uses.
    pub fn workspace_size<T: Half, U: Element>(&mut self, gemm: &Gemm) -> Result<usize> {
        let args = to_args::<T, U>(gemm)?;
        let mut bytes = 0;
        check(unsafe { sys::hgemm_workspace_size(self.raw, &args, &mut bytes) })?;
        Ok(bytes)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        unsafe { sys::hgemm_destroy(self.raw) };
    }
}

fn to_i64(value: usize) -> Result<i64> {
    i64::try_from(value).map_err(|_| Error::invalid(format!("{} is too large", value)))
}

fn to_args<T: Half, U: Element>(gemm: &Gemm) -> Result<sys::hgemm_args_t> {
    let mut args = MaybeUninit::uninit();
    // SAFETY: hgemm_args_init fills all of its bytes.
    let mut args: sys::hgemm_args_t = unsafe {
        sys::hgemm_args_init(args.as_mut_ptr(), size_of::<sys::hgemm_args_t>());
        args.assume_init()
    };
    let (a, b, d) = (gemm.stored_a()?, gemm.stored_b()?, gemm.stored_d()?);
    args.layout = to_layout(gemm.layout);
    args.transa = to_op(gemm.transa);
    args.transb = to_op(gemm.transb);
    args.type_ab = T::TYPE;
    args.type_c = U::TYPE;
    args.type_d = U::TYPE;
    args.bias_type = U::TYPE;
    args.m = to_i64(gemm.m)?;
    args.n = to_i64(gemm.n)?;
    args.k = to_i64(gemm.k)?;
    args.alpha = gemm.alpha;
    args.beta = gemm.beta;
    args.lda = to_i64(a.ld)?;
    args.ldb = to_i64(b.ld)?;
    args.ldc = to_i64(d.ld)?;
    args.ldd = args.ldc;
    args.batch_count = to_i64(gemm.batch)?;
    args.stride_a = to_i64(a.stride)?;
    args.stride_b = to_i64(b.stride)?;
    args.stride_c = to_i64(d.stride)?;
    args.stride_d = args.stride_c;
    args.activation = to_activation(gemm.activation);
    args.uplo = to_uplo(gemm.uplo);
    args.gate.block = to_i64(gemm.gate.block)?;
    args.gate.limit = gemm.gate.limit;
    args.gate.slope = gemm.gate.slope;
    args.gate.offset = gemm.gate.offset;
    Ok(args)
}
