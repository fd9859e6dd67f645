/* What hgemm_create() makes of the driver that it meets; EMU_FAULTS breaks it. */
#include "hgemm.h"

#include <stdio.h>

int main(void)
{
    hgemm_handle_t handle;
    const hgemm_status_t status = hgemm_create(&handle);
    printf("%s: %s\n", hgemm_status_string(status),
           status == HGEMM_STATUS_SUCCESS ? hgemm_backend(handle) : hgemm_last_error());
    return hgemm_destroy(handle);
}
