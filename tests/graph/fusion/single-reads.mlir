// RUN: charonia-opt %s --form-kernels=instances=132 --split-input-file | FileCheck %s
// RUN: charonia-opt %s --form-kernels --split-input-file | FileCheck %s --check-prefix=CPU

// An image with channels last that is flattened with channels first, for a product whose
// other operand is no weight: on a GPU each of its tiles of columns would read 25088
// elements a row one by one, so they are stored in its order first.
// CHECK-LABEL: func.func @flattened
// CHECK:         %[[FLAT:.*]] = graph.kernel
// CHECK:           graph.transpose
// CHECK-NOT:       graph.matmul
// CHECK:         graph.kernel "matmul"
// CHECK-NOT:       graph.transpose
// CHECK:           graph.matmul
// CPU-LABEL: func.func @flattened
// CPU:         graph.kernel "matmul"
// CPU:           graph.transpose
// CPU:           graph.matmul
func.func @flattened(%x: tensor<16x7x7x512xf16>, %w: tensor<25088x512xf16>) -> tensor<16x512xf16> {
  %0 = graph.transpose %x {permutation = array<i64: 0, 3, 1, 2>} : (tensor<16x7x7x512xf16>) -> tensor<16x512x7x7xf16>
  %1 = graph.reshape %0 : (tensor<16x512x7x7xf16>) -> tensor<16x25088xf16>
  %2 = graph.matmul %1, %w : (tensor<16x25088xf16>, tensor<25088x512xf16>) -> tensor<16x512xf16>
  return %2 : tensor<16x512xf16>
}

// -----

// For few columns it does so once, at less than what a kernel costs.
// CHECK-LABEL: func.func @few_columns
// CHECK-COUNT-1: graph.kernel
// CHECK:           graph.transpose
// CHECK:           graph.matmul
func.func @few_columns(%x: tensor<16x7x7x512xf16>, %w: tensor<25088x16xf16>) -> tensor<16x16xf16> {
  %0 = graph.transpose %x {permutation = array<i64: 0, 3, 1, 2>} : (tensor<16x7x7x512xf16>) -> tensor<16x512x7x7xf16>
  %1 = graph.reshape %0 : (tensor<16x512x7x7xf16>) -> tensor<16x25088xf16>
  %2 = graph.matmul %1, %w : (tensor<16x25088xf16>, tensor<25088x16xf16>) -> tensor<16x16xf16>
  return %2 : tensor<16x16xf16>
}

// -----

// Runs of terms, and rows that lie side by side, are read as vectors.
// CHECK-LABEL: func.func @vectors
// CHECK-COUNT-1: graph.kernel
// CHECK:           graph.transpose
// CHECK:           graph.matmul
// CHECK:         graph.kernel
// CHECK:           graph.transpose
// CHECK:           graph.matmul
func.func @vectors(%x: tensor<512x16x49xf16>, %y: tensor<512x49x512xf16>, %w: tensor<25088x512xf16>) -> (tensor<16x512xf16>, tensor<512x512xf16>) {
  %0 = graph.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<512x16x49xf16>) -> tensor<16x512x49xf16>
  %1 = graph.reshape %0 : (tensor<16x512x49xf16>) -> tensor<16x25088xf16>
  %2 = graph.matmul %1, %w : (tensor<16x25088xf16>, tensor<25088x512xf16>) -> tensor<16x512xf16>
  %3 = graph.transpose %y {permutation = array<i64: 2, 1, 0>} : (tensor<512x49x512xf16>) -> tensor<512x49x512xf16>
  %4 = graph.reshape %3 : (tensor<512x49x512xf16>) -> tensor<512x25088xf16>
  %5 = graph.matmul %4, %w : (tensor<512x25088xf16>, tensor<25088x512xf16>) -> tensor<512x512xf16>
  return %2, %5 : tensor<16x512xf16>, tensor<512x512xf16>
}
