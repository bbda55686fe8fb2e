#include "frontends/tensorflow/Model.h"
#include "frontends/common/Diagnostic.h"
#include "frontends/tensorflow/Message.h"
#include "frontends/tensorflow/Text.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace charonia;
using namespace charonia::frontend;
using namespace charonia::frontend::tensorflow;
using llvm::StringRef;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

static const char *const exportLines =
    "export it as a SavedModel:\n"
    "    model.export(\"folder\")            # Keras 3\n"
    "    tf.saved_model.save(model, \"folder\")";
static const char *const restoreLines =
    "build the model in Python, restore it and export it as a SavedModel:\n"
    "    tf.train.Checkpoint(model=model).restore(\"checkpoint\")   # or "
    "model.load_weights\n"
    "    model.export(\"folder\")";
const char *const charonia::frontend::tensorflow::damagedRemedy =
    "the file is damaged: fetch or export the model again";
static const char *const savedModelFile = "saved_model.pb";
static const char *const savedModelText = "saved_model.pbtxt";

// References and bodies.

Reference charonia::frontend::tensorflow::parseReference(StringRef text) {
  Reference reference;
  reference.isControl = text.consume_front("^");
  auto [node, rest] = text.split(':');
  reference.node = node;
  auto [first, second] = rest.split(':');
  StringRef number = second.empty() ? first : second;
  if (number.empty() || number.getAsInteger(10, reference.index) ||
      reference.index < 0) {
    reference.index = number.empty() ? 0 : -1;
    return reference;
  }
  if (!second.empty())
    reference.output = first;
  return reference;
}

Body::Body(const google::protobuf::RepeatedPtrField<proto::Node> &nodes)
    : nodes(nodes) {
  for (int i = 0; i < nodes.size(); ++i)
    if (!byName.try_emplace(nodes[i].name(), i).second)
      twice = nodes[i].name();
}

std::string
charonia::frontend::tensorflow::variableNameOf(const proto::Node &node) {
  auto text = [&](const char *attribute) {
    auto it = node.attributes().find(attribute);
    return it == node.attributes().end() ? std::string() : it->second.text();
  };
  // Of that name each node has a variable of its own (ResourceHandle).
  constexpr const char *nobody = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";
  std::string shared = text("shared_name"), container = text("container");
  if (shared.empty() || shared == nobody)
    return node.name();
  return container.empty() ? shared : container + "/" + shared;
}

const proto::Function *Model::function(StringRef name) const {
  auto it = functions.find(name);
  return it == functions.end() ? nullptr : it->second;
}
const proto::FunctionSignature *Model::definition(StringRef op) const {
  return definitions.lookup(op);
}
const Body &Model::bodyOf(const proto::Function &function) {
  auto &body = bodies[&function];
  if (!body)
    body = std::make_unique<Body>(function.nodes());
  return *body;
}
const std::vector<std::string> *Model::captured(StringRef function) const {
  auto it = capturedBy.find(function);
  return it == capturedBy.end() ? nullptr : &it->second;
}
const Stored *Model::storedOf(const proto::Node &node) const {
  auto it = restored.find(variableNameOf(node));
  return it == restored.end() ? nullptr : &it->second;
}

// Files.

bool charonia::frontend::tensorflow::isCheckpoint(StringRef file) {
  StringRef name = path::filename(file);
  return name.ends_with(".index") || name.ends_with(".ckpt") ||
         name.ends_with(".meta") || name.contains(".data-0");
}

bool charonia::frontend::tensorflow::parseMessage(
    google::protobuf::MessageLite &message, StringRef bytes) {
  // Its default handler writes to the terminal.
  static auto *silenced = google::protobuf::SetLogHandler(nullptr);
  (void)silenced;
  google::protobuf::io::ArrayInputStream stream(bytes.data(),
                                                static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(std::numeric_limits<int>::max());
  return message.ParsePartialFromCodedStream(&coded) &&
         coded.ConsumedEntireMessage();
}

/// The file's bytes, unless there are more than a message can have.
static std::optional<FileBytes> readMessageFile(StringRef file,
                                                Problem &problem) {
  auto bytes = mapFile(file, problem);
  if (bytes && bytes->bytes.size() >
                   static_cast<size_t>(std::numeric_limits<int>::max())) {
    problem = {"is over 2 GiB, the limit of its format", exportLines};
    return std::nullopt;
  }
  return bytes;
}

/// Why a file is no graph, and what gives one; none where it may be one.
static std::optional<Problem> otherForm(StringRef file, StringRef bytes) {
  StringRef name = path::filename(file);
  const std::string load = "load it in Python and export it as a SavedModel:\n"
                           "    keras.models.load_model(\"" +
                           printable(name.str()) + "\").export(\"folder\")";
  if (name.ends_with(".weights.h5"))
    return Problem{"is a file of weights: variables without a graph",
                   restoreLines};
  if (bytes.starts_with("\x89HDF"))
    return Problem{"is an HDF5 file of Keras, without a graph", load};
  if (bytes.starts_with("PK\x03\x04"))
    return Problem{"is a .keras archive, without a graph", load};
  if (bytes.substr(4).starts_with("TFL3"))
    return Problem{"is a model of TFLite",
                   "take the model that it was converted from, and " +
                       std::string(exportLines)};
  if (isCheckpoint(name))
    return Problem{"is a checkpoint: variables without a graph", restoreLines};
  return std::nullopt;
}

/// The graph that is served: with the tag "serve" alone, else the only one that
/// has it among others; a folder may hold one for training, or for a TPU.
static const proto::MetaGraph *chooseGraph(const proto::SavedModel &model,
                                           Problem &problem) {
  const proto::MetaGraph *other = nullptr;
  std::string listed;
  int count = 0;
  for (const proto::MetaGraph &graph : model.meta_graphs()) {
    const auto &tags = graph.info().tags();
    if (std::find(tags.begin(), tags.end(), "serve") == tags.end())
      continue;
    if (tags.size() == 1)
      return &graph;
    other = &graph;
    ++count;
    listed += listed.empty() ? "{" : ", {";
    for (int i = 0; i < tags.size(); ++i)
      listed += (i ? ", " : "") + printable(tags[i]);
    listed += "}";
  }
  if (count == 1)
    return other;
  problem = count ? Problem{"has graphs with the tags " + listed +
                                ", and none with \"serve\" alone",
                            "export one graph with the tag \"serve\""}
                  : Problem{"has no graph with the tag \"serve\"", exportLines};
  return nullptr;
}

std::optional<Problem> Model::parseSavedModel(StringRef bytes,
                                              OpenFile openVariables,
                                              const ImportOptions &options) {
  if (!parseMessage(*message, bytes) || !message->meta_graphs_size())
    return Problem{"is not a SavedModel: the file is damaged, cut short or of "
                   "another format",
                   exportLines};
  Problem problem;
  const proto::MetaGraph *chosen = chooseGraph(*message, problem);
  if (!chosen)
    return problem;
  if (openVariables) {
    variables = Bundle::open(std::move(openVariables), problem);
    if (!variables)
      return problem;
  }
  saved = true;
  for (const auto &definition : chosen->info().definitions().operators())
    definitions[definition.name()] = &definition;
  if (auto found = useGraph(chosen->graph()))
    return found;
  if (!chosen->objects().nodes_size()) {
    if (auto found = findRestored(chosen->saver().restore()))
      return found;
  } else if (auto found = findCaptured(chosen->objects())) {
    return found;
  }
  return useSignature(*chosen, options);
}

std::optional<Problem> Model::parseGraph(StringRef bytes,
                                         const ImportOptions &options) {
  proto::Graph &graph = *message->add_meta_graphs()->mutable_graph();
  if (!parseMessage(graph, bytes) || !graph.nodes_size())
    return Problem{"is not a graph of TensorFlow: the file is damaged, cut "
                   "short or of another format",
                   exportLines};
  if (auto found = useGraph(graph))
    return found;
  return findPorts(options);
}

std::optional<Problem> Model::useGraph(const proto::Graph &graph) {
  main = std::make_unique<Body>(graph.nodes());
  if (!main->twice.empty())
    return Problem{"has two nodes of the name '" + printable(main->twice) + "'",
                   damagedRemedy};
  for (const proto::Node &node : main->nodes)
    if (node.name().empty())
      return Problem{"has a node " + printable(node.op()) + " without a name",
                     damagedRemedy};
  if (replacements)
    for (const proto::Node &node : main->nodes)
      if (node.op() == "Const")
        replacements->know(node.name());
  for (const proto::Function &function : graph.library().functions())
    if (!functions.try_emplace(function.signature().name(), &function).second)
      return Problem{"has two functions of the name '" +
                         printable(function.signature().name()) + "'",
                     damagedRemedy};
  return std::nullopt;
}

std::unique_ptr<Model> Model::readSavedModel(StringRef bytes,
                                             OpenFile openVariables,
                                             const ImportOptions &options,
                                             Problem &problem) {
  std::unique_ptr<Model> model(new Model);
  model->message = std::make_shared<proto::SavedModel>();
  model->replacements = options.replacements;
  auto found = model->parseSavedModel(bytes, std::move(openVariables), options);
  if (!found)
    return model;
  problem = std::move(*found);
  return {};
}

std::unique_ptr<Model> Model::readGraph(StringRef bytes,
                                        const ImportOptions &options,
                                        Problem &problem) {
  std::unique_ptr<Model> model(new Model);
  model->message = std::make_shared<proto::SavedModel>();
  model->replacements = options.replacements;
  auto found = model->parseGraph(bytes, options);
  if (!found)
    return model;
  problem = std::move(*found);
  return {};
}

// Folders.

/// The bytes of a message, which may be written out as text.
static std::optional<FileBytes> readMessage(StringRef file, TextMessage message,
                                            Problem &problem) {
  auto bytes = readMessageFile(file, problem);
  if (!bytes || path::extension(file) != ".pbtxt")
    return bytes;
  auto encoded = encodeText(bytes->text(), message, problem);
  if (!encoded)
    return std::nullopt;
  auto owned = std::make_shared<std::string>(std::move(*encoded));
  return FileBytes{{owned->data(), owned->size()}, owned};
}

static std::unique_ptr<Model> readFolder(const std::string &folder,
                                         const ImportOptions &options,
                                         Problem &problem) {
  llvm::SmallString<256> file(folder), text(folder), table(folder);
  path::append(file, savedModelFile);
  path::append(text, savedModelText);
  if (!fs::exists(file) && fs::exists(text))
    file = text;
  if (!fs::exists(file)) {
    llvm::SmallString<256> checkpoint(folder);
    path::append(checkpoint, "checkpoint");
    problem =
        fs::exists(checkpoint)
            ? Problem{"is a folder of checkpoints: variables without a "
                      "graph",
                      restoreLines}
            : Problem{"is a folder without a saved_model.pb", exportLines};
    return {};
  }
  auto bytes = readMessage(file, TextMessage::SavedModel, problem);
  if (!bytes) {
    problem.what = "its file '" + path::filename(file).str() + "' " +
                   std::move(problem.what);
    return {};
  }
  OpenFile open;
  path::append(table, "variables", "variables.index");
  if (fs::exists(table))
    open = [files = std::make_shared<FolderFiles>("variables", folder, file)](
               const std::string &name, Problem &problem) {
      return files->open("variables/" + name, problem);
    };
  bool hasTable = static_cast<bool>(open);
  auto model =
      Model::readSavedModel(bytes->text(), std::move(open), options, problem);
  // One error for all of them: who copies a model easily forgets them.
  if (model && !hasTable && model->holdsVariables()) {
    problem = Problem{"has variables, but no file variables/variables.index",
                      "copy the whole folder, with variables/ in it"};
    return {};
  }
  return model;
}

std::unique_ptr<Model>
Model::read(StringRef given, const ImportOptions &options, Problem &problem) {
  if (fs::is_directory(given))
    return readFolder(given.str(), options, problem);
  StringRef name = path::filename(given);
  if (name == savedModelFile || name == savedModelText) {
    StringRef folder = path::parent_path(given);
    return readFolder(folder.empty() ? "." : folder.str(), options, problem);
  }
  auto raw = readMessageFile(given, problem);
  if (!raw)
    return {};
  if (auto other = otherForm(given, raw->text())) {
    problem = std::move(*other);
    return {};
  }
  auto bytes = readMessage(given, TextMessage::Graph, problem);
  return bytes ? readGraph(bytes->text(), options, problem) : nullptr;
}
