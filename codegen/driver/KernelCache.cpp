#include "codegen/driver/KernelCache.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace charonia::driver {
namespace {

constexpr StringLiteral magic = "charonia kernel 3\n";

class ByteWriter {
public:
  std::string bytes{magic};
  void number(uint64_t value) {
    bytes.append(reinterpret_cast<const char *>(&value), 8);
  }
  void string(StringRef text) {
    number(text.size());
    bytes.append(text.data(), text.size());
  }
  /// As many numbers as there are, each with 64 bits.
  template <typename T> void numbers(const std::vector<T> &values) {
    number(values.size());
    for (T value : values)
      number(value);
  }
  void exprs(const std::vector<ShapeExpr> &values) {
    number(values.size());
    for (const ShapeExpr &value : values) {
      number(value.terms().size());
      for (const ShapeExpr::Term &term : value.terms()) {
        number(static_cast<uint64_t>(term.op));
        number(term.value);
      }
    }
  }
};

/// Reads what ByteWriter wrote; after the first thing that is missing, only
/// zeros.
class ByteReader {
public:
  explicit ByteReader(StringRef bytes) : rest(bytes) {
    good = rest.consume_front(magic);
  }
  bool good;
  uint64_t number() {
    uint64_t value = 0;
    if (good && (good = rest.size() >= 8)) {
      memcpy(&value, rest.data(), 8);
      rest = rest.drop_front(8);
    }
    return value;
  }
  StringRef string() {
    uint64_t size = number();
    good = good && size <= rest.size();
    StringRef text = good ? rest.take_front(size) : StringRef();
    rest = rest.drop_front(text.size());
    return text;
  }
  /// Of things that take a number each at least, so no more than there are
  /// bytes for.
  uint64_t count() {
    uint64_t value = number();
    good = good && value <= rest.size() / 8;
    return good ? value : 0;
  }
  template <typename T> void numbers(std::vector<T> &out) {
    out.resize(count());
    for (T &value : out)
      value = static_cast<T>(number());
  }
  void exprs(std::vector<ShapeExpr> &out) {
    out.resize(count());
    for (ShapeExpr &value : out) {
      std::vector<ShapeExpr::Term> terms(count());
      for (ShapeExpr::Term &term : terms) {
        term.op = static_cast<ShapeExpr::Op>(number());
        term.value = number();
      }
      value = ShapeExpr::fromTerms(std::move(terms));
    }
  }
  bool atEnd() const { return good && rest.empty(); }

private:
  StringRef rest;
};

void write(ByteWriter &w, const engine::TensorMap &map) {
  w.number(map.argument);
  w.number(map.elementBytes);
  w.number(map.swizzle);
  w.exprs(map.extents);
  w.exprs(map.strides);
  w.numbers(map.box);
  w.numbers(map.steps);
  w.numbers(map.lower);
  w.numbers(map.upper);
}

void read(ByteReader &r, engine::TensorMap &map) {
  map.argument = r.number();
  map.elementBytes = r.number();
  map.swizzle = r.number();
  r.exprs(map.extents);
  r.exprs(map.strides);
  r.numbers(map.box);
  r.numbers(map.steps);
  r.numbers(map.lower);
  r.numbers(map.upper);
}

std::string serialize(const KernelBinary &b) {
  ByteWriter w;
  w.string({b.image.data(), b.image.size()});
  w.string(b.ptx);
  w.string({b.cubin.data(), b.cubin.size()});
  w.string(b.entry);
  for (uint64_t value :
       {b.entryOffset, b.scratchBytes, b.sharedBytes, uint64_t(b.blockThreads),
        uint64_t(b.clusterSize), uint64_t(b.registers), uint64_t(b.spillBytes),
        b.instances, uint64_t(b.waitsForPrevious), uint64_t(b.waitsAtEnd)})
    w.number(value);
  w.number(b.maps.size());
  for (const engine::TensorMap &map : b.maps)
    write(w, map);
  w.number(xxh3_64bits(w.bytes));
  return std::move(w.bytes);
}

std::optional<KernelBinary> deserialize(StringRef bytes) {
  if (bytes.size() < 8)
    return std::nullopt;
  uint64_t sum;
  memcpy(&sum, bytes.data() + bytes.size() - 8, 8);
  bytes = bytes.drop_back(8);
  if (sum != xxh3_64bits(bytes))
    return std::nullopt;
  ByteReader r(bytes);
  KernelBinary b;
  StringRef image = r.string();
  b.image.assign(image.begin(), image.end());
  b.ptx = r.string().str();
  StringRef cubin = r.string();
  b.cubin.assign(cubin.begin(), cubin.end());
  b.entry = r.string().str();
  b.entryOffset = r.number();
  b.scratchBytes = r.number();
  b.sharedBytes = r.number();
  b.blockThreads = r.number();
  b.clusterSize = r.number();
  b.registers = r.number();
  b.spillBytes = r.number();
  b.instances = r.number();
  b.waitsForPrevious = r.number();
  b.waitsAtEnd = r.number();
  b.maps.resize(r.count());
  for (engine::TensorMap &map : b.maps)
    read(r, map);
  if (!r.atEnd())
    return std::nullopt;
  return b;
}

std::string hashOfCompiler() {
  auto program = MemoryBuffer::getFile("/proc/self/exe", /*IsText=*/false,
                                       /*RequiresNullTerminator=*/false);
  if (!program)
    return {};
  return utohexstr(xxh3_64bits((*program)->getBuffer()));
}

} // namespace

KernelCache::KernelCache(std::string folder) : folder(std::move(folder)) {
  if (this->folder.empty())
    return;
  compiler = hashOfCompiler();
  // Without knowing which compiler this is, no entry could be trusted.
  std::error_code error;
  if (compiler.empty())
    cannotKeep("/proc/self/exe", "cannot be read");
  else if ((error = sys::fs::create_directories(this->folder)))
    cannotKeep(this->folder, error.message());
  else
    return;
  this->folder.clear();
}

std::string KernelCache::defaultFolder() {
  SmallString<128> path;
  if (auto cache = sys::Process::GetEnv("XDG_CACHE_HOME");
      cache && !cache->empty())
    path = *cache;
  else if (auto home = sys::Process::GetEnv("HOME"); home && !home->empty())
    sys::path::append(path, *home, ".cache");
  else
    return {};
  sys::path::append(path, "charonia");
  return std::string(path);
}

std::string KernelCache::key(StringRef program, StringRef target) const {
  BLAKE3 hash;
  for (StringRef part : {StringRef(compiler), target, program}) {
    uint64_t size = part.size();
    hash.update(ArrayRef(reinterpret_cast<const uint8_t *>(&size), 8));
    hash.update(part);
  }
  return toHex(hash.final<20>(), /*LowerCase=*/true);
}

std::string KernelCache::pathOf(StringRef key) const {
  SmallString<128> path(folder);
  sys::path::append(path, key.take_front(2), key.drop_front(2));
  return std::string(path);
}

std::optional<KernelBinary> KernelCache::lookup(StringRef key) const {
  if (folder.empty())
    return std::nullopt;
  auto file = MemoryBuffer::getFile(pathOf(key), /*IsText=*/false,
                                    /*RequiresNullTerminator=*/false);
  return file ? deserialize((*file)->getBuffer()) : std::nullopt;
}

void KernelCache::cannotKeep(StringRef path, std::string reason) {
  std::lock_guard lock(mutex);
  if (why.empty())
    why = path.str() + ": " + std::move(reason);
}

std::string KernelCache::problem() const {
  std::lock_guard lock(mutex);
  return why;
}

void KernelCache::insert(StringRef key, const KernelBinary &binary) {
  if (folder.empty())
    return;
  std::string path = pathOf(key);
  if (std::error_code error =
          sys::fs::create_directories(sys::path::parent_path(path)))
    return cannotKeep(path, error.message());
  auto file = sys::fs::TempFile::create(path + ".%%%%%%%%");
  if (!file)
    return cannotKeep(path, toString(file.takeError()));
  std::error_code error;
  {
    raw_fd_ostream stream(file->FD, /*shouldClose=*/false);
    stream << serialize(binary);
    stream.flush();
    error = stream.error();
    stream.clear_error();
  }
  if (error)
    cannotKeep(path, error.message());
  if (Error renamed = error ? file->discard() : file->keep(path))
    cannotKeep(path, toString(std::move(renamed)));
}

} // namespace charonia::driver
