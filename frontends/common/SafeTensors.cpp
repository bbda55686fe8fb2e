#include "frontends/common/SafeTensors.h"
#include "frontends/common/Diagnostic.h"
#include "frontends/common/Json.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

using namespace charonia;
using namespace charonia::frontend;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;
using llvm::StringRef;

static const char *const damagedRemedy =
    "the file is damaged or cut short: fetch or save it again";
static const char *const indexSuffix = ".index.json";

/// Bits of an element; 0 where the format has no such type.
static int64_t bitsOf(StringRef dtype) {
  return llvm::StringSwitch<int64_t>(dtype)
      .Cases({"F64", "I64", "U64", "C64"}, 64)
      .Cases({"F32", "I32", "U32"}, 32)
      .Cases({"F16", "BF16", "I16", "U16"}, 16)
      .Cases({"I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2", "F8_E8M0",
              "F8_E4M3FNUZ", "F8_E5M2FNUZ"},
             8)
      .Cases({"F6_E2M3", "F6_E3M2"}, 6)
      .Case("F4", 4)
      .Default(0);
}

mlir::Type charonia::frontend::elementType(const SafeTensors::Tensor &tensor,
                                           mlir::MLIRContext *context) {
  mlir::Builder b(context);
  StringRef name = tensor.dtype;
  auto bits = static_cast<unsigned>(bitsOf(name));
  if (name == "BOOL")
    return b.getI1Type();
  if (name.starts_with("I"))
    return b.getIntegerType(bits);
  if (name.starts_with("U"))
    return mlir::IntegerType::get(context, bits, mlir::IntegerType::Unsigned);
  return llvm::StringSwitch<mlir::Type>(name)
      .Case("F64", b.getF64Type())
      .Case("F32", b.getF32Type())
      .Case("F16", b.getF16Type())
      .Case("BF16", b.getBF16Type())
      .Default({});
}

/// A tensor of the header and where it lies behind that; what does not fit is
/// recorded with `json`.
static SafeTensors::Tensor readTensor(const Json &json, uint64_t size,
                                      std::pair<uint64_t, uint64_t> &place) {
  SafeTensors::Tensor tensor;
  tensor.dtype = json["dtype"].string();
  int64_t bits = bitsOf(tensor.dtype), elements = 1;
  bool overflows = false;
  constexpr size_t maxRank = 64;
  Json shape = json["shape"], ends = json["data_offsets"];
  std::string before;
  for (const auto &[key, value] : json.fields()) {
    if (key == before)
      value.fail("is there twice");
    before = key;
  }
  if (!shape.isList() || !ends.isList() || ends.size() != 2) {
    json.fail("has to have a shape and two data_offsets");
    return tensor;
  }
  if (shape.size() > maxRank) {
    shape.fail("is absurdly large");
    return tensor;
  }
  for (const Json &extent : shape.list()) {
    int64_t count = extent.integer();
    if (count < 0)
      extent.fail("is negative");
    tensor.shape.push_back(count);
  }
  // Without elements it is small, however large its other sizes are.
  if (llvm::is_contained(tensor.shape, 0))
    elements = 0;
  for (int64_t count : tensor.shape)
    overflows |= elements && llvm::MulOverflow(elements, count, elements);
  overflows |= llvm::MulOverflow(elements, bits, bits);
  std::vector<Json> offsets = ends.list();
  int64_t begin = offsets[0].integer(), end = offsets[1].integer();
  if (!bitsOf(tensor.dtype))
    json["dtype"].fail("is '" + printable(tensor.dtype) +
                       "', a type that the format does not have");
  else if (overflows)
    shape.fail("is absurdly large");
  else if (begin < 0 || begin > end || static_cast<uint64_t>(end) > size)
    json.fail("lies at " + llvm::Twine(begin) + ".." + llvm::Twine(end) +
              ", but the file's data has " + llvm::Twine(size) + " bytes");
  else if (static_cast<uint64_t>(end - begin) != llvm::divideCeil(bits, 8))
    json.fail("has " + llvm::Twine(end - begin) +
              " bytes, but its shape and type take " +
              llvm::Twine(llvm::divideCeil(bits, 8)));
  place = {begin, end};
  return tensor;
}

std::optional<Problem> SafeTensors::addFile(const FileBytes &file,
                                            const std::string &shown,
                                            const llvm::StringSet<> *wanted) {
  auto fail = [&](const std::string &what) {
    return Problem{shown + " is not a sound safetensors file: " + what,
                   damagedRemedy};
  };
  constexpr size_t lengthBytes = 8;
  StringRef bytes = file.text();
  if (bytes.size() < lengthBytes)
    return fail("it has no header");
  uint64_t length = llvm::support::endian::read64le(bytes.data());
  if (length > bytes.size() - lengthBytes) {
    // A header may be as long as these bytes say: 640 is "\x80\x02".
    bool isZip = bytes.starts_with("PK\x03\x04");
    if (isZip && bytes.contains("/archive_format"))
      return Problem{shown + " is a program of torch.export",
                     "save its weights in Python: "
                     "safetensors.torch.save_file(dict(torch.export.load("
                     "\"m.pt2\").state_dict), \"m.safetensors\")"};
    if (isZip || bytes.starts_with("\x80\x02"))
      return Problem{shown + " is a pickle of torch.save, or a zip file",
                     "save the weights in Python: "
                     "safetensors.torch.save_file(torch.load(\"m.pth\", "
                     "weights_only=True), \"m.safetensors\")"};
    // Every header is an object, and nothing is in front of it.
    if (!bytes.drop_front(lengthBytes).starts_with("{"))
      return Problem{shown + " is no safetensors file",
                     "save the weights as one, in Python: "
                     "safetensors.torch.save_file(model.state_dict(), "
                     "\"m.safetensors\"), or safetensors.numpy.save_file"};
    return fail("its header of " + std::to_string(length) +
                " bytes ends behind it");
  }
  // The format's own bound.
  constexpr uint64_t maxHeader = 100'000'000;
  if (length > maxHeader)
    return fail("its header of " + std::to_string(length) +
                " bytes is longer than the format allows");
  std::string damage;
  auto text =
      JsonText::parse(bytes.substr(lengthBytes, length).rtrim(), damage);
  if (!text)
    return fail("its header " + damage);
  Json::Report report;
  uint64_t begin = lengthBytes + length, size = bytes.size() - begin;
  std::vector<std::pair<uint64_t, uint64_t>> places;
  Json header(*text, "", report);
  auto fields = header.fields();
  if (!header.isPresent() || header.failed())
    return fail("its header is no object");
  std::string before;
  for (const auto &[name, json] : fields) {
    if (name == "__metadata__")
      continue;
    if (!places.empty() && name == before)
      json.fail("is there twice");
    before = name;
    Tensor tensor = readTensor(json, size, places.emplace_back());
    if (json.failed())
      break;
    auto [from, to] = places.back();
    tensor.data = {file.bytes.slice(begin + from, to - from), file.owner};
    if ((!wanted || wanted->contains(name)) &&
        !tensors.try_emplace(name, std::move(tensor)).second)
      json.fail("is in another file, too");
  }
  if (!report.problem.empty())
    return fail("tensor " + report.problem);
  // Bytes are one tensor's each.
  llvm::sort(places);
  uint64_t end = 0;
  for (auto [from, to] : places) {
    if (from != end)
      return fail("bytes from " + std::to_string(std::min(from, end)) +
                  " on are of no tensor, or of two");
    end = to;
  }
  if (end != size)
    return fail("bytes from " + std::to_string(end) + " on are of no tensor");
  return std::nullopt;
}

/// {"weight_map": {tensor: file beside the index}}.
std::optional<Problem> SafeTensors::addIndex(const std::string &index) {
  std::string shown = "index '" + printable(index) + "'";
  Problem problem;
  auto bytes = mapFile(index, problem);
  if (!bytes)
    return Problem{shown + " " + problem.what, problem.remedy};
  std::string damage;
  auto text = JsonText::parse(bytes->text(), damage);
  if (!text)
    return Problem{shown + " " + damage, damagedRemedy};
  Json::Report report;
  std::map<std::string, llvm::StringSet<>> files;
  Json map = Json(*text, "", report)["weight_map"];
  for (const auto &[name, file] : map.fields())
    files[file.string()].insert(name);
  if (!map.isPresent() || !report.problem.empty())
    return Problem{shown + " has no weight_map of names: " + report.problem,
                   damagedRemedy};
  StringRef folder = path::parent_path(index);
  FolderFiles shards("weights", folder.empty() ? "." : folder, index);
  for (const auto &[file, names] : files) {
    auto shard = shards.open(file, problem);
    if (!shard)
      return problem;
    if (auto found = addFile(*shard, "'" + printable(file) + "'", &names))
      return found;
    for (const auto &name : names)
      if (!tensors.count(name.first()))
        return Problem{shown + " says that '" + printable(name.first().str()) +
                           "' is in '" + printable(file) + "', where it is not",
                       damagedRemedy};
  }
  return std::nullopt;
}

/// The index of a folder, or else its only file.
static std::string chooseFile(StringRef folder, Problem &problem) {
  std::vector<std::string> indices, files;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; it != end && !failed;
       it.increment(failed)) {
    StringRef name = path::filename(it->path());
    if (name.ends_with(std::string(".safetensors") + indexSuffix))
      indices.push_back(it->path());
    else if (name.ends_with(".safetensors"))
      files.push_back(it->path());
  }
  std::vector<std::string> &found = indices.empty() ? files : indices;
  if (found.size() == 1)
    return found.front();
  llvm::sort(found);
  std::string list;
  for (const std::string &file : found)
    list += (list.empty() ? "" : ", ") + printable(path::filename(file).str());
  problem = failed ? Problem{"cannot be read: " + failed.message(), ""}
            : found.empty()
                ? Problem{"is a folder without .safetensors files",
                          "name a file, an index or a folder of them"}
                : Problem{"holds several: " + list,
                          "name the one to take the weights from"};
  return "";
}

std::optional<SafeTensors> SafeTensors::open(StringRef given,
                                             Problem &problem) {
  std::string file = given.str();
  if (fs::is_directory(given) && (file = chooseFile(given, problem)).empty())
    return std::nullopt;
  SafeTensors result;
  std::optional<Problem> found;
  if (StringRef(file).ends_with(indexSuffix)) {
    found = result.addIndex(file);
  } else if (auto bytes = mapFile(file, problem)) {
    found = result.addFile(*bytes, "it");
  } else {
    return std::nullopt;
  }
  if (!found && result.tensors.empty())
    found = Problem{"has no tensors", "give a file of weights"};
  if (!found)
    return result;
  problem = std::move(*found);
  return std::nullopt;
}

const SafeTensors::Tensor *SafeTensors::find(StringRef name) const {
  auto it = tensors.find(name);
  return it == tensors.end() ? nullptr : &it->second;
}
std::vector<std::string> SafeTensors::names() const {
  std::vector<std::string> result;
  for (const auto &tensor : tensors)
    result.push_back(tensor.first().str());
  llvm::sort(result);
  return result;
}
