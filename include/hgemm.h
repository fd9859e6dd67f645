/*
 * libhgemm: half-precision matrix products, C interface, version 1.
 *
 * Inputs are fp16 or bf16, products are exact, sums are fp32 and each result is rounded once, to
 * nearest even, to the output type. C99 and C++; includes no CUDA header.
 *
 * Conventions, for every function below:
 *   - Sizes, leading dimensions, increments, strides and batch counts are int64_t and count elements.
 *   - Pointers are device pointers for a handle on a GPU and host pointers for a handle on
 *     HGEMM_DEVICE_HOST. They need the alignment of one element and no more. A handle on the host refuses
 *     device memory if the process had loaded the CUDA driver when the handle was created, and was not the
 *     child of a fork() then.
 *   - m, n or k may be 0. beta = 0: C is not read. alpha = 0 or k = 0: A and B are not read.
 *   - Operands that are not read may be NULL. Where nothing is multiplied (alpha = 0 or k = 0), beta = 1,
 *     D is C, and there is no bias, activation, aux or HGEMM_BOTH, nothing is written.
 *   - The output must not overlap A, B, the bias or aux, nor C unless it is C. The outputs of a batch must
 *     not overlap each other, and aux must not overlap an operand. The library computes from addresses,
 *     leading dimensions and strides which elements a call touches, and refuses the call if they overlap.
 *     The lines of one matrix may lie in the gaps between the lines of another. The library cannot see, or
 *     does not look for, overlaps
 *       - of matrices in a pointer array,
 *       - of one group with another,
 *       - of scalars in memory,
 *       - of the second and later problems of a batch with other operands, if the problems are interleaved:
 *         if they lie neither one behind the other nor side by side in memory.
 *   - A call on a GPU is asynchronous on the handle's stream, may be captured into a CUDA graph, and neither
 *     allocates nor synchronises. There are three exceptions: tuning, a kernel's first launch (below), and
 *     hgemm_set_workspace_per_stream(), whose comment describes the memory that calls then allocate. A call
 *     on the host returns when the result is written.
 *   - Every other function but tuning may be called while streams are captured, and leaves captures alone.
 *   - CUDA copies the code of a kernel to the device at its first launch. That call takes up to a
 *     millisecond longer. CUDA may allocate 2 MB of device memory in it, and may wait for work that runs.
 *     With CUDA_MODULE_LOADING=EAGER in the environment of the process CUDA copies all code when the handle
 *     is created, which then takes two to three times as long.
 *   - Errors are returned, never printed; a refused call writes nothing. hgemm_last_error() names the
 *     argument, its value and what was wanted.
 *   - A handle is used by one thread at a time; different handles are independent.
 *   - The same call, on a handle with the same settings, gives the same bits on the same device model and
 *     library version, on any stream. A workspace of the caller's is one of those settings, and so is the
 *     tuning file that was read when the handle was created (see hgemm_create()), and each later
 *     hgemm_tune(), which may choose another kernel as a line of such a file does.
 */
#ifndef HGEMM_H
#define HGEMM_H

#include <stddef.h>
#include <stdint.h>

#define HGEMM_VERSION_MAJOR 0
#define HGEMM_VERSION_MINOR 2
#define HGEMM_VERSION_PATCH 0
#define HGEMM_VERSION (HGEMM_VERSION_MAJOR * 10000 + HGEMM_VERSION_MINOR * 100 + HGEMM_VERSION_PATCH)

#if defined(_WIN32) || !defined(__GNUC__)
#define HGEMM_API
#else
#define HGEMM_API __attribute__((visibility("default")))
#endif

/* A C++ enum has undefined values unless its type is fixed; to C it is the same. */
#if defined(__cplusplus) && __cplusplus >= 201103L
#define HGEMM_ENUM(name) enum name : int
#else
#define HGEMM_ENUM(name) enum name
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types ------------------------------------------------------------------------------------ */

/** Bit pattern of an IEEE binary16 number; the same bits as CUDA's __half. */
typedef uint16_t hgemm_half_t;
/** Bit pattern of a bfloat16 number; the same bits as CUDA's __nv_bfloat16. */
typedef uint16_t hgemm_bfloat16_t;

/** What a program holds while it uses the library; see hgemm_create(). It is no address: a handle that was
    destroyed, or any other pointer, is refused (NOT_INITIALIZED), also beside newer handles. */
typedef struct hgemm_handle *hgemm_handle_t;
/** A cudaStream_t or CUstream passes unchanged; NULL is the default stream. */
typedef struct CUstream_st *hgemm_stream_t;

typedef HGEMM_ENUM(hgemm_status) {
    HGEMM_STATUS_SUCCESS = 0,
    HGEMM_STATUS_NOT_INITIALIZED = 1,     /* the handle is NULL, was destroyed or is none */
    HGEMM_STATUS_INVALID_ARGUMENT = 2,    /* see hgemm_last_error() and hgemm_last_error_argument() */
    HGEMM_STATUS_NOT_SUPPORTED = 3,       /* a legal request that this backend or device cannot serve */
    HGEMM_STATUS_ALLOC_FAILED = 4,        /* no memory, on the host or the device */
    HGEMM_STATUS_NO_DEVICE = 5,           /* the device that was asked for is not there */
    HGEMM_STATUS_DRIVER_ERROR = 6,        /* the CUDA driver answered with an error */
    HGEMM_STATUS_LAUNCH_FAILED = 7,       /* the CUDA driver refused a kernel launch */
    HGEMM_STATUS_WORKSPACE_TOO_SMALL = 8, /* hgemm_workspace_size() tells what is needed */
    HGEMM_STATUS_INTERNAL = 9,            /* a defect of this library; please report it */
    HGEMM_STATUS_TIMED_OUT = 10           /* a flag was not raised in time; see hgemm_read_error() */
} hgemm_status_t;

/** Storage order of every matrix of a call; CBLAS's values. */
typedef HGEMM_ENUM(hgemm_layout) { HGEMM_ROW_MAJOR = 101, HGEMM_COL_MAJOR = 102 } hgemm_layout_t;

/** op(X) = X or its transpose; CBLAS's values. HGEMM_CONJ_TRANS equals HGEMM_TRANS on real data. */
typedef HGEMM_ENUM(hgemm_op) { HGEMM_NO_TRANS = 111, HGEMM_TRANS = 112, HGEMM_CONJ_TRANS = 113 } hgemm_op_t;

/** Element types. A and B are F16 or BF16 (the same for both); C, D, bias and aux also F32. */
typedef HGEMM_ENUM(hgemm_type) { HGEMM_F16 = 1, HGEMM_BF16 = 2, HGEMM_F32 = 3 } hgemm_type_t;

/** In which order the k products of an element are added up. */
typedef HGEMM_ENUM(hgemm_mode) {
    /** The fastest. k may be cut anywhere, as m, n and the batch suggest. */
    HGEMM_MODE_DEFAULT = 0,
    /** k is never cut. An element's bits depend only on its row of A, column of B, c, alpha, beta and k: not
        on m, n, the batch count or the place in the batch. */
    HGEMM_MODE_BATCH_INVARIANT = 1,
    /**
     * Batch-invariant as well, and k is always cut in the same way: into halves as long as each half is a
     * multiple of 64 and at least 512. alpha times the sum over each last part is rounded to fp32, then
     * neighbours are added, and sums of neighbours, up to one, each rounded to fp32. Then come beta * C, bias
     * and activation. So 2, 4 or 8 processes that hold a part of k each, where k is halved that often, get the
     * bits of one: each computes its part in this mode with an fp32 result, and the results are added
     * pairwise. Where k is never halved the bits are those of HGEMM_MODE_BATCH_INVARIANT.
     *
     * A product whose k is halved needs a workspace, and is several launches. NOT_SUPPORTED, if k is halved:
     * groups whose sizes are in device memory, k above 2^26. Always, on a GPU: groups of k, and tuning.
     */
    HGEMM_MODE_TREE = 2
} hgemm_mode_t;

/** What is applied to each element of alpha * op(A) * op(B) + beta * C + bias before it is stored. */
typedef HGEMM_ENUM(hgemm_activation) {
    HGEMM_ACTIVATION_NONE = 0,
    HGEMM_ACTIVATION_RELU = 1,
    HGEMM_ACTIVATION_GELU_TANH = 2,
    HGEMM_ACTIVATION_GELU_ERF = 3,
    HGEMM_ACTIVATION_SILU = 4
} hgemm_activation_t;

/** HGEMM_BIAS_M: bias has m elements, element i is added to row i. HGEMM_BIAS_N: n elements, one per
    column. Rows and columns are those of the mathematical m x n result, whatever the layout. */
typedef HGEMM_ENUM(hgemm_bias) { HGEMM_BIAS_NONE = 0, HGEMM_BIAS_M = 1, HGEMM_BIAS_N = 2 } hgemm_bias_t;

/**
 * Which half of a D is computed that is known to be symmetric, n x n. HGEMM_UPPER: elements whose row is not
 * greater than their column, those of the mathematical matrix, whatever the layout. HGEMM_LOWER: those whose
 * column is not greater than their row. The others are not written. HGEMM_BOTH: the upper half, and the others
 * become those of its transpose, bit for bit. C counts where an element is computed, but all of it may be
 * read. The values are CBLAS's, which has nothing like HGEMM_BOTH.
 */
typedef HGEMM_ENUM(hgemm_uplo) {
    HGEMM_UPLO_NONE = 0, /* all of D, which need be neither square nor symmetric */
    HGEMM_UPPER = 121,
    HGEMM_LOWER = 122,
    HGEMM_BOTH = 123
} hgemm_uplo_t;

/**
 * A gated result, as in SwiGLU and GeGLU. Half of the elements of each line of the product are gates. Each
 * gate has one up element in the other half of the line. D = activation(gate) * (up + offset), with lines
 * half as long. A line is a row of a row-major product, and a column of a column-major one. The product
 * includes alpha, beta * C and the bias.
 */
typedef struct hgemm_gate {
    /* 0: no gates. Else the first `block` elements of a line are gates, the next `block` are their up
       elements, the next `block` are gates again, and so on. Half of a line: all gates come first. 1: gates
       and up elements alternate. 2 * block must divide the length of a line. */
    int64_t block;
    float limit;     /* 0: none; else gates are at most limit, up elements clamped to -limit ... limit */
    float slope;     /* at least 0; of HGEMM_ACTIVATION_SILU, x / (1 + exp(-slope * x)); 0 counts as 1 */
    float offset;    /* added to each up element */
    uint32_t unused; /* not read */
} hgemm_gate_t;

/** Device number for hgemm_create_on(): compute on the CPU, with host pointers. */
#define HGEMM_DEVICE_HOST (-1)
/** Device number for hgemm_create_on(): the device that hgemm_create() would take. */
#define HGEMM_DEVICE_CURRENT (-2)

/* ---- Handle ----------------------------------------------------------------------------------- */

/**
 * Create a handle on the current CUDA context's device, else on device 0's primary context, else
 * (no driver or no device) on the host. HGEMM_BACKEND, HGEMM_KERNEL, HGEMM_TUNING, HGEMM_LOG and
 * HGEMM_LOG_FILE are read from the environment here and nowhere else, and not by programs with rights that
 * their caller has not (setuid, setgid, file capabilities). HGEMM_LOG_FILE is appended to and must be a
 * regular file, or a link to one; else a line on standard error says why, and the log goes there.
 *
 * A handle on a GPU also reads, here and nowhere else, the tuning file that HGEMM_TUNING names, else the
 * one of its device in $XDG_CACHE_HOME/libhgemm or $HOME/.cache/libhgemm, where hgemm-tune writes it. It
 * names kernels for problems that were measured on this device with this build of the library;
 * hgemm_explain() says tuned-here where one is used. A kernel that a problem, the workspace or the mode
 * does not allow is not used, and none is under a limit of SMs. The file may also have a calibration: by how
 * much this device is slower or faster than the library expects, for the choice of all other kernels
 * (why=calibrated). With HGEMM_TUNING=off or HGEMM_KERNEL no file is read. A file that is not there, or not
 * for this device and build, is no error; the log says why at level plan.
 *
 * @return SUCCESS; INVALID_ARGUMENT (handle is NULL); ALLOC_FAILED (also beyond 65,536 handles); NO_DEVICE
 *   (HGEMM_BACKEND names a GPU backend and there is no driver or no device); NOT_SUPPORTED (compute
 *   capability under 8.0, an HGEMM_BACKEND or HGEMM_KERNEL that is unknown, not built in or does not run on
 *   the device, an unknown HGEMM_LOG, or a device in a machine whose libhgemm was built without GPU
 *   backends, unless hgemm_create_on() or HGEMM_BACKEND asks for the host); DRIVER_ERROR.
 *   *handle is NULL unless SUCCESS.
 */
HGEMM_API hgemm_status_t hgemm_create(hgemm_handle_t *handle);

/** As hgemm_create(), on CUDA device `device` (>= 0, its primary context), HGEMM_DEVICE_HOST or
    HGEMM_DEVICE_CURRENT. */
HGEMM_API hgemm_status_t hgemm_create_on(hgemm_handle_t *handle, int device);

/**
 * As hgemm_create_on(), with a workspace of its own of `workspace_bytes` bytes; 0: none. In a workspace lie
 * copies of unaligned operands, and sums over slices of k. The other two functions take what the backend
 * asks for: 192 MiB on compute capability 9.0, 128 MiB on other GPUs, 64 MiB and some on the host.
 *
 * On a GPU the handle allocates counters as well: memory in which thread blocks count, and leave sums, for
 * each other. It takes 16 KiB, and up to a quarter of `workspace_bytes` more, but at most 64 KiB for each SM.
 * A workspace of the caller's has no counters.
 *
 * On a GPU the library chooses kernels for which the workspace is large enough. On the host it has no such
 * choice, and refuses products that need a larger one (WORKSPACE_TOO_SMALL).
 *
 * Workspaces are not wiped, neither on the host nor on the device. Copies of operands stay in the memory that
 * hgemm_destroy() frees, and in a workspace of the caller's. The buffers through which libhgemm_cblas copies
 * operands to a GPU are not wiped either.
 */
HGEMM_API hgemm_status_t hgemm_create_sized(hgemm_handle_t *handle, int device, size_t workspace_bytes);

/** Release a handle. Work in flight on its stream must have ended. Kernels are unloaded with the last
    handle of the process, so a graph that holds some may be launched as long as there is one; once
    hgemm_set_workspace_per_stream() was called they stay. NULL is accepted. */
HGEMM_API hgemm_status_t hgemm_destroy(hgemm_handle_t handle);

/** Run later calls on `stream`, which must belong to the handle's context, or to a green context of the
    device whose primary context that is (INVALID_ARGUMENT). On a green context's stream kernels are chosen
    for its SMs, or for those of hgemm_set_sm_count() if they are fewer, until another stream is
    set; the driver must be 12.5 or newer. A host handle accepts NULL only. */
HGEMM_API hgemm_status_t hgemm_set_stream(hgemm_handle_t handle, hgemm_stream_t stream);
HGEMM_API hgemm_status_t hgemm_get_stream(hgemm_handle_t handle, hgemm_stream_t *stream);

/** Use `bytes` bytes at `workspace` (256-byte aligned; device memory for a GPU handle) instead of the
    handle's own; NULL with 0 bytes goes back to the handle's own. Products that use a workspace must not
    run at the same time with the same one, or their results are wrong, and later ones' too: those on
    different streams, and graphs, need one each. The next function sees to that. */
HGEMM_API hgemm_status_t hgemm_set_workspace(hgemm_handle_t handle, void *workspace, size_t bytes);
/** The one in use: the caller's, else the handle's own or that of its stream; NULL with 0 bytes if there is
    none, NULL with the limit of hgemm_set_workspace_per_stream() where the stream has none yet. */
HGEMM_API hgemm_status_t hgemm_get_workspace(hgemm_handle_t handle, void **workspace, size_t *bytes);

/**
 * Let products use workspaces that nothing else uses at the same time, of at most `bytes` bytes each: one
 * for each stream, and one for each CUDA graph into which products are captured (and for each captured
 * stream, where there are several). 0, as it is at first: products use the handle's own. With it
 *   - graphs may run beside each other, and beside what else the handle does;
 *   - graphs may be launched when the handle is destroyed: kernels stay loaded until the process ends;
 *   - a product for which its stream or graph has no workspace, or too small a one, allocates it, as large
 *     as it needs, also during a capture (ALLOC_FAILED if there is no memory), and waits until it is there,
 *     for no other work. CUDA may wait for the device where workspaces that are no longer used are freed.
 * A graph's workspace is kept until the graph, its copies and all executable graphs made of them are
 * destroyed. No two of those may run at the same time, nor branches that
 * cuStreamUpdateCaptureDependencies() makes of one captured stream. It is no node of the graph. A stream's
 * workspace is freed with the handle, or later than a larger one, or another stream, has taken its place.
 * Beside it lie counters where products need some, as with hgemm_create_sized().
 *
 * A workspace of hgemm_set_workspace() is used all the same, but not in captures: a graph gets one of its
 * own, of that size. hgemm_create_sized(&handle, device, 0) makes a handle that has no workspace beside
 * these.
 *
 * @return SUCCESS; NOT_INITIALIZED; INVALID_ARGUMENT (bytes is above 2^46; or not 0 for a handle on the
 *   host); DRIVER_ERROR.
 */
HGEMM_API hgemm_status_t hgemm_set_workspace_per_stream(hgemm_handle_t handle, size_t bytes);
/** The limit as it was set; 0: products use the handle's own workspace. */
HGEMM_API hgemm_status_t hgemm_get_workspace_per_stream(hgemm_handle_t handle, size_t *bytes);

/** Choose among hgemm_mode_t. NOT_SUPPORTED where the backend cannot keep the promise. */
HGEMM_API hgemm_status_t hgemm_set_mode(hgemm_handle_t handle, hgemm_mode_t mode);
HGEMM_API hgemm_status_t hgemm_get_mode(hgemm_handle_t handle, hgemm_mode_t *mode);

/** Use at most `count` SMs; 0 means all of them. On the host it bounds the library's own
    threads; how many OpenBLAS uses is the program's setting. Other kernels may then hold all SMs but
    `count`, whichever these are, and wait for the products of this handle: unless HGEMM_KERNEL names
    another, a kernel is chosen that runs on those `count`. Its code must be loaded, by an earlier call or
    by CUDA_MODULE_LOADING=EAGER. Without a limit a product needs as many free SMs of one GPC, a group of
    SMs, as one of its clusters has thread blocks: at most 8, and hgemm_explain() tells how many. */
HGEMM_API hgemm_status_t hgemm_set_sm_count(hgemm_handle_t handle, int count);
/** The limit as it was set; 0: none. */
HGEMM_API hgemm_status_t hgemm_get_sm_count(hgemm_handle_t handle, int *count);

/** The device that the handle computes on: CUDA's number of it, or HGEMM_DEVICE_HOST. */
HGEMM_API hgemm_status_t hgemm_get_device(hgemm_handle_t handle, int *device);

/** Name of the backend, such as "sm90" or "host"; "" for an invalid handle. Lives as long as the
    library. */
HGEMM_API const char *hgemm_backend(hgemm_handle_t handle);

/* ---- Log -------------------------------------------------------------------------------------- */

/** What is logged: nothing; failed calls; also each handle and how each product runs; also a command that
    runs the product again. HGEMM_LOG calls the levels off, error, plan and trace. */
typedef HGEMM_ENUM(hgemm_log_level) {
    HGEMM_LOG_OFF = 0,
    HGEMM_LOG_ERROR = 1,
    HGEMM_LOG_PLAN = 2,
    HGEMM_LOG_TRACE = 3
} hgemm_log_level_t;

/** Takes one line, without its end or other control characters, valid during the call. It is called by the
    threads that use handles, several at a time, and must neither throw nor use the same handle. */
typedef void (*hgemm_logger_t)(void *data, const char *line);

/** Log what handles do that are created later, in the whole process, to `logger`, which is given `data`,
    whatever HGEMM_LOG and HGEMM_LOG_FILE say. A NULL logger leaves it to these again. A handle keeps the
    logger that it was created with.
    @return SUCCESS; INVALID_ARGUMENT (level); ALLOC_FAILED. */
HGEMM_API hgemm_status_t hgemm_set_logger(hgemm_log_level_t level, hgemm_logger_t logger, void *data);

/* ---- Level 3, column-major short forms -------------------------------------------------------- */
/*
 * C (m x n, ldc >= max(1, m)) = alpha * op(A) * op(B) + beta * C, column-major, alpha and beta by value.
 * The first letter behind the underscore is op(A), the second op(B):
 *   _nn  A is m x k, lda >= m    B is k x n, ldb >= k
 *   _nt  A is m x k, lda >= m    B is n x k, ldb >= n
 *   _tn  A is k x m, lda >= k    B is k x n, ldb >= k   (both contiguous along k: the fastest form)
 *   _tt  A is k x m, lda >= k    B is n x k, ldb >= n
 * hgemm_* is fp16 in and out, bgemm_* is bf16 in and out.
 */
HGEMM_API hgemm_status_t hgemm_nn(hgemm_handle_t handle, int64_t m, int64_t n, int64_t k, float alpha,
                                  const hgemm_half_t *A, int64_t lda, const hgemm_half_t *B, int64_t ldb,
                                  float beta, hgemm_half_t *C, int64_t ldc);
HGEMM_API hgemm_status_t hgemm_nt(hgemm_handle_t handle, int64_t m, int64_t n, int64_t k, float alpha,
                                  const hgemm_half_t *A, int64_t lda, const hgemm_half_t *B, int64_t ldb,
                                  float beta, hgemm_half_t *C, int64_t ldc);
HGEMM_API hgemm_status_t hgemm_tn(hgemm_handle_t handle, int64_t m, int64_t n, int64_t k, float alpha,
                                  const hgemm_half_t *A, int64_t lda, const hgemm_half_t *B, int64_t ldb,
                                  float beta, hgemm_half_t *C, int64_t ldc);
HGEMM_API hgemm_status_t hgemm_tt(hgemm_handle_t handle, int64_t m, int64_t n, int64_t k, float alpha,
                                  const hgemm_half_t *A, int64_t lda, const hgemm_half_t *B, int64_t ldb,
                                  float beta, hgemm_half_t *C, int64_t ldc);
HGEMM_API hgemm_status_t bgemm_nn(hgemm_handle_t handle, int64_t m, int64_t n, int64_t k, float alpha,
                                  const hgemm_bfloat16_t *A, int64_t lda, const hgemm_bfloat16_t *B,
                                  int64_t ldb, float beta, hgemm_bfloat16_t *C, int64_t ldc);
HGEMM_API hgemm_status_t bgemm_nt(hgemm_handle_t handle, int64_t m, int64_t n, int64_t k, float alpha,
                                  const hgemm_bfloat16_t *A, int64_t lda, const hgemm_bfloat16_t *B,
                                  int64_t ldb, float beta, hgemm_bfloat16_t *C, int64_t ldc);
HGEMM_API hgemm_status_t bgemm_tn(hgemm_handle_t handle, int64_t m, int64_t n, int64_t k, float alpha,
                                  const hgemm_bfloat16_t *A, int64_t lda, const hgemm_bfloat16_t *B,
                                  int64_t ldb, float beta, hgemm_bfloat16_t *C, int64_t ldc);
HGEMM_API hgemm_status_t bgemm_tt(hgemm_handle_t handle, int64_t m, int64_t n, int64_t k, float alpha,
                                  const hgemm_bfloat16_t *A, int64_t lda, const hgemm_bfloat16_t *B,
                                  int64_t ldb, float beta, hgemm_bfloat16_t *C, int64_t ldc);

/* ---- Level 3, CBLAS form ---------------------------------------------------------------------- */

/**
 * C (m x n) = alpha * op(A) * op(B) + beta * C with op(A) m x k and op(B) k x n, all in `layout`.
 * A leading dimension is the distance between rows (row-major) or columns (column-major) of the
 * matrix as stored and at least the length of one of them, never under 1.
 * The linear layer D = A * transpose(B) of row-major data is
 *   hgemm(h, HGEMM_ROW_MAJOR, HGEMM_NO_TRANS, HGEMM_TRANS, m, n, k, 1, A, k, B, k, 0, D, n).
 */
HGEMM_API hgemm_status_t hgemm(hgemm_handle_t handle, hgemm_layout_t layout, hgemm_op_t transa,
                               hgemm_op_t transb, int64_t m, int64_t n, int64_t k, float alpha,
                               const hgemm_half_t *A, int64_t lda, const hgemm_half_t *B, int64_t ldb,
                               float beta, hgemm_half_t *C, int64_t ldc);
HGEMM_API hgemm_status_t bgemm(hgemm_handle_t handle, hgemm_layout_t layout, hgemm_op_t transa,
                               hgemm_op_t transb, int64_t m, int64_t n, int64_t k, float alpha,
                               const hgemm_bfloat16_t *A, int64_t lda, const hgemm_bfloat16_t *B,
                               int64_t ldb, float beta, hgemm_bfloat16_t *C, int64_t ldc);

/**
 * batch_count products of one shape; problem i uses A + i * stride_a, B + i * stride_b, C + i * stride_c.
 * stride_a and stride_b may be 0 (shared) or negative; the outputs of different problems must not
 * overlap.
 */
HGEMM_API hgemm_status_t hgemm_strided_batched(hgemm_handle_t handle, hgemm_layout_t layout,
                                               hgemm_op_t transa, hgemm_op_t transb, int64_t m, int64_t n,
                                               int64_t k, float alpha, const hgemm_half_t *A, int64_t lda,
                                               int64_t stride_a, const hgemm_half_t *B, int64_t ldb,
                                               int64_t stride_b, float beta, hgemm_half_t *C, int64_t ldc,
                                               int64_t stride_c, int64_t batch_count);
HGEMM_API hgemm_status_t bgemm_strided_batched(hgemm_handle_t handle, hgemm_layout_t layout,
                                               hgemm_op_t transa, hgemm_op_t transb, int64_t m, int64_t n,
                                               int64_t k, float alpha, const hgemm_bfloat16_t *A,
                                               int64_t lda, int64_t stride_a, const hgemm_bfloat16_t *B,
                                               int64_t ldb, int64_t stride_b, float beta,
                                               hgemm_bfloat16_t *C, int64_t ldc, int64_t stride_c,
                                               int64_t batch_count);

/** As above with arrays of batch_count pointers. The arrays lie in device memory for a GPU handle and
    are read when the kernel runs; each pointer needs the alignment of one element. The host refuses wrong
    pointers. */
HGEMM_API hgemm_status_t hgemm_batched(hgemm_handle_t handle, hgemm_layout_t layout, hgemm_op_t transa,
                                       hgemm_op_t transb, int64_t m, int64_t n, int64_t k, float alpha,
                                       const hgemm_half_t *const *A, int64_t lda,
                                       const hgemm_half_t *const *B, int64_t ldb, float beta,
                                       hgemm_half_t *const *C, int64_t ldc, int64_t batch_count);
HGEMM_API hgemm_status_t bgemm_batched(hgemm_handle_t handle, hgemm_layout_t layout, hgemm_op_t transa,
                                       hgemm_op_t transb, int64_t m, int64_t n, int64_t k, float alpha,
                                       const hgemm_bfloat16_t *const *A, int64_t lda,
                                       const hgemm_bfloat16_t *const *B, int64_t ldb, float beta,
                                       hgemm_bfloat16_t *const *C, int64_t ldc, int64_t batch_count);

/* ---- Level 3, symmetric results --------------------------------------------------------------- */

/**
 * C (n x n) = alpha * op(A) * transpose(op(A)) + beta * C, of which `uplo` names the half that is computed:
 * HGEMM_UPPER, HGEMM_LOWER or HGEMM_BOTH. `trans` is op: with HGEMM_NO_TRANS A is n x k, else k x n. A large C
 * takes about half of the work of hgemm. hsyrk is fp16 in and out, bsyrk is bf16 in and out.
 *
 * HGEMM_UPPER and HGEMM_LOWER need room for at least one block of C in the workspace. In
 * HGEMM_MODE_BATCH_INVARIANT and HGEMM_MODE_TREE an element that is computed has the bits that hgemm gives it.
 */
HGEMM_API hgemm_status_t hsyrk(hgemm_handle_t handle, hgemm_layout_t layout, hgemm_uplo_t uplo,
                               hgemm_op_t trans, int64_t n, int64_t k, float alpha, const hgemm_half_t *A,
                               int64_t lda, float beta, hgemm_half_t *C, int64_t ldc);
HGEMM_API hgemm_status_t bsyrk(hgemm_handle_t handle, hgemm_layout_t layout, hgemm_uplo_t uplo,
                               hgemm_op_t trans, int64_t n, int64_t k, float alpha,
                               const hgemm_bfloat16_t *A, int64_t lda, float beta, hgemm_bfloat16_t *C,
                               int64_t ldc);

/** C (n x n) = alpha * op(A) * transpose(op(B)) + beta * C, where the caller knows that it is symmetric: B may be A
    times a symmetric matrix, for example. `trans` is the op of both, n and k are those of both. */
HGEMM_API hgemm_status_t hsyrkx(hgemm_handle_t handle, hgemm_layout_t layout, hgemm_uplo_t uplo,
                                hgemm_op_t trans, int64_t n, int64_t k, float alpha, const hgemm_half_t *A,
                                int64_t lda, const hgemm_half_t *B, int64_t ldb, float beta,
                                hgemm_half_t *C, int64_t ldc);
HGEMM_API hgemm_status_t bsyrkx(hgemm_handle_t handle, hgemm_layout_t layout, hgemm_uplo_t uplo,
                                hgemm_op_t trans, int64_t n, int64_t k, float alpha,
                                const hgemm_bfloat16_t *A, int64_t lda, const hgemm_bfloat16_t *B,
                                int64_t ldb, float beta, hgemm_bfloat16_t *C, int64_t ldc);

/** batch_count results of one shape; problem i uses A + i * stride_a and C + i * stride_c. stride_a may be 0 or
    negative; the outputs of different problems must not overlap. */
HGEMM_API hgemm_status_t hsyrk_strided_batched(hgemm_handle_t handle, hgemm_layout_t layout,
                                               hgemm_uplo_t uplo, hgemm_op_t trans, int64_t n, int64_t k,
                                               float alpha, const hgemm_half_t *A, int64_t lda,
                                               int64_t stride_a, float beta, hgemm_half_t *C, int64_t ldc,
                                               int64_t stride_c, int64_t batch_count);
HGEMM_API hgemm_status_t bsyrk_strided_batched(hgemm_handle_t handle, hgemm_layout_t layout,
                                               hgemm_uplo_t uplo, hgemm_op_t trans, int64_t n, int64_t k,
                                               float alpha, const hgemm_bfloat16_t *A, int64_t lda,
                                               int64_t stride_a, float beta, hgemm_bfloat16_t *C,
                                               int64_t ldc, int64_t stride_c, int64_t batch_count);

/* ---- Level 3, general form -------------------------------------------------------------------- */

/**
 * D = activation(alpha * op(A) * op(B) + beta * C + bias), for batch_count problems; or half of it, if D is
 * symmetric; or a gated D, of half the width.
 * Fill with hgemm_args_init(), then set what differs. Every other Level 3 call is a special case.
 */
typedef struct hgemm_args {
    size_t size;           /* sizeof(hgemm_args_t) as the caller was compiled; 1024 at most */
    hgemm_layout_t layout; /* of A, B, C, D and aux */
    hgemm_op_t transa, transb;
    hgemm_type_t type_ab;        /* F16 or BF16 */
    hgemm_type_t type_c, type_d; /* F16, BF16 or F32 */
    int64_t m, n, k;
    float alpha, beta;         /* by value, unless ... */
    const float *alpha_device; /* ... not NULL: read from here when the kernel runs */
    const float *beta_device;
    const void *a; /* op(A) is m x k */
    int64_t lda;
    const void *b; /* op(B) is k x n */
    int64_t ldb;
    const void *c; /* m x n; may equal d when ldc = ldd, strides and types agree */
    int64_t ldc;
    void *d; /* m x n */
    int64_t ldd;
    int64_t batch_count;                            /* 1 for a single product, 0 does nothing */
    int64_t stride_a, stride_b, stride_c, stride_d; /* between problems of a batch */
    const void *const *a_array;                     /* not NULL: pointer-array batch; all four used ones */
    const void *const *b_array;                     /* are then arrays, and a, b, c, d and the strides */
    const void *const *c_array;                     /* are ignored */
    void *const *d_array;
    hgemm_bias_t bias_mode;
    hgemm_type_t bias_type;
    const void *bias;    /* m or n elements, contiguous; NULL without a mode */
    int64_t stride_bias; /* between problems of a batch */
    hgemm_activation_t activation;
    void *aux; /* not NULL: m x n of type_d, receives the value before the activation; NULL with arrays */
    int64_t ldaux, stride_aux;
    uint32_t flags;  /* must be 0 */
    uint32_t unused; /* not read */
    /* Not 0: that half of a D that is known to be symmetric, where m = n, without bias, activation and aux. The ops
       are those of the whole product. */
    hgemm_uplo_t uplo;
    uint32_t unused_too; /* not read */
    /* If gate.block is not 0, D is m x n / 2 (row-major) or m / 2 x n (column-major). C, the bias and aux
       belong to the m x n product. aux receives the product, before limit, activation and offset. A C that is
       read must not be D. uplo must be 0. */
    hgemm_gate_t gate;
} hgemm_args_t;

/** Fill the first `size` bytes (sizeof(hgemm_args_t) of the caller) with defaults: column-major, no
    transposes, F16, alpha = 1, beta = 0, batch_count = 1, everything else 0. NULL does nothing. */
HGEMM_API void hgemm_args_init(hgemm_args_t *args, size_t size);

HGEMM_API hgemm_status_t hgemm_gemm_ex(hgemm_handle_t handle, const hgemm_args_t *args);

/** The exact workspace that hgemm_gemm_ex(handle, args) uses of what the handle now has, in bytes.
    What thread blocks leave for each other beside the workspace counts too. Pointers in args may be NULL; they
    are then taken as well aligned. */
HGEMM_API hgemm_status_t hgemm_workspace_size(hgemm_handle_t handle, const hgemm_args_t *args,
                                              size_t *bytes);

/** Write one line of text about how hgemm_gemm_ex(handle, args) would run: the problem as row-major D[m][n]
    (column-major ones are transposed, so that m and n change places), backend, kernel, tile (rows and
    columns of that D, and k), slices of k, operands copied first, tiles, grid, workspace, and why it was
    chosen; on a GPU also cluster, stages, waves, when the next kernel may start, and the predicted time; of
    sm90 the order of tiles, K tiles that are prefetched, operands that L2 need not keep, and the epilogue. At
    most `length` bytes with the ending NUL, cut if longer. */
HGEMM_API hgemm_status_t hgemm_explain(hgemm_handle_t handle, const hgemm_args_t *args, char *buffer,
                                       size_t length);

/* ---- Grouped products ------------------------------------------------------------------------- */

typedef HGEMM_ENUM(hgemm_grouping) {
    /** Rows of A and D lie one group behind the other: group g owns rows offsets[g] to offsets[g + 1] - 1. */
    HGEMM_GROUPED_CONTIGUOUS = 1,
    /** Group g has room for m rows at a + g * stride_a and uses the first counts[g] of them. */
    HGEMM_GROUPED_MASKED = 2,
    /** group_count independent products, described on the host by structs of one size. */
    HGEMM_GROUPED_HOST = 3,
    /** K of A and B lies one group behind the other: group g sums over k from offsets[g] to offsets[g + 1] - 1
        into a D_g of its own, as the gradients of the experts' weights do. */
    HGEMM_GROUPED_K = 4
} hgemm_grouping_t;

/**
 * D_g = alpha * A_g * op(B_g) + beta * D_g + bias_g for g = 0 ... group_count - 1, row-major. The groups share
 * n, k and the types; op(B_g) is k x n at b + g * stride_b. Groups may be empty.
 * Several masked ones need a stride_d other than 0.
 *
 * Of HGEMM_GROUPED_K instead: D_g = alpha * op(A) * op(B) + beta * D_g over the k of group g, m x n at
 * d + g * stride_d, row-major; op(A) is m x k and op(B) is k x n, of all groups together. A group without k
 * gives beta * D_g. Strides of A and B are not used, and a stride_d other than 0 is needed. Fast on GPUs where A
 * is transposed and B is not, and both have lines that are aligned to 16 bytes; right elsewhere.
 *
 * Offsets, ends and counts are read when the kernel runs, so that a captured call serves whatever sizes are there when
 * its graph is launched. On a GPU what is outside of 0 ... m (or 0 ... k) is cut off; on the host it is refused.
 * Of rows that no group owns D keeps what it has. All rows of A must be readable, and for groups of k all of
 * B as well, whatever belongs to a group.
 */
typedef struct hgemm_grouped_args {
    size_t size; /* sizeof(hgemm_grouped_args_t) as the caller was compiled; 1024 at most */
    hgemm_grouping_t grouping;
    hgemm_op_t transb;
    hgemm_type_t type_ab, type_d;
    int64_t group_count;
    int64_t m; /* contiguous: rows of A in all; masked: capacity of one group; k groups: rows of each D_g */
    int64_t n, k;
    float alpha, beta;
    const void *a; /* rows of k elements */
    int64_t lda, stride_a;
    const void *b;
    int64_t ldb, stride_b;
    void *d; /* rows of n elements */
    int64_t ldd, stride_d;
    const int64_t *offsets;       /* contiguous, k: group_count + 1 non-decreasing values, device memory */
    const int64_t *counts;        /* masked: group_count values of 0 ... m, device memory */
    const hgemm_args_t *problems; /* host grouping: group_count entries, host memory; all else ignored */
    /* Other forms of offsets and counts. Exactly one member has the groups' rows: offsets, ends, ends_i32
       or offsets_i32 if they are contiguous or of k, counts or counts_i32 if they are masked. The other five
       must be NULL. */
    const int64_t *ends;        /* contiguous, k: offsets[1] to offsets[group_count]; offsets[0] is 0 */
    const int32_t *ends_i32;    /* the same of 32 bits, as PyTorch's grouped products take them */
    const int32_t *offsets_i32; /* as offsets */
    const int32_t *counts_i32;  /* as counts */
    hgemm_op_t transa;          /* of k groups; of others HGEMM_NO_TRANS or 0. 0 counts as HGEMM_NO_TRANS */
    uint32_t flags;             /* must be 0 */
    hgemm_activation_t activation; /* of the gates; NONE if gate.block is 0 */
    uint32_t unused;               /* not read */
    /* If gate.block is not 0, D_g has n / 2 columns. beta must be 0, and the groups contiguous or masked.
       With HGEMM_GROUPED_HOST each entry of `problems` has its own gate. Fastest on compute capability 8.x, 9.0
       and 12.x where B is contiguous along k, lines of A, B and D are aligned to 16 bytes, type_d is type_ab, and
       the activation is not HGEMM_ACTIVATION_GELU_ERF; src/GATES.md has all conditions. */
    hgemm_gate_t gate;
    /* Not NULL: the n elements at bias + g * stride_bias are added to each row of group g, before the gates. NULL
       for groups of k. With HGEMM_GROUPED_HOST each entry of `problems` has its own. */
    const void *bias;
    int64_t stride_bias;    /* 0: all groups have the same */
    hgemm_type_t bias_type; /* not read without a bias */
    uint32_t unused_too;    /* not read */
    /* Not NULL: receives the products before limit, activation and offset, where groups own rows: rows of n elements
       of type_d. NULL without gates. Fastest in lines that are aligned to 16 bytes. With HGEMM_GROUPED_HOST each
       entry of `problems` has its own. */
    void *aux;
    int64_t ldaux, stride_aux; /* stride_aux: of masked groups */
} hgemm_grouped_args_t;

/** As hgemm_args_init(): contiguous grouping, B transposed, F16, alpha = 1, everything else 0. */
HGEMM_API void hgemm_grouped_args_init(hgemm_grouped_args_t *args, size_t size);

/** A refused call runs no group. hgemm_last_error() says args->problems[2].lda for what is wrong in an
    entry. As a product of hgemm_gemm_ex() may, it may use the handle's workspace: see hgemm_set_workspace(). */
HGEMM_API hgemm_status_t hgemm_grouped_ex(hgemm_handle_t handle, const hgemm_grouped_args_t *args);

/**
 * From the gradient of a gated D to that of the product whose elements were gated, as hgemm_gate_t says. Lines are
 * those of a row-major product: `rows` lines of `columns` elements, and of columns / 2 of D.
 *     of_gate = activation'(gate) * of_d * (up + offset),   of_up = of_d * activation(gate),
 * with gates and up elements after the limit. What the limit changes has a gradient of 0. All is computed in fp32, and
 * each result is rounded once.
 * Fill with hgemm_gate_gradient_args_init(), then set what differs.
 */
typedef struct hgemm_gate_gradient_args {
    size_t size; /* sizeof(hgemm_gate_gradient_args_t) as the caller was compiled; 1024 at most */
    int64_t rows, columns; /* of the product; columns: 2^30 at most */
    const void *product;   /* as `aux` receives it */
    int64_t ld_product;    /* at least max(1, columns) */
    const void *of_d;      /* rows x columns / 2 */
    int64_t ld_of_d;       /* at least max(1, columns / 2) */
    void *of_product;      /* rows x columns. May be `product`, if types and lds agree */
    int64_t ld_of_product; /* at least max(1, columns) */
    hgemm_type_t type_product, type_of_d, type_of_product; /* F16, BF16 or F32 */
    hgemm_activation_t activation;
    hgemm_gate_t gate; /* block: at least 1; twice of it divides `columns` */
} hgemm_gate_gradient_args_t;

/** Fill the first `size` bytes with defaults: F16 for all types, everything else 0. NULL does nothing. */
HGEMM_API void hgemm_gate_gradient_args_init(hgemm_gate_gradient_args_t *args, size_t size);

/** Fastest where lines are aligned to 16 bytes, columns / 2 is a multiple of 8, and block is 1 or a multiple of 8. Other
    overlaps than a whole `product` are not looked for. */
HGEMM_API hgemm_status_t hgemm_gate_gradient(hgemm_handle_t handle, const hgemm_gate_gradient_args_t *args);

/* ---- Mixtures of experts ---------------------------------------------------------------------- */

/**
 * The rows of a layer of experts. Each of `tokens` tokens has `choices` choices, and each choice of an expert gives a
 * row: first the rows of expert 0, then those of expert 1, and so on. The rows of an expert are in the order of
 * their choices, whose numbers are token * choices + 0, 1, ... . So the same choices give the same rows.
 * Fill with hgemm_route_args_init(), then set what differs.
 */
typedef struct hgemm_route_args {
    size_t size; /* sizeof(hgemm_route_args_t) as the caller was compiled; 1024 at most */
    int64_t tokens, choices; /* choices at least 1; tokens * choices: 2^30 at most */
    int64_t experts;         /* 1 to 2^16 */
    /* The experts of token t: `choices` numbers at t * ld. One of the two, the other is NULL. -1: none, so the choice
       gets no row; its expert may be on another GPU. Other numbers outside of 0 ... experts - 1 are refused on the
       host, and count as -1 on a GPU, where they are read when the kernel runs. */
    const int64_t *chosen;
    const int32_t *chosen_i32;
    int64_t ld;             /* at least `choices` */
    int32_t *ends;          /* of each expert, where its rows end: as ends_i32 of hgemm_grouped_args_t */
    int32_t *row_of_choice; /* tokens * choices numbers; -1 where there is no row */
    int32_t *choice_of_row; /* NULL, or tokens * choices numbers; behind the last expert's rows -1 */
} hgemm_route_args_t;

/** Fill the first `size` bytes with defaults: all 0. NULL does nothing. */
HGEMM_API void hgemm_route_args_init(hgemm_route_args_t *args, size_t size);

/** On a GPU, where there are more than 8192 choices, it uses 4 * experts bytes of the handle's workspace for each 4096
    choices, as far as there are so many, and is slower with fewer. Overlaps are not looked for. */
HGEMM_API hgemm_status_t hgemm_route(hgemm_handle_t handle, const hgemm_route_args_t *args);

/**
 * Rows of tokens and rows of choices, where hgemm_route() has put them. A, B and D are row-major.
 * Fill with hgemm_rows_args_init(), then set what differs.
 */
typedef struct hgemm_rows_args {
    size_t size;                  /* sizeof(hgemm_rows_args_t) as the caller was compiled; 1024 at most */
    int64_t tokens, choices;      /* as in hgemm_route_args_t */
    int64_t columns;              /* of A and D, or of A and B; 2^30 at most */
    const int32_t *row_of_choice; /* tokens * choices numbers; outside of 0 ... tokens * choices - 1: no row */
    const void *weights;          /* NULL: all are 1. Else of token t `choices` elements at t * ldw. dot: NULL */
    int64_t ldw;                  /* at least `choices`; not read without weights */
    const void *a;                /* gather, dot: tokens rows; combine: tokens * choices rows */
    int64_t lda;                  /* at least max(1, columns) */
    void *d;                      /* gather: tokens * choices rows; combine: tokens rows; dot: tokens x choices */
    int64_t ldd;                  /* at least max(1, columns); dot: at least `choices` */
    hgemm_type_t type_a, type_d, type_weights; /* F16, BF16 or F32 */
    uint32_t unused;              /* not read */
    const void *b;                /* dot: tokens * choices rows; not read by others, as the next two */
    int64_t ldb;                  /* at least max(1, columns) */
    hgemm_type_t type_b;          /* F16, BF16 or F32 */
    uint32_t unused_too;          /* not read */
} hgemm_rows_args_t;

/** As hgemm_route_args_init(), but F16 for all types. */
HGEMM_API void hgemm_rows_args_init(hgemm_rows_args_t *args, size_t size);

/** Of each choice, row row_of_choice[...] of D is the token's row of A, times the choice's weight, rounded once. No two
    choices may have one row. Rows that no choice has keep what they have. A and D must not overlap. Neither is
    looked for. */
HGEMM_API hgemm_status_t hgemm_gather_rows(hgemm_handle_t handle, const hgemm_rows_args_t *args);

/** Row t of D is the sum, over the choices of token t in their order, of weight * A's row row_of_choice[...]. It
    begins with 0; products and sums are rounded to fp32, and the last sum then once to D's type. What has no row
    adds nothing. A and D must not overlap, which is not looked for. */
HGEMM_API hgemm_status_t hgemm_combine_rows(hgemm_handle_t handle, const hgemm_rows_args_t *args);

/** Element (t, c) of D is the dot product of A's row t and B's row row_of_choice[...], of choice c of token t: the gradient
    of a weight. It is summed in fp32, in an order that depends on `columns` alone, and rounded once. 0 where there
    is no row. D must not overlap A or B, which is not looked for. */
HGEMM_API hgemm_status_t hgemm_dot_rows(hgemm_handle_t handle, const hgemm_rows_args_t *args);

/** Sets the rows of D that no group owns to 0, as products of groups do not. args: those of hgemm_grouped_ex(), with
    contiguous or masked groups. All members that say where D and its rows lie are used and checked: the type of
    D, m and group_count (2^30 at most), n, gate.block, ldd, stride_d and the groups' sizes. Others are not read. */
HGEMM_API hgemm_status_t hgemm_clear_rows(hgemm_handle_t handle, const hgemm_grouped_args_t *args);

/* ---- Several streams and GPUs ----------------------------------------------------------------- */

/**
 * A counting semaphore in device memory, at a multiple of 16 bytes. All of it must be 0 at first. On the host it
 * lies in host memory.
 *
 * A raise adds 1 to `raised`, a release at system scope. A wait lasts until `raised` differs from `taken`, an
 * acquire, and then adds 1 to `taken`. So writes that precede the raise on its stream are visible to all that
 * follows the wait on its stream, between GPUs and processes too. Counts go on, modulo 2^32, so that captured
 * calls may be replayed. Streams, other GPUs and processes may raise a flag, and programs themselves, by such an
 * atomic addition. But who waits for several should have a flag for each: of two raises of one flag nobody knows
 * whose they are. One stream at a time may wait for a flag.
 *
 * A flag in a peer's memory needs native atomics between the two GPUs, as NVLink has.
 */
typedef struct hgemm_flag {
    uint32_t raised, taken;
    uint32_t internal[2];
} hgemm_flag_t;

/**
 * What hgemm_exchange() does, in this order:
 *   1. raises `raise_count` flags;
 *   2. takes a raise of each of `wait_count` flags;
 *   3. if `d_count` is not 0: adds up `part_count` matrices and the bias, and stores the sum in `d_count` places;
 *   4. raises `raise_after_count` flags.
 * Parts and places may lie in the memory of other GPUs that this one reaches. They are row-major, and all parts
 * have one type and one ld, all places another. Parts are added in fp32 and in the order in which they stand here,
 * pairwise with HGEMM_MODE_TREE, and the sum is rounded once. So the ranks of a tensor-parallel layer get
 * the same bits in each run, whichever is the first.
 * Fill with hgemm_exchange_args_init(), then set what differs.
 */
typedef struct hgemm_exchange_args {
    size_t size;                 /* sizeof(hgemm_exchange_args_t) as the caller was compiled; 1024 at most */
    hgemm_flag_t *const *raise;  /* host array of device pointers, as are the other arrays */
    int64_t raise_count;         /* 64 at most, as are the other counts */
    hgemm_flag_t *const *wait;   /* all different, in memory of this device; they need no native atomics */
    int64_t wait_count;
    int64_t limit_us;            /* the longest that a wait lasts, in microseconds; 0: for ever */
    uint32_t *error;             /* memory of this device, 0 at first; NULL only if limit_us is 0: hgemm_read_error() */
    int64_t rows, columns;       /* columns: 2^30 at most */
    const void *const *parts;
    int64_t part_count;          /* of a sum at least 1; in HGEMM_MODE_TREE a power of two */
    int64_t ld_part;             /* at least max(1, columns) */
    void *const *d;              /* may be parts, if types and lds agree */
    int64_t d_count;
    int64_t ldd;                 /* at least max(1, columns) */
    hgemm_type_t type_part, type_d; /* F16, BF16 or F32 */
    const void *bias;       /* NULL: none. `columns` elements, the last that are added to each row */
    hgemm_type_t bias_type; /* not read without a bias */
    uint32_t unused;        /* not read */
    hgemm_flag_t *const *raise_after;
    int64_t raise_after_count;
} hgemm_exchange_args_t;

/** Fill the first `size` bytes with defaults: F32, everything else 0. NULL does nothing. */
HGEMM_API void hgemm_exchange_args_init(hgemm_exchange_args_t *args, size_t size);

/** On a GPU, asynchronous on the handle's stream; may be captured. While it waits it takes at most a quarter of
    the handle's SMs, see hgemm_set_sm_count(), so that what it waits for may run on this GPU too: on another
    stream, where nothing that runs is in its way. CUDA may wait for all that runs when a kernel is launched for
    the first time, and streams that share a hardware queue (CUDA_DEVICE_MAX_CONNECTIONS) wait for each other.
    On the host it returns when all is done. Overlaps are not looked for. */
HGEMM_API hgemm_status_t hgemm_exchange(hgemm_handle_t handle, const hgemm_exchange_args_t *args);

/**
 * How hgemm_gemm_blocks() cuts a product: block i has the rows i * rows to (i + 1) * rows - 1 of op(A) and D, the last
 * one perhaps fewer. Blocks follow each other on the handle's stream: first, first + 1, ..., the last one, 0, ...,
 * first - 1. Each takes a raise of its flag, so that its rows of A may come from elsewhere meanwhile, is
 * computed, and raises its other flag. Arrays are host memory, with an entry for each block.
 * Fill with hgemm_blocks_init(), then set what differs.
 */
typedef struct hgemm_blocks {
    size_t size;  /* sizeof(hgemm_blocks_t) as the caller was compiled; 1024 at most */
    int64_t rows; /* of a block, at least 1 */
    int64_t first;
    hgemm_flag_t *const *wait;  /* NULL, or NULL for a block: it waits for nothing */
    hgemm_flag_t *const *raise; /* NULL, or NULL for a block: it raises nothing */
    void *const *d; /* NULL: D is args->d. Else where each block's D begins, perhaps in another GPU's memory */
    int64_t limit_us; /* as of hgemm_exchange_args_t, for each wait */
    uint32_t *error;
} hgemm_blocks_t;

/** Fill the first `size` bytes with defaults: all 0. NULL does nothing. */
HGEMM_API void hgemm_blocks_init(hgemm_blocks_t *blocks, size_t size);

/** The product of hgemm_gemm_ex(handle, args) in blocks of rows, whose bits are those of products of so many rows.
    No batch, and neither uplo nor gates. A wait takes one thread block; see hgemm_exchange() on what it waits
    for. To leave SMs to what runs beside the products, call hgemm_set_sm_count() before. Overlaps of one block's
    D with what other blocks read or write are not looked for. */
HGEMM_API hgemm_status_t hgemm_gemm_blocks(hgemm_handle_t handle, const hgemm_args_t *args,
                                           const hgemm_blocks_t *blocks);

/**
 * After the caller has synchronised with all that waits: did all waits with this `error` end by raises?
 * Where one does not end in time, it sets *error, and nothing that has the same `error` waits, raises or stores
 * sums any more. Products of later blocks still run, and what they write is worth nothing. To go on, set *error and
 * all flags to 0. Copies four bytes from the device, and waits for that.
 * @return SUCCESS; TIMED_OUT: the text names the block, if it was one; INVALID_ARGUMENT; NOT_SUPPORTED
 *   while the handle's stream is captured; DRIVER_ERROR.
 */
HGEMM_API hgemm_status_t hgemm_read_error(hgemm_handle_t handle, const uint32_t *error);

/* ---- Tuning ----------------------------------------------------------------------------------- */

/** How hgemm_tune() measures. Fill with hgemm_tune_options_init(); a member that is 0 is its default. */
typedef struct hgemm_tune_options {
    size_t size;        /* sizeof(hgemm_tune_options_t) as the caller was compiled; 1024 at most */
    int max_candidates; /* kernels with settings tried beside the library's own choice, to 1000; 0: 12 */
    int max_rounds;     /* times that each is timed at most, 9 to 1000; 0: 30 */
    double max_seconds; /* after which measuring ends; 0: no limit */
    int write;          /* 1: write the result to a tuning file as well; 0: not */
    const char *path;   /* that file; NULL: the one of hgemm_create(). NULL where nothing is written */
} hgemm_tune_options_t;

/** What hgemm_tune() found. Fill with hgemm_tune_report_init() before. Kernels stand there as in HGEMM_KERNEL,
    with settings, "" if there is none. Texts live until the handle's next hgemm_tune() or
    hgemm_tune_grouped(), or its end. Times are microseconds for one call, 0 where nothing was timed. */
typedef struct hgemm_tune_report {
    size_t size;               /* sizeof(hgemm_tune_report_t) as the caller was compiled; 1024 at most */
    int candidates;            /* the library's own choice and others; 1 on the host; 0: nothing to compute */
    int wrong;                 /* of them left out since their result was another */
    int failed;                /* of them left out since they did not run */
    int rounds;                /* in which the others were timed */
    int complete;              /* 0: max_seconds were over too early, and nothing has changed; else 1 */
    double built_in_us;        /* of the library's own choice: a file's lines do not count, a calibration does */
    double before_us;          /* of what the handle used before, by the file or an earlier call */
    double now_us;             /* of what it uses now */
    double gain;               /* built_in_us / now_us, the median of the rounds; 1 if now is built_in */
    double spread;             /* half of the 95 % interval of the gain, as a part of it */
    const char *built_in;      /* kernels, in the order of the times */
    const char *before;
    const char *now;
    const char *wrong_kernels; /* a blank between two; please report them */
    const char *path;          /* the tuning file that was written; NULL: none */
} hgemm_tune_report_t;

/** Fill the first `size` bytes (sizeof of the caller's struct) with 0, then set the member `size`. NULL does
    nothing. */
HGEMM_API void hgemm_tune_options_init(hgemm_tune_options_t *options, size_t size);
HGEMM_API void hgemm_tune_report_init(hgemm_tune_report_t *report, size_t size);

/**
 * Measure which kernel is the fastest for hgemm_gemm_ex(handle, args), and use it in this handle's later calls
 * for problems like this one (the same sizes, types, layout, epilogue and alignment, in the mode that is set),
 * whatever a tuning file says. hgemm_explain() then says tuned-here. Where no kernel is clearly faster than
 * the library's own choice, that is used. Calls that were captured before keep their kernel.
 *
 * A, B, C, bias and scalars are read where they are, and should hold what calls compute with. D and aux stay
 * as they are: results go to other memory. First each candidate's result is compared with that of the library's
 * own choice: 512 rows and 512 columns of 8 problems, or all if there are fewer. They may differ by what orders
 * of fp32 sums differ by, in batch-invariant mode by nothing. Then candidates are timed in turn, each launch
 * with an L2 cache that holds none of the operands. Other work on the GPU disturbs that.
 *
 * Unlike a call that computes this one allocates (as much as D and aux span, and twice the L2 cache) and waits
 * for the stream, and it cannot be captured. `options` may be NULL (all defaults), and so may `report`.
 * On the host, and where there is nothing to compute, nothing is measured or written.
 * @return SUCCESS, also if nothing was faster, or if the time was over; INVALID_ARGUMENT (as hgemm_gemm_ex();
 *   a member of options or report; a file that cannot be written, but if only the end shows that, the handle
 *   uses what was found, and the report is filled); NOT_SUPPORTED (as hgemm_gemm_ex(); the stream is
 *   captured; the handle may not use all SMs, is in tree mode, or HGEMM_KERNEL chooses its kernels; with options->write also:
 *   HGEMM_BACKEND chooses its backend); ALLOC_FAILED; WORKSPACE_TOO_SMALL; DRIVER_ERROR; LAUNCH_FAILED.
 */
HGEMM_API hgemm_status_t hgemm_tune(hgemm_handle_t handle, const hgemm_args_t *args,
                                    const hgemm_tune_options_t *options, hgemm_tune_report_t *report);

/** As hgemm_tune(), for hgemm_grouped_ex(handle, args) with the offsets or counts that lie on the device now.
    Rows that no group owns are not compared. HGEMM_GROUPED_HOST is refused (INVALID_ARGUMENT): hgemm_tune()
    serves each of its problems. HGEMM_GROUPED_K is NOT_SUPPORTED. */
HGEMM_API hgemm_status_t hgemm_tune_grouped(hgemm_handle_t handle, const hgemm_grouped_args_t *args,
                                            const hgemm_tune_options_t *options,
                                            hgemm_tune_report_t *report);

/* ---- Level 2 ---------------------------------------------------------------------------------- */
/*
 * y = alpha * A * x + beta * y (_n: x has n elements, y has m) or
 * y = alpha * transpose(A) * x + beta * y (_t: x has m elements, y has n),
 * A column-major m x n with lda >= max(1, m). An increment is the distance between elements, not 0;
 * with a negative one the vector is stored backwards, its first element last, as in BLAS; also
 * as in BLAS, m = 0 or n = 0 does nothing, not even y = beta * y.
 */
HGEMM_API hgemm_status_t hgemv_n(hgemm_handle_t handle, int64_t m, int64_t n, float alpha,
                                 const hgemm_half_t *A, int64_t lda, const hgemm_half_t *x, int64_t incx,
                                 float beta, hgemm_half_t *y, int64_t incy);
HGEMM_API hgemm_status_t hgemv_t(hgemm_handle_t handle, int64_t m, int64_t n, float alpha,
                                 const hgemm_half_t *A, int64_t lda, const hgemm_half_t *x, int64_t incx,
                                 float beta, hgemm_half_t *y, int64_t incy);
HGEMM_API hgemm_status_t bgemv_n(hgemm_handle_t handle, int64_t m, int64_t n, float alpha,
                                 const hgemm_bfloat16_t *A, int64_t lda, const hgemm_bfloat16_t *x,
                                 int64_t incx, float beta, hgemm_bfloat16_t *y, int64_t incy);
HGEMM_API hgemm_status_t bgemv_t(hgemm_handle_t handle, int64_t m, int64_t n, float alpha,
                                 const hgemm_bfloat16_t *A, int64_t lda, const hgemm_bfloat16_t *x,
                                 int64_t incx, float beta, hgemm_bfloat16_t *y, int64_t incy);

/* ---- Errors and version ----------------------------------------------------------------------- */

/** Name of a status, such as "HGEMM_STATUS_SUCCESS". Never NULL. */
HGEMM_API const char *hgemm_status_string(hgemm_status_t status);

/** What was wrong with this thread's last failed call, in one line; "" if none failed. Valid until this
    thread's next call of the library. Control characters in values stand there as \x0a and the like. */
HGEMM_API const char *hgemm_last_error(void);

/** 1-based position of the wrong argument of this thread's last failed call; 0 if it was no argument. */
HGEMM_API int hgemm_last_error_argument(void);

/** HGEMM_VERSION of the library that is loaded. */
HGEMM_API int hgemm_version(void);

/** Version, source revision, CUDA version and the targets built in, in one line. */
HGEMM_API const char *hgemm_build_info(void);

#ifdef __cplusplus
}
#endif

#endif
