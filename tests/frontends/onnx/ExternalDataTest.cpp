// Data files beside a model: mapped in place, and only from the model's folder.
#include "frontends/onnx/ModelFile.h"
#include "graph/ir/Dialect.h"
#include "tests/frontends/onnx/Models.h"
#include <atomic>
#include <fcntl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace charonia;
using namespace charonia::test;
using ::onnx::ModelProto;
using ::onnx::TensorProto;
using ::testing::HasSubstr;

namespace {
using Entries = std::vector<std::pair<std::string, std::string>>;

/// A model whose weight, 70 floats, is in a data file.
ModelProto external(const Entries &entries) {
  ModelProto model =
      parse("graph (float[70] x) => (float[70] y) { y = Add (x, w) }");
  auto &weight = *model.mutable_graph()->add_initializer();
  weight.set_name("w");
  weight.set_data_type(TensorProto::FLOAT);
  weight.add_dims(70);
  weight.set_data_location(TensorProto::EXTERNAL);
  for (auto &[key, value] : entries) {
    auto *entry = weight.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  return model;
}

std::string importFrom(const Folder &folder, const Entries &entries) {
  folder.write("model.onnx", external(entries).SerializeAsString());
  mlir::MLIRContext context;
  return frontend::importModel(folder / "model.onnx", {}, context).toString();
}
const std::string data(400, 'd');
} // namespace

TEST(ExternalData, IsMapped) {
  Folder folder;
  std::string bytes = data;
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = char(i);
  folder.write("model.data", bytes);
  folder.write("model.onnx",
               external({{"location", "model.data"}, {"offset", "64"}})
                   .SerializeAsString());
  mlir::MLIRContext context;
  auto result = frontend::importModel(folder / "model.onnx", {}, context);
  ASSERT_TRUE(result.module) << result.toString();
  auto *dialect = context.getLoadedDialect<graph::GraphDialect>();
  const graph::Weight *weight = dialect->getWeights().lookup("w");
  ASSERT_TRUE(weight);
  EXPECT_EQ(std::string(weight->bytes.data(), weight->bytes.size()),
            bytes.substr(64, 280));
  // In place: the offset shows in the address of the mapping.
  EXPECT_EQ(reinterpret_cast<uintptr_t>(weight->bytes.data()) % 4096, 64u);
}

TEST(ExternalData, Missing) {
  Folder folder;
  EXPECT_THAT(importFrom(folder, {{"location", "lost.data"}}),
              HasSubstr("model.onnx: tensor 'w' external data file 'lost.data' "
                        "cannot be opened: No such file or directory\n"
                        "  remedy: put it beside the model, into "));
  EXPECT_THAT(importFrom(folder, {}), HasSubstr("external data file '' has no "
                                                "name"));
}

TEST(ExternalData, OutsideOfTheFolder) {
  Folder folder, other;
  other.write("data", data);
  EXPECT_THAT(importFrom(folder, {{"location", other / "data"}}),
              HasSubstr("is an absolute path\n  remedy: external data has to "
                        "lie in the model's folder, "));
  std::string above =
      "../" + (other / "data")
                  .substr((other / "").rfind('/', (other / "").size() - 2) + 1);
  EXPECT_THAT(importFrom(folder, {{"location", above}}),
              HasSubstr("lies outside the model's folder"));
  ASSERT_EQ(symlink((other / "data").c_str(), (folder / "link").c_str()), 0);
  EXPECT_THAT(importFrom(folder, {{"location", "link"}}),
              HasSubstr("external data file 'link' lies outside the model's "
                        "folder"));
  // A path that leaves the folder and comes back is inside of it.
  folder.write("data", data);
  std::string name =
      (folder / "")
          .substr((folder / "").rfind('/', (folder / "").size() - 2) + 1);
  EXPECT_EQ(importFrom(folder, {{"location", "../" + name + "data"}}), "");
}

TEST(ExternalData, LinksOfACache) {
  // As Hugging Face's: snapshots/<revision>/NAME is a link to blobs/<hash>.
  Folder cache, elsewhere;
  ASSERT_EQ(mkdir((cache / "snapshots").c_str(), 0700), 0);
  ASSERT_EQ(mkdir((cache / "blobs").c_str(), 0700), 0);
  auto link = [&](const char *target, const char *name) {
    ASSERT_EQ(symlink(target, (cache / name).c_str()), 0);
  };
  link("../blobs/1f", "snapshots/model.onnx");
  link("../blobs/2e", "snapshots/model.onnx_data");
  cache.write("blobs/2e", data);
  auto importLinked = [&](const char *location) {
    cache.write("blobs/1f",
                external({{"location", location}}).SerializeAsString());
    mlir::MLIRContext context;
    return frontend::importModel(cache / "snapshots/model.onnx", {}, context)
        .toString();
  };
  EXPECT_EQ(importLinked("model.onnx_data"), "");
  // A link to the model alone, with the data beside the file.
  EXPECT_EQ(importLinked("2e"), "");
  // Neither folder's.
  elsewhere.write("data", data);
  link((elsewhere / "data").c_str(), "snapshots/secret");
  EXPECT_THAT(importLinked("secret"),
              HasSubstr("external data file 'secret' lies outside the model's "
                        "folder"));
  cache.write("data", data);
  EXPECT_THAT(importLinked("../data"),
              HasSubstr("external data file '../data' lies outside"));
  EXPECT_THAT(importLinked("none"),
              HasSubstr("'none' cannot be opened: No such file or directory\n"
                        "  remedy: put it beside the model, into "));
}

TEST(ExternalData, NoRegularFile) {
  Folder folder;
  EXPECT_THAT(importFrom(folder, {{"location", "."}}),
              HasSubstr("external data file '.'"));
  // Who opens a pipe waits for its other end.
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(importFrom(folder, {{"location", "pipe"}}),
              HasSubstr("external data file 'pipe' is not a regular file"));
  EXPECT_THAT(importFrom(folder, {{"location", std::string("model\0x", 7)}}),
              HasSubstr("has a name that no file can have"));
}

TEST(ExternalData, FoldersThatLeadOut) {
  Folder folder, other;
  other.write("data", data);
  ASSERT_EQ(symlink((other / "").c_str(), (folder / "sub").c_str()), 0);
  EXPECT_THAT(importFrom(folder, {{"location", "sub/data"}}),
              HasSubstr("external data file 'sub/data' lies outside the "
                        "model's folder"));
  // A link to a link.
  ASSERT_EQ(symlink("sub/data", (folder / "link").c_str()), 0);
  EXPECT_THAT(importFrom(folder, {{"location", "link"}}),
              HasSubstr("external data file 'link' lies outside"));
  // Links that stay inside are followed.
  ASSERT_EQ(mkdir((folder / "parts").c_str(), 0700), 0);
  folder.write("parts/data", data);
  ASSERT_EQ(symlink("parts/data", (folder / "inner").c_str()), 0);
  EXPECT_EQ(importFrom(folder, {{"location", "inner"}}), "");
}

/// Somebody changes the file for a link to one outside, again and again, while
/// the model is imported.
TEST(ExternalData, WhatIsCheckedIsRead) {
  Folder folder, other;
  std::string secret(400, 's');
  other.write("secret", secret);
  folder.write("data", data);
  folder.write("model.onnx",
               external({{"location", "data"}}).SerializeAsString());
  ASSERT_EQ(symlink((other / "secret").c_str(), (folder / "link").c_str()), 0);
  std::atomic<bool> done = false;
  std::thread changer([&] {
    while (!done)
      renameat2(AT_FDCWD, (folder / "data").c_str(), AT_FDCWD,
                (folder / "link").c_str(), RENAME_EXCHANGE);
  });
  int read = 0, refused = 0, stolen = 0;
  for (int i = 0; i < 1000; ++i) {
    frontend::onnx::ExternalFiles files(folder / "", folder / "model.onnx");
    frontend::Problem problem;
    auto bytes = files.load(
        external({{"location", "data"}}).graph().initializer(0), 280, problem);
    refused += !bytes;
    read += bytes && bytes->bytes[0] == 'd';
    stolen += bytes && bytes->bytes[0] == 's';
  }
  done = true;
  changer.join();
  EXPECT_EQ(stolen, 0);
  EXPECT_GT(read, 0);
  EXPECT_GT(refused, 0);
}

TEST(ExternalData, TooShort) {
  Folder folder;
  folder.write("data", data.substr(0, 279));
  EXPECT_THAT(importFrom(folder, {{"location", "data"}}),
              HasSubstr("external data file 'data' is too short: it has 279 "
                        "bytes, the tensor is at 0..280\n  remedy: the file is "
                        "cut short: fetch or export it again"));
  folder.write("data", data);
  EXPECT_THAT(importFrom(folder, {{"location", "data"}, {"offset", "200"}}),
              HasSubstr("it has 400 bytes, the tensor is at 200..480"));
  EXPECT_THAT(importFrom(folder, {{"location", "data"},
                                  {"offset", "18446744073709551615"}}),
              HasSubstr("is too short"));
  folder.write("data", "");
  EXPECT_THAT(importFrom(folder, {{"location", "data"}}),
              HasSubstr("it has 0 bytes"));
}

TEST(ExternalData, BadEntries) {
  Folder folder;
  folder.write("data", data);
  EXPECT_THAT(importFrom(folder, {{"location", "data"}, {"offset", "-1"}}),
              HasSubstr("external data has '-1' for its offset, which is not a "
                        "size"));
  EXPECT_THAT(importFrom(folder, {{"location", "data"}, {"length", "279"}}),
              HasSubstr("external data has a length of 279 bytes, but the "
                        "tensor takes 280"));
}

TEST(ExternalData, NotFromMemory) {
  EXPECT_THAT(import(external({{"location", "data"}})),
              HasSubstr("external data file 'data' cannot be used: the model "
                        "was given as bytes"));
}
