// ONNX's own operator registry and text parser behind calls that do not throw.
// The one file behind it is compiled with exceptions; no exception of the ONNX
// library leaves it.
#ifndef CHARONIA_FRONTENDS_ONNX_SCHEMA_H
#define CHARONIA_FRONTENDS_ONNX_SCHEMA_H

#include "onnx/onnx_pb.h"
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace charonia::frontend::onnx {

/// Parses ONNX's text syntax. Returns what is wrong, or an empty string.
std::string parseText(std::string_view text, ::onnx::ModelProto &model);

/// Newest version of a domain that the library knows; 0 for unknown domains.
int newestVersion(const std::string &domain);
/// Newest IR version that the library knows.
int64_t newestIrVersion();
/// "ai.onnx" is another name of "".
std::string normalDomain(const std::string &domain);
/// "INT", "FLOATS", ...
std::string attributeTypeName(int type);
/// "float", "bfloat16", "string", ... for a TensorProto data type.
std::string dataTypeName(int type);

/// One version of one operator in the registry.
class Operator {
public:
  /// The definition that holds in `version` of `domain`; false if there is
  /// none.
  static Operator find(const std::string &name, int version,
                       const std::string &domain);
  explicit operator bool() const { return schema; }

  int sinceVersion() const;
  bool isDeprecated() const;
  /// What is wrong with the node's counts of inputs and outputs or with its
  /// attributes' names and types; empty if nothing is.
  std::string checkNode(const ::onnx::NodeProto &node) const;
  /// What is wrong with the types of the inputs (absent or unknown ones have no
  /// value); empty if nothing is.
  std::string checkTypes(const ::onnx::NodeProto &node,
                         const std::vector<::onnx::TypeProto> &inputs) const;
  /// Adds the attributes that the node leaves at their defaults.
  void addDefaults(::onnx::NodeProto &node) const;

  bool hasFunctionBody() const;
  /// The operator as a function of other operators, in `version` of its domain;
  /// none where the definition has none for this node. `error` is set where the
  /// library fails. A body that names no version of the default domain gets
  /// `defaultVersion`.
  std::optional<::onnx::FunctionProto>
  functionBody(const ::onnx::NodeProto &node, int version, int defaultVersion,
               const std::vector<::onnx::TypeProto> &inputs,
               std::string &error) const;

private:
  explicit Operator(const void *schema) : schema(schema) {}
  const void *schema = nullptr;
};

} // namespace charonia::frontend::onnx

#endif
