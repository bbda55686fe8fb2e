#include "tests/frontends/pytorch/Files.h"
#include <zlib.h>

using namespace charonia::test;

namespace {
class Bytes {
public:
  Bytes &u16(uint64_t value) { return number(value, 2); }
  Bytes &u32(uint64_t value) { return number(value, 4); }
  Bytes &u64(uint64_t value) { return number(value, 8); }
  Bytes &add(const std::string &more) {
    text += more;
    return *this;
  }
  std::string text;

private:
  Bytes &number(uint64_t value, int count) {
    for (int i = 0; i < count; ++i)
      text += static_cast<char>(value >> (8 * i));
    return *this;
  }
};
} // namespace

static std::string deflated(const std::string &bytes) {
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()), 0);
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef *>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string charonia::test::zipFile(const std::vector<ZipEntry> &entries,
                                    bool zip64) {
  Bytes file, directory;
  for (const ZipEntry &entry : entries) {
    std::string data = entry.deflate ? deflated(entry.bytes) : entry.bytes;
    int method = entry.deflate ? 8 : entry.method;
    auto crc = crc32(0, reinterpret_cast<const Bytef *>(entry.bytes.data()),
                     static_cast<uInt>(entry.bytes.size()));
    uint64_t start = file.text.size(),
             size = entry.size < 0 ? entry.bytes.size() : entry.size,
             stored = entry.stored < 0 ? data.size() : entry.stored,
             offset = entry.offset < 0 ? start : entry.offset;
    uint64_t body = start + 30 + entry.name.size() + 4;
    std::string padding((64 - body % 64) % 64, 'Z');
    file.u32(0x04034b50).u16(20).u16(entry.flags).u16(method).u32(0);
    file.u32(0).u32(0).u32(0).u16(entry.name.size()).u16(4 + padding.size());
    file.add(entry.name).u16(0x4246).u16(padding.size()).add(padding);
    file.add(data);
    file.u32(0x08074b50).u32(crc).u32(stored).u32(size);
    Bytes extra;
    if (entry.zip64)
      extra.u16(1).u16(24).u64(size).u64(stored).u64(offset);
    bool big = entry.zip64;
    directory.u32(0x02014b50).u16(0).u16(45).u16(entry.flags).u16(method);
    directory.u32(0).u32(crc).u32(big ? 0xffffffff : stored);
    directory.u32(big ? 0xffffffff : size).u16(entry.name.size());
    directory.u16(extra.text.size()).u16(0).u16(0).u16(0).u32(0);
    directory.u32(big ? 0xffffffff : offset).add(entry.name).add(extra.text);
  }
  uint64_t at = file.text.size();
  file.add(directory.text);
  uint64_t count = entries.size(), size = directory.text.size();
  if (zip64) {
    uint64_t record = file.text.size();
    file.u32(0x06064b50).u64(44).u16(45).u16(45).u32(0).u32(0);
    file.u64(count).u64(count).u64(size).u64(at);
    file.u32(0x07064b50).u32(0).u64(record).u32(1);
    count = 0xffff;
    size = at = 0xffffffff;
  }
  file.u32(0x06054b50).u16(0).u16(0).u16(count).u16(count);
  file.u32(size).u32(at).u16(0);
  return file.text;
}

std::string charonia::test::fixed(int64_t size) {
  return R"({"as_int": )" + std::to_string(size) + "}";
}
std::string charonia::test::symbol(const std::string &name) {
  return R"j({"as_expr": {"expr_str": "Symbol(')j" + name +
         R"j(', positive=True, integer=True)", "hint": {"as_int": 2}}})j";
}
std::string charonia::test::tensor(const std::string &name) {
  return R"({"as_tensor": {"name": ")" + name + R"("}})";
}
std::string charonia::test::tensorMeta(int dtype, const std::string &sizes,
                                       const std::string &strides,
                                       int64_t offset) {
  return R"({"dtype": )" + std::to_string(dtype) + R"(, "sizes": [)" + sizes +
         R"(], "strides": [)" + strides +
         R"(], "requires_grad": false, "layout": 7, "device": {"type": "cpu",
         "index": null}, "storage_offset": )" +
         fixed(offset) + "}";
}
std::string charonia::test::node(
    const std::string &target,
    const std::vector<std::pair<std::string, std::string>> &arguments,
    const std::string &output) {
  std::string list;
  for (const auto &[name, value] : arguments)
    list += (list.empty() ? "" : ", ") + std::string(R"({"name": ")") + name +
            R"(", "arg": )" + value + R"(, "kind": 1})";
  return R"({"target": "torch.ops.)" + target + R"(", "inputs": [)" + list +
         R"(], "outputs": [)" + output +
         R"j(], "metadata": {"nn_module_stack":
         "L__self__,,m.Model;L__self___head,head,m.Head",
         "stack_trace": "  File \"/src/m.py\", line 7, in forward\n    return self.head(x)\n"}})j";
}

std::string ProgramFile::json() const {
  std::string texts;
  for (const std::string &guard : guards)
    texts += (texts.empty() ? "\"" : ", \"") + guard + "\"";
  return R"({"graph_module": {"graph": {"inputs": [)" + inputs +
         R"(], "outputs": [)" + outputs + R"(], "nodes": [)" + nodes +
         R"(], "tensor_values": {)" + tensors + R"(}, "sym_int_values": {)" +
         integers + R"(}, "sym_bool_values": {)" + conditions +
         R"(}}, "signature": {"input_specs": [)" + inputSpecs +
         R"(], "output_specs": [)" + outputSpecs +
         R"(]}, "module_call_graph": [{"fqn": "", "signature": {)" +
         (inSpec.empty() ? "" : "\"in_spec\": \"" + inSpec + "\", ") +
         R"("forward_arg_names": [)" + argumentNames + R"(], "out_spec":
         "[1, {\"type\": \"builtins.dict\", \"context\": \"[\\\"logits\\\"]\", \"children_spec\": [{\"type\": null, \"context\": null, \"children_spec\": []}]}]"}}]},
         "range_constraints": {)" +
         ranges +
         R"(}, "schema_version": {"major": 8, "minor": 20},
         "guards_code": [)" +
         texts + R"(], "torch_version": "2.15.0"})";
}

std::vector<ZipEntry> ProgramFile::entries() const {
  std::vector<ZipEntry> list = {
      {"model/archive_format", "pt2"},
      {"model/archive_version", "0"},
      {"model/byteorder", "little"},
      {"model/models/model.json", json()},
      {"model/data/weights/model_weights_config.json",
       R"({"config": {)" + weights + "}}"},
      {"model/data/constants/model_constants_config.json", R"({"config": {}})"},
  };
  for (const auto &[name, bytes] : storages)
    list.push_back({"model/data/weights/" + name, bytes});
  return list;
}

ProgramFile charonia::test::simpleProgram() {
  ProgramFile p;
  std::string open = symbol("s0") + ", " + fixed(4),
              strides = fixed(4) + ", " + fixed(1);
  p.inputs = tensor("p_w") + ", " + tensor("x");
  p.outputs = tensor("relu");
  p.inputSpecs =
      R"({"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}},
         {"user_input": {"arg": {"as_tensor": {"name": "x"}}}})";
  p.outputSpecs =
      R"({"user_output": {"arg": {"as_tensor": {"name": "relu"}}}})";
  p.tensors = R"("p_w": )" + tensorMeta(7, fixed(4), fixed(1));
  for (const char *name : {"x", "add", "relu"})
    p.tensors +=
        std::string(R"(, ")") + name + R"(": )" + tensorMeta(7, open, strides);
  p.nodes =
      node("aten.add.Tensor", {{"self", tensor("x")}, {"other", tensor("p_w")}},
           tensor("add")) +
      ", " +
      node("aten.relu.default", {{"self", tensor("add")}}, tensor("relu"));
  p.ranges = R"("s0": {"min_val": 1, "max_val": 8})";
  p.weights = R"("w": {"path_name": "weight_0", "is_param": true,
      "use_pickle": false, "tensor_meta": )" +
              tensorMeta(7, fixed(4), fixed(1)) + "}";
  p.storages["weight_0"] = std::string(16, 0);
  return p;
}
