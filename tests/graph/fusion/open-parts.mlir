// RUN: charonia-opt %s --form-kernels=dense-rows --split-input-file -mlir-print-local-scope | FileCheck %s
// RUN: charonia-opt %s --form-kernels --split-input-file -mlir-print-local-scope | FileCheck %s --check-prefix=WHOLE

// What is repeated along a dimension of an open size begins anew within it: its rows are a dimension of the kernel's
// result, so that no element divides to find its place.
// CHECK-LABEL: func.func @repeated
// CHECK: graph.kernel{{.*}} -> tensor<?x3x?xf32, affine_map<()[s0, s1] -> (s0, 3, s1)>> {
// CHECK: graph.reshape %0 {{.*}} -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 3)>>
// WHOLE-LABEL: func.func @repeated
// WHOLE: graph.kernel{{.*}} -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 3)>> {
module attributes {graph.symbols = [
  {name = "n", min = 1 : i64, opt = 1 : i64, max = 200 : i64, divisor = 1 : i64},
  {name = "w", min = 1 : i64, opt = 64 : i64, max = 512 : i64, divisor = 1 : i64}]} {
  func.func @repeated(%x: tensor<?x1x?xf32, affine_map<()[s0, s1] -> (s0, 1, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 3)>> {
    %0 = graph.broadcast %x : (tensor<?x1x?xf32, affine_map<()[s0, s1] -> (s0, 1, s1)>>) -> tensor<?x3x?xf32, affine_map<()[s0, s1] -> (s0, 3, s1)>>
    %1 = graph.reshape %0 : (tensor<?x3x?xf32, affine_map<()[s0, s1] -> (s0, 3, s1)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 3)>>
    %2 = graph.neg %1 : (tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 3)>>) -> tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 3)>>
    return %2 : tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 3)>>
  }
}

// -----

// Behind a transpose, and along two dimensions.
// CHECK-LABEL: func.func @turned
// CHECK: graph.kernel{{.*}} -> tensor<2x?x3x?x4xf32, affine_map<()[s0, s1] -> (2, s0, 3, s1, 4)>> {
module attributes {graph.symbols = [
  {name = "n", min = 1 : i64, opt = 1 : i64, max = 64 : i64, divisor = 1 : i64},
  {name = "w", min = 1 : i64, opt = 64 : i64, max = 64 : i64, divisor = 1 : i64}]} {
  func.func @turned(%x: tensor<1x?x4x1x?xf32, affine_map<()[s0, s1] -> (1, s0, 4, 1, s1)>>) -> tensor<?x?x4xf32, affine_map<()[s0, s1] -> (s0 * 2, s1 * 3, 4)>> {
    %0 = graph.broadcast %x : (tensor<1x?x4x1x?xf32, affine_map<()[s0, s1] -> (1, s0, 4, 1, s1)>>) -> tensor<2x?x4x3x?xf32, affine_map<()[s0, s1] -> (2, s0, 4, 3, s1)>>
    %1 = graph.reshape %0 : (tensor<2x?x4x3x?xf32, affine_map<()[s0, s1] -> (2, s0, 4, 3, s1)>>) -> tensor<?x4x?xf32, affine_map<()[s0, s1] -> (s0 * 2, 4, s1 * 3)>>
    %2 = graph.transpose %1 {permutation = array<i64: 0, 2, 1>} : (tensor<?x4x?xf32, affine_map<()[s0, s1] -> (s0 * 2, 4, s1 * 3)>>) -> tensor<?x?x4xf32, affine_map<()[s0, s1] -> (s0 * 2, s1 * 3, 4)>>
    return %2 : tensor<?x?x4xf32, affine_map<()[s0, s1] -> (s0 * 2, s1 * 3, 4)>>
  }
}
