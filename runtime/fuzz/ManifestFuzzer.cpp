//===- ManifestFuzzer.cpp - libFuzzer target for engine files -------------===//
//
// The input is a manifest; it is wrapped in a file with right checksums, since
// a fuzzer would never get past these. With the asan preset and
// -DCHARONIA_FUZZ=ON:
//
//   build/asan/bin/charonia-engine-fuzzer -max_total_time=600 corpus/
//
//===----------------------------------------------------------------------===//

#include "runtime/fuzz/Exercise.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace charonia::engine::fuzz;
  tryFile(seal(std::as_bytes(std::span(data, size))));
  return 0;
}
