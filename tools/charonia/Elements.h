// Elements of tensors as numbers.
#ifndef CHARONIA_TOOLS_CHARONIA_ELEMENTS_H
#define CHARONIA_TOOLS_CHARONIA_ELEMENTS_H

#include "tools/charonia/Npy.h"

namespace charonia::tool {

/// Element `index` of dense data.
double elementAsDouble(DType dtype, const void *data, uint64_t index);

struct Summary {
  uint64_t count = 0; ///< Of elements, NaNs among them.
  uint64_t nans = 0;
  /// Of the elements that are no NaN; NaN where there is none.
  double min, mean, max;
};
Summary summarize(DType dtype, const void *data, uint64_t count);

/// Random values by the same rule on all machines: floating point -2 to 2 in
/// steps of 1/256, integers of up to 8 bits their whole range, wider ones and
/// bool 0 or 1, which are good as ids, masks and positions.
void fillRandom(Array &array, uint64_t seed);

} // namespace charonia::tool

#endif
