#include "tools/charonia/OutputFiles.h"
#include "tools/charonia/Console.h"

#include <set>

namespace charonia::tool {

/// The name without what a file name cannot hold.
static std::string cleaned(const std::string &name) {
  constexpr size_t longest = 200;
  std::string text;
  for (size_t at = 0; at < name.size();) {
    // One character, or an escape of one byte.
    size_t length = 1;
    while (at + length < name.size() &&
           (static_cast<unsigned char>(name[at + length]) & 0xc0) == 0x80)
      ++length;
    std::string character = name.substr(at, length);
    bool plain = character != "/" && printable(character) == character;
    if (text.size() + length > longest)
      break;
    text += plain ? character : "_";
    at += length;
  }
  return text.empty() || text == "." || text == ".." ? "_" + text : text;
}

std::vector<std::string>
outputFileNames(const std::vector<std::string> &names) {
  std::vector<std::string> files(names.size());
  std::set<std::string> taken;
  // Names that stay as they are come first.
  for (bool changed : {false, true})
    for (size_t i = 0; i < names.size(); ++i) {
      std::string base = cleaned(names[i]);
      if ((base != names[i]) != changed)
        continue;
      std::string file = base;
      for (int number = 2; !taken.insert(file).second; ++number)
        file = base + "_" + std::to_string(number);
      files[i] = file + ".npy";
    }
  return files;
}

} // namespace charonia::tool
