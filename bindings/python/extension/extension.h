/* What hgemm.torch calls of this extension, by ctypes. */
#ifndef HGEMM_TORCH_EXTENSION_H
#define HGEMM_TORCH_EXTENSION_H

#include "hgemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Looks up what the extension calls and gives torch its kernels. `torch` and `hgemm` are handles of
 * dlopen(). Returns NULL, or the name of what is missing; then the process has no kernel of this extension.
 */
HGEMM_API const char *hgemm_torch_load(void *torch, void *hgemm);

/* The number that a form of products (`Form` in product.hpp) has in this build, by its name; -1: there is
 * none. */
HGEMM_API int64_t hgemm_torch_form(const char *name);

/* The kernels may use this handle, which lives as long as the process, on its device (-1: the CPU) and
 * stream. The caller has taken it, and gives it back when it does not use it. Returns what the next two
 * functions take. */
HGEMM_API void *hgemm_torch_share(int device, void *stream, int batch_invariant, hgemm_handle_t handle);

/* Returns 0 if the handle is in use. */
HGEMM_API int hgemm_torch_take(void *shared);
HGEMM_API void hgemm_torch_give_back(void *shared);

#ifdef __cplusplus
}
#endif

#endif
