/*===- charonia.h - The runtime for C and other languages ---------*- C -*-===*
 *
 *  A thin layer over charonia/runtime.h, where everything is documented.
 *
 *    charonia_engine *engine;
 *    if (charonia_engine_load("resnet50.engine", &engine) != CHARONIA_OK)
 *      fail(charonia_last_error());
 *
 *  Functions that can fail return a status; the message of this thread's last
 *  failure is charonia_last_error(). An engine may be used from many threads, a
 *  context from one at a time. Contexts may outlive their engine. Pointers to
 *  strings and shapes stay valid until the object they come from is freed;
 *  those of charonia_output and charonia_output_shape until the next call of
 * the same function for the same output, the data until the context's next run.
 *
 *  Structs with a field `size` grow in later versions: set it to the struct's
 *  sizeof and the rest to zero. A program that was built with an older header
 *  goes on working, and one with a newer header too, as long as it leaves the
 *  fields that the library does not know at zero.
 *
 *===----------------------------------------------------------------------===*/
#ifndef CHARONIA_CHARONIA_H
#define CHARONIA_CHARONIA_H

#include "charonia/export.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum charonia_status {
  CHARONIA_OK = 0,
  CHARONIA_INVALID_ARGUMENT = 1,
  CHARONIA_OUT_OF_RANGE = 2,
  CHARONIA_NOT_FOUND = 3,
  CHARONIA_FAILED_PRECONDITION = 4,
  CHARONIA_UNSUPPORTED = 5,
  CHARONIA_CORRUPT = 6,
  CHARONIA_IO = 7,
  CHARONIA_OUT_OF_MEMORY = 8,
  CHARONIA_UNAVAILABLE = 9,
  CHARONIA_DEVICE_ERROR = 10,
  CHARONIA_INTERNAL = 11
} charonia_status;

/* Callers may pass any number; C++ needs a type that says so. */
#ifdef __cplusplus
#define CHARONIA_ANY_NUMBER : unsigned
#else
#define CHARONIA_ANY_NUMBER
#endif

typedef enum charonia_dtype CHARONIA_ANY_NUMBER {
  CHARONIA_FLOAT32 = 1,
  CHARONIA_FLOAT64 = 2,
  CHARONIA_FLOAT16 = 3,
  CHARONIA_BFLOAT16 = 4,
  CHARONIA_INT8 = 5,
  CHARONIA_INT16 = 6,
  CHARONIA_INT32 = 7,
  CHARONIA_INT64 = 8,
  CHARONIA_UINT8 = 9,
  CHARONIA_UINT16 = 10,
  CHARONIA_UINT32 = 11,
  CHARONIA_UINT64 = 12,
  CHARONIA_BOOL = 13,
  CHARONIA_FLOAT8_E4M3 = 14,
  CHARONIA_FLOAT8_E5M2 = 15,
  CHARONIA_INT4 = 16,
  CHARONIA_UINT4 = 17,
  CHARONIA_FLOAT8_E4M3FNUZ = 18,
  CHARONIA_FLOAT8_E5M2FNUZ = 19
} charonia_dtype;

typedef enum charonia_memory CHARONIA_ANY_NUMBER {
  CHARONIA_HOST = 0,
  CHARONIA_DEVICE = 1
} charonia_memory;

typedef enum charonia_relation CHARONIA_ANY_NUMBER {
  CHARONIA_EQUAL = 1,   /* left = right */
  CHARONIA_DIVIDES = 2, /* right is a multiple of left, which is at least 1 */
  CHARONIA_AT_LEAST = 3, /* left >= right */
  CHARONIA_DIFFERS = 4   /* left != right */
} charonia_relation;

typedef struct charonia_engine charonia_engine;
typedef struct charonia_context charonia_context;

/* Zero means the default everywhere. */
typedef struct charonia_load_options {
  size_t size;           /* sizeof(charonia_load_options) */
  int no_verify_weights; /* do not compare the checksum of the weights */
  int no_host_code;      /* refuse contexts on the CPU */
  int borrow_memory;  /* engine in memory: do not copy, unless with a digest */
  const char *digest; /* SHA-256 that the file must have, hexadecimal */
} charonia_load_options;

typedef struct charonia_context_options {
  size_t size;           /* sizeof(charonia_context_options) */
  int threads;           /* CPU */
  const char *isa;       /* CPU: "x86-64-v3" */
  const char *precision; /* "fp16" */
  void *stream;          /* CUDA: a CUstream */
  int no_cuda_graph;
  int no_kernel_overlap; /* CUDA: each kernel starts when the last has ended */
} charonia_context_options;

/* A shape symbol: a size known when inputs are bound. */
typedef struct charonia_symbol {
  size_t size;
  const char *name;
  int64_t min, opt, max;
  int64_t divisor; /* the value is a multiple of it */
} charonia_symbol;

/* What must hold between sizes beyond the range of each symbol, or the run is
 * refused. All texts belong to the engine. */
typedef struct charonia_constraint {
  size_t size;
  charonia_relation relation;
  const char *left, *right; /* over symbols: "(batch * 6)" */
  const char *reason;       /* "as Reshape 'r' halves it"; may be "" */
  const char *text; /* the whole in words, with the inputs' dimensions */
} charonia_constraint;

/* What a context of this engine would run. */
typedef struct charonia_program {
  size_t size;
  const char *device;    /* "cpu", "cuda" */
  const char *precision; /* "fp16" */
  const char *const *archs;
  size_t num_archs;
  size_t kernels; /* launches per run */
} charonia_program;

typedef struct charonia_memory_info {
  size_t size;
  uint64_t arena_bytes;
  uint64_t arena_lower_bound;
  uint64_t weight_bytes;
} charonia_memory_info;

/* How long one step took, and what it had to do. */
typedef struct charonia_step_profile {
  size_t size;
  const char *name;       /* the kernel's name; "copy", "fill" */
  const char *const *ops; /* operators fused into it */
  size_t num_ops;
  const char *const *nodes; /* the model's nodes that it computes */
  size_t num_nodes;
  double seconds; /* fastest of the repetitions */
  double mean_seconds;
  int64_t flops;
  int64_t bytes; /* that had to move between memory and chip */
  int64_t grid;  /* program instances */
  unsigned block_threads;
  unsigned registers; /* per thread; 0: not known */
  uint64_t shared_bytes;
} charonia_step_profile;

typedef struct charonia_profile charonia_profile;

/* A dense row-major tensor that somebody else owns. */
typedef struct charonia_tensor {
  charonia_dtype dtype;
  charonia_memory memory;
  size_t rank;
  const int64_t *shape;
  const void *data;
} charonia_tensor;

/* "0.1.0" */
CHARONIA_API const char *charonia_version(void);
/* Of this thread's last failure; "" if there was none. */
CHARONIA_API const char *charonia_last_error(void);
/* Bits of one element; 0 for an unknown type. */
CHARONIA_API unsigned charonia_dtype_bits(charonia_dtype type);

CHARONIA_API charonia_status charonia_engine_load(const char *path,
                                                  charonia_engine **engine);
/* Copies the bytes. */
CHARONIA_API charonia_status charonia_engine_load_memory(
    const void *bytes, size_t size, charonia_engine **engine);
/* The same with options, which may be null. */
CHARONIA_API charonia_status charonia_engine_load_with(
    const char *path, const charonia_load_options *options,
    charonia_engine **engine);
CHARONIA_API charonia_status charonia_engine_load_memory_with(
    const void *bytes, size_t size, const charonia_load_options *options,
    charonia_engine **engine);
/* SHA-256 of the whole file: 64 hexadecimal digits and a zero. */
CHARONIA_API charonia_status
charonia_engine_digest(const charonia_engine *engine, char digest[65]);
CHARONIA_API void charonia_engine_free(charonia_engine *engine);

CHARONIA_API size_t charonia_num_inputs(const charonia_engine *engine);
CHARONIA_API size_t charonia_num_outputs(const charonia_engine *engine);
/* Null if there is no such input or output. */
CHARONIA_API const char *charonia_input_name(const charonia_engine *engine,
                                             size_t index);
CHARONIA_API const char *charonia_output_name(const charonia_engine *engine,
                                              size_t index);
/* Type and shape with every shape symbol at its opt value, and, where not null,
 * the text "float32 [batch, 3, 224, 224]". Where info is null no shape is
 * computed: CHARONIA_OUT_OF_RANGE says that it overflows 64 bits. Both belong
 * to the engine. */
CHARONIA_API charonia_status charonia_input_info(const charonia_engine *engine,
                                                 size_t index,
                                                 charonia_tensor *info,
                                                 const char **text);
CHARONIA_API charonia_status charonia_output_info(const charonia_engine *engine,
                                                  size_t index,
                                                  charonia_tensor *info,
                                                  const char **text);

CHARONIA_API size_t charonia_num_symbols(const charonia_engine *engine);
CHARONIA_API charonia_status charonia_symbol_info(const charonia_engine *engine,
                                                  size_t index,
                                                  charonia_symbol *symbol);
/* What compiling took for granted about sizes. */
CHARONIA_API size_t charonia_num_constraints(const charonia_engine *engine);
CHARONIA_API charonia_status
charonia_constraint_info(const charonia_engine *engine, size_t index,
                         charonia_constraint *constraint);
CHARONIA_API size_t charonia_num_programs(const charonia_engine *engine);
CHARONIA_API charonia_status charonia_program_info(
    const charonia_engine *engine, size_t index, charonia_program *program);

/* device: "cpu", "cuda", "cuda:1". options may be null. */
CHARONIA_API charonia_status charonia_context_create(
    const charonia_engine *engine, const char *device,
    const charonia_context_options *options, charonia_context **context);
CHARONIA_API void charonia_context_free(charonia_context *context);

CHARONIA_API charonia_status charonia_set_input(charonia_context *context,
                                                const char *name,
                                                const charonia_tensor *tensor);
CHARONIA_API charonia_status charonia_set_output(charonia_context *context,
                                                 const char *name, void *data,
                                                 size_t capacity,
                                                 charonia_memory memory);
CHARONIA_API charonia_status charonia_allocate_output(charonia_context *context,
                                                      const char *name,
                                                      charonia_memory memory);
CHARONIA_API charonia_status charonia_run(charonia_context *context);
CHARONIA_API charonia_status charonia_run_async(charonia_context *context,
                                                void *stream);
CHARONIA_API charonia_status charonia_synchronize(charonia_context *context);
CHARONIA_API charonia_status charonia_output(charonia_context *context,
                                             const char *name,
                                             charonia_tensor *tensor);
/* The shape that an output will have, given the inputs that are bound now. */
CHARONIA_API charonia_status charonia_output_shape(charonia_context *context,
                                                   const char *name,
                                                   const int64_t **shape,
                                                   size_t *rank);

/* "x86-64-v4 on 8 threads"; null without a context. */
CHARONIA_API const char *
charonia_context_description(const charonia_context *context);
/* CPU threads that run kernels, the caller's among them; 0 on a GPU or without
 * a context. */
CHARONIA_API unsigned charonia_context_threads(const charonia_context *context);
/* For the inputs that are bound now. */
CHARONIA_API charonia_status charonia_context_memory(
    const charonia_context *context, charonia_memory_info *memory);
/* Runs once; seconds that the steps took on the device. */
CHARONIA_API charonia_status charonia_run_timed(charonia_context *context,
                                                double *seconds);
/* Runs `repetitions` times, each step timed on its own. */
CHARONIA_API charonia_status charonia_profile_create(
    charonia_context *context, int repetitions, charonia_profile **profile);
CHARONIA_API void charonia_profile_free(charonia_profile *profile);
CHARONIA_API size_t charonia_profile_num_steps(const charonia_profile *profile);
CHARONIA_API charonia_status charonia_profile_step(
    const charonia_profile *profile, size_t index, charonia_step_profile *step);

#ifdef __cplusplus
}
#endif

#endif /* CHARONIA_CHARONIA_H */
