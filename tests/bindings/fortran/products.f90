! Calls every function of the module on the host. The matrices hold 0, 1 and 2 and k is 2, so results are 0 to
! 8 and exact, and a wrong transpose, size or leading dimension shows.
program products
    use libhgemm
    implicit none
    integer, parameter :: m = 3, n = 4, k = 2
    integer(c_int64_t), parameter :: m8 = m, n8 = n, k8 = k
    ! Bits of 0 to 8.
    integer(c_int16_t), parameter :: f16(0:8) = &
        int([0, 15360, 16384, 16896, 17408, 17664, 17920, 18176, 18432], c_int16_t)
    integer(c_int16_t), parameter :: bf16(0:8) = &
        int([0, 16256, 16384, 16448, 16512, 16544, 16576, 16608, 16640], c_int16_t)
    integer :: a_values(m, k), b_values(k, n), failures = 0
    type(c_ptr) :: handle

    a_values = reshape([0, 1, 2, 2, 1, 1], [m, k])
    b_values = reshape([1, 2, 2, 0, 0, 1, 2, 2], [k, n])
    call expect('create_on', hgemm_create_on(handle, HGEMM_DEVICE_HOST) == HGEMM_STATUS_SUCCESS)
    call short_form('hgemm_nn', hgemm_nn, .false., .false., f16)
    call short_form('hgemm_nt', hgemm_nt, .false., .true., f16)
    call short_form('hgemm_tn', hgemm_tn, .true., .false., f16)
    call short_form('hgemm_tt', hgemm_tt, .true., .true., f16)
    call short_form('bgemm_nn', bgemm_nn, .false., .false., bf16)
    call short_form('bgemm_nt', bgemm_nt, .false., .true., bf16)
    call short_form('bgemm_tn', bgemm_tn, .true., .false., bf16)
    call short_form('bgemm_tt', bgemm_tt, .true., .true., bf16)
    call cblas_form('hgemm', hgemm, hgemm_strided_batched, hgemm_batched, f16)
    call cblas_form('bgemm', bgemm, bgemm_strided_batched, bgemm_batched, bf16)
    call vector_form('hgemv', hgemv_n, hgemv_t, f16)
    call vector_form('bgemv', bgemv_n, bgemv_t, bf16)
    call general_form()
    call grouped_form()
    call settings()
    call errors()
    call expect('destroy', hgemm_destroy(handle) == HGEMM_STATUS_SUCCESS)
    if (failures > 0) error stop 1
    print '(a)', 'all products are right'

contains

    subroutine expect(what, right)
        character(*), intent(in) :: what
        logical, intent(in) :: right
        if (right) return
        failures = failures + 1
        print '(4a)', 'FAILED: ', what, ': ', hgemm_text(hgemm_last_error())
    end subroutine

    subroutine short_form(name, multiply, turn_a, turn_b, bits)
        character(*), intent(in) :: name
        procedure(hgemm_short_form) :: multiply
        logical, intent(in) :: turn_a, turn_b
        integer(c_int16_t), intent(in) :: bits(0:8)
        integer(c_int16_t), allocatable, target :: A(:, :), B(:, :)
        integer(c_int16_t), target :: C(m, n)
        A = stored(a_values, turn_a, bits)
        B = stored(b_values, turn_b, bits)
        call expect(name, multiply(handle, m8, n8, k8, 1.0, c_loc(A), size(A, 1, c_int64_t), c_loc(B), &
                                   size(B, 1, c_int64_t), 0.0, c_loc(C), m8) == HGEMM_STATUS_SUCCESS)
        call expect(name//' result', all(C == stored(matmul(a_values, b_values), .false., bits)))
    end subroutine

    function stored(values, turned, bits) result(X)
        integer, intent(in) :: values(:, :)
        logical, intent(in) :: turned
        integer(c_int16_t), intent(in) :: bits(0:8)
        integer(c_int16_t), allocatable :: X(:, :)
        if (turned) then
            X = reshape(bits([transpose(values)]), shape(transpose(values)))
        else
            X = reshape(bits([values]), shape(values))
        end if
    end function

    subroutine cblas_form(name, single, strided, batched, bits)
        character(*), intent(in) :: name
        procedure(hgemm_cblas_form) :: single
        procedure(hgemm_strided_form) :: strided
        procedure(hgemm_batched_form) :: batched
        integer(c_int16_t), intent(in) :: bits(0:8)
        integer(c_int16_t), target :: A(m, k), B(n, k), C(m, n), D(m, n, 2), E(m, n, 2), wanted(m, n)
        type(c_ptr), target :: as(2), bs(2), es(2)
        A = stored(a_values, .false., bits)
        B = stored(b_values, .true., bits)
        wanted = stored(matmul(a_values, b_values), .false., bits)
        call expect(name, single(handle, HGEMM_COL_MAJOR, HGEMM_NO_TRANS, HGEMM_TRANS, m8, n8, k8, 1.0, &
                                 c_loc(A), m8, c_loc(B), n8, 0.0, c_loc(C), m8) == HGEMM_STATUS_SUCCESS)
        call expect(name//' result', all(C == wanted))
        call expect(name//' strided', &
                    strided(handle, HGEMM_COL_MAJOR, HGEMM_NO_TRANS, HGEMM_TRANS, m8, n8, k8, 1.0, c_loc(A), &
                            m8, 0_c_int64_t, c_loc(B), n8, 0_c_int64_t, 0.0, c_loc(D), m8, m8*n8, &
                            2_c_int64_t) == HGEMM_STATUS_SUCCESS)
        call expect(name//' strided result', all(D(:, :, 1) == wanted) .and. all(D(:, :, 2) == wanted))
        as = c_loc(A)
        bs = c_loc(B)
        es = [c_loc(E(1, 1, 1)), c_loc(E(1, 1, 2))]
        call expect(name//' batched', &
                    batched(handle, HGEMM_COL_MAJOR, HGEMM_NO_TRANS, HGEMM_TRANS, m8, n8, k8, 1.0, &
                            c_loc(as), m8, c_loc(bs), n8, 0.0, c_loc(es), m8, 2_c_int64_t) &
                    == HGEMM_STATUS_SUCCESS)
        call expect(name//' batched result', all(E(:, :, 1) == wanted) .and. all(E(:, :, 2) == wanted))
    end subroutine

    ! The first column of B as x, and a column of ones that A is read across by.
    subroutine vector_form(name, plain, turned, bits)
        character(*), intent(in) :: name
        procedure(hgemm_vector_form) :: plain, turned
        integer(c_int16_t), intent(in) :: bits(0:8)
        integer(c_int16_t), target :: A(m, k), x(k), y(m), ones(m), z(k)
        integer(c_int64_t), parameter :: step = 1
        A = stored(a_values, .false., bits)
        x = bits(b_values(:, 1))
        ones = bits(1)
        call expect(name//'_n', plain(handle, m8, k8, 1.0, c_loc(A), m8, c_loc(x), step, 0.0, c_loc(y), &
                                      step) == HGEMM_STATUS_SUCCESS)
        call expect(name//'_n result', all(y == bits(matmul(a_values, b_values(:, 1)))))
        call expect(name//'_t', turned(handle, m8, k8, 1.0, c_loc(A), m8, c_loc(ones), step, 0.0, c_loc(z), &
                                       step) == HGEMM_STATUS_SUCCESS)
        call expect(name//'_t result', all(z == bits(sum(a_values, 1))))
    end subroutine

    subroutine general_form()
        type(hgemm_args_t) :: args
        integer(c_int16_t), target :: A(m, k), B(k, n)
        real(c_float), target :: D(m, n), bias(n)
        integer(c_size_t) :: bytes
        character(kind=c_char) :: line(512)
        A = stored(a_values, .false., f16)
        B = stored(b_values, .false., f16)
        bias = -3.0
        call hgemm_args_init(args, c_sizeof(args))
        args%m = m
        args%n = n
        args%k = k
        args%type_c = HGEMM_F32
        args%type_d = HGEMM_F32
        args%a = c_loc(A)
        args%lda = m
        args%b = c_loc(B)
        args%ldb = k
        args%d = c_loc(D)
        args%ldd = m
        args%bias_mode = HGEMM_BIAS_N
        args%bias_type = HGEMM_F32
        args%bias = c_loc(bias)
        args%activation = HGEMM_ACTIVATION_RELU
        call expect('workspace_size', hgemm_workspace_size(handle, args, bytes) == HGEMM_STATUS_SUCCESS)
        call expect('explain', hgemm_explain(handle, args, line, size(line, kind=c_size_t)) &
                    == HGEMM_STATUS_SUCCESS .and. line(1) /= c_null_char)
        call expect('gemm_ex', hgemm_gemm_ex(handle, args) == HGEMM_STATUS_SUCCESS)
        call expect('gemm_ex result', all(nint(D) == max(matmul(a_values, b_values) - 3, 0)))
    end subroutine

    ! Row-major: the transpose of each Fortran array. Two groups, of one row and of two.
    subroutine grouped_form()
        type(hgemm_grouped_args_t) :: args
        integer(c_int16_t), target :: A(k, m), B(n, k)
        real(c_float), target :: D(n, m)
        integer(c_int64_t), target :: offsets(3)
        A = stored(a_values, .true., f16)
        B = stored(b_values, .true., f16)
        offsets = [0, 1, 3]
        call hgemm_grouped_args_init(args, c_sizeof(args))
        args%transb = HGEMM_NO_TRANS
        args%type_d = HGEMM_F32
        args%group_count = 2
        args%m = m
        args%n = n
        args%k = k
        args%a = c_loc(A)
        args%lda = k
        args%b = c_loc(B)
        args%ldb = n
        args%d = c_loc(D)
        args%ldd = n
        args%offsets = c_loc(offsets)
        call expect('grouped_ex', hgemm_grouped_ex(handle, args) == HGEMM_STATUS_SUCCESS)
        call expect('grouped_ex result', all(nint(D) == transpose(matmul(a_values, b_values))))
    end subroutine

    subroutine settings()
        type(c_ptr) :: stream, other
        call expect('backend', hgemm_text(hgemm_backend(handle)) == 'host')
        call expect('set_stream', hgemm_set_stream(handle, c_null_ptr) == HGEMM_STATUS_SUCCESS)
        call expect('get_stream', hgemm_get_stream(handle, stream) == HGEMM_STATUS_SUCCESS .and. &
                    .not. c_associated(stream))
        call expect('set_workspace', &
                    hgemm_set_workspace(handle, c_null_ptr, 0_c_size_t) == HGEMM_STATUS_SUCCESS)
        call expect('set_mode', hgemm_set_mode(handle, HGEMM_MODE_DEFAULT) == HGEMM_STATUS_SUCCESS)
        call expect('set_sm_count', hgemm_set_sm_count(handle, 0_c_int) == HGEMM_STATUS_SUCCESS)
        call expect('create', hgemm_create(other) == HGEMM_STATUS_SUCCESS .and. c_associated(other))
        call expect('destroy of it', hgemm_destroy(other) == HGEMM_STATUS_SUCCESS)
        call expect('create_sized', &
                    hgemm_create_sized(other, HGEMM_DEVICE_HOST, 1024_c_size_t) == HGEMM_STATUS_SUCCESS)
        call expect('destroy of that', hgemm_destroy(other) == HGEMM_STATUS_SUCCESS)
        call expect('version', hgemm_version() >= 0)
        call expect('build_info', index(hgemm_text(hgemm_build_info()), 'libhgemm') == 1)
    end subroutine

    subroutine errors()
        integer(c_int16_t), target :: C(1)
        integer(c_int) :: status
        status = hgemm_tn(handle, m8, n8, k8, 1.0, c_loc(C), 1_c_int64_t, c_loc(C), k8, 0.0, c_loc(C), m8)
        call expect('status', status == HGEMM_STATUS_INVALID_ARGUMENT)
        call expect('text', hgemm_text(hgemm_last_error()) == &
                    'hgemm_tn: argument 7 (lda) is 1, must be at least k = 2')
        call expect('argument', hgemm_last_error_argument() == 7)
        call expect('status_string', &
                    hgemm_text(hgemm_status_string(status)) == 'HGEMM_STATUS_INVALID_ARGUMENT')
        call expect('text of nothing', hgemm_text(c_null_ptr) == '')
    end subroutine
end program
