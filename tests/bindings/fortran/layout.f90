! Prints what tests/abi/layout.c prints, as the Fortran module has it.
program layout
    use libhgemm
    implicit none
    type(hgemm_args_t), target :: args
    type(hgemm_grouped_args_t), target :: grouped
    type(hgemm_tune_options_t), target :: options
    type(hgemm_tune_report_t), target :: report
    integer(c_intptr_t) :: origin

    call value('HGEMM_STATUS_SUCCESS', HGEMM_STATUS_SUCCESS)
    call value('HGEMM_STATUS_NOT_INITIALIZED', HGEMM_STATUS_NOT_INITIALIZED)
    call value('HGEMM_STATUS_INVALID_ARGUMENT', HGEMM_STATUS_INVALID_ARGUMENT)
    call value('HGEMM_STATUS_NOT_SUPPORTED', HGEMM_STATUS_NOT_SUPPORTED)
    call value('HGEMM_STATUS_ALLOC_FAILED', HGEMM_STATUS_ALLOC_FAILED)
    call value('HGEMM_STATUS_NO_DEVICE', HGEMM_STATUS_NO_DEVICE)
    call value('HGEMM_STATUS_DRIVER_ERROR', HGEMM_STATUS_DRIVER_ERROR)
    call value('HGEMM_STATUS_LAUNCH_FAILED', HGEMM_STATUS_LAUNCH_FAILED)
    call value('HGEMM_STATUS_WORKSPACE_TOO_SMALL', HGEMM_STATUS_WORKSPACE_TOO_SMALL)
    call value('HGEMM_STATUS_INTERNAL', HGEMM_STATUS_INTERNAL)
    call value('HGEMM_ROW_MAJOR', HGEMM_ROW_MAJOR)
    call value('HGEMM_COL_MAJOR', HGEMM_COL_MAJOR)
    call value('HGEMM_NO_TRANS', HGEMM_NO_TRANS)
    call value('HGEMM_TRANS', HGEMM_TRANS)
    call value('HGEMM_CONJ_TRANS', HGEMM_CONJ_TRANS)
    call value('HGEMM_F16', HGEMM_F16)
    call value('HGEMM_BF16', HGEMM_BF16)
    call value('HGEMM_F32', HGEMM_F32)
    call value('HGEMM_MODE_DEFAULT', HGEMM_MODE_DEFAULT)
    call value('HGEMM_MODE_BATCH_INVARIANT', HGEMM_MODE_BATCH_INVARIANT)
    call value('HGEMM_MODE_TREE', HGEMM_MODE_TREE)
    call value('HGEMM_LOG_OFF', HGEMM_LOG_OFF)
    call value('HGEMM_LOG_ERROR', HGEMM_LOG_ERROR)
    call value('HGEMM_LOG_PLAN', HGEMM_LOG_PLAN)
    call value('HGEMM_LOG_TRACE', HGEMM_LOG_TRACE)
    call value('HGEMM_ACTIVATION_NONE', HGEMM_ACTIVATION_NONE)
    call value('HGEMM_ACTIVATION_RELU', HGEMM_ACTIVATION_RELU)
    call value('HGEMM_ACTIVATION_GELU_TANH', HGEMM_ACTIVATION_GELU_TANH)
    call value('HGEMM_ACTIVATION_GELU_ERF', HGEMM_ACTIVATION_GELU_ERF)
    call value('HGEMM_ACTIVATION_SILU', HGEMM_ACTIVATION_SILU)
    call value('HGEMM_BIAS_NONE', HGEMM_BIAS_NONE)
    call value('HGEMM_BIAS_M', HGEMM_BIAS_M)
    call value('HGEMM_BIAS_N', HGEMM_BIAS_N)
    call value('HGEMM_GROUPED_CONTIGUOUS', HGEMM_GROUPED_CONTIGUOUS)
    call value('HGEMM_GROUPED_MASKED', HGEMM_GROUPED_MASKED)
    call value('HGEMM_GROUPED_HOST', HGEMM_GROUPED_HOST)
    call value('HGEMM_GROUPED_K', HGEMM_GROUPED_K)
    call value('HGEMM_DEVICE_HOST', HGEMM_DEVICE_HOST)
    call value('HGEMM_DEVICE_CURRENT', HGEMM_DEVICE_CURRENT)

    call size_of('hgemm_args_t', c_sizeof(args))
    origin = address(c_loc(args))
    call member('hgemm_args_t.size', c_loc(args%size))
    call member('hgemm_args_t.layout', c_loc(args%layout))
    call member('hgemm_args_t.transa', c_loc(args%transa))
    call member('hgemm_args_t.transb', c_loc(args%transb))
    call member('hgemm_args_t.type_ab', c_loc(args%type_ab))
    call member('hgemm_args_t.type_c', c_loc(args%type_c))
    call member('hgemm_args_t.type_d', c_loc(args%type_d))
    call member('hgemm_args_t.m', c_loc(args%m))
    call member('hgemm_args_t.n', c_loc(args%n))
    call member('hgemm_args_t.k', c_loc(args%k))
    call member('hgemm_args_t.alpha', c_loc(args%alpha))
    call member('hgemm_args_t.beta', c_loc(args%beta))
    call member('hgemm_args_t.alpha_device', c_loc(args%alpha_device))
    call member('hgemm_args_t.beta_device', c_loc(args%beta_device))
    call member('hgemm_args_t.a', c_loc(args%a))
    call member('hgemm_args_t.lda', c_loc(args%lda))
    call member('hgemm_args_t.b', c_loc(args%b))
    call member('hgemm_args_t.ldb', c_loc(args%ldb))
    call member('hgemm_args_t.c', c_loc(args%c))
    call member('hgemm_args_t.ldc', c_loc(args%ldc))
    call member('hgemm_args_t.d', c_loc(args%d))
    call member('hgemm_args_t.ldd', c_loc(args%ldd))
    call member('hgemm_args_t.batch_count', c_loc(args%batch_count))
    call member('hgemm_args_t.stride_a', c_loc(args%stride_a))
    call member('hgemm_args_t.stride_b', c_loc(args%stride_b))
    call member('hgemm_args_t.stride_c', c_loc(args%stride_c))
    call member('hgemm_args_t.stride_d', c_loc(args%stride_d))
    call member('hgemm_args_t.a_array', c_loc(args%a_array))
    call member('hgemm_args_t.b_array', c_loc(args%b_array))
    call member('hgemm_args_t.c_array', c_loc(args%c_array))
    call member('hgemm_args_t.d_array', c_loc(args%d_array))
    call member('hgemm_args_t.bias_mode', c_loc(args%bias_mode))
    call member('hgemm_args_t.bias_type', c_loc(args%bias_type))
    call member('hgemm_args_t.bias', c_loc(args%bias))
    call member('hgemm_args_t.stride_bias', c_loc(args%stride_bias))
    call member('hgemm_args_t.activation', c_loc(args%activation))
    call member('hgemm_args_t.aux', c_loc(args%aux))
    call member('hgemm_args_t.ldaux', c_loc(args%ldaux))
    call member('hgemm_args_t.stride_aux', c_loc(args%stride_aux))
    call member('hgemm_args_t.flags', c_loc(args%flags))

    call size_of('hgemm_grouped_args_t', c_sizeof(grouped))
    origin = address(c_loc(grouped))
    call member('hgemm_grouped_args_t.size', c_loc(grouped%size))
    call member('hgemm_grouped_args_t.grouping', c_loc(grouped%grouping))
    call member('hgemm_grouped_args_t.transb', c_loc(grouped%transb))
    call member('hgemm_grouped_args_t.type_ab', c_loc(grouped%type_ab))
    call member('hgemm_grouped_args_t.type_d', c_loc(grouped%type_d))
    call member('hgemm_grouped_args_t.group_count', c_loc(grouped%group_count))
    call member('hgemm_grouped_args_t.m', c_loc(grouped%m))
    call member('hgemm_grouped_args_t.n', c_loc(grouped%n))
    call member('hgemm_grouped_args_t.k', c_loc(grouped%k))
    call member('hgemm_grouped_args_t.alpha', c_loc(grouped%alpha))
    call member('hgemm_grouped_args_t.beta', c_loc(grouped%beta))
    call member('hgemm_grouped_args_t.a', c_loc(grouped%a))
    call member('hgemm_grouped_args_t.lda', c_loc(grouped%lda))
    call member('hgemm_grouped_args_t.stride_a', c_loc(grouped%stride_a))
    call member('hgemm_grouped_args_t.b', c_loc(grouped%b))
    call member('hgemm_grouped_args_t.ldb', c_loc(grouped%ldb))
    call member('hgemm_grouped_args_t.stride_b', c_loc(grouped%stride_b))
    call member('hgemm_grouped_args_t.d', c_loc(grouped%d))
    call member('hgemm_grouped_args_t.ldd', c_loc(grouped%ldd))
    call member('hgemm_grouped_args_t.stride_d', c_loc(grouped%stride_d))
    call member('hgemm_grouped_args_t.offsets', c_loc(grouped%offsets))
    call member('hgemm_grouped_args_t.counts', c_loc(grouped%counts))
    call member('hgemm_grouped_args_t.problems', c_loc(grouped%problems))
    call member('hgemm_grouped_args_t.ends', c_loc(grouped%ends))
    call member('hgemm_grouped_args_t.ends_i32', c_loc(grouped%ends_i32))
    call member('hgemm_grouped_args_t.offsets_i32', c_loc(grouped%offsets_i32))
    call member('hgemm_grouped_args_t.counts_i32', c_loc(grouped%counts_i32))
    call member('hgemm_grouped_args_t.transa', c_loc(grouped%transa))
    call member('hgemm_grouped_args_t.flags', c_loc(grouped%flags))

    call size_of('hgemm_tune_options_t', c_sizeof(options))
    origin = address(c_loc(options))
    call member('hgemm_tune_options_t.size', c_loc(options%size))
    call member('hgemm_tune_options_t.max_candidates', c_loc(options%max_candidates))
    call member('hgemm_tune_options_t.max_rounds', c_loc(options%max_rounds))
    call member('hgemm_tune_options_t.max_seconds', c_loc(options%max_seconds))
    call member('hgemm_tune_options_t.write', c_loc(options%write))
    call member('hgemm_tune_options_t.path', c_loc(options%path))

    call size_of('hgemm_tune_report_t', c_sizeof(report))
    origin = address(c_loc(report))
    call member('hgemm_tune_report_t.size', c_loc(report%size))
    call member('hgemm_tune_report_t.candidates', c_loc(report%candidates))
    call member('hgemm_tune_report_t.wrong', c_loc(report%wrong))
    call member('hgemm_tune_report_t.failed', c_loc(report%failed))
    call member('hgemm_tune_report_t.rounds', c_loc(report%rounds))
    call member('hgemm_tune_report_t.complete', c_loc(report%complete))
    call member('hgemm_tune_report_t.built_in_us', c_loc(report%built_in_us))
    call member('hgemm_tune_report_t.before_us', c_loc(report%before_us))
    call member('hgemm_tune_report_t.now_us', c_loc(report%now_us))
    call member('hgemm_tune_report_t.gain', c_loc(report%gain))
    call member('hgemm_tune_report_t.spread', c_loc(report%spread))
    call member('hgemm_tune_report_t.built_in', c_loc(report%built_in))
    call member('hgemm_tune_report_t.before', c_loc(report%before))
    call member('hgemm_tune_report_t.now', c_loc(report%now))
    call member('hgemm_tune_report_t.wrong_kernels', c_loc(report%wrong_kernels))
    call member('hgemm_tune_report_t.path', c_loc(report%path))

contains

    subroutine value(name, number)
        character(*), intent(in) :: name
        integer(c_int), intent(in) :: number
        print '(a, " = ", i0)', name, number
    end subroutine

    subroutine size_of(name, bytes)
        character(*), intent(in) :: name
        integer(c_size_t), intent(in) :: bytes
        print '(a, ": ", i0, " bytes")', name, bytes
    end subroutine

    subroutine member(name, pointer)
        character(*), intent(in) :: name
        type(c_ptr), intent(in) :: pointer
        print '(a, " at ", i0)', name, address(pointer) - origin
    end subroutine

    function address(pointer)
        type(c_ptr), intent(in) :: pointer
        integer(c_intptr_t) :: address
        address = transfer(pointer, address)
    end function
end program
