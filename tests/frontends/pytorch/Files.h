// Zip files and exported programs for the importer's tests.
#ifndef CHARONIA_TESTS_FRONTENDS_PYTORCH_FILES_H
#define CHARONIA_TESTS_FRONTENDS_PYTORCH_FILES_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace charonia::test {

/// One entry and what its headers say of it, where that is not the truth.
struct ZipEntry {
  std::string name, bytes;
  /// What the directory says; the local header says 0, as PyTorch writes it.
  int64_t size = -1, stored = -1, offset = -1;
  uint16_t method = 0, flags = 0x0808;
  /// Deflates the bytes (and sets the method).
  bool deflate = false;
  /// Sizes and offset in an extra field, as of files over 4 GiB.
  bool zip64 = false;
};

/// A zip file; data begins at multiples of 64 bytes. With `zip64` the
/// directory's place is in a record of 64 bits.
std::string zipFile(const std::vector<ZipEntry> &entries, bool zip64 = false);

/// A program's files, "model/models/model.json" and so on.
struct ProgramFile {
  /// Parts of the program's text, of JSON.
  std::string inputs, outputs, nodes, tensors, integers, conditions;
  std::string inputSpecs, outputSpecs, ranges;
  /// The tree of arguments, as its text stands in JSON, and a list of names.
  std::string inSpec, argumentNames;
  /// Texts of Python.
  std::vector<std::string> guards;
  /// Entries of the weights' configuration, and storages by their file's name.
  std::string weights;
  std::map<std::string, std::string> storages;

  std::string json() const;
  std::vector<ZipEntry> entries() const;
  std::string file() const { return zipFile(entries()); }
};

/// y = relu(x + w), x float32[s0, 4], w the parameter "w" of 4 elements.
ProgramFile simpleProgram();

/// "{dtype, sizes, strides, ...}": sizes and strides as JSON lists without
/// brackets.
std::string tensorMeta(int dtype, const std::string &sizes,
                       const std::string &strides, int64_t offset = 0);
std::string fixed(int64_t size);
std::string symbol(const std::string &name);
/// A node of one argument kind each: "name": "{...}".
std::string
node(const std::string &target,
     const std::vector<std::pair<std::string, std::string>> &arguments,
     const std::string &output);
std::string tensor(const std::string &name);

} // namespace charonia::test

#endif
