/* libtuner: ask the tunerd on this machine for kernels and launch them. C11, no other header of this project needed.
 *
 * Conventions, for every function:
 *  - Result. An int, a tuner_status: TUNER_OK (0) or what went wrong. tuner_last_error() then gives the sentence
 * (field, value, what was expected), for the calling thread, until its next failing call. Out parameters are written
 * only on TUNER_OK. Nothing is thrown, nothing is printed, the process is never ended.
 *  - Ownership. What a function returns through an out handle is the caller's, to be given back with the matching
 *    tuner_kernel_release or tuner_close. Arguments are only read during the call. Text and pointers of
 * tuner_kernel_info live until the kernel is released. A kernel outlives the client it came from.
 *  - Text is UTF-8 and ends with a zero byte.
 *  - Threads. Everything may be called from any thread at any time, also on the same handle, except that a handle must
 * not be used during or after the call that gives it back. A background thread of the library owns the socket. After
 * fork() a child must connect again and leave the parent's handles alone.
 *  - Structs begin with struct_size: set it to sizeof the struct (or use the *_INIT macros), so that later versions can
 * add members at the end. Members left zero take the default that is named with them.
 *  - Sizes and strides are 64-bit everywhere. CUDA types appear as void* (CUstream) and uint64_t (CUdeviceptr).
 *  - libcuda is opened at run time, at the first launch. Without it everything but launching works.
 */
#ifndef TUNER_H
#define TUNER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define TUNER_VERSION_MAJOR 0
#define TUNER_VERSION_MINOR 1

typedef struct tuner_client tuner_client;
typedef struct tuner_kernel tuner_kernel;

typedef enum tuner_status {
  TUNER_OK = 0,
  TUNER_INVALID_ARGUMENT = 1, /* the caller's input is wrong */
  TUNER_NOT_FOUND = 2,        /* nothing by that name, or (TUNER_CACHED) nothing ready */
  TUNER_MISSING = 3,          /* a needed library or device is absent */
  TUNER_UNSUPPORTED = 4,      /* right input, but this daemon, device or version cannot do it */
  TUNER_CORRUPT = 5,          /* received bytes fail their check; nothing of them was used */
  TUNER_IO = 6,               /* the daemon cannot be reached, or the system refused */
  TUNER_DEADLINE = 7,         /* not done in time */
  TUNER_BUSY = 8,             /* a bound (of the daemon or of this client) is reached */
  TUNER_DENIED = 9,           /* the daemon does not let this user do it */
  TUNER_COMPILE_FAILED = 10,  /* the daemon could not compile the kernel */
  TUNER_DEVICE = 11,          /* the GPU or its driver failed */
  TUNER_INTERNAL = 12         /* a bug */
} tuner_status;

/* The last failure of the calling thread as one sentence; "" when there was none. `client` is not needed and may be
 * NULL. */
const char* tuner_last_error(const tuner_client* client);
/* Its parts; each "" when it has none. */
typedef struct tuner_error_parts {
  size_t struct_size;
  int status;
  const char *message, *field, *value, *expected, *suggestion;
} tuner_error_parts;
int tuner_last_error_parts(const tuner_client* client, tuner_error_parts* parts);

/* ---- connecting ------------------------------------------------------------------------------------------------- */

typedef struct tuner_options {
  size_t struct_size;
  const char* socket_path; /* NULL: $TUNERD_SOCKET, $XDG_RUNTIME_DIR/tunerd/tunerd.sock, else the system's place */
  const char* client_name; /* for the daemon's status; NULL: the program's name */
  int64_t deadline_ms;     /* of connecting; 0: 5000 */
  int64_t max_kernels;     /* kernels kept for repeated gets; 0: 4096 */
} tuner_options;
#define TUNER_OPTIONS_INIT \
  { sizeof(tuner_options), NULL, NULL, 0, 0 }

/* Connects and agrees on a protocol version. `options` may be NULL. When the daemon goes away later, the library keeps
 * the kernels it has, serves gets of them from memory, and connects again with growing pauses (0.1 s to 5 s) or at the
 * next get. */
int tuner_connect(const tuner_options* options, tuner_client** client);
/* Ends the background thread and the connection. Waits for a callback that is running; refused from within one. NULL is
 * fine. */
int tuner_close(tuner_client* client);
/* 1 while connected, else 0. */
int tuner_connected(const tuner_client* client);

/* ---- asking for a kernel ---------------------------------------------------------------------------------------- */

typedef struct tuner_dim {
  const char* name;
  int64_t value;
} tuner_dim;
typedef struct tuner_attribute {
  const char* name; /* "dtype", "epilogue", … */
  const char* text;
} tuner_attribute;

typedef enum tuner_wait {
  TUNER_NOW = 0,   /* the best that is ready; compiles only when nothing is */
  TUNER_TUNED = 1, /* waits for tuning, at most the deadline */
  TUNER_CACHED = 2 /* never compiles: a miss is TUNER_NOT_FOUND and says which field differed */
} tuner_wait;

/* The kernel for op, dims (row strides "ld_x" too, where padded) and attributes. A problem asked for before is answered
 * from memory without a system call, and with the same handle (each get is one more reference to it); TUNER_TUNED asks
 * again while the kernel held was not measured for exactly this problem. `deadline_ms` 0: 60000. `client` and `kernel`
 * must not be NULL. */
int tuner_get(tuner_client* client, const char* op, const tuner_dim* dims, size_t dim_count,
              const tuner_attribute* attributes, size_t attribute_count, int wait, int64_t deadline_ms,
              tuner_kernel** kernel);
/* Gives one reference back. Its memory on the device is freed with the last one, so synchronise the streams that it was
 * launched on before. NULL is fine. */
void tuner_kernel_release(tuner_kernel* kernel);

typedef struct tuner_kernel_facts {
  size_t struct_size;
  const char *op, *problem, *variant;
  const char* quality; /* exact | near | default | fallback */
  const char* source;  /* measured | predicted */
  const char* arch;    /* sm_90a */
  double t_sol_us;
  double time_us, sol_fraction; /* 0: not measured for this problem */
  uint64_t generation;          /* raised each time the daemon's choice for this problem changes */
  const void* cubin;
  size_t cubin_bytes;
  const char* json; /* the whole answer, docs/protocol.md */
} tuner_kernel_facts;
/* What the kernel is now. An upgrade may change it between two calls; pointers given out before stay valid. */
int tuner_kernel_info(const tuner_kernel* kernel, tuner_kernel_facts* facts);

/* ---- launching -------------------------------------------------------------------------------------------------- */

typedef struct tuner_tensor {
  const char* name;
  uint64_t data;      /* CUdeviceptr */
  int64_t row_stride; /* elements between rows, rank 2 only; 0: as the problem says, else dense */
} tuner_tensor;
typedef struct tuner_real {
  const char* name; /* "eps" */
  double value;
} tuner_real;

typedef struct tuner_launch_args {
  size_t struct_size;
  const tuner_tensor* tensors; /* every tensor of the kernel, in any order */
  size_t tensor_count;
  const tuner_dim* dims; /* for another size within the kernel's validity; those left out are the problem's */
  size_t dim_count;
  const tuner_real* reals; /* those left out take the op's default */
  size_t real_count;
  uint64_t workspace; /* 0: the library keeps one for each kernel and stream */
  int64_t workspace_bytes;
  uint32_t flags; /* TUNER_NO_PDL */
} tuner_launch_args;
#define TUNER_LAUNCH_ARGS_INIT \
  { sizeof(tuner_launch_args), NULL, 0, NULL, 0, NULL, 0, 0, 0, 0 }
#define TUNER_NO_PDL 1u /* without programmatic dependent launch, where the kernel would allow it */

/* Enqueues the kernel on `stream` (a CUstream of the current context) and returns. Before anything reaches the GPU it
 * checks that every tensor is there, not null and aligned, that strides are no less than rows, and that the sizes lie
 * inside the kernel's validity; the error names the field. Never synchronises, and never calls the daemon.
 *
 * Stream capture: safe. Loading the module and allocating a workspace happen outside the capture; only the launch (and
 * the clearing of a workspace that needs it) is captured. A graph keeps the pointers it was captured with: replay it on
 * the stream it was captured on or give an own workspace, and keep the kernel handle while the graph lives. */
int tuner_launch(tuner_kernel* kernel, void* stream, const tuner_launch_args* args);
/* Loads the kernel's module in the current context now rather than at the first launch. */
int tuner_kernel_load(tuner_kernel* kernel);
/* Bytes and alignment of a workspace given by the caller, for these sizes (NULL: the problem's). 0 bytes: none needed.
 * It must be zeroed once before its first use when *zeroed is 1; the kernel leaves it zeroed. Out pointers may be NULL.
 */
int tuner_kernel_workspace(tuner_kernel* kernel, const tuner_dim* dims, size_t dim_count, int64_t* bytes,
                           int64_t* alignment, int* zeroed);

/* ---- better kernels --------------------------------------------------------------------------------------------- */

/* Called on the library's thread after `kernel` (borrowed for the call) became better. May launch and get held kernels;
 * must not block for long, and may not close the client. */
typedef void (*tuner_upgrade_fn)(tuner_kernel* kernel, uint64_t generation, void* user);
/* From now on kernels of this client become better in place as the daemon's tuning finds better ones: the next launch
 * uses the new one, launches in flight keep theirs. Without it a kernel stays what it was when it was asked for, so
 * that several processes agree. A daemon that knows less (a new one with an empty cache) takes no better kernel away.
 * `callback` may be NULL; a second call replaces the first's callback. */
int tuner_subscribe(tuner_client* client, tuner_upgrade_fn callback, void* user);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif /* TUNER_H */
