#include "tools/charonia/Npy.h"
#include "runtime/engine/AtomicFile.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>

namespace charonia::tool {
namespace {

Status bad(const std::string &path, const std::string &what) {
  return Status(StatusCode::InvalidArgument, path + ": " + what);
}

struct Code {
  DType dtype;
  const char *text;
};
constexpr Code codes[] = {
    {DType::Float32, "<f4"},        {DType::Float64, "<f8"},
    {DType::Float16, "<f2"},        {DType::BFloat16, "|V2"},
    {DType::Int8, "|i1"},           {DType::Int16, "<i2"},
    {DType::Int32, "<i4"},          {DType::Int64, "<i8"},
    {DType::UInt8, "|u1"},          {DType::UInt16, "<u2"},
    {DType::UInt32, "<u4"},         {DType::UInt64, "<u8"},
    {DType::Bool, "|b1"},           {DType::Float8E4M3, "|V1"},
    {DType::Float8E5M2, "|V1"},     {DType::Float8E4M3FNUZ, "|V1"},
    {DType::Float8E5M2FNUZ, "|V1"},
};

std::optional<DType> parseCode(std::string text, DType wanted) {
  if (text.size() < 3)
    return std::nullopt;
  // One byte has no order, and raw bytes have none either.
  std::string kind = text.substr(1);
  if (text[0] == '>' && kind.substr(1) != "1")
    return std::nullopt;
  if (kind[0] == 'V')
    return kind == "V" + std::to_string(dtypeBits(wanted) / 8)
               ? std::optional(wanted)
               : std::nullopt;
  for (const Code &code : codes)
    if (kind == code.text + 1)
      return code.dtype;
  return std::nullopt;
}

/// The header's dictionary, a Python literal of three known keys.
class Header {
public:
  explicit Header(std::string text) : text(std::move(text)) {}

  std::optional<std::string> string(const char *key) {
    size_t at = valueOf(key);
    if (at == std::string::npos || (text[at] != '\'' && text[at] != '"'))
      return std::nullopt;
    size_t end = text.find(text[at], at + 1);
    if (end == std::string::npos)
      return std::nullopt;
    return text.substr(at + 1, end - at - 1);
  }
  /// Whether the value is a list, as a type of several fields is written.
  bool isList(const char *key) {
    size_t at = valueOf(key);
    return at != std::string::npos && text[at] == '[';
  }
  std::optional<bool> boolean(const char *key) {
    size_t at = valueOf(key);
    if (at == std::string::npos)
      return std::nullopt;
    if (text.compare(at, 4, "True") == 0)
      return true;
    if (text.compare(at, 5, "False") == 0)
      return false;
    return std::nullopt;
  }
  std::optional<std::vector<int64_t>> tuple(const char *key) {
    size_t at = valueOf(key);
    if (at == std::string::npos || text[at] != '(')
      return std::nullopt;
    std::vector<int64_t> values;
    for (++at; at < text.size() && text[at] != ')';) {
      if (text[at] == ' ' || text[at] == ',') {
        ++at;
        continue;
      }
      char *end = nullptr;
      errno = 0;
      long long value = std::strtoll(text.c_str() + at, &end, 10);
      if (end == text.c_str() + at || errno || value < 0)
        return std::nullopt;
      values.push_back(value);
      at = end - text.c_str();
    }
    return at < text.size() ? std::optional(values) : std::nullopt;
  }

private:
  size_t valueOf(const char *key) {
    size_t at = text.find("'" + std::string(key) + "'");
    if (at == std::string::npos)
      return at;
    at = text.find(':', at);
    return at == std::string::npos ? at : text.find_first_not_of(' ', at + 1);
  }
  std::string text;
};

struct FileCloser {
  void operator()(std::FILE *file) const { std::fclose(file); }
};

/// The same array with its elements in C order.
Array toCOrder(const Array &array, unsigned bytes) {
  Array result = *Array::allocate(array.dtype, array.shape);
  size_t rank = array.shape.size();
  std::vector<int64_t> index(rank), strides(rank, 1);
  for (size_t i = 1; i < rank; ++i)
    strides[i] = strides[i - 1] * array.shape[i - 1];
  for (uint64_t n = 0; n < array.size / bytes; ++n) {
    int64_t source = 0;
    for (size_t i = 0; i < rank; ++i)
      source += index[i] * strides[i];
    std::memcpy(result.data.get() + n * bytes,
                array.data.get() + source * bytes, bytes);
    for (size_t i = rank; i-- > 0;) {
      if (++index[i] < array.shape[i])
        break;
      index[i] = 0;
    }
  }
  return result;
}

} // namespace

Result<Array> Array::allocate(DType dtype, std::vector<int64_t> shape) {
  CHARONIA_ASSIGN_OR_RETURN(uint64_t size, tensorBytes(dtype, shape));
  constexpr uint64_t alignment = 64;
  if (size > (uint64_t(1) << 62))
    return Status(StatusCode::OutOfMemory,
                  "an array of " + shapeString(shape) + " is too large");
  void *memory =
      std::aligned_alloc(alignment, (size + alignment) / alignment * alignment);
  if (!memory)
    return Status(StatusCode::OutOfMemory, "no memory for an array of " +
                                               std::to_string(size) + " bytes");
  Array array;
  array.dtype = dtype;
  array.shape = std::move(shape);
  array.size = size;
  array.data.reset(static_cast<std::byte *>(memory),
                   [](std::byte *p) { std::free(p); });
  return array;
}

Result<Array> readNpy(const std::string &path, DType wanted) {
  // Opening a pipe would wait for its writer.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return Status(StatusCode::Io, path + ": " + std::strerror(errno));
  std::unique_ptr<std::FILE, FileCloser> file(::fdopen(descriptor, "rb"));
  struct stat info;
  if (::fstat(descriptor, &info) != 0)
    return Status(StatusCode::Io, path + ": " + std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return bad(path,
               S_ISDIR(info.st_mode) ? "is a folder" : "is not a regular file");
  unsigned char head[12];
  if (std::fread(head, 1, 10, file.get()) != 10 ||
      std::memcmp(head, "\x93NUMPY", 6) != 0)
    return bad(path, "is not a .npy file; numpy.save writes one");
  uint32_t length = head[8] | head[9] << 8;
  if (head[6] < 1 || head[6] > 3)
    return bad(path, "has the .npy version " + std::to_string(head[6]) +
                         "; 1 to 3 are known");
  if (head[6] >= 2) {
    if (std::fread(head + 10, 1, 2, file.get()) != 2)
      return bad(path, "ends inside its header");
    length |= uint32_t(head[10]) << 16 | uint32_t(head[11]) << 24;
  }
  if (length > (1u << 20))
    return bad(path, "has a damaged header");
  std::string text(length, '\0');
  if (std::fread(text.data(), 1, length, file.get()) != length)
    return bad(path, "ends inside its header");
  Header header(std::move(text));
  if (header.isList("descr"))
    return bad(path, "has elements of several fields, a type that is not "
                     "supported; wanted is " +
                         std::string(dtypeName(wanted)));
  auto code = header.string("descr");
  auto fortran = header.boolean("fortran_order");
  auto shape = header.tuple("shape");
  if (!code || !fortran || !shape)
    return bad(path, "has a damaged header");
  std::optional<DType> dtype = parseCode(*code, wanted);
  if (!dtype)
    return bad(path, "has the element type '" + *code +
                         "', which is not supported; wanted is " +
                         std::string(dtypeName(wanted)));
  Result<uint64_t> size = tensorBytes(*dtype, *shape);
  if (!size)
    return size.status().withContext(path);
  Status truncated =
      bad(path, "is truncated: " + shapeString(*shape) + " elements of " +
                    *code + " take " + std::to_string(*size) + " bytes");
  // Before memory is taken for what is not there.
  if (uint64_t(info.st_size) < *size)
    return truncated;
  Result<Array> array = Array::allocate(*dtype, *shape);
  if (!array)
    return array.status().withContext(path);
  if (std::fread(array->data.get(), 1, array->size, file.get()) != array->size)
    return truncated;
  if (*fortran && shape->size() > 1)
    return toCOrder(*array, dtypeBits(*dtype) / 8);
  return array;
}

Status writeNpy(const std::string &path, DType dtype,
                std::span<const int64_t> shape, const void *data) {
  const char *code = nullptr;
  for (const Code &known : codes)
    if (known.dtype == dtype)
      code = known.text;
  if (!code)
    return bad(path, "NumPy has no type like " + std::string(dtypeName(dtype)));
  std::string dims;
  for (int64_t extent : shape)
    dims += std::to_string(extent) + ", ";
  if (shape.size() > 1)
    dims.resize(dims.size() - 2);
  else if (shape.size() == 1)
    dims.pop_back();
  std::string header = "{'descr': '" + std::string(code) +
                       "', 'fortran_order': False, 'shape': (" + dims + "), }";
  header.append(64 - (10 + header.size() + 1) % 64, ' ');
  header += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  start += char(header.size() & 255);
  start += char(header.size() >> 8);
  CHARONIA_ASSIGN_OR_RETURN(uint64_t size, tensorBytes(dtype, shape));
  engine::AtomicFile file(path);
  CHARONIA_RETURN_IF_ERROR(file.open());
  CHARONIA_RETURN_IF_ERROR(file.append(start.data(), start.size()));
  CHARONIA_RETURN_IF_ERROR(file.append(header.data(), header.size()));
  if (size)
    CHARONIA_RETURN_IF_ERROR(file.append(data, size));
  return file.commit();
}

} // namespace charonia::tool
