// What a device can do at most: the ceilings that kernels are measured against.
#ifndef CHARONIA_TOOLS_CHARONIA_ROOFLINE_H
#define CHARONIA_TOOLS_CHARONIA_ROOFLINE_H

#include "charonia/runtime.h"

namespace charonia::tool {

struct Ceilings {
  double flops = 0;     ///< Operations a second; 0: not known.
  double bandwidth = 0; ///< Bytes a second; 0: not known.
  std::string source;   ///< Where the figures come from.
};

/// CPU: measured now, on `threads` threads. GPU: by the device's name, for dot
/// products in `precision`.
Ceilings findCeilings(const Context &context, const std::string &precision,
                      unsigned threads);

/// What binds a piece of work, and how near to that ceiling it came.
struct Bound {
  /// "compute", "memory"; "cache" where the bytes moved faster than memory
  /// moves them, so that no ceiling is known; empty: not known.
  std::string name;
  double share = 0; ///< Of the ceiling; 0: not known.
};
Bound findBound(const Ceilings &ceilings, double flops, double bytes,
                double seconds);

} // namespace charonia::tool

#endif
