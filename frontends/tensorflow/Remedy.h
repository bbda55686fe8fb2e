// What users can do about sizes that are open.
#ifndef CHARONIA_FRONTENDS_TENSORFLOW_REMEDY_H
#define CHARONIA_FRONTENDS_TENSORFLOW_REMEDY_H

#include "frontends/tensorflow/Model.h"

namespace charonia::frontend::tensorflow {

/// "fix it: --shape x=?x32x6" for the size x_dim1 of an input of the model;
/// "fix it with --shape" for others.
std::string fixSize(const Model &model, const std::string &symbol);

} // namespace charonia::frontend::tensorflow

#endif
