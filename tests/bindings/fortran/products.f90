! Every function of the module, with what it computes checked, three times in each of two program units (the main
! program and a procedure of a module) and once in a loop.
module caller
    use operands
    implicit none

contains

    subroutine call_everything()
        include 'every_function.inc'
        include 'every_function.inc'
        include 'every_function.inc'
    end subroutine

    subroutine call_in_a_loop()
        integer :: turn
        do turn = 1, 3
            include 'every_function.inc'
        end do
    end subroutine
end module

program products
    use caller
    implicit none

    call prepare()
    include 'every_function.inc'
    include 'every_function.inc'
    include 'every_function.inc'
    call call_everything()
    call call_in_a_loop()
    call expect('text of nothing', hgemm_text(c_null_ptr) == '')
    if (failures > 0) error stop 1
    print '(a)', 'all products are right'
end program
