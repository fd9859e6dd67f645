/*
 * What libhgemm_cublas.so exports beside the functions of cuBLAS that it takes over. A program that wants to
 * know whether it runs under the shim looks these up with dlsym(RTLD_DEFAULT, ...).
 */
#ifndef HGEMM_SHIM_H
#define HGEMM_SHIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Set what HGEMM_SHIM set: "off", "on" or "verify". From the next call of any thread on; 0, or -1 and no
    change for any other text. */
__attribute__((visibility("default"))) int hgemm_shim_set_mode(const char *mode);

/** Calls so far that libhgemm served, and that went to the real library. */
__attribute__((visibility("default"))) uint64_t hgemm_shim_served(void);
__attribute__((visibility("default"))) uint64_t hgemm_shim_passed_on(void);

/** The summary that HGEMM_SHIM_LOG=summary prints at exit, cut to `length` bytes with the ending NUL.
    @return its full length without the NUL. */
__attribute__((visibility("default"))) size_t hgemm_shim_summary(char *text, size_t length);

#ifdef __cplusplus
}
#endif

#endif
