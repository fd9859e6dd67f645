//! Constants and struct layout, line by line as tests/abi/layout.c prints them from the C header.
use hgemm_sys::*;
use std::mem::{size_of, MaybeUninit};
use std::ptr::addr_of;

macro_rules! values {
    ($lines:ident, $($name:ident),*) => { $($lines.push(format!("{} = {}", stringify!($name), $name));)* };
}

macro_rules! members {
    ($lines:ident, $type:ident, $($member:ident),*) => {
        $lines.push(format!("{}: {} bytes", stringify!($type), size_of::<$type>()));
        let object = MaybeUninit::<$type>::uninit();
        let origin = object.as_ptr();
        $(
            // No value is read: addr_of makes no reference.
            let offset = unsafe { addr_of!((*origin).$member) as usize } - origin as usize;
            $lines.push(format!("{}.{} at {}", stringify!($type), stringify!($member), offset));
        )*
    };
}

#[test]
fn constants_and_structs_are_those_of_c() {
    let mut lines: Vec<String> = Vec::new();
    values!(
        lines,
        HGEMM_STATUS_SUCCESS,
        HGEMM_STATUS_NOT_INITIALIZED,
        HGEMM_STATUS_INVALID_ARGUMENT,
        HGEMM_STATUS_NOT_SUPPORTED,
        HGEMM_STATUS_ALLOC_FAILED,
        HGEMM_STATUS_NO_DEVICE,
        HGEMM_STATUS_DRIVER_ERROR,
        HGEMM_STATUS_LAUNCH_FAILED,
        HGEMM_STATUS_WORKSPACE_TOO_SMALL,
        HGEMM_STATUS_INTERNAL,
        HGEMM_STATUS_TIMED_OUT,
        HGEMM_ROW_MAJOR,
        HGEMM_COL_MAJOR,
        HGEMM_NO_TRANS,
        HGEMM_TRANS,
        HGEMM_CONJ_TRANS,
        HGEMM_F16,
        HGEMM_BF16,
        HGEMM_F32,
        HGEMM_MODE_DEFAULT,
        HGEMM_MODE_BATCH_INVARIANT,
        HGEMM_MODE_TREE,
        HGEMM_LOG_OFF,
        HGEMM_LOG_ERROR,
        HGEMM_LOG_PLAN,
        HGEMM_LOG_TRACE,
        HGEMM_ACTIVATION_NONE,
        HGEMM_ACTIVATION_RELU,
        HGEMM_ACTIVATION_GELU_TANH,
        HGEMM_ACTIVATION_GELU_ERF,
        HGEMM_ACTIVATION_SILU,
        HGEMM_BIAS_NONE,
        HGEMM_BIAS_M,
        HGEMM_BIAS_N,
        HGEMM_UPLO_NONE,
        HGEMM_UPPER,
        HGEMM_LOWER,
        HGEMM_BOTH,
        HGEMM_GROUPED_CONTIGUOUS,
        HGEMM_GROUPED_MASKED,
        HGEMM_GROUPED_HOST,
        HGEMM_GROUPED_K,
        HGEMM_DEVICE_HOST,
        HGEMM_DEVICE_CURRENT
    );
    members!(lines, hgemm_gate_t, block, limit, slope, offset, unused);
    members!(
        lines,
        hgemm_args_t,
        size,
        layout,
        transa,
        transb,
        type_ab,
        type_c,
        type_d,
        m,
        n,
        k,
        alpha,
        beta,
        alpha_device,
        beta_device,
        a,
        lda,
        b,
        ldb,
        c,
        ldc,
        d,
        ldd,
        batch_count,
        stride_a,
        stride_b,
        stride_c,
        stride_d,
        a_array,
        b_array,
        c_array,
        d_array,
        bias_mode,
        bias_type,
        bias,
        stride_bias,
        activation,
        aux,
        ldaux,
        stride_aux,
        flags,
        unused,
        uplo,
        unused_too,
        gate
    );
    members!(
        lines,
        hgemm_grouped_args_t,
        size,
        grouping,
        transb,
        type_ab,
        type_d,
        group_count,
        m,
        n,
        k,
        alpha,
        beta,
        a,
        lda,
        stride_a,
        b,
        ldb,
        stride_b,
        d,
        ldd,
        stride_d,
        offsets,
        counts,
        problems,
        ends,
        ends_i32,
        offsets_i32,
        counts_i32,
        transa,
        flags,
        activation,
        unused,
        gate,
        bias,
        stride_bias,
        bias_type,
        unused_too
    );
    members!(
        lines,
        hgemm_route_args_t,
        size,
        tokens,
        choices,
        experts,
        chosen,
        chosen_i32,
        ld,
        ends,
        row_of_choice,
        choice_of_row
    );
    members!(
        lines,
        hgemm_rows_args_t,
        size,
        tokens,
        choices,
        columns,
        row_of_choice,
        weights,
        ldw,
        a,
        lda,
        d,
        ldd,
        type_a,
        type_d,
        type_weights,
        unused
    );
    members!(lines, hgemm_flag_t, raised, taken, internal);
    members!(
        lines,
        hgemm_exchange_args_t,
        size,
        raise,
        raise_count,
        wait,
        wait_count,
        limit_us,
        error,
        rows,
        columns,
        parts,
        part_count,
        ld_part,
        d,
        d_count,
        ldd,
        type_part,
        type_d,
        bias,
        bias_type,
        unused,
        raise_after,
        raise_after_count
    );
    members!(
        lines,
        hgemm_blocks_t,
        size,
        rows,
        first,
        wait,
        raise,
        d,
        limit_us,
        error
    );
    members!(
        lines,
        hgemm_tune_options_t,
        size,
        max_candidates,
        max_rounds,
        max_seconds,
        write,
        path
    );
    members!(
        lines,
        hgemm_tune_report_t,
        size,
        candidates,
        wrong,
        failed,
        rounds,
        complete,
        built_in_us,
        before_us,
        now_us,
        gain,
        spread,
        built_in,
        before,
        now,
        wrong_kernels,
        path
    );
    let c = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/abi/layout.txt");
    let c = std::fs::read_to_string(c).expect("tests/abi/layout.txt");
    assert_eq!(lines, c.lines().collect::<Vec<_>>());
}

#[test]
fn version_is_that_of_the_library() {
    let version = HGEMM_VERSION_MAJOR * 10000 + HGEMM_VERSION_MINOR * 100 + HGEMM_VERSION_PATCH;
    assert_eq!(unsafe { hgemm_version() }, version);
}
