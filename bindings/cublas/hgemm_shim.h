/*
 * What libhgemm_cublas.so offers beside the functions of cuBLAS that it takes over. A program that may run
 * without the shim looks these up with dlsym(RTLD_DEFAULT, ...), which then returns NULL. Several threads
 * may call them at a time.
 */
#ifndef HGEMM_SHIM_H
#define HGEMM_SHIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Give a variable of the shim another value than the environment gave it. Calls of cuBLAS that begin later
    follow it, on all handles and threads. A CUDA graph keeps the kernels with which it was recorded.
      HGEMM_SHIM         "on" (default), "off", "verify"
      HGEMM_SHIM_MODE    "default", "batch-invariant", "tree": the mode in which libhgemm computes
                         (hgemm_mode_t in hgemm.h)
      HGEMM_SHIM_STRICT  "off" or "0" (default), "on" or "1": a half-precision product that cuBLAS
                         would compute returns CUBLAS_STATUS_NOT_SUPPORTED instead
      HGEMM_SHIM_SYRK    "off" or "0" (default), "on" or "1": of a matrix times its transpose libhgemm
                         computes one half
      HGEMM_SHIM_LOG     "off" (default), "summary", "calls"
    @return 0, or -1 and no change if there is no such variable or value. */
__attribute__((visibility("default"))) int hgemm_shim_set(const char *variable, const char *value);

/** The value of such a variable, as it was set last; NULL if there is no such variable. Stays valid. */
__attribute__((visibility("default"))) const char *hgemm_shim_get(const char *variable);

/** The same as hgemm_shim_set("HGEMM_SHIM", mode): not HGEMM_SHIM_MODE, which is younger. */
__attribute__((visibility("default"))) int hgemm_shim_set_mode(const char *mode);

/** Calls so far that libhgemm served, and that went to the real library. Those that the shim let fail, as in
    strict mode, are neither. A forked child counts from 0. */
__attribute__((visibility("default"))) uint64_t hgemm_shim_served(void);
__attribute__((visibility("default"))) uint64_t hgemm_shim_passed_on(void);

/** The summary that HGEMM_SHIM_LOG=summary prints at exit, cut to `length` bytes with the ending NUL.
    @return its full length without the NUL. */
__attribute__((visibility("default"))) size_t hgemm_shim_summary(char *text, size_t length);

#ifdef __cplusplus
}
#endif

#endif
