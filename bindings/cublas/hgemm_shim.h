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

/** Set what an environment variable of the shim set, from the next call of any thread on. A CUDA graph keeps
    the kernels that were chosen when it was recorded.
      HGEMM_SHIM         "on" (default), "off", "verify"
      HGEMM_SHIM_MODE    "default", "batch-invariant": libhgemm computes in HGEMM_MODE_BATCH_INVARIANT (hgemm.h)
      HGEMM_SHIM_STRICT  "off" (default), "on": a half-precision product that the shim would pass on returns
                         CUBLAS_STATUS_NOT_SUPPORTED instead
      HGEMM_SHIM_LOG     "off" (default), "summary", "calls"
    @return 0, or -1 and no change if there is no such variable or value. */
__attribute__((visibility("default"))) int hgemm_shim_set(const char *variable, const char *value);

/** The value of such a variable, as it was set last; NULL if there is no such variable. The text stays. */
__attribute__((visibility("default"))) const char *hgemm_shim_get(const char *variable);

/** The same as hgemm_shim_set("HGEMM_SHIM", mode). */
__attribute__((visibility("default"))) int hgemm_shim_set_mode(const char *mode);

/** Calls so far that libhgemm served, and that went to the real library. Refused ones are neither. */
__attribute__((visibility("default"))) uint64_t hgemm_shim_served(void);
__attribute__((visibility("default"))) uint64_t hgemm_shim_passed_on(void);

/** The summary that HGEMM_SHIM_LOG=summary prints at exit, cut to `length` bytes with the ending NUL.
    @return its full length without the NUL. */
__attribute__((visibility("default"))) size_t hgemm_shim_summary(char *text, size_t length);

#ifdef __cplusplus
}
#endif

#endif
