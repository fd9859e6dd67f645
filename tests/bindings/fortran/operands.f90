! What every_function.inc calls the module with. Matrices hold 0, 1 and 2 and k is 2, so results are 0 to 8 and
! exact, and a wrong transpose, size or leading dimension shows.
module operands
    use libhgemm
    implicit none
    integer(c_int64_t), parameter :: m = 3, n = 4, k = 2, one = 1, two = 2, none = 0
    integer(c_int), parameter :: ok = HGEMM_STATUS_SUCCESS
    ! The bits of 0 to 8.
    integer(c_int16_t), parameter, private :: &
        f16(0:8) = int([0, 15360, 16384, 16896, 17408, 17664, 17920, 18176, 18432], c_int16_t), &
        bf16(0:8) = int([0, 16256, 16384, 16448, 16512, 16544, 16576, 16608, 16640], c_int16_t)
    integer, parameter, private :: a_values(m, k) = reshape([0, 1, 2, 2, 1, 1], [3, 2]), &
        b_values(k, n) = reshape([1, 2, 2, 0, 0, 1, 2, 2], [2, 4]), &
        product_values(m, n) = matmul(a_values, b_values), &
        twisted_values(m, k) = matmul(a_values, reshape([1, 1, 1, 0], [2, 2])), &
        square_values(m, m) = matmul(a_values, transpose(a_values)), &
        symmetric_values(m, m) = matmul(a_values, transpose(twisted_values))

    ! Of one element type. A and B as they are and transposed, x the first column of B, ones as many as A has rows.
    ! A times the transpose of twisted is symmetric, as A times its own transpose is.
    type set_t
        integer(c_int16_t) :: A(m, k), B(k, n), At(k, m), Bt(n, k), x(k), ones(m)
        integer(c_int16_t) :: C(m, n), batch(m, n, 2), y(m), z(k), S(m, m), pair(m, m, 2)
        integer(c_int16_t) :: twisted(m, k)
        integer(c_int16_t) :: wanted(m, n), wanted_y(m), wanted_z(k), wanted_square(m, m), wanted_symmetric(m, m)
        type(c_ptr) :: as(2), bs(2), cs(2)
    end type
    type(set_t), target :: h, b
    real(c_float), target :: D(m, n), Dt(n, m)
    real(c_float), target :: bias(n) = -3.0
    real, parameter :: wanted_relu(m, n) = max(product_values - 3, 0), &
        wanted_rows(n, m) = transpose(product_values)
    integer(c_int64_t), target :: offsets(3) = [0, 1, 3]
    ! Three tokens with two choices of two experts each, the last with one, and the rows that this gives.
    integer(c_int64_t), target :: chosen(2, m) = reshape([1, 0, 0, 1, -1, 1], [2, 3])
    integer(c_int32_t), target :: ends(2), row_of_choice(2*m), choice_of_row(2*m)
    integer(c_int32_t), parameter :: wanted_ends(2) = [2, 5], &
        wanted_rows_of_choices(2*m) = [2, 0, 1, 3, -1, 4], wanted_choices(2*m) = [1, 2, 0, 3, 5, -1]
    integer(c_int16_t), target :: gathered(k, 2*m)
    real(c_float), target :: combined(k, m), weights(2, m) = reshape([1.0, 2.0, 1.0, 0.5, 7.0, 3.0], [2, 3])
    real, parameter :: wanted_combined(k, m) = transpose(a_values)*spread([3.0, 1.5, 3.0], 1, int(k))
    ! Of tokens and the rows of their choices, which are what describe_gather() has put there: their own.
    real(c_float), target :: dots(2, m)
    integer, parameter :: wanted_dots(2, m) = &
        spread([square_values(1, 1), square_values(2, 2), square_values(3, 3)], 1, 2) &
        *reshape([1, 1, 1, 1, 0, 1], [2, 3])
    ! Rows of a gate, its up element, and two more. Where ReLU makes a gate 0 both gradients are 0.
    real(c_float), target :: gated(4, 2) = reshape([2.0, 3.0, -1.0, 5.0, 4.0, -2.0, 0.0, 7.0], [4, 2]), &
        of_d(2, 2) = reshape([1.0, 2.0, 3.0, 4.0], [2, 2]), of_product(4, 2)
    real, parameter :: wanted_of_product(4, 2) = reshape([3.0, 2.0, 0.0, 0.0, -6.0, 12.0, 0.0, 0.0], [4, 2])
    ! On the heap, whose memory is as aligned as a flag must be.
    type(hgemm_flag_t), pointer :: flag
    integer(c_int32_t), target :: error = 0
    real(c_float), target :: part(m, n) = real(product_values)
    type(c_ptr), target :: flags(1), parts(2), places(2)
    integer :: failures = 0

    type(c_ptr) :: handle, stream, address
    type(hgemm_args_t) :: args
    type(hgemm_grouped_args_t) :: grouped
    type(hgemm_gate_gradient_args_t) :: gradient
    type(hgemm_route_args_t) :: route
    type(hgemm_rows_args_t) :: rows
    type(hgemm_exchange_args_t) :: exchange
    type(hgemm_blocks_t) :: blocks
    type(hgemm_tune_options_t) :: options
    type(hgemm_tune_report_t) :: report
    integer(c_int) :: status, number
    integer(c_size_t) :: bytes
    character(kind=c_char) :: line(512)

contains

    subroutine prepare()
        call fill(h, f16)
        call fill(b, bf16)
        allocate (flag)
        flag = hgemm_flag_t(0, 0, 0)
        flags = c_loc(flag)
        call clear()
    end subroutine

    subroutine fill(set, bits)
        type(set_t), intent(inout), target :: set
        integer(c_int16_t), intent(in) :: bits(0:8)
        set%A = reshape(bits([a_values]), shape(set%A))
        set%B = reshape(bits([b_values]), shape(set%B))
        set%At = transpose(set%A)
        set%Bt = transpose(set%B)
        set%x = set%B(:, 1)
        set%ones = bits(1)
        set%wanted = reshape(bits([product_values]), shape(set%wanted))
        set%wanted_y = set%wanted(:, 1)
        set%wanted_z = bits(sum(a_values, 1))
        set%twisted = reshape(bits([twisted_values]), shape(set%twisted))
        set%wanted_square = reshape(bits([square_values]), shape(set%wanted_square))
        set%wanted_symmetric = reshape(bits([symmetric_values]), shape(set%wanted_symmetric))
        set%as = c_loc(set%A)
        set%bs = c_loc(set%B)
        set%cs = [c_loc(set%batch(1, 1, 1)), c_loc(set%batch(1, 1, 2))]
    end subroutine

    ! What the next function is to write.
    subroutine clear()
        h%C = -1
        b%C = -1
        h%batch = -1
        b%batch = -1
        h%S = -1
        b%S = -1
        h%pair = -1
        b%pair = -1
        h%y = -1
        b%y = -1
        h%z = -1
        b%z = -1
        D = -1
        Dt = -1
        status = -1
        bytes = huge(bytes)
        line = c_null_char
    end subroutine

    ! Those elements of a symmetric result that are computed, and what clear() left elsewhere.
    pure function half(uplo, whole)
        integer(c_int), intent(in) :: uplo
        integer(c_int16_t), intent(in) :: whole(m, m)
        integer(c_int16_t) :: half(m, m)
        integer :: i, j
        half = -1
        do j = 1, int(m)
            do i = 1, int(m)
                if (merge(i >= j, i <= j, uplo == HGEMM_LOWER)) half(i, j) = whole(i, j)
            end do
        end do
    end function

    subroutine expect(what, right)
        character(*), intent(in) :: what
        logical, intent(in) :: right
        if (.not. right) then
            failures = failures + 1
            print '(4a)', 'FAILED: ', what, ': ', hgemm_text(hgemm_last_error())
        end if
        call clear()
    end subroutine

    ! relu(A * B - 3), with the results in fp32.
    subroutine describe_relu()
        args%m = m
        args%n = n
        args%k = k
        args%type_c = HGEMM_F32
        args%type_d = HGEMM_F32
        args%a = c_loc(h%A)
        args%lda = m
        args%b = c_loc(h%B)
        args%ldb = k
        args%d = c_loc(D)
        args%ldd = m
        args%bias_mode = HGEMM_BIAS_N
        args%bias_type = HGEMM_F32
        args%bias = c_loc(bias)
        args%activation = HGEMM_ACTIVATION_RELU
    end subroutine

    subroutine describe_route()
        ends = -7
        choice_of_row = -7
        row_of_choice = -7
        route%tokens = m
        route%choices = 2
        route%experts = 2
        route%chosen = c_loc(chosen)
        route%ld = 2
        route%ends = c_loc(ends)
        route%row_of_choice = c_loc(row_of_choice)
        route%choice_of_row = c_loc(choice_of_row)
    end subroutine

    ! Rows of A where hgemm_route() has put their choices. No choice has the last row of the result.
    subroutine describe_gather()
        gathered = -1
        rows%tokens = m
        rows%choices = 2
        rows%columns = k
        rows%row_of_choice = c_loc(row_of_choice)
        rows%a = c_loc(h%At)
        rows%lda = k
        rows%d = c_loc(gathered)
        rows%ldd = k
    end subroutine

    ! Their sums for each token, with weights, in fp32.
    subroutine describe_combine()
        combined = -1
        rows%weights = c_loc(weights)
        rows%ldw = 2
        rows%type_weights = HGEMM_F32
        rows%a = c_loc(gathered)
        rows%d = c_loc(combined)
        rows%type_d = HGEMM_F32
    end subroutine

    ! Their products with the tokens' own rows.
    subroutine describe_dots()
        dots = -1
        rows%weights = c_null_ptr
        rows%a = c_loc(h%At)
        rows%b = c_loc(gathered)
        rows%ldb = k
        rows%d = c_loc(dots)
        rows%ldd = 2
    end subroutine

    ! Two rows of two gates, which ReLU activates.
    subroutine describe_gradient()
        of_product = -1
        gradient%rows = 2
        gradient%columns = 4
        gradient%product = c_loc(gated)
        gradient%ld_product = 4
        gradient%of_d = c_loc(of_d)
        gradient%ld_of_d = 2
        gradient%of_product = c_loc(of_product)
        gradient%ld_of_product = 4
        gradient%type_product = HGEMM_F32
        gradient%type_of_d = HGEMM_F32
        gradient%type_of_product = HGEMM_F32
        gradient%activation = HGEMM_ACTIVATION_RELU
        gradient%gate%block = 1
    end subroutine

    ! D = part + part, by a handle that raises the flag that it waits for.
    subroutine describe_exchange()
        parts = c_loc(part)
        places = c_loc(D)
        exchange%raise = c_loc(flags)
        exchange%raise_count = 1
        exchange%wait = c_loc(flags)
        exchange%wait_count = 1
        exchange%limit_us = 1000000
        exchange%error = c_loc(error)
        exchange%rows = n
        exchange%columns = m
        exchange%parts = c_loc(parts)
        exchange%part_count = 2
        exchange%ld_part = m
        exchange%d = c_loc(places)
        exchange%d_count = 1
        exchange%ldd = m
    end subroutine

    ! Two blocks of describe_relu's product, of two rows and of one.
    subroutine describe_blocks()
        places = [c_loc(D(1, 1)), c_loc(D(3, 1))]
        blocks%rows = 2
        blocks%d = c_loc(places)
    end subroutine

    ! Row-major: the transpose of each Fortran array. Two groups, of one row and of two.
    subroutine describe_rows()
        grouped%transb = HGEMM_NO_TRANS
        grouped%type_d = HGEMM_F32
        grouped%group_count = 2
        grouped%m = m
        grouped%n = n
        grouped%k = k
        grouped%a = c_loc(h%At)
        grouped%lda = k
        grouped%b = c_loc(h%Bt)
        grouped%ldb = n
        grouped%d = c_loc(Dt)
        grouped%ldd = n
        grouped%offsets = c_loc(offsets)
    end subroutine
end module
