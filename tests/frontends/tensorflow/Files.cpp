#include "tests/frontends/tensorflow/Files.h"
#include "llvm/Support/Endian.h"

using namespace charonia;
using namespace charonia::test;
using tf::proto::Graph;

tf::proto::Node &test::addNode(Graph &graph, const std::string &op,
                               const std::string &name,
                               const std::vector<std::string> &inputs) {
  tf::proto::Node &node = *graph.add_nodes();
  node.set_name(name);
  node.set_op(op);
  for (const std::string &input : inputs)
    node.add_inputs(input);
  return node;
}

void test::addInput(Graph &graph, const std::string &name,
                    const std::vector<int64_t> &shape) {
  auto &attributes = *addNode(graph, "Placeholder", name).mutable_attributes();
  attributes["dtype"].set_type(1);
  auto *dims = attributes["shape"].mutable_shape();
  for (int64_t size : shape)
    dims->add_dims()->set_size(size);
}

tf::proto::Node &test::addInts(Graph &graph, const std::string &name,
                               const std::vector<int> &values, bool isScalar) {
  tf::proto::Node &node = addNode(graph, "Const", name);
  auto *tensor = (*node.mutable_attributes())["value"].mutable_tensor();
  tensor->set_dtype(3);
  if (!isScalar)
    tensor->mutable_shape()->add_dims()->set_size(values.size());
  for (int value : values)
    tensor->add_ints(value);
  return node;
}

std::string test::bytesOf(const google::protobuf::MessageLite &message) {
  return message.SerializeAsString();
}

static void putVarint(std::string &bytes, uint64_t value) {
  for (; value >= 128; value >>= 7)
    bytes.push_back(static_cast<char>(value | 128));
  bytes.push_back(static_cast<char>(value));
}
static void putWord(std::string &bytes, uint32_t value) {
  char word[4];
  llvm::support::endian::write32le(word, value);
  bytes.append(word, sizeof word);
}

/// Appends a block with its trailer, and gives its handle.
static std::string putBlock(std::string &file, std::string block) {
  putWord(block, 0); // the one restart
  putWord(block, 1);
  std::string handle;
  putVarint(handle, file.size());
  putVarint(handle, block.size());
  block.push_back(0); // not compressed
  uint32_t crc = tf::maskCrc(tf::crc32c(block));
  putWord(block, crc);
  file += block;
  return handle;
}
static void putEntry(std::string &block, const std::string &key,
                     const std::string &value, size_t shared) {
  putVarint(block, shared);
  putVarint(block, key.size() - shared);
  putVarint(block, value.size());
  block += key.substr(shared) + value;
}

std::string test::tableFile(const std::map<std::string, std::string> &entries,
                            size_t perBlock) {
  std::string file, index, block, last;
  size_t count = 0;
  auto flush = [&] {
    if (count)
      putEntry(index, last, putBlock(file, block), 0);
    block.clear();
    count = 0;
  };
  for (const auto &[key, value] : entries) {
    size_t shared = 0;
    while (count && shared < last.size() && shared < key.size() &&
           last[shared] == key[shared])
      ++shared;
    putEntry(block, key, value, shared);
    last = key;
    if (++count == perBlock)
      flush();
  }
  flush();
  std::string handles = putBlock(file, "") + putBlock(file, index);
  handles.resize(40);
  return file + handles + "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
}

SavedFiles::SavedFiles() {
  auto &meta = *model.add_meta_graphs();
  meta.mutable_info()->add_tags("serve");
  Graph &main = *meta.mutable_graph();
  addInput(main, "serving_default_x", {-1, 2});
  addNode(main, "VarHandleOp", "w");
  auto &call = addNode(main, "StatefulPartitionedCall", "call",
                       {"serving_default_x", "w"});
  (*call.mutable_attributes())["f"].mutable_function()->set_name("f");
  auto &function = *main.mutable_library()->add_functions();
  function.mutable_signature()->set_name("f");
  for (const char *name : {"x", "w"})
    function.mutable_signature()->add_inputs()->set_name(name);
  function.mutable_signature()->add_outputs()->set_name("y");
  Graph body;
  addNode(body, "ReadVariableOp", "read", {"w"});
  addNode(body, "MatMul", "product", {"x", "read:value:0"});
  *function.mutable_nodes() = body.nodes();
  (*function.mutable_results())["y"] = "product:product:0";
  auto &signature = (*meta.mutable_signatures())["serving_default"];
  auto &x = (*signature.mutable_inputs())["x"];
  x.set_name("serving_default_x:0");
  x.set_dtype(1);
  for (int64_t size : {-1, 2})
    x.mutable_shape()->add_dims()->set_size(size);
  (*signature.mutable_outputs())["y"].set_name("call:0");
  meta.mutable_objects()->add_nodes();
  (*meta.mutable_objects()->mutable_functions())["f"].add_bound(0);
  auto &attribute = *trackable.add_nodes()->add_attributes();
  attribute.set_name("VARIABLE_VALUE");
  attribute.set_key("w/value");
  header.set_shards(1);
  variable.set_dtype(1);
  for (int64_t size : {2, 3})
    variable.mutable_shape()->add_dims()->set_size(size);
  objects.set_dtype(7);
}

std::map<std::string, std::string> SavedFiles::files() {
  std::string data(reinterpret_cast<const char *>(weights.data()),
                   weights.size() * sizeof(float));
  if (!variable.has_size())
    variable.set_size(data.size());
  if (!variable.has_crc())
    variable.set_crc(tf::maskCrc(tf::crc32c(data)));
  // A text: its length, the checksum of lengths, itself.
  std::string text = bytesOf(trackable), word, stored;
  putVarint(stored, text.size());
  putWord(word, text.size());
  uint32_t lengths = tf::crc32c(word);
  std::string check;
  putWord(check, tf::maskCrc(lengths));
  stored += check + text;
  objects.set_crc(tf::maskCrc(tf::crc32c(text, tf::crc32c(check, lengths))));
  objects.set_offset(data.size());
  objects.set_size(stored.size());
  return {{"saved_model.pb", bytesOf(model)},
          {"variables/variables.index",
           tableFile({{"", bytesOf(header)},
                      {"_CHECKPOINTABLE_OBJECT_GRAPH", bytesOf(objects)},
                      {"w/value", bytesOf(variable)}})},
          {"variables/variables.data-00000-of-00001", data + stored}};
}
