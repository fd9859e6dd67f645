/* Calls the functions that OpenBLAS's header declares, as a program written for it does. */
#include <cblas.h>

#include <stdio.h>

int main(void)
{
    /* bf16 1, 2, 3, 4 by rows, times the identity. */
    const bfloat16 a[] = {0x3f80, 0x4000, 0x4040, 0x4080}, identity[] = {0x3f80, 0, 0, 0x3f80};
    float c[] = {1, 1, 1, 1};
    cblas_sbgemm(CblasRowMajor, CblasTrans, CblasNoTrans, 2, 2, 2, 2.0f, a, 2, identity, 2, 1.0f, c, 2);
    printf("%g %g %g %g\n", c[0], c[1], c[2], c[3]);
    return !(c[0] == 3 && c[1] == 7 && c[2] == 5 && c[3] == 9);
}
