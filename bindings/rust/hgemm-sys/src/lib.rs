//! Declarations of libhgemm's C interface, one for one as in `hgemm.h`, where each is described. The crate
//! `hgemm` is a safe layer over them.
#![allow(non_camel_case_types)]

use std::os::raw::{c_char, c_int, c_void};

pub const HGEMM_VERSION_MAJOR: c_int = 0;
pub const HGEMM_VERSION_MINOR: c_int = 2;
pub const HGEMM_VERSION_PATCH: c_int = 0;

/// Bit pattern of an IEEE binary16 number.
pub type hgemm_half_t = u16;
/// Bit pattern of a bfloat16 number.
pub type hgemm_bfloat16_t = u16;

#[repr(C)]
pub struct hgemm_handle {
    _private: [u8; 0],
}
#[repr(C)]
pub struct CUstream_st {
    _private: [u8; 0],
}
pub type hgemm_handle_t = *mut hgemm_handle;
pub type hgemm_stream_t = *mut CUstream_st;

/// Device number for `hgemm_create_on`: compute on the CPU, with host pointers.
pub const HGEMM_DEVICE_HOST: c_int = -1;
/// The same: the device that `hgemm_create` takes.
pub const HGEMM_DEVICE_CURRENT: c_int = -2;

pub type hgemm_status_t = c_int;
pub const HGEMM_STATUS_SUCCESS: hgemm_status_t = 0;
pub const HGEMM_STATUS_NOT_INITIALIZED: hgemm_status_t = 1;
pub const HGEMM_STATUS_INVALID_ARGUMENT: hgemm_status_t = 2;
pub const HGEMM_STATUS_NOT_SUPPORTED: hgemm_status_t = 3;
pub const HGEMM_STATUS_ALLOC_FAILED: hgemm_status_t = 4;
pub const HGEMM_STATUS_NO_DEVICE: hgemm_status_t = 5;
pub const HGEMM_STATUS_DRIVER_ERROR: hgemm_status_t = 6;
pub const HGEMM_STATUS_LAUNCH_FAILED: hgemm_status_t = 7;
pub const HGEMM_STATUS_WORKSPACE_TOO_SMALL: hgemm_status_t = 8;
pub const HGEMM_STATUS_INTERNAL: hgemm_status_t = 9;
pub const HGEMM_STATUS_TIMED_OUT: hgemm_status_t = 10;

pub type hgemm_layout_t = c_int;
pub const HGEMM_ROW_MAJOR: hgemm_layout_t = 101;
pub const HGEMM_COL_MAJOR: hgemm_layout_t = 102;

pub type hgemm_op_t = c_int;
pub const HGEMM_NO_TRANS: hgemm_op_t = 111;
pub const HGEMM_TRANS: hgemm_op_t = 112;
pub const HGEMM_CONJ_TRANS: hgemm_op_t = 113;

pub type hgemm_type_t = c_int;
pub const HGEMM_F16: hgemm_type_t = 1;
pub const HGEMM_BF16: hgemm_type_t = 2;
pub const HGEMM_F32: hgemm_type_t = 3;

pub type hgemm_mode_t = c_int;
pub const HGEMM_MODE_DEFAULT: hgemm_mode_t = 0;
pub const HGEMM_MODE_BATCH_INVARIANT: hgemm_mode_t = 1;
pub const HGEMM_MODE_TREE: hgemm_mode_t = 2;

pub type hgemm_log_level_t = c_int;
pub const HGEMM_LOG_OFF: hgemm_log_level_t = 0;
pub const HGEMM_LOG_ERROR: hgemm_log_level_t = 1;
pub const HGEMM_LOG_PLAN: hgemm_log_level_t = 2;
pub const HGEMM_LOG_TRACE: hgemm_log_level_t = 3;
/// `None` goes back to the environment.
pub type hgemm_logger_t = Option<unsafe extern "C" fn(data: *mut c_void, line: *const c_char)>;

pub type hgemm_activation_t = c_int;
pub const HGEMM_ACTIVATION_NONE: hgemm_activation_t = 0;
pub const HGEMM_ACTIVATION_RELU: hgemm_activation_t = 1;
pub const HGEMM_ACTIVATION_GELU_TANH: hgemm_activation_t = 2;
pub const HGEMM_ACTIVATION_GELU_ERF: hgemm_activation_t = 3;
pub const HGEMM_ACTIVATION_SILU: hgemm_activation_t = 4;

pub type hgemm_bias_t = c_int;
pub const HGEMM_BIAS_NONE: hgemm_bias_t = 0;
pub const HGEMM_BIAS_M: hgemm_bias_t = 1;
pub const HGEMM_BIAS_N: hgemm_bias_t = 2;

pub type hgemm_uplo_t = c_int;
pub const HGEMM_UPLO_NONE: hgemm_uplo_t = 0;
pub const HGEMM_UPPER: hgemm_uplo_t = 121;
pub const HGEMM_LOWER: hgemm_uplo_t = 122;
pub const HGEMM_BOTH: hgemm_uplo_t = 123;

pub type hgemm_grouping_t = c_int;
pub const HGEMM_GROUPED_CONTIGUOUS: hgemm_grouping_t = 1;
pub const HGEMM_GROUPED_MASKED: hgemm_grouping_t = 2;
pub const HGEMM_GROUPED_HOST: hgemm_grouping_t = 3;
pub const HGEMM_GROUPED_K: hgemm_grouping_t = 4;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hgemm_gate_t {
    pub block: i64,
    pub limit: f32,
    pub slope: f32,
    pub offset: f32,
    pub unused: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hgemm_args_t {
    pub size: usize,
    pub layout: hgemm_layout_t,
    pub transa: hgemm_op_t,
    pub transb: hgemm_op_t,
    pub type_ab: hgemm_type_t,
    pub type_c: hgemm_type_t,
    pub type_d: hgemm_type_t,
    pub m: i64,
    pub n: i64,
    pub k: i64,
    pub alpha: f32,
    pub beta: f32,
    pub alpha_device: *const f32,
    pub beta_device: *const f32,
    pub a: *const c_void,
    pub lda: i64,
    pub b: *const c_void,
    pub ldb: i64,
    pub c: *const c_void,
    pub ldc: i64,
    pub d: *mut c_void,
    pub ldd: i64,
    pub batch_count: i64,
    pub stride_a: i64,
    pub stride_b: i64,
    pub stride_c: i64,
    pub stride_d: i64,
    pub a_array: *const *const c_void,
    pub b_array: *const *const c_void,
    pub c_array: *const *const c_void,
    pub d_array: *const *mut c_void,
    pub bias_mode: hgemm_bias_t,
    pub bias_type: hgemm_type_t,
    pub bias: *const c_void,
    pub stride_bias: i64,
    pub activation: hgemm_activation_t,
    pub aux: *mut c_void,
    pub ldaux: i64,
    pub stride_aux: i64,
    pub flags: u32,
    pub unused: u32,
    pub uplo: hgemm_uplo_t,
    pub unused_too: u32,
    pub gate: hgemm_gate_t,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hgemm_grouped_args_t {
    pub size: usize,
    pub grouping: hgemm_grouping_t,
    pub transb: hgemm_op_t,
    pub type_ab: hgemm_type_t,
    pub type_d: hgemm_type_t,
    pub group_count: i64,
    pub m: i64,
    pub n: i64,
    pub k: i64,
    pub alpha: f32,
    pub beta: f32,
    pub a: *const c_void,
    pub lda: i64,
    pub stride_a: i64,
    pub b: *const c_void,
    pub ldb: i64,
    pub stride_b: i64,
    pub d: *mut c_void,
    pub ldd: i64,
    pub stride_d: i64,
    pub offsets: *const i64,
    pub counts: *const i64,
    pub problems: *const hgemm_args_t,
    pub ends: *const i64,
    pub ends_i32: *const i32,
    pub offsets_i32: *const i32,
    pub counts_i32: *const i32,
    pub transa: hgemm_op_t,
    pub flags: u32,
    pub activation: hgemm_activation_t,
    pub unused: u32,
    pub gate: hgemm_gate_t,
    pub bias: *const c_void,
    pub stride_bias: i64,
    pub bias_type: hgemm_type_t,
    pub unused_too: u32,
    pub aux: *mut c_void,
    pub ldaux: i64,
    pub stride_aux: i64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hgemm_gate_gradient_args_t {
    pub size: usize,
    pub rows: i64,
    pub columns: i64,
    pub product: *const c_void,
    pub ld_product: i64,
    pub of_d: *const c_void,
    pub ld_of_d: i64,
    pub of_product: *mut c_void,
    pub ld_of_product: i64,
    pub type_product: hgemm_type_t,
    pub type_of_d: hgemm_type_t,
    pub type_of_product: hgemm_type_t,
    pub activation: hgemm_activation_t,
    pub gate: hgemm_gate_t,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hgemm_route_args_t {
    pub size: usize,
    pub tokens: i64,
    pub choices: i64,
    pub experts: i64,
    pub chosen: *const i64,
    pub chosen_i32: *const i32,
    pub ld: i64,
    pub ends: *mut i32,
    pub row_of_choice: *mut i32,
    pub choice_of_row: *mut i32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hgemm_rows_args_t {
    pub size: usize,
    pub tokens: i64,
    pub choices: i64,
    pub columns: i64,
    pub row_of_choice: *const i32,
    pub weights: *const c_void,
    pub ldw: i64,
    pub a: *const c_void,
    pub lda: i64,
    pub d: *mut c_void,
    pub ldd: i64,
    pub type_a: hgemm_type_t,
    pub type_d: hgemm_type_t,
    pub type_weights: hgemm_type_t,
    pub unused: u32,
    pub b: *const c_void,
    pub ldb: i64,
    pub type_b: hgemm_type_t,
    pub unused_too: u32,
}

/// Aligned as the library wants it, which C's is not by itself.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub struct hgemm_flag_t {
    pub raised: u32,
    pub taken: u32,
    pub internal: [u32; 2],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hgemm_exchange_args_t {
    pub size: usize,
    pub raise: *const *mut hgemm_flag_t,
    pub raise_count: i64,
    pub wait: *const *mut hgemm_flag_t,
    pub wait_count: i64,
    pub limit_us: i64,
    pub error: *mut u32,
    pub rows: i64,
    pub columns: i64,
    pub parts: *const *const c_void,
    pub part_count: i64,
    pub ld_part: i64,
    pub d: *const *mut c_void,
    pub d_count: i64,
    pub ldd: i64,
    pub type_part: hgemm_type_t,
    pub type_d: hgemm_type_t,
    pub bias: *const c_void,
    pub bias_type: hgemm_type_t,
    pub unused: u32,
    pub raise_after: *const *mut hgemm_flag_t,
    pub raise_after_count: i64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hgemm_blocks_t {
    pub size: usize,
    pub rows: i64,
    pub first: i64,
    pub wait: *const *mut hgemm_flag_t,
    pub raise: *const *mut hgemm_flag_t,
    pub d: *const *mut c_void,
    pub limit_us: i64,
    pub error: *mut u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hgemm_tune_options_t {
    pub size: usize,
    pub max_candidates: c_int,
    pub max_rounds: c_int,
    pub max_seconds: f64,
    pub write: c_int,
    pub path: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hgemm_tune_report_t {
    pub size: usize,
    pub candidates: c_int,
    pub wrong: c_int,
    pub failed: c_int,
    pub rounds: c_int,
    pub complete: c_int,
    pub built_in_us: f64,
    pub before_us: f64,
    pub now_us: f64,
    pub gain: f64,
    pub spread: f64,
    pub built_in: *const c_char,
    pub before: *const c_char,
    pub now: *const c_char,
    pub wrong_kernels: *const c_char,
    pub path: *const c_char,
}

extern "C" {
    pub fn hgemm_create(handle: *mut hgemm_handle_t) -> hgemm_status_t;
    pub fn hgemm_create_on(handle: *mut hgemm_handle_t, device: c_int) -> hgemm_status_t;
    pub fn hgemm_create_sized(
        handle: *mut hgemm_handle_t,
        device: c_int,
        workspace_bytes: usize,
    ) -> hgemm_status_t;
    pub fn hgemm_destroy(handle: hgemm_handle_t) -> hgemm_status_t;
    pub fn hgemm_set_stream(handle: hgemm_handle_t, stream: hgemm_stream_t) -> hgemm_status_t;
    pub fn hgemm_get_stream(handle: hgemm_handle_t, stream: *mut hgemm_stream_t) -> hgemm_status_t;
    pub fn hgemm_set_workspace(
        handle: hgemm_handle_t, workspace: *mut c_void, bytes: usize,
    ) -> hgemm_status_t;
    pub fn hgemm_get_workspace(
        handle: hgemm_handle_t, workspace: *mut *mut c_void, bytes: *mut usize,
    ) -> hgemm_status_t;
    pub fn hgemm_set_workspace_per_stream(handle: hgemm_handle_t, bytes: usize) -> hgemm_status_t;
    pub fn hgemm_get_workspace_per_stream(handle: hgemm_handle_t, bytes: *mut usize) -> hgemm_status_t;
    pub fn hgemm_set_mode(handle: hgemm_handle_t, mode: hgemm_mode_t) -> hgemm_status_t;
    pub fn hgemm_get_mode(handle: hgemm_handle_t, mode: *mut hgemm_mode_t) -> hgemm_status_t;
    pub fn hgemm_set_sm_count(handle: hgemm_handle_t, count: c_int) -> hgemm_status_t;
    pub fn hgemm_get_sm_count(handle: hgemm_handle_t, count: *mut c_int) -> hgemm_status_t;
    pub fn hgemm_get_device(handle: hgemm_handle_t, device: *mut c_int) -> hgemm_status_t;
    pub fn hgemm_backend(handle: hgemm_handle_t) -> *const c_char;
    pub fn hgemm_set_logger(
        level: hgemm_log_level_t, logger: hgemm_logger_t, data: *mut c_void,
    ) -> hgemm_status_t;
    pub fn hgemm_nn(
        handle: hgemm_handle_t, m: i64, n: i64, k: i64, alpha: f32, a: *const hgemm_half_t, lda: i64,
        b: *const hgemm_half_t, ldb: i64, beta: f32, c: *mut hgemm_half_t, ldc: i64,
    ) -> hgemm_status_t;
    pub fn hgemm_nt(
        handle: hgemm_handle_t, m: i64, n: i64, k: i64, alpha: f32, a: *const hgemm_half_t, lda: i64,
        b: *const hgemm_half_t, ldb: i64, beta: f32, c: *mut hgemm_half_t, ldc: i64,
    ) -> hgemm_status_t;
    pub fn hgemm_tn(
        handle: hgemm_handle_t, m: i64, n: i64, k: i64, alpha: f32, a: *const hgemm_half_t, lda: i64,
        b: *const hgemm_half_t, ldb: i64, beta: f32, c: *mut hgemm_half_t, ldc: i64,
    ) -> hgemm_status_t;
    pub fn hgemm_tt(
        handle: hgemm_handle_t, m: i64, n: i64, k: i64, alpha: f32, a: *const hgemm_half_t, lda: i64,
        b: *const hgemm_half_t, ldb: i64, beta: f32, c: *mut hgemm_half_t, ldc: i64,
    ) -> hgemm_status_t;
    pub fn bgemm_nn(
        handle: hgemm_handle_t, m: i64, n: i64, k: i64, alpha: f32, a: *const hgemm_bfloat16_t, lda: i64,
        b: *const hgemm_bfloat16_t, ldb: i64, beta: f32, c: *mut hgemm_bfloat16_t, ldc: i64,
    ) -> hgemm_status_t;
    pub fn bgemm_nt(
        handle: hgemm_handle_t, m: i64, n: i64, k: i64, alpha: f32, a: *const hgemm_bfloat16_t, lda: i64,
        b: *const hgemm_bfloat16_t, ldb: i64, beta: f32, c: *mut hgemm_bfloat16_t, ldc: i64,
    ) -> hgemm_status_t;
    pub fn bgemm_tn(
        handle: hgemm_handle_t, m: i64, n: i64, k: i64, alpha: f32, a: *const hgemm_bfloat16_t, lda: i64,
        b: *const hgemm_bfloat16_t, ldb: i64, beta: f32, c: *mut hgemm_bfloat16_t, ldc: i64,
    ) -> hgemm_status_t;
    pub fn bgemm_tt(
        handle: hgemm_handle_t, m: i64, n: i64, k: i64, alpha: f32, a: *const hgemm_bfloat16_t, lda: i64,
        b: *const hgemm_bfloat16_t, ldb: i64, beta: f32, c: *mut hgemm_bfloat16_t, ldc: i64,
    ) -> hgemm_status_t;
    pub fn hgemm(
        handle: hgemm_handle_t, layout: hgemm_layout_t, transa: hgemm_op_t, transb: hgemm_op_t, m: i64,
        n: i64, k: i64, alpha: f32, a: *const hgemm_half_t, lda: i64, b: *const hgemm_half_t, ldb: i64,
        beta: f32, c: *mut hgemm_half_t, ldc: i64,
    ) -> hgemm_status_t;
    pub fn bgemm(
        handle: hgemm_handle_t, layout: hgemm_layout_t, transa: hgemm_op_t, transb: hgemm_op_t, m: i64,
        n: i64, k: i64, alpha: f32, a: *const hgemm_bfloat16_t, lda: i64, b: *const hgemm_bfloat16_t,
        ldb: i64, beta: f32, c: *mut hgemm_bfloat16_t, ldc: i64,
    ) -> hgemm_status_t;
    pub fn hgemm_strided_batched(
        handle: hgemm_handle_t, layout: hgemm_layout_t, transa: hgemm_op_t, transb: hgemm_op_t, m: i64,
        n: i64, k: i64, alpha: f32, a: *const hgemm_half_t, lda: i64, stride_a: i64,
        b: *const hgemm_half_t, ldb: i64, stride_b: i64, beta: f32, c: *mut hgemm_half_t, ldc: i64,
        stride_c: i64, batch_count: i64,
    ) -> hgemm_status_t;
    pub fn bgemm_strided_batched(
        handle: hgemm_handle_t, layout: hgemm_layout_t, transa: hgemm_op_t, transb: hgemm_op_t, m: i64,
        n: i64, k: i64, alpha: f32, a: *const hgemm_bfloat16_t, lda: i64, stride_a: i64,
        b: *const hgemm_bfloat16_t, ldb: i64, stride_b: i64, beta: f32, c: *mut hgemm_bfloat16_t, ldc: i64,
        stride_c: i64, batch_count: i64,
    ) -> hgemm_status_t;
    pub fn hgemm_batched(
        handle: hgemm_handle_t, layout: hgemm_layout_t, transa: hgemm_op_t, transb: hgemm_op_t, m: i64,
        n: i64, k: i64, alpha: f32, a: *const *const hgemm_half_t, lda: i64, b: *const *const hgemm_half_t,
        ldb: i64, beta: f32, c: *const *mut hgemm_half_t, ldc: i64, batch_count: i64,
    ) -> hgemm_status_t;
    pub fn bgemm_batched(
        handle: hgemm_handle_t, layout: hgemm_layout_t, transa: hgemm_op_t, transb: hgemm_op_t, m: i64,
        n: i64, k: i64, alpha: f32, a: *const *const hgemm_bfloat16_t, lda: i64,
        b: *const *const hgemm_bfloat16_t, ldb: i64, beta: f32, c: *const *mut hgemm_bfloat16_t, ldc: i64,
        batch_count: i64,
    ) -> hgemm_status_t;
    pub fn hsyrk(
        handle: hgemm_handle_t, layout: hgemm_layout_t, uplo: hgemm_uplo_t, trans: hgemm_op_t, n: i64,
        k: i64, alpha: f32, a: *const hgemm_half_t, lda: i64, beta: f32, c: *mut hgemm_half_t, ldc: i64,
    ) -> hgemm_status_t;
    pub fn bsyrk(
        handle: hgemm_handle_t, layout: hgemm_layout_t, uplo: hgemm_uplo_t, trans: hgemm_op_t, n: i64,
        k: i64, alpha: f32, a: *const hgemm_bfloat16_t, lda: i64, beta: f32, c: *mut hgemm_bfloat16_t,
        ldc: i64,
    ) -> hgemm_status_t;
    pub fn hsyrkx(
        handle: hgemm_handle_t, layout: hgemm_layout_t, uplo: hgemm_uplo_t, trans: hgemm_op_t, n: i64,
        k: i64, alpha: f32, a: *const hgemm_half_t, lda: i64, b: *const hgemm_half_t, ldb: i64, beta: f32,
        c: *mut hgemm_half_t, ldc: i64,
    ) -> hgemm_status_t;
    pub fn bsyrkx(
        handle: hgemm_handle_t, layout: hgemm_layout_t, uplo: hgemm_uplo_t, trans: hgemm_op_t, n: i64,
        k: i64, alpha: f32, a: *const hgemm_bfloat16_t, lda: i64, b: *const hgemm_bfloat16_t, ldb: i64,
        beta: f32, c: *mut hgemm_bfloat16_t, ldc: i64,
    ) -> hgemm_status_t;
    pub fn hsyrk_strided_batched(
        handle: hgemm_handle_t, layout: hgemm_layout_t, uplo: hgemm_uplo_t, trans: hgemm_op_t, n: i64,
        k: i64, alpha: f32, a: *const hgemm_half_t, lda: i64, stride_a: i64, beta: f32,
        c: *mut hgemm_half_t, ldc: i64, stride_c: i64, batch_count: i64,
    ) -> hgemm_status_t;
    pub fn bsyrk_strided_batched(
        handle: hgemm_handle_t, layout: hgemm_layout_t, uplo: hgemm_uplo_t, trans: hgemm_op_t, n: i64,
        k: i64, alpha: f32, a: *const hgemm_bfloat16_t, lda: i64, stride_a: i64, beta: f32,
        c: *mut hgemm_bfloat16_t, ldc: i64, stride_c: i64, batch_count: i64,
    ) -> hgemm_status_t;
    pub fn hgemm_args_init(args: *mut hgemm_args_t, size: usize);
    pub fn hgemm_gemm_ex(handle: hgemm_handle_t, args: *const hgemm_args_t) -> hgemm_status_t;
    pub fn hgemm_workspace_size(
        handle: hgemm_handle_t, args: *const hgemm_args_t, bytes: *mut usize,
    ) -> hgemm_status_t;
    pub fn hgemm_explain(
        handle: hgemm_handle_t, args: *const hgemm_args_t, buffer: *mut c_char, length: usize,
    ) -> hgemm_status_t;
    pub fn hgemm_grouped_args_init(args: *mut hgemm_grouped_args_t, size: usize);
    pub fn hgemm_grouped_ex(handle: hgemm_handle_t, args: *const hgemm_grouped_args_t) -> hgemm_status_t;
    pub fn hgemm_gate_gradient_args_init(args: *mut hgemm_gate_gradient_args_t, size: usize);
    pub fn hgemm_gate_gradient(
        handle: hgemm_handle_t, args: *const hgemm_gate_gradient_args_t,
    ) -> hgemm_status_t;
    pub fn hgemm_route_args_init(args: *mut hgemm_route_args_t, size: usize);
    pub fn hgemm_route(handle: hgemm_handle_t, args: *const hgemm_route_args_t) -> hgemm_status_t;
    pub fn hgemm_rows_args_init(args: *mut hgemm_rows_args_t, size: usize);
    pub fn hgemm_gather_rows(handle: hgemm_handle_t, args: *const hgemm_rows_args_t) -> hgemm_status_t;
    pub fn hgemm_combine_rows(handle: hgemm_handle_t, args: *const hgemm_rows_args_t) -> hgemm_status_t;
    pub fn hgemm_dot_rows(handle: hgemm_handle_t, args: *const hgemm_rows_args_t) -> hgemm_status_t;
    pub fn hgemm_clear_rows(handle: hgemm_handle_t, args: *const hgemm_grouped_args_t) -> hgemm_status_t;
    pub fn hgemm_exchange_args_init(args: *mut hgemm_exchange_args_t, size: usize);
    pub fn hgemm_exchange(handle: hgemm_handle_t, args: *const hgemm_exchange_args_t) -> hgemm_status_t;
    pub fn hgemm_blocks_init(blocks: *mut hgemm_blocks_t, size: usize);
    pub fn hgemm_gemm_blocks(
        handle: hgemm_handle_t, args: *const hgemm_args_t, blocks: *const hgemm_blocks_t,
    ) -> hgemm_status_t;
    pub fn hgemm_read_error(handle: hgemm_handle_t, error: *const u32) -> hgemm_status_t;
    pub fn hgemm_tune_options_init(options: *mut hgemm_tune_options_t, size: usize);
    pub fn hgemm_tune_report_init(report: *mut hgemm_tune_report_t, size: usize);
    pub fn hgemm_tune(
        handle: hgemm_handle_t, args: *const hgemm_args_t, options: *const hgemm_tune_options_t,
        report: *mut hgemm_tune_report_t,
    ) -> hgemm_status_t;
    pub fn hgemm_tune_grouped(
        handle: hgemm_handle_t, args: *const hgemm_grouped_args_t, options: *const hgemm_tune_options_t,
        report: *mut hgemm_tune_report_t,
    ) -> hgemm_status_t;
    pub fn hgemv_n(
        handle: hgemm_handle_t, m: i64, n: i64, alpha: f32, a: *const hgemm_half_t, lda: i64,
        x: *const hgemm_half_t, incx: i64, beta: f32, y: *mut hgemm_half_t, incy: i64,
    ) -> hgemm_status_t;
    pub fn hgemv_t(
        handle: hgemm_handle_t, m: i64, n: i64, alpha: f32, a: *const hgemm_half_t, lda: i64,
        x: *const hgemm_half_t, incx: i64, beta: f32, y: *mut hgemm_half_t, incy: i64,
    ) -> hgemm_status_t;
    pub fn bgemv_n(
        handle: hgemm_handle_t, m: i64, n: i64, alpha: f32, a: *const hgemm_bfloat16_t, lda: i64,
        x: *const hgemm_bfloat16_t, incx: i64, beta: f32, y: *mut hgemm_bfloat16_t, incy: i64,
    ) -> hgemm_status_t;
    pub fn bgemv_t(
        handle: hgemm_handle_t, m: i64, n: i64, alpha: f32, a: *const hgemm_bfloat16_t, lda: i64,
        x: *const hgemm_bfloat16_t, incx: i64, beta: f32, y: *mut hgemm_bfloat16_t, incy: i64,
    ) -> hgemm_status_t;
    pub fn hgemm_status_string(status: hgemm_status_t) -> *const c_char;
    pub fn hgemm_last_error() -> *const c_char;
    pub fn hgemm_last_error_argument() -> c_int;
    pub fn hgemm_version() -> c_int;
    pub fn hgemm_build_info() -> *const c_char;
}
