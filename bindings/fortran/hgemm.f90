! libhgemm for Fortran 2008: explicit interfaces of all functions of hgemm.h, where each is described.
!
! Matrices, streams and handles are type(c_ptr): c_loc() of an array with the target attribute for a host
! handle, a device address for one on a GPU. A Fortran array is column-major, as the short forms want it.
! There is no half-precision kind: elements are integer(c_int16_t) that hold the bits. hgemm_*batched take arrays
! of batch_count type(c_ptr). A text is a C string, of which hgemm_text() makes a Fortran one; that of
! hgemm_explain() ends with c_null_char. iso_c_binding comes along with this module, which cannot be called
! hgemm because a function is.
module libhgemm
    use, intrinsic :: iso_c_binding
    implicit none

    integer(c_int), parameter :: &
        HGEMM_STATUS_SUCCESS = 0, HGEMM_STATUS_NOT_INITIALIZED = 1, HGEMM_STATUS_INVALID_ARGUMENT = 2, &
        HGEMM_STATUS_NOT_SUPPORTED = 3, HGEMM_STATUS_ALLOC_FAILED = 4, HGEMM_STATUS_NO_DEVICE = 5, &
        HGEMM_STATUS_DRIVER_ERROR = 6, HGEMM_STATUS_LAUNCH_FAILED = 7, &
        HGEMM_STATUS_WORKSPACE_TOO_SMALL = 8, HGEMM_STATUS_INTERNAL = 9, HGEMM_STATUS_TIMED_OUT = 10
    integer(c_int), parameter :: HGEMM_ROW_MAJOR = 101, HGEMM_COL_MAJOR = 102
    integer(c_int), parameter :: HGEMM_NO_TRANS = 111, HGEMM_TRANS = 112, HGEMM_CONJ_TRANS = 113
    integer(c_int), parameter :: HGEMM_F16 = 1, HGEMM_BF16 = 2, HGEMM_F32 = 3
    integer(c_int), parameter :: HGEMM_MODE_DEFAULT = 0, HGEMM_MODE_BATCH_INVARIANT = 1, &
        HGEMM_MODE_TREE = 2
    integer(c_int), parameter :: HGEMM_LOG_OFF = 0, HGEMM_LOG_ERROR = 1, HGEMM_LOG_PLAN = 2, &
                                 HGEMM_LOG_TRACE = 3
    integer(c_int), parameter :: &
        HGEMM_ACTIVATION_NONE = 0, HGEMM_ACTIVATION_RELU = 1, HGEMM_ACTIVATION_GELU_TANH = 2, &
        HGEMM_ACTIVATION_GELU_ERF = 3, HGEMM_ACTIVATION_SILU = 4
    integer(c_int), parameter :: HGEMM_BIAS_NONE = 0, HGEMM_BIAS_M = 1, HGEMM_BIAS_N = 2
    integer(c_int), parameter :: HGEMM_UPLO_NONE = 0, HGEMM_UPPER = 121, HGEMM_LOWER = 122, &
                                 HGEMM_BOTH = 123
    integer(c_int), parameter :: &
        HGEMM_GROUPED_CONTIGUOUS = 1, HGEMM_GROUPED_MASKED = 2, HGEMM_GROUPED_HOST = 3, HGEMM_GROUPED_K = 4
    integer(c_int), parameter :: HGEMM_DEVICE_HOST = -1
    integer(c_int), parameter :: HGEMM_DEVICE_CURRENT = -2

    type, bind(c) :: hgemm_gate_t
        integer(c_int64_t) :: block
        real(c_float) :: limit, slope, offset
        integer(c_int32_t) :: unused
    end type

    type, bind(c) :: hgemm_args_t
        integer(c_size_t) :: size
        integer(c_int) :: layout, transa, transb, type_ab, type_c, type_d
        integer(c_int64_t) :: m, n, k
        real(c_float) :: alpha, beta
        type(c_ptr) :: alpha_device, beta_device
        type(c_ptr) :: a
        integer(c_int64_t) :: lda
        type(c_ptr) :: b
        integer(c_int64_t) :: ldb
        type(c_ptr) :: c
        integer(c_int64_t) :: ldc
        type(c_ptr) :: d
        integer(c_int64_t) :: ldd
        integer(c_int64_t) :: batch_count
        integer(c_int64_t) :: stride_a, stride_b, stride_c, stride_d
        type(c_ptr) :: a_array, b_array, c_array, d_array
        integer(c_int) :: bias_mode, bias_type
        type(c_ptr) :: bias
        integer(c_int64_t) :: stride_bias
        integer(c_int) :: activation
        type(c_ptr) :: aux
        integer(c_int64_t) :: ldaux, stride_aux
        integer(c_int32_t) :: flags, unused
        integer(c_int) :: uplo
        integer(c_int32_t) :: unused_too
        type(hgemm_gate_t) :: gate
    end type

    type, bind(c) :: hgemm_grouped_args_t
        integer(c_size_t) :: size
        integer(c_int) :: grouping, transb, type_ab, type_d
        integer(c_int64_t) :: group_count
        integer(c_int64_t) :: m, n, k
        real(c_float) :: alpha, beta
        type(c_ptr) :: a
        integer(c_int64_t) :: lda, stride_a
        type(c_ptr) :: b
        integer(c_int64_t) :: ldb, stride_b
        type(c_ptr) :: d
        integer(c_int64_t) :: ldd, stride_d
        type(c_ptr) :: offsets, counts, problems, ends, ends_i32, offsets_i32, counts_i32
        integer(c_int) :: transa
        integer(c_int32_t) :: flags
        integer(c_int) :: activation
        integer(c_int32_t) :: unused
        type(hgemm_gate_t) :: gate
        type(c_ptr) :: bias
        integer(c_int64_t) :: stride_bias
        integer(c_int) :: bias_type
        integer(c_int32_t) :: unused_too
        type(c_ptr) :: aux
        integer(c_int64_t) :: ldaux, stride_aux
    end type

    type, bind(c) :: hgemm_gate_gradient_args_t
        integer(c_size_t) :: size
        integer(c_int64_t) :: rows, columns
        type(c_ptr) :: product
        integer(c_int64_t) :: ld_product
        type(c_ptr) :: of_d
        integer(c_int64_t) :: ld_of_d
        type(c_ptr) :: of_product
        integer(c_int64_t) :: ld_of_product
        integer(c_int) :: type_product, type_of_d, type_of_product
        integer(c_int) :: activation
        type(hgemm_gate_t) :: gate
    end type

    type, bind(c) :: hgemm_route_args_t
        integer(c_size_t) :: size
        integer(c_int64_t) :: tokens, choices, experts
        type(c_ptr) :: chosen, chosen_i32
        integer(c_int64_t) :: ld
        type(c_ptr) :: ends, row_of_choice, choice_of_row
    end type

    type, bind(c) :: hgemm_rows_args_t
        integer(c_size_t) :: size
        integer(c_int64_t) :: tokens, choices, columns
        type(c_ptr) :: row_of_choice, weights
        integer(c_int64_t) :: ldw
        type(c_ptr) :: a
        integer(c_int64_t) :: lda
        type(c_ptr) :: d
        integer(c_int64_t) :: ldd
        integer(c_int) :: type_a, type_d, type_weights
        integer(c_int32_t) :: unused
        type(c_ptr) :: b
        integer(c_int64_t) :: ldb
        integer(c_int) :: type_b
        integer(c_int32_t) :: unused_too
    end type

    type, bind(c) :: hgemm_flag_t
        integer(c_int32_t) :: raised, taken
        integer(c_int32_t) :: internal(2)
    end type

    type, bind(c) :: hgemm_exchange_args_t
        integer(c_size_t) :: size
        type(c_ptr) :: raise
        integer(c_int64_t) :: raise_count
        type(c_ptr) :: wait
        integer(c_int64_t) :: wait_count, limit_us
        type(c_ptr) :: error
        integer(c_int64_t) :: rows, columns
        type(c_ptr) :: parts
        integer(c_int64_t) :: part_count, ld_part
        type(c_ptr) :: d
        integer(c_int64_t) :: d_count, ldd
        integer(c_int) :: type_part, type_d
        type(c_ptr) :: bias
        integer(c_int) :: bias_type
        integer(c_int32_t) :: unused
        type(c_ptr) :: raise_after
        integer(c_int64_t) :: raise_after_count
    end type

    type, bind(c) :: hgemm_blocks_t
        integer(c_size_t) :: size
        integer(c_int64_t) :: rows, first
        type(c_ptr) :: wait, raise, d
        integer(c_int64_t) :: limit_us
        type(c_ptr) :: error
    end type

    type, bind(c) :: hgemm_tune_options_t
        integer(c_size_t) :: size
        integer(c_int) :: max_candidates, max_rounds
        real(c_double) :: max_seconds
        integer(c_int) :: write
        type(c_ptr) :: path
    end type

    type, bind(c) :: hgemm_tune_report_t
        integer(c_size_t) :: size
        integer(c_int) :: candidates, wrong, failed, rounds, complete
        real(c_double) :: built_in_us, before_us, now_us, gain, spread
        type(c_ptr) :: built_in, before, now, wrong_kernels, path
    end type

    interface
        ! ==== Functions, as interfaces.awk writes them ====
        ! ---- Handle
        function hgemm_create(handle) bind(c, name='hgemm_create') result(status)
            import
            type(c_ptr), intent(out) :: handle
            integer(c_int) :: status
        end function

        function hgemm_create_on(handle, device) bind(c, name='hgemm_create_on') result(status)
            import
            type(c_ptr), intent(out) :: handle
            integer(c_int), value :: device
            integer(c_int) :: status
        end function

        function hgemm_create_sized(handle, device, workspace_bytes) &
            bind(c, name='hgemm_create_sized') result(status)
            import
            type(c_ptr), intent(out) :: handle
            integer(c_int), value :: device
            integer(c_size_t), value :: workspace_bytes
            integer(c_int) :: status
        end function

        function hgemm_destroy(handle) bind(c, name='hgemm_destroy') result(status)
            import
            type(c_ptr), value :: handle
            integer(c_int) :: status
        end function

        function hgemm_set_stream(handle, stream) bind(c, name='hgemm_set_stream') result(status)
            import
            type(c_ptr), value :: handle, stream
            integer(c_int) :: status
        end function

        function hgemm_get_stream(handle, stream) bind(c, name='hgemm_get_stream') result(status)
            import
            type(c_ptr), value :: handle
            type(c_ptr), intent(out) :: stream
            integer(c_int) :: status
        end function

        function hgemm_set_workspace(handle, workspace, bytes) &
            bind(c, name='hgemm_set_workspace') result(status)
            import
            type(c_ptr), value :: handle, workspace
            integer(c_size_t), value :: bytes
            integer(c_int) :: status
        end function

        function hgemm_get_workspace(handle, workspace, bytes) &
            bind(c, name='hgemm_get_workspace') result(status)
            import
            type(c_ptr), value :: handle
            type(c_ptr), intent(out) :: workspace
            integer(c_size_t), intent(out) :: bytes
            integer(c_int) :: status
        end function

        function hgemm_set_workspace_per_stream(handle, bytes) &
            bind(c, name='hgemm_set_workspace_per_stream') result(status)
            import
            type(c_ptr), value :: handle
            integer(c_size_t), value :: bytes
            integer(c_int) :: status
        end function

        function hgemm_get_workspace_per_stream(handle, bytes) &
            bind(c, name='hgemm_get_workspace_per_stream') result(status)
            import
            type(c_ptr), value :: handle
            integer(c_size_t), intent(out) :: bytes
            integer(c_int) :: status
        end function

        function hgemm_set_mode(handle, mode) bind(c, name='hgemm_set_mode') result(status)
            import
            type(c_ptr), value :: handle
            integer(c_int), value :: mode
            integer(c_int) :: status
        end function

        function hgemm_get_mode(handle, mode) bind(c, name='hgemm_get_mode') result(status)
            import
            type(c_ptr), value :: handle
            integer(c_int), intent(out) :: mode
            integer(c_int) :: status
        end function

        function hgemm_set_sm_count(handle, count) bind(c, name='hgemm_set_sm_count') result(status)
            import
            type(c_ptr), value :: handle
            integer(c_int), value :: count
            integer(c_int) :: status
        end function

        function hgemm_get_sm_count(handle, count) bind(c, name='hgemm_get_sm_count') result(status)
            import
            type(c_ptr), value :: handle
            integer(c_int), intent(out) :: count
            integer(c_int) :: status
        end function

        function hgemm_get_device(handle, device) bind(c, name='hgemm_get_device') result(status)
            import
            type(c_ptr), value :: handle
            integer(c_int), intent(out) :: device
            integer(c_int) :: status
        end function

        function hgemm_backend(handle) bind(c, name='hgemm_backend') result(text)
            import
            type(c_ptr), value :: handle
            type(c_ptr) :: text
        end function

        ! ---- Log
        function hgemm_set_logger(level, logger, data) bind(c, name='hgemm_set_logger') result(status)
            import
            integer(c_int), value :: level
            type(c_funptr), value :: logger
            type(c_ptr), value :: data
            integer(c_int) :: status
        end function

        ! ---- Level 3, column-major short forms
        function hgemm_nn(handle, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc) &
            bind(c, name='hgemm_nn') result(status)
            import
            type(c_ptr), value :: handle, A, B, C
            integer(c_int64_t), value :: m, n, k, lda, ldb, ldc
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function hgemm_nt(handle, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc) &
            bind(c, name='hgemm_nt') result(status)
            import
            type(c_ptr), value :: handle, A, B, C
            integer(c_int64_t), value :: m, n, k, lda, ldb, ldc
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function hgemm_tn(handle, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc) &
            bind(c, name='hgemm_tn') result(status)
            import
            type(c_ptr), value :: handle, A, B, C
            integer(c_int64_t), value :: m, n, k, lda, ldb, ldc
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function hgemm_tt(handle, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc) &
            bind(c, name='hgemm_tt') result(status)
            import
            type(c_ptr), value :: handle, A, B, C
            integer(c_int64_t), value :: m, n, k, lda, ldb, ldc
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function bgemm_nn(handle, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc) &
            bind(c, name='bgemm_nn') result(status)
            import
            type(c_ptr), value :: handle, A, B, C
            integer(c_int64_t), value :: m, n, k, lda, ldb, ldc
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function bgemm_nt(handle, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc) &
            bind(c, name='bgemm_nt') result(status)
            import
            type(c_ptr), value :: handle, A, B, C
            integer(c_int64_t), value :: m, n, k, lda, ldb, ldc
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function bgemm_tn(handle, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc) &
            bind(c, name='bgemm_tn') result(status)
            import
            type(c_ptr), value :: handle, A, B, C
            integer(c_int64_t), value :: m, n, k, lda, ldb, ldc
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function bgemm_tt(handle, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc) &
            bind(c, name='bgemm_tt') result(status)
            import
            type(c_ptr), value :: handle, A, B, C
            integer(c_int64_t), value :: m, n, k, lda, ldb, ldc
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        ! ---- Level 3, CBLAS form
        function hgemm(handle, layout, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc) &
            bind(c, name='hgemm') result(status)
            import
            type(c_ptr), value :: handle, A, B, C
            integer(c_int), value :: layout, transa, transb
            integer(c_int64_t), value :: m, n, k, lda, ldb, ldc
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function bgemm(handle, layout, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc) &
            bind(c, name='bgemm') result(status)
            import
            type(c_ptr), value :: handle, A, B, C
            integer(c_int), value :: layout, transa, transb
            integer(c_int64_t), value :: m, n, k, lda, ldb, ldc
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function hgemm_strided_batched(handle, layout, transa, transb, m, n, k, alpha, A, lda, stride_a, B, &
                ldb, stride_b, beta, C, ldc, stride_c, batch_count) &
            bind(c, name='hgemm_strided_batched') result(status)
            import
            type(c_ptr), value :: handle, A, B, C
            integer(c_int), value :: layout, transa, transb
            integer(c_int64_t), value :: m, n, k, lda, stride_a, ldb, stride_b, ldc, stride_c, batch_count
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function bgemm_strided_batched(handle, layout, transa, transb, m, n, k, alpha, A, lda, stride_a, B, &
                ldb, stride_b, beta, C, ldc, stride_c, batch_count) &
            bind(c, name='bgemm_strided_batched') result(status)
            import
            type(c_ptr), value :: handle, A, B, C
            integer(c_int), value :: layout, transa, transb
            integer(c_int64_t), value :: m, n, k, lda, stride_a, ldb, stride_b, ldc, stride_c, batch_count
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function hgemm_batched(handle, layout, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc, &
                batch_count) &
            bind(c, name='hgemm_batched') result(status)
            import
            type(c_ptr), value :: handle, A, B, C
            integer(c_int), value :: layout, transa, transb
            integer(c_int64_t), value :: m, n, k, lda, ldb, ldc, batch_count
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function bgemm_batched(handle, layout, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc, &
                batch_count) &
            bind(c, name='bgemm_batched') result(status)
            import
            type(c_ptr), value :: handle, A, B, C
            integer(c_int), value :: layout, transa, transb
            integer(c_int64_t), value :: m, n, k, lda, ldb, ldc, batch_count
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        ! ---- Level 3, symmetric results
        function hsyrk(handle, layout, uplo, trans, n, k, alpha, A, lda, beta, C, ldc) &
            bind(c, name='hsyrk') result(status)
            import
            type(c_ptr), value :: handle, A, C
            integer(c_int), value :: layout, uplo, trans
            integer(c_int64_t), value :: n, k, lda, ldc
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function bsyrk(handle, layout, uplo, trans, n, k, alpha, A, lda, beta, C, ldc) &
            bind(c, name='bsyrk') result(status)
            import
            type(c_ptr), value :: handle, A, C
            integer(c_int), value :: layout, uplo, trans
            integer(c_int64_t), value :: n, k, lda, ldc
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function hsyrkx(handle, layout, uplo, trans, n, k, alpha, A, lda, B, ldb, beta, C, ldc) &
            bind(c, name='hsyrkx') result(status)
            import
            type(c_ptr), value :: handle, A, B, C
            integer(c_int), value :: layout, uplo, trans
            integer(c_int64_t), value :: n, k, lda, ldb, ldc
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function bsyrkx(handle, layout, uplo, trans, n, k, alpha, A, lda, B, ldb, beta, C, ldc) &
            bind(c, name='bsyrkx') result(status)
            import
            type(c_ptr), value :: handle, A, B, C
            integer(c_int), value :: layout, uplo, trans
            integer(c_int64_t), value :: n, k, lda, ldb, ldc
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function hsyrk_strided_batched(handle, layout, uplo, trans, n, k, alpha, A, lda, stride_a, beta, C, &
                ldc, stride_c, batch_count) &
            bind(c, name='hsyrk_strided_batched') result(status)
            import
            type(c_ptr), value :: handle, A, C
            integer(c_int), value :: layout, uplo, trans
            integer(c_int64_t), value :: n, k, lda, stride_a, ldc, stride_c, batch_count
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function bsyrk_strided_batched(handle, layout, uplo, trans, n, k, alpha, A, lda, stride_a, beta, C, &
                ldc, stride_c, batch_count) &
            bind(c, name='bsyrk_strided_batched') result(status)
            import
            type(c_ptr), value :: handle, A, C
            integer(c_int), value :: layout, uplo, trans
            integer(c_int64_t), value :: n, k, lda, stride_a, ldc, stride_c, batch_count
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        ! ---- Level 3, general form
        subroutine hgemm_args_init(args, size) bind(c, name='hgemm_args_init')
            import
            type(hgemm_args_t), intent(inout) :: args
            integer(c_size_t), value :: size
        end subroutine

        function hgemm_gemm_ex(handle, args) bind(c, name='hgemm_gemm_ex') result(status)
            import
            type(c_ptr), value :: handle
            type(hgemm_args_t), intent(in) :: args
            integer(c_int) :: status
        end function

        function hgemm_workspace_size(handle, args, bytes) bind(c, name='hgemm_workspace_size') result(status)
            import
            type(c_ptr), value :: handle
            type(hgemm_args_t), intent(in) :: args
            integer(c_size_t), intent(out) :: bytes
            integer(c_int) :: status
        end function

        function hgemm_explain(handle, args, buffer, length) bind(c, name='hgemm_explain') result(status)
            import
            type(c_ptr), value :: handle
            type(hgemm_args_t), intent(in) :: args
            character(kind=c_char), intent(inout) :: buffer(*)
            integer(c_size_t), value :: length
            integer(c_int) :: status
        end function

        ! ---- Grouped products
        subroutine hgemm_grouped_args_init(args, size) bind(c, name='hgemm_grouped_args_init')
            import
            type(hgemm_grouped_args_t), intent(inout) :: args
            integer(c_size_t), value :: size
        end subroutine

        function hgemm_grouped_ex(handle, args) bind(c, name='hgemm_grouped_ex') result(status)
            import
            type(c_ptr), value :: handle
            type(hgemm_grouped_args_t), intent(in) :: args
            integer(c_int) :: status
        end function

        subroutine hgemm_gate_gradient_args_init(args, size) bind(c, name='hgemm_gate_gradient_args_init')
            import
            type(hgemm_gate_gradient_args_t), intent(inout) :: args
            integer(c_size_t), value :: size
        end subroutine

        function hgemm_gate_gradient(handle, args) bind(c, name='hgemm_gate_gradient') result(status)
            import
            type(c_ptr), value :: handle
            type(hgemm_gate_gradient_args_t), intent(in) :: args
            integer(c_int) :: status
        end function

        ! ---- Mixtures of experts
        subroutine hgemm_route_args_init(args, size) bind(c, name='hgemm_route_args_init')
            import
            type(hgemm_route_args_t), intent(inout) :: args
            integer(c_size_t), value :: size
        end subroutine

        function hgemm_route(handle, args) bind(c, name='hgemm_route') result(status)
            import
            type(c_ptr), value :: handle
            type(hgemm_route_args_t), intent(in) :: args
            integer(c_int) :: status
        end function

        subroutine hgemm_rows_args_init(args, size) bind(c, name='hgemm_rows_args_init')
            import
            type(hgemm_rows_args_t), intent(inout) :: args
            integer(c_size_t), value :: size
        end subroutine

        function hgemm_gather_rows(handle, args) bind(c, name='hgemm_gather_rows') result(status)
            import
            type(c_ptr), value :: handle
            type(hgemm_rows_args_t), intent(in) :: args
            integer(c_int) :: status
        end function

        function hgemm_combine_rows(handle, args) bind(c, name='hgemm_combine_rows') result(status)
            import
            type(c_ptr), value :: handle
            type(hgemm_rows_args_t), intent(in) :: args
            integer(c_int) :: status
        end function

        function hgemm_dot_rows(handle, args) bind(c, name='hgemm_dot_rows') result(status)
            import
            type(c_ptr), value :: handle
            type(hgemm_rows_args_t), intent(in) :: args
            integer(c_int) :: status
        end function

        function hgemm_clear_rows(handle, args) bind(c, name='hgemm_clear_rows') result(status)
            import
            type(c_ptr), value :: handle
            type(hgemm_grouped_args_t), intent(in) :: args
            integer(c_int) :: status
        end function

        ! ---- Several streams and GPUs
        subroutine hgemm_exchange_args_init(args, size) bind(c, name='hgemm_exchange_args_init')
            import
            type(hgemm_exchange_args_t), intent(inout) :: args
            integer(c_size_t), value :: size
        end subroutine

        function hgemm_exchange(handle, args) bind(c, name='hgemm_exchange') result(status)
            import
            type(c_ptr), value :: handle
            type(hgemm_exchange_args_t), intent(in) :: args
            integer(c_int) :: status
        end function

        subroutine hgemm_blocks_init(blocks, size) bind(c, name='hgemm_blocks_init')
            import
            type(hgemm_blocks_t), intent(inout) :: blocks
            integer(c_size_t), value :: size
        end subroutine

        function hgemm_gemm_blocks(handle, args, blocks) bind(c, name='hgemm_gemm_blocks') result(status)
            import
            type(c_ptr), value :: handle
            type(hgemm_args_t), intent(in) :: args
            type(hgemm_blocks_t), intent(in) :: blocks
            integer(c_int) :: status
        end function

        function hgemm_read_error(handle, error) bind(c, name='hgemm_read_error') result(status)
            import
            type(c_ptr), value :: handle, error
            integer(c_int) :: status
        end function

        ! ---- Tuning
        subroutine hgemm_tune_options_init(options, size) bind(c, name='hgemm_tune_options_init')
            import
            type(hgemm_tune_options_t), intent(inout) :: options
            integer(c_size_t), value :: size
        end subroutine

        subroutine hgemm_tune_report_init(report, size) bind(c, name='hgemm_tune_report_init')
            import
            type(hgemm_tune_report_t), intent(inout) :: report
            integer(c_size_t), value :: size
        end subroutine

        function hgemm_tune(handle, args, options, report) bind(c, name='hgemm_tune') result(status)
            import
            type(c_ptr), value :: handle
            type(hgemm_args_t), intent(in) :: args
            type(hgemm_tune_options_t), intent(in) :: options
            type(hgemm_tune_report_t), intent(inout) :: report
            integer(c_int) :: status
        end function

        function hgemm_tune_grouped(handle, args, options, report) &
            bind(c, name='hgemm_tune_grouped') result(status)
            import
            type(c_ptr), value :: handle
            type(hgemm_grouped_args_t), intent(in) :: args
            type(hgemm_tune_options_t), intent(in) :: options
            type(hgemm_tune_report_t), intent(inout) :: report
            integer(c_int) :: status
        end function

        ! ---- Level 2
        function hgemv_n(handle, m, n, alpha, A, lda, x, incx, beta, y, incy) &
            bind(c, name='hgemv_n') result(status)
            import
            type(c_ptr), value :: handle, A, x, y
            integer(c_int64_t), value :: m, n, lda, incx, incy
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function hgemv_t(handle, m, n, alpha, A, lda, x, incx, beta, y, incy) &
            bind(c, name='hgemv_t') result(status)
            import
            type(c_ptr), value :: handle, A, x, y
            integer(c_int64_t), value :: m, n, lda, incx, incy
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function bgemv_n(handle, m, n, alpha, A, lda, x, incx, beta, y, incy) &
            bind(c, name='bgemv_n') result(status)
            import
            type(c_ptr), value :: handle, A, x, y
            integer(c_int64_t), value :: m, n, lda, incx, incy
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        function bgemv_t(handle, m, n, alpha, A, lda, x, incx, beta, y, incy) &
            bind(c, name='bgemv_t') result(status)
            import
            type(c_ptr), value :: handle, A, x, y
            integer(c_int64_t), value :: m, n, lda, incx, incy
            real(c_float), value :: alpha, beta
            integer(c_int) :: status
        end function

        ! ---- Errors and version
        function hgemm_status_string(status) bind(c, name='hgemm_status_string') result(text)
            import
            integer(c_int), value :: status
            type(c_ptr) :: text
        end function

        function hgemm_last_error() bind(c, name='hgemm_last_error') result(text)
            import
            type(c_ptr) :: text
        end function

        function hgemm_last_error_argument() bind(c, name='hgemm_last_error_argument') result(number)
            import
            integer(c_int) :: number
        end function

        function hgemm_version() bind(c, name='hgemm_version') result(number)
            import
            integer(c_int) :: number
        end function

        function hgemm_build_info() bind(c, name='hgemm_build_info') result(text)
            import
            type(c_ptr) :: text
        end function

        ! ==== End of the functions ====
    end interface

contains

    function hgemm_text(string) result(text)
        type(c_ptr), intent(in) :: string
        character(:), allocatable :: text
        character(kind=c_char), pointer :: characters(:)
        integer, parameter :: longest = 4096
        integer :: i, length

        text = ''
        if (.not. c_associated(string)) return
        call c_f_pointer(string, characters, [longest])
        length = 0
        do while (length < longest)
            if (characters(length + 1) == c_null_char) exit
            length = length + 1
        end do
        text = repeat(' ', length)
        do i = 1, length
            text(i:i) = characters(i)
        end do
    end function
end module
