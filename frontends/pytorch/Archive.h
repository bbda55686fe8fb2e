// The entries of a zip file.
#ifndef CHARONIA_FRONTENDS_PYTORCH_ARCHIVE_H
#define CHARONIA_FRONTENDS_PYTORCH_ARCHIVE_H

#include "frontends/common/MappedFile.h"
#include "llvm/ADT/StringMap.h"
#include <memory>

namespace charonia::frontend::pytorch {

/// A zip file, mapped. Entries that are stored are given in place, deflated
/// ones are inflated; what all of them inflate to is bounded by the file's
/// size. Names are without the folder that all entries lie in, if there is one.
class Archive {
public:
  using Bytes = FileBytes;

  /// The file at `path`; null and a problem where it cannot be read as zip.
  static std::unique_ptr<Archive> open(llvm::StringRef path, Problem &problem);
  /// The same of bytes in memory.
  static std::unique_ptr<Archive> read(Bytes file, Problem &problem);

  bool has(llvm::StringRef name) const { return entries.count(name); }
  /// Names of the entries below a folder ("models/"), sorted; all for "".
  std::vector<std::string> list(llvm::StringRef folder) const;
  /// The bytes of an entry, once their checksum was compared.
  std::optional<Bytes> load(llvm::StringRef name, Problem &problem);
  uint64_t fileSize() const { return file.bytes.size(); }

private:
  /// Where an entry's data lies in the file, and how.
  struct Entry {
    uint64_t offset = 0, stored = 0, size = 0;
    uint32_t checksum = 0;
    bool deflated = false;
    /// The checksum was compared; of a deflated entry there are its bytes.
    bool isRead = false;
    Bytes inflated;
  };

  explicit Archive(Bytes file) : file(std::move(file)) {}
  std::optional<Problem> readDirectory();
  std::optional<Problem> readEntry(llvm::StringRef record);
  std::optional<Problem> checkOverlap() const;
  void dropCommonFolder();
  bool inflate(Entry &entry, const std::string &shown, Problem &problem);

  Bytes file;
  llvm::StringMap<Entry> entries;
  uint64_t inflated = 0;
};

} // namespace charonia::frontend::pytorch

#endif
