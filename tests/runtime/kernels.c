// Kernels for the tests of the CPU device, built to a flat image: the entry of
// kernel k lies at offset 64 * k. No constants, so that .text is all there is.
#include <stdint.h>

#define KERNEL(name)                                                           \
  __attribute__((used)) static void name(void *const *b, const int64_t *s,    \
                                         int64_t begin, int64_t end,           \
                                         void *scratch)

__asm__(".text\n"
        ".balign 64\n jmp scale_add\n"
        ".balign 64\n jmp relu\n"
        ".balign 64\n jmp count\n"
        ".balign 64\n jmp private_scratch\n"
        ".balign 64\n");

// t[r][j] = x[r][j] * w[j] + w[16 + j], one row of 16 a program instance.
KERNEL(scale_add) {
  const float *x = b[0], *w = b[1];
  float *t = b[2];
  for (int64_t r = begin; r < end; ++r)
    for (int64_t j = 0; j < 16; ++j)
      t[r * 16 + j] = x[r * 16 + j] * w[j] + w[16 + j];
}

KERNEL(relu) {
  const float *t = b[0];
  float *y = b[1];
  for (int64_t i = begin * 16; i < end * 16; ++i)
    y[i] = t[i] > 0 ? t[i] : 0;
}

// Shows which instances ran, and how often.
KERNEL(count) {
  int32_t *out = b[0];
  for (int64_t i = begin; i < end; ++i)
    out[i] += 1;
}

// Fails if another thread writes the same scratch at the same time.
KERNEL(private_scratch) {
  int64_t *out = b[0];
  volatile int64_t *mine = scratch;
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j = 0; j < 128; ++j)
      mine[j] = i * s[0];
    int64_t sum = 0;
    for (int64_t j = 0; j < 128; ++j)
      sum += mine[j];
    out[i] = sum;
  }
}
