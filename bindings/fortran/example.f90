! Multiplies two small fp16 matrices on the CPU and checks the result against matmul.
!
!   gfortran hgemm.f90 example.f90 $(pkg-config --libs hgemm) -o example && ./example
program example
    use libhgemm
    implicit none
    integer, parameter :: m = 3, n = 4, k = 5
    ! Contiguous along k, which is what _tn wants: A is k x m, B is k x n.
    integer(c_int16_t), target :: A(k, m), B(k, n), C(m, n)
    real :: expected(m, n)
    type(c_ptr) :: handle
    integer :: i, j

    A = reshape([(half(0.25*(mod(i, 7) - 3)), i=0, k*m - 1)], [k, m])
    B = reshape([(half(0.5*(mod(i, 9) - 4)), i=0, k*n - 1)], [k, n])

    call check(hgemm_create_on(handle, HGEMM_DEVICE_HOST))
    print '(a)', hgemm_text(hgemm_build_info()), 'backend: '//hgemm_text(hgemm_backend(handle))

    ! C = 1 * transpose(A) * B + 0 * C
    call check(hgemm_tn(handle, int(m, c_int64_t), int(n, c_int64_t), int(k, c_int64_t), 1.0, c_loc(A), &
                        int(k, c_int64_t), c_loc(B), int(k, c_int64_t), 0.0, c_loc(C), int(m, c_int64_t)))
    call check(hgemm_destroy(handle))

    expected = matmul(transpose(single(A)), single(B))
    do i = 1, m
        print '(*(f8.3))', (single(C(i, j)), j=1, n)
    end do
    if (any(abs(single(C) - expected) > 0.0)) error stop 'WRONG'
    print '(a)', 'correct'

contains

    subroutine check(status)
        integer(c_int), intent(in) :: status
        if (status == HGEMM_STATUS_SUCCESS) return
        print '(a)', hgemm_text(hgemm_last_error())
        error stop 1
    end subroutine

    ! fp16 has 5 exponent bits (bias 15) and 10 mantissa bits where a float has 8 (bias 127) and 23. These
    ! two are exact for zero and for the normal numbers of few bits that are used here.
    elemental function half(value) result(bits)
        real, intent(in) :: value
        integer(c_int16_t) :: bits
        integer(c_int32_t) :: word
        word = ishft(transfer(abs(value), 0_c_int32_t) - ishft(127 - 15, 23), -13)
        if (.not. abs(value) > 0.0) word = 0
        if (value < 0.0) word = ior(word, -32768)
        bits = int(word, c_int16_t)
    end function

    elemental function single(bits) result(value)
        integer(c_int16_t), intent(in) :: bits
        real :: value
        integer(c_int32_t) :: magnitude
        magnitude = iand(int(bits, c_int32_t), 32767)
        value = transfer(ishft(magnitude, 13) + ishft(127 - 15, 23), value)
        if (magnitude == 0) value = 0.0
        if (bits < 0) value = -value
    end function
end program
