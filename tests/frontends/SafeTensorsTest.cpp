// Weights in safetensors files: what is read, what is refused, and how they
// stand for those of a model.
#include "frontends/common/Replacements.h"
#include "mlir/IR/MLIRContext.h"
#include "tests/frontends/pytorch/Import.h"
#include "llvm/Support/Endian.h"

#include <filesystem>
#include <fstream>

using namespace charonia;
using namespace charonia::test;
using frontend::Problem;
using frontend::Replacements;
using frontend::SafeTensors;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

static std::string fileOf(const std::string &header, const std::string &data,
                          int64_t length = -1) {
  char size[8];
  llvm::support::endian::write64le(size, length < 0 ? header.size() : length);
  return std::string(size, sizeof(size)) + header + data;
}
/// "name": {...} of a tensor at begin..end.
static std::string entry(const std::string &name, const std::string &dtype,
                         const std::string &shape, int64_t begin, int64_t end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape +
         "],\"data_offsets\":[" + std::to_string(begin) + "," +
         std::to_string(end) + "]}";
}
static std::optional<Problem> add(SafeTensors &tensors,
                                  const std::string &bytes) {
  return tensors.addFile({llvm::ArrayRef<char>(bytes.data(), bytes.size()), {}},
                         "it");
}
static std::string problemOf(const std::string &bytes) {
  SafeTensors tensors;
  auto problem = add(tensors, bytes);
  EXPECT_TRUE(problem) << bytes;
  return problem ? problem->what : "";
}

TEST(SafeTensors, TensorsLieInTheFile) {
  std::string file = fileOf("{" + entry("b", "F16", "2", 4, 8) +
                                ",\"__metadata__\":{\"format\":\"pt\"}," +
                                entry("a", "I32", "", 0, 4) + "}   ",
                            "aaaabbbb");
  SafeTensors tensors;
  auto problem = add(tensors, file);
  ASSERT_FALSE(problem) << problem->what;
  EXPECT_EQ(tensors.names(), (std::vector<std::string>{"a", "b"}));
  ASSERT_TRUE(tensors.find("b"));
  EXPECT_EQ(tensors.find("b")->data.text(), "bbbb");
  EXPECT_EQ(tensors.find("b")->data.text().data(),
            file.data() + file.size() - 4);
  EXPECT_FALSE(tensors.find("c"));
}

TEST(SafeTensors, HeadersThatBeginLikeAPickle) {
  // The lengths 640 and 66176 are the bytes 80 02.
  for (size_t length : {640, 66176}) {
    std::string header = "{" + entry("a", "I32", "", 0, 4) + "}";
    header.resize(length, ' ');
    SafeTensors tensors;
    auto problem = add(tensors, fileOf(header, "aaaa"));
    EXPECT_FALSE(problem) << problem->what;
    EXPECT_TRUE(tensors.find("a"));
  }
  EXPECT_THAT(problemOf("\x80\x02}q\x01(X\x06"), HasSubstr("a pickle of"));
}

TEST(SafeTensors, WithoutElements) {
  SafeTensors tensors;
  auto problem =
      add(tensors,
          fileOf("{" + entry("w", "F32", "4611686018427387904,8,0", 0, 0) + "}",
                 ""));
  EXPECT_FALSE(problem) << problem->what;
}

TEST(SafeTensors, HeadersThatLie) {
  EXPECT_THAT(
      problemOf(fileOf(
          R"({"w":{"dtype":"F32","dtype":"F16","shape":[1],"data_offsets":[0,4]}})",
          "aaaa")),
      HasSubstr("is there twice"));
  const std::string bad = "it is not a sound safetensors file: ";
  EXPECT_EQ(problemOf("short"), bad + "it has no header");
  EXPECT_EQ(problemOf(fileOf("{}", "", 3)),
            bad + "its header of 3 bytes ends behind it");
  EXPECT_EQ(problemOf(fileOf("{}", "", INT64_MAX)),
            bad + "its header of 9223372036854775807 bytes ends behind it");
  // An array of numpy.save, and other files that begin with no length.
  EXPECT_EQ(problemOf(std::string("\x93NUMPY\x01\x00v\x00{'descr': '<f4'", 26)),
            "it is no safetensors file");
  EXPECT_EQ(problemOf("\x89HDF\r\n\x1a\n"), "it is no safetensors file");
  EXPECT_THAT(problemOf(fileOf("{", "")), HasSubstr(bad + "its header "));
  EXPECT_THAT(problemOf(fileOf(std::string(10000, '['), "")),
              HasSubstr(bad + "its header "));
  // The format's bound, in a file that is long enough.
  EXPECT_EQ(problemOf(fileOf(std::string(100'000'001, ' '), "")),
            bad + "its header of 100000001 bytes is longer than the format "
                  "allows");
  for (const char *header : {"[]", "null", "3"})
    EXPECT_EQ(problemOf(fileOf(header, "")), bad + "its header is no object");
  EXPECT_EQ(problemOf(fileOf(R"({"a":null})", "")),
            bad + "tensor a.dtype is no string");
  EXPECT_EQ(problemOf(fileOf(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})",
                             "aaaa")),
            bad + "tensor a has to have a shape and two data_offsets");
  EXPECT_EQ(problemOf(fileOf(
                R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4,4]}})",
                "aaaa")),
            bad + "tensor a has to have a shape and two data_offsets");
  auto one = [&](const std::string &dtype, const std::string &shape,
                 int64_t begin, int64_t end) {
    return problemOf(
        fileOf("{" + entry("a", dtype, shape, begin, end) + "}", "aaaaaaaa"));
  };
  EXPECT_EQ(one("F31", "2", 0, 8),
            bad + "tensor a.dtype is 'F31', a type that the format does not "
                  "have");
  EXPECT_EQ(one("F32", "-2", 0, 8), bad + "tensor a.shape[0] is negative");
  EXPECT_EQ(one("F32", "4294967296,4294967296", 0, 8),
            bad + "tensor a.shape is absurdly large");
  // Each extent is small, or the product without the type.
  EXPECT_EQ(one("F64", "4611686018427387904", 0, 8),
            bad + "tensor a.shape is absurdly large");
  EXPECT_EQ(one("U8", "9223372036854775808", 0, 8),
            bad + "tensor a.shape[0] is no integer of 64 bits");
  std::string ones = "1";
  for (int i = 0; i < 64; ++i)
    ones += ",1";
  EXPECT_EQ(one("F64", ones, 0, 8), bad + "tensor a.shape is absurdly large");
  EXPECT_EQ(one("F32", "2", -8, 0),
            bad + "tensor a lies at -8..0, but the file's data has 8 bytes");
  EXPECT_EQ(one("F32", "3", 0, 12),
            bad + "tensor a lies at 0..12, but the file's data has 8 bytes");
  EXPECT_EQ(one("F32", "2", 8, 0),
            bad + "tensor a lies at 8..0, but the file's data has 8 bytes");
  EXPECT_EQ(one("F32", "1", 0, 8),
            bad + "tensor a has 8 bytes, but its shape and type take 4");
  EXPECT_EQ(one("F32", "1", 4, 8),
            bad + "bytes from 0 on are of no tensor, or of two");
  EXPECT_EQ(one("F32", "1", 0, 4), bad + "bytes from 4 on are of no tensor");
  EXPECT_EQ(problemOf(fileOf("{" + entry("a", "F32", "2", 0, 8) + "," +
                                 entry("b", "F32", "1", 4, 8) + "}",
                             "aaaaaaaa")),
            bad + "bytes from 4 on are of no tensor, or of two");
  EXPECT_EQ(problemOf(fileOf("{" + entry("a", "F32", "1", 0, 4) + "," +
                                 entry("a", "F32", "1", 4, 8) + "}",
                             "aaaaaaaa")),
            bad + "tensor a is there twice");
}

TEST(SafeTensors, EveryByteChangedOrGone) {
  std::string good = fileOf("{" + entry("a", "F32", "1", 0, 4) + "," +
                                entry("b", "U8", "2,2", 4, 8) + "}",
                            "aaaabbbb");
  for (size_t i = 0; i < good.size(); ++i) {
    SafeTensors cut;
    EXPECT_TRUE(add(cut, good.substr(0, i))) << i;
    for (int bit : {0, 3, 7}) {
      std::string file = good;
      file[i] ^= 1 << bit;
      SafeTensors tensors;
      add(tensors, file);
      for (const std::string &name : tensors.names())
        EXPECT_LE(tensors.find(name)->data.bytes.size(), 8u);
    }
  }
}

namespace {
/// Files in a folder that goes.
class SafeTensorsFolder : public ::testing::Test {
protected:
  SafeTensorsFolder() {
    std::string pattern =
        (fs::temp_directory_path() / "weights-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~SafeTensorsFolder() override { fs::remove_all(folder); }
  void write(const std::string &name, const std::string &bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
  }
  std::string problemAt(const std::string &name = "") {
    Problem problem;
    EXPECT_FALSE(SafeTensors::open((folder / name).string(), problem));
    return problem.what;
  }
  fs::path folder;
};
} // namespace

TEST_F(SafeTensorsFolder, FilesOfAnIndex) {
  write("m-1.safetensors",
        fileOf("{" + entry("a", "F32", "1", 0, 4) + "}", "aaaa"));
  write("m-2.safetensors",
        fileOf("{" + entry("b", "F32", "1", 0, 4) + "}", "bbbb"));
  EXPECT_EQ(problemAt(), "holds several: m-1.safetensors, m-2.safetensors");
  write(
      "model.safetensors.index.json",
      R"({"metadata":{},"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})");
  for (const char *name : {"", "model.safetensors.index.json"}) {
    Problem problem;
    auto tensors = SafeTensors::open((folder / name).string(), problem);
    ASSERT_TRUE(tensors) << problem.what;
    EXPECT_EQ(tensors->find("b")->data.text(), "bbbb");
  }
  const std::string index = "model.safetensors.index.json";
  write(index, R"({"weight_map":{"c":"m-1.safetensors"}})");
  EXPECT_THAT(
      problemAt(index),
      HasSubstr("says that 'c' is in 'm-1.safetensors', where it is not"));
  write(index, R"({"weight_map":{"a":"../m.safetensors"}})");
  EXPECT_THAT(problemAt(index),
              HasSubstr("weights file '../m.safetensors' cannot be opened"));
  write(index, R"({"weight_map":{"a":"/etc/passwd"}})");
  EXPECT_EQ(problemAt(index), "weights file '/etc/passwd' is an absolute path");
  fs::create_symlink("/etc/passwd", folder / "link.safetensors");
  write(index, R"({"weight_map":{"a":"link.safetensors"}})");
  EXPECT_EQ(problemAt(index),
            "weights file 'link.safetensors' lies outside the model's folder");
  write(index, R"({"weight_map":[]})");
  EXPECT_THAT(problemAt(index), HasSubstr("has no weight_map of names: "));
  EXPECT_THAT(problemAt("none"), HasSubstr("cannot be read"));
}

TEST_F(SafeTensorsFolder, EmptyFolder) {
  EXPECT_EQ(problemAt(), "is a folder without .safetensors files");
}

/// What is said when y = relu(x + w) is imported over these weights.
static std::string imported(const std::string &file) {
  SafeTensors tensors;
  auto problem = add(tensors, file);
  EXPECT_FALSE(problem) << problem->what;
  Replacements replacements(std::move(tensors), "weights");
  frontend::ImportOptions options;
  options.replacements = &replacements;
  mlir::MLIRContext context;
  frontend::ImportResult result = frontend::importPyTorchBytes(
      simpleProgram().file(), "model", options, context);
  replacements.finish(result);
  std::string text = result.toString();
  if (result.module)
    llvm::raw_string_ostream(text) << *result.module;
  return text;
}

TEST(Replacements, StandForTheModelsWeights) {
  // 1, 2, 3, 4 in float32.
  std::string data("\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40", 16);
  std::string text =
      imported(fileOf("{" + entry("w", "F32", "4", 0, 16) + "}", data));
  EXPECT_THAT(text, HasSubstr("dense<[1.000000e+00, 2.000000e+00, "
                              "3.000000e+00, 4.000000e+00]>"));
  EXPECT_THAT(imported(fileOf("{}", "")),
              HasSubstr("note: weights: has no tensors for 1 weights, which "
                        "keep the model's values:\n  'w'"));
}

TEST(Replacements, AllThatDoesNotFitAtOnce) {
  EXPECT_THAT(imported(fileOf("{" + entry("w", "F32", "2,2", 0, 16) + "," +
                                  entry("v", "F32", "1", 16, 20) + "}",
                              std::string(20, 'x'))),
              ::testing::StartsWith(
                  "error: weights: 2 of its tensors do not fit the model:\n"
                  "  'w' is F32 [2, 2], in the model float32[4]\n"
                  "  'v' is no weight of the model\n"
                  "  remedy: "));
  EXPECT_THAT(imported(fileOf("{" + entry("w", "F16", "4", 0, 8) + "}",
                              std::string(8, 'x'))),
              HasSubstr("'w' is F16 [4], in the model float32[4]"));
}
