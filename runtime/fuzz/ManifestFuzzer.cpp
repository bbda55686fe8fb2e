//===- ManifestFuzzer.cpp - libFuzzer target for engine files -------------===//
//
// The input is a manifest; it is wrapped in a file with right checksums, since
// a fuzzer would never get past these. scripts/fuzz.sh engine.
//
//===----------------------------------------------------------------------===//

#include "runtime/fuzz/ExerciseRun.h"
#include "runtime/fuzz/Mutate.h"

using namespace charonia::engine;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/// Half of the changes are made to a field, the others to any bytes.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t most, unsigned seed) {
  fuzz::Random random(seed);
  if (random.below(2))
    if (auto manifest = decodeManifest(std::as_bytes(std::span(data, size)))) {
      fuzz::mutateField(*manifest, random);
      if (auto bytes = encodeManifest(*manifest);
          bytes && bytes->size() <= most) {
        std::ranges::copy(*bytes, data);
        return bytes->size();
      }
    }
  return LLVMFuzzerMutate(data, size, most);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto file = fuzz::seal(std::as_bytes(std::span(data, size)));
  if (fuzz::tryFile(*file))
    fuzz::exerciseContext(*file);
  return 0;
}
