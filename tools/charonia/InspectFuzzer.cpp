//===- InspectFuzzer.cpp - libFuzzer target of `charonia inspect` ---------===//
//
// The input is a manifest, wrapped in a file with right checksums; where the
// reader accepts it, every form of the report must be written without a crash.
// scripts/fuzz.sh inspect.
//
//===----------------------------------------------------------------------===//

#include "runtime/fuzz/Exercise.h"
#include "tools/charonia/Commands.h"

#include <sys/mman.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace charonia;
  auto file = engine::fuzz::seal(std::as_bytes(std::span(data, size)));
  std::span<const std::byte> bytes = *file;
  if (!engine::Reader::fromMemory(bytes, /*borrow=*/true))
    return 0;
  int fd = memfd_create("engine", 0);
  if (fd < 0 || write(fd, bytes.data(), bytes.size()) != ssize_t(bytes.size()))
    std::abort();
  tool::InspectCommand command;
  command.engine = "/proc/self/fd/" + std::to_string(fd);
  command.kernels = command.memory = command.verify = true;
  tool::run(command);
  command.json = true;
  tool::run(command);
  close(fd);
  return 0;
}
