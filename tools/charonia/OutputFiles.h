// File names of outputs.
#ifndef CHARONIA_TOOLS_CHARONIA_OUTPUTFILES_H
#define CHARONIA_TOOLS_CHARONIA_OUTPUTFILES_H

#include <string>
#include <vector>

namespace charonia::tool {

/// A file name for each output: its name and ".npy". What a file name cannot
/// hold ('/', control characters, bytes that are not UTF-8, more than 200
/// bytes) becomes '_' or is cut off; a name that another output has already
/// gets "_2", "_3", .... Names that need no change never lose theirs to one
/// that does.
std::vector<std::string> outputFileNames(const std::vector<std::string> &names);

} // namespace charonia::tool

#endif
