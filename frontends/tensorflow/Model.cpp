#include "frontends/tensorflow/Model.h"
#include "frontends/common/Diagnostic.h"
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
static const char *const damagedRemedy =
    "the file is damaged: fetch or export the model again";
static const char *const savedModelFile = "saved_model.pb";

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

const proto::Function *Model::function(StringRef name) const {
  auto it = functions.find(name);
  return it == functions.end() ? nullptr : it->second;
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
const std::string *Model::keyOf(StringRef node) const {
  auto it = restored.find(node);
  return it == restored.end() ? nullptr : &it->second;
}

// Files.

static bool parse(google::protobuf::MessageLite &message, StringRef bytes) {
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

/// What a file is that is no graph; empty where it may be one.
static std::string otherForm(StringRef file, StringRef bytes) {
  if (bytes.starts_with("\x89HDF"))
    return "is an HDF5 file of Keras, without a graph";
  if (bytes.starts_with("PK\x03\x04"))
    return "is a .keras archive, without a graph";
  if (bytes.substr(4).starts_with("TFL3"))
    return "is a model of TFLite";
  StringRef name = path::filename(file);
  if (name.ends_with(".index") || name.contains(".data-0"))
    return "is a checkpoint: variables without a graph";
  if (name.ends_with(".pbtxt"))
    return "is a graph as text, which is not supported";
  return "";
}

std::optional<Problem> Model::parseSavedModel(StringRef bytes,
                                              OpenFile openVariables) {
  if (!parse(*message, bytes) || !message->meta_graphs_size())
    return Problem{"is not a SavedModel: the file is damaged, cut short or of "
                   "another format",
                   exportLines};
  // Served graphs carry the tag "serve"; a folder may hold one for training.
  const proto::MetaGraph *chosen = nullptr;
  for (const proto::MetaGraph &graph : message->meta_graphs()) {
    const auto &tags = graph.info().tags();
    if (!chosen && std::find(tags.begin(), tags.end(), "serve") != tags.end())
      chosen = &graph;
  }
  if (!chosen)
    return Problem{"has no graph with the tag \"serve\"", exportLines};
  if (openVariables) {
    Problem problem;
    variables = Bundle::open(std::move(openVariables), problem);
    if (!variables)
      return problem;
  }
  if (auto found = useGraph(chosen->graph()))
    return found;
  if (!chosen->objects().nodes_size())
    findRestored();
  else if (auto found = findCaptured(chosen->objects()))
    return found;
  return useSignature(*chosen);
}

std::optional<Problem> Model::parseGraph(StringRef bytes) {
  proto::Graph &graph = *message->add_meta_graphs()->mutable_graph();
  if (!parse(graph, bytes) || !graph.nodes_size())
    return Problem{"is not a graph of TensorFlow: the file is damaged, cut "
                   "short or of another format",
                   exportLines};
  if (auto found = useGraph(graph))
    return found;
  return findPorts();
}

std::optional<Problem> Model::useGraph(const proto::Graph &graph) {
  main = std::make_unique<Body>(graph.nodes());
  if (!main->twice.empty())
    return Problem{"has two nodes of the name '" + printable(main->twice) + "'",
                   damagedRemedy};
  for (const proto::Function &function : graph.library().functions())
    if (!functions.try_emplace(function.signature().name(), &function).second)
      return Problem{"has two functions of the name '" +
                         printable(function.signature().name()) + "'",
                     damagedRemedy};
  return std::nullopt;
}

// Variables.

std::optional<Problem> Model::findCaptured(const proto::ObjectGraph &objects) {
  std::vector<std::string> keys(objects.nodes_size());
  if (variables) {
    constexpr const char *graphKey = "_CHECKPOINTABLE_OBJECT_GRAPH";
    Problem problem;
    auto text = variables->loadText(graphKey, problem);
    if (!text)
      return problem;
    proto::TrackableGraph trackable;
    if (!parse(trackable, *text))
      return Problem{"its variables have a description that cannot be read",
                     damagedRemedy};
    int count = std::min(trackable.nodes_size(), objects.nodes_size());
    for (int i = 0; i < count; ++i)
      for (const auto &attribute : trackable.nodes(i).attributes())
        if (attribute.name() == "VARIABLE_VALUE")
          keys[i] = attribute.key();
  }
  for (const auto &[name, function] : objects.functions()) {
    std::vector<std::string> &list = capturedBy[name];
    for (int object : function.bound()) {
      if (object < 0 || object >= objects.nodes_size())
        return Problem{"function '" + printable(name) +
                           "' captures an object that is not there",
                       damagedRemedy};
      list.push_back(keys[object]);
    }
  }
  return std::nullopt;
}

/// TF1 has no objects: a node restores all variables by assigning what others
/// read from the bundle, under the keys that a constant lists.
void Model::findRestored() {
  auto nodeOf = [&](StringRef text) -> const proto::Node * {
    auto it = main->byName.find(parseReference(text).node);
    return it == main->byName.end() ? nullptr : &main->nodes[it->second];
  };
  for (const proto::Node &node : main->nodes) {
    if ((node.op() != "Assign" && node.op() != "AssignVariableOp") ||
        node.inputs_size() < 2)
      continue;
    const proto::Node *variable = nodeOf(node.inputs(0));
    StringRef source = node.inputs(1);
    const proto::Node *read = nodeOf(source);
    for (int hops = 0;
         read && read->op() == "Identity" && read->inputs_size() && hops < 4;
         ++hops) {
      source = read->inputs(0);
      read = nodeOf(source);
    }
    if (!variable || !read || read->op() != "RestoreV2" ||
        read->inputs_size() < 2)
      continue;
    const proto::Node *names = nodeOf(read->inputs(1));
    auto value = names ? names->attributes().find("value")
                       : decltype(names->attributes().end())();
    int index = parseReference(source).index;
    if (!names || value == names->attributes().end() || index < 0 ||
        index >= value->second.tensor().texts_size())
      continue;
    restored[variable->name()] = value->second.tensor().texts(index);
  }
}

// Inputs and outputs.

std::optional<Problem> Model::useSignature(const proto::MetaGraph &graph) {
  constexpr const char *wanted = "serving_default";
  auto chosen = graph.signatures().find(wanted);
  if (chosen == graph.signatures().end()) {
    std::vector<std::string> names;
    for (const auto &[name, signature] : graph.signatures())
      if (signature.outputs_size() && name != "__saved_model_init_op")
        names.push_back(name);
    llvm::sort(names);
    std::string list;
    for (const std::string &name : names)
      list += (list.empty() ? "" : ", ") + printable(name);
    return Problem{"has no signature 'serving_default'" +
                       (list.empty() ? "" : "; it has " + list),
                   "save it with signatures={'serving_default': function}"};
  }
  std::optional<Problem> problem;
  auto read = [&](const auto &from, std::vector<Port> &to, const char *what) {
    for (const auto &[name, info] : from) {
      if (info.has_sparse() || info.has_composite())
        problem = Problem{std::string(what) + " '" + printable(name) +
                              "' is not a dense tensor",
                          "export a function of dense tensors"};
      to.push_back({name, info.name(), info.dtype(), &info.shape()});
    }
    // The map has no order, and an engine's interface needs one.
    llvm::sort(to,
               [](const Port &a, const Port &b) { return a.name < b.name; });
  };
  read(chosen->second.inputs(), inputPorts, "input");
  read(chosen->second.outputs(), outputPorts, "output");
  return problem;
}

/// Of a graph without a signature: what is fed, and what nobody reads.
std::optional<Problem> Model::findPorts() {
  llvm::StringMap<bool> isRead;
  for (const proto::Node &node : main->nodes)
    for (const std::string &input : node.inputs())
      if (Reference reference = parseReference(input); !reference.isControl)
        isRead[reference.node] = true;
  auto attribute = [](const proto::Node &node, const char *name) {
    auto it = node.attributes().find(name);
    return it == node.attributes().end() ? nullptr : &it->second;
  };
  for (const proto::Node &node : main->nodes) {
    if (node.op() == "Placeholder") {
      auto *dtype = attribute(node, "dtype"), *shape = attribute(node, "shape");
      if (isRead.count(node.name()))
        inputPorts.push_back({node.name(), node.name() + ":0",
                              dtype ? dtype->type() : 0,
                              shape ? &shape->shape() : nullptr});
    } else if (!isRead.count(node.name()) && node.op() != "Const" &&
               node.op() != "NoOp" && node.op() != "Assert") {
      outputPorts.push_back({node.name(), node.name() + ":0", 0, nullptr});
    }
  }
  if (outputPorts.empty())
    return Problem{"has no outputs: every node is read by another",
                   exportLines};
  return std::nullopt;
}

std::unique_ptr<Model> Model::readSavedModel(StringRef bytes,
                                             OpenFile openVariables,
                                             Problem &problem) {
  std::unique_ptr<Model> model(new Model);
  model->message = std::make_shared<proto::SavedModel>();
  auto found = model->parseSavedModel(bytes, std::move(openVariables));
  if (!found)
    return model;
  problem = std::move(*found);
  return {};
}

std::unique_ptr<Model> Model::readGraph(StringRef bytes, Problem &problem) {
  std::unique_ptr<Model> model(new Model);
  model->message = std::make_shared<proto::SavedModel>();
  auto found = model->parseGraph(bytes);
  if (!found)
    return model;
  problem = std::move(*found);
  return {};
}

// Folders.

static bool isInside(StringRef file, StringRef folder) {
  return file.consume_front(folder) && (folder == "/" || file.starts_with("/"));
}

/// A file of the model's folder. After links are followed it has to lie there,
/// or in that of the file that the model is a link to: caches of models are
/// trees of such links.
static std::optional<FileBytes> openInside(const std::string &folder,
                                           const std::string &modelFile,
                                           const std::string &name,
                                           Problem &problem) {
  llvm::SmallString<256> wanted(folder), real, base, behind;
  path::append(wanted, name);
  std::string shown = "its file '" + printable(name) + "' ";
  if (std::error_code error = fs::real_path(wanted, real)) {
    problem = {shown + "cannot be read: " + error.message(),
               "the model is a folder: copy all of it"};
    return std::nullopt;
  }
  if (fs::real_path(folder, base) || fs::real_path(modelFile, behind)) {
    problem = {shown + "cannot be found", ""};
    return std::nullopt;
  }
  path::remove_filename(behind);
  if (!isInside(real, base) && !isInside(real, behind)) {
    problem = {shown + "is a link out of the model's folder",
               "copy the file itself into the folder"};
    return std::nullopt;
  }
  auto file = mapFile(real, problem);
  if (!file)
    problem.what = shown + problem.what;
  return file;
}

static std::unique_ptr<Model> readFolder(const std::string &folder,
                                         Problem &problem) {
  llvm::SmallString<256> file(folder), table(folder);
  path::append(file, savedModelFile);
  if (!fs::exists(file)) {
    problem = {"is a folder without a saved_model.pb", exportLines};
    return {};
  }
  auto bytes = readMessageFile(file, problem);
  if (!bytes)
    return {};
  OpenFile open;
  path::append(table, "variables", "variables.index");
  if (fs::exists(table))
    open = [=, modelFile = file.str().str()](const std::string &name,
                                             Problem &problem) {
      return openInside(folder, modelFile, "variables/" + name, problem);
    };
  return Model::readSavedModel(bytes->text(), std::move(open), problem);
}

std::unique_ptr<Model> Model::read(StringRef given, Problem &problem) {
  if (fs::is_directory(given))
    return readFolder(given.str(), problem);
  if (path::filename(given) == savedModelFile) {
    StringRef folder = path::parent_path(given);
    return readFolder(folder.empty() ? "." : folder.str(), problem);
  }
  auto bytes = readMessageFile(given, problem);
  if (!bytes)
    return {};
  if (std::string form = otherForm(given, bytes->text()); !form.empty()) {
    problem = {form, exportLines};
    return {};
  }
  return readGraph(bytes->text(), problem);
}
