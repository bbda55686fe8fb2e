// What was measured of kernels, in a file.
#ifndef CHARONIA_CODEGEN_DRIVER_TUNINGCACHE_H
#define CHARONIA_CODEGEN_DRIVER_TUNINGCACHE_H

#include "charonia/status.h"
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace charonia::driver {

/// The schedule that was the fastest of a kernel.
struct TuningEntry {
  std::string schedule; ///< Schedule::text().
  std::string device;   ///< On which it was measured: "NVIDIA H200".
  /// Of a launch.
  uint64_t nanoseconds = 0;
  /// Of a launch with the cost model's choice.
  uint64_t untunedNanoseconds = 0;
  uint32_t rank = 1;       ///< Among the candidates, by the cost model; from 1.
  uint32_t candidates = 1; ///< So many there were.
  friend bool operator==(const TuningEntry &, const TuningEntry &) = default;
};

/// Entries by target ("sm_90a") and kernel (a hash in hexadecimal digits).
///
/// The file is text: a line that names the format, a line for each entry, and a
/// checksum of all that. Nobody has to trust it: read() refuses what is
/// damaged, and a schedule counts only where it is one of those that the
/// compiler has itself found for the kernel (Tuner.h).
class TuningCache {
public:
  static constexpr size_t keyDigits = 40;

  /// Null: there is none.
  const TuningEntry *find(const std::string &target,
                          const std::string &key) const;
  void set(const std::string &target, const std::string &key,
           TuningEntry entry);
  size_t size() const { return entries.size(); }

  /// The file's bytes: the same for the same entries.
  std::string text() const;
  /// What text() gave; an error names the line.
  static Result<TuningCache> parse(std::string_view text);

  /// An empty one where there is no such file.
  static Result<TuningCache> read(const std::string &path);
  /// Whole or not at all.
  Status write(const std::string &path) const;

private:
  std::map<std::pair<std::string, std::string>, TuningEntry> entries;
};

} // namespace charonia::driver

#endif
