#include "frontends/pytorch/Import.h"
#include "frontends/pytorch/ProgramImporter.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::pytorch;
using llvm::StringRef;

/// What gives a file that works.
static const char *const exportLines =
    "export it with torch 2.9 or newer:\n"
    "    program = torch.export.export(model.eval(), (x,), "
    "dynamic_shapes=({0: torch.export.Dim(\"batch\")},))\n"
    "    torch.export.save(program, \"model.pt2\")";

bool charonia::frontend::pytorch::isFile(StringRef bytes) {
  // A zip file, also an empty one, or a pickle of protocol 2 to 5.
  bool isPickle =
      bytes.size() > 1 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
  return bytes.starts_with("PK\x03\x04") || bytes.starts_with("PK\x05\x06") ||
         isPickle;
}

/// Why the archive is none that is read; empty where it may be.
static std::string otherForm(const Archive &archive) {
  bool hasModels = !archive.list("models/").empty();
  if (archive.has("serialized_exported_program.json"))
    return "is an exported program of torch 2.8 or older, whose weights are "
           "pickles";
  if (hasModels && archive.has("data/weights/model.pt"))
    return "is an exported program of torch 2.8, whose weights are pickles";
  if (!archive.list("data/aotinductor/").empty() && !hasModels)
    return "is a package of AOTInductor: compiled code for one machine, not a "
           "model";
  if (!archive.list("code/").empty() && archive.has("data.pkl"))
    return "is a TorchScript file";
  if (archive.has("data.pkl"))
    return "is a pickle of torch.save: weights or Python objects, not a model";
  if (!hasModels)
    return "is a zip file without an exported program";
  return "";
}

/// The names of the programs in the archive, of "models/<name>.json".
static std::vector<std::string> programsOf(const Archive &archive) {
  std::vector<std::string> names;
  for (const std::string &entry : archive.list("models/")) {
    StringRef name = entry;
    if (name.consume_front("models/") && name.consume_back(".json"))
      names.push_back(name.str());
  }
  return names;
}

static std::optional<Problem> checkMarkers(Archive &archive) {
  Problem problem;
  auto text = [&](StringRef name) -> std::string {
    auto bytes = archive.has(name) ? archive.load(name, problem) : std::nullopt;
    return bytes ? bytes->text().trim().take_front(64).str() : "";
  };
  if (std::string order = text("byteorder");
      !order.empty() && order != "little")
    return Problem{"its weights are in byte order '" + printable(order) + "'",
                   "export it on a little-endian machine"};
  if (std::string version = text("archive_version");
      !version.empty() && version != "0")
    return Problem{"is of archive version " + printable(version) +
                       "; 0 is supported",
                   exportLines};
  return std::nullopt;
}

static std::optional<Problem> addWeights(Archive &archive, StringRef program,
                                         Weights &weights) {
  for (StringRef kind : {"weights", "constants"}) {
    std::string entry =
        ("data/" + kind + "/" + program + "_" + kind + "_config.json").str();
    if (archive.has(entry))
      if (auto problem = weights.addConfiguration(entry))
        return problem;
  }
  return std::nullopt;
}

/// The program to import, by its name; none and a problem where it cannot be
/// told.
static std::optional<std::string> choose(const std::vector<std::string> &names,
                                         const std::string &wanted,
                                         Problem &problem) {
  std::string list;
  for (const std::string &name : names)
    list += (list.empty() ? "" : ", ") + printable(name);
  if (names.empty())
    problem = {"has no models/<name>.json", exportLines};
  else if (wanted.empty() && names.size() > 1)
    problem = {"holds several programs: " + list,
               "choose one with --program NAME"};
  else if (!wanted.empty() && !llvm::is_contained(names, wanted))
    problem = {"has no program '" + printable(wanted) + "', but " + list,
               "choose one of these with --program NAME"};
  else
    return wanted.empty() ? names.front() : wanted;
  return std::nullopt;
}

static ImportResult importArchive(std::unique_ptr<Archive> archive,
                                  StringRef file, const ImportOptions &options,
                                  mlir::MLIRContext &context) {
  if (std::string form = otherForm(*archive); !form.empty())
    return failedImport(file, {form, exportLines});
  if (auto problem = checkMarkers(*archive))
    return failedImport(file, *problem);
  Problem problem;
  auto name = choose(programsOf(*archive), options.program, problem);
  if (!name)
    return failedImport(file, problem);
  std::string entry = "models/" + *name + ".json";
  auto text = archive->load(entry, problem);
  if (!text)
    return failedImport(file, problem);
  auto program = readProgram(text->text(), problem);
  if (!program)
    return failedImport(
        file,
        {"entry '" + printable(entry) + "': " + problem.what, problem.remedy});
  ModuleBuilder builder(file, context);
  Weights weights(*archive, options.replacements);
  if (auto found = addWeights(*archive, *name, weights))
    return failedImport(file, *found);
  ProgramImporter(std::move(*program), weights, options, builder).run();
  return builder.take();
}

ImportResult charonia::frontend::pytorch::importFile(
    StringRef path, const ImportOptions &options, mlir::MLIRContext &context) {
  Problem problem;
  auto archive = Archive::open(path, problem);
  if (!archive) {
    // Files that torch.save wrote before 2020 are bare pickles.
    auto buffer = llvm::MemoryBuffer::getFileSlice(path, 1, 0);
    if (buffer && (*buffer)->getBuffer() == "\x80")
      problem = {"is a pickle of torch.save: weights or Python objects, not a "
                 "model",
                 exportLines};
    return failedImport(path, problem);
  }
  return importArchive(std::move(archive), path, options, context);
}

ImportResult
charonia::frontend::importPyTorchBytes(StringRef bytes, StringRef name,
                                       const ImportOptions &options,
                                       mlir::MLIRContext &context) {
  Problem problem;
  auto owner = std::make_shared<std::vector<char>>(bytes.begin(), bytes.end());
  auto archive = Archive::read({*owner, owner}, problem);
  if (!archive)
    return failedImport(name, problem);
  return importArchive(std::move(archive), name, options, context);
}
