/* As main.cpp, in C: runs an engine once on zeros and prints the outputs'
 * shapes. */

#include <charonia/charonia.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(void) {
  fprintf(stderr, "run_engine_c: %s\n", charonia_last_error());
  return 1;
}

int main(int argc, char **argv) {
  charonia_engine *engine = NULL;
  charonia_context *context = NULL;
  if (argc != 2) {
    fprintf(stderr, "usage: run_engine_c <file.engine>\n");
    return 2;
  }
  if (charonia_engine_load(argv[1], &engine) != CHARONIA_OK ||
      charonia_context_create(engine, "cpu", NULL, &context) != CHARONIA_OK)
    return fail();
  size_t inputs = charonia_num_inputs(engine);
  void **memory = calloc(inputs + 1, sizeof(void *));
  for (size_t i = 0; i < inputs; ++i) {
    charonia_tensor tensor;
    const char *text;
    if (charonia_input_info(engine, i, &tensor, &text) != CHARONIA_OK)
      return fail();
    size_t bits = charonia_dtype_bits(tensor.dtype);
    for (size_t d = 0; d < tensor.rank; ++d)
      bits *= (size_t)tensor.shape[d];
    tensor.data = memory[i] = calloc(1, bits / 8 + 1);
    printf("input  %s: %s\n", charonia_input_name(engine, i), text);
    if (charonia_set_input(context, charonia_input_name(engine, i), &tensor) !=
        CHARONIA_OK)
      return fail();
  }
  if (charonia_run(context) != CHARONIA_OK)
    return fail();
  for (size_t i = 0; i < charonia_num_outputs(engine); ++i) {
    charonia_tensor tensor;
    const char *name = charonia_output_name(engine, i);
    if (charonia_output(context, name, &tensor) != CHARONIA_OK)
      return fail();
    printf("output %s:", name);
    for (size_t d = 0; d < tensor.rank; ++d)
      printf(" %" PRId64, tensor.shape[d]);
    printf("\n");
  }
  charonia_context_free(context);
  charonia_engine_free(engine);
  for (size_t i = 0; i < inputs; ++i)
    free(memory[i]);
  free(memory);
  return 0;
}
