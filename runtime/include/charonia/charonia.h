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
 *  strings and shapes stay valid until the object they come from is freed,
 * those of charonia_output until the context's next run.
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

typedef enum charonia_dtype {
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
  CHARONIA_UINT4 = 17
} charonia_dtype;

typedef enum charonia_memory {
  CHARONIA_HOST = 0,
  CHARONIA_DEVICE = 1
} charonia_memory;

typedef struct charonia_engine charonia_engine;
typedef struct charonia_context charonia_context;

/* Zero means the default everywhere. */
typedef struct charonia_context_options {
  size_t size;           /* sizeof(charonia_context_options) */
  int threads;           /* CPU */
  const char *isa;       /* CPU: "x86-64-v3" */
  const char *precision; /* "fp16" */
  void *stream;          /* CUDA: a CUstream */
  int no_cuda_graph;
} charonia_context_options;

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
CHARONIA_API void charonia_engine_free(charonia_engine *engine);

CHARONIA_API size_t charonia_num_inputs(const charonia_engine *engine);
CHARONIA_API size_t charonia_num_outputs(const charonia_engine *engine);
/* Null if there is no such input or output. */
CHARONIA_API const char *charonia_input_name(const charonia_engine *engine,
                                             size_t index);
CHARONIA_API const char *charonia_output_name(const charonia_engine *engine,
                                              size_t index);
/* Type and shape with every shape symbol at its opt value, and, where not null,
 * the text "float32 [batch, 3, 224, 224]". */
CHARONIA_API charonia_status charonia_input_info(const charonia_engine *engine,
                                                 size_t index,
                                                 charonia_tensor *info,
                                                 const char **text);
CHARONIA_API charonia_status charonia_output_info(const charonia_engine *engine,
                                                  size_t index,
                                                  charonia_tensor *info,
                                                  const char **text);

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

#ifdef __cplusplus
}
#endif

#endif /* CHARONIA_CHARONIA_H */
