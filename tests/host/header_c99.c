/* hgemm.h is C99 and pulls in nothing but <stddef.h> and <stdint.h>: compiled with -pedantic -Werror, and
   as the oldest C++ too. */
#include "hgemm.h"

#if defined(_STDIO_H) || defined(_STDLIB_H) || defined(__cuda_cuda_h__)
#error "hgemm.h includes more than it says"
#endif

const char *hgemm_header_test(void);

const char *hgemm_header_test(void)
{
    hgemm_args_t args;
    hgemm_grouped_args_t grouped;
    hgemm_args_init(&args, sizeof args);
    hgemm_grouped_args_init(&grouped, sizeof grouped);
    return hgemm_status_string(hgemm_gemm_ex(NULL, &args));
}
