// On a GPU a sum over an image begins in the kernel that computes the image:
// each of its tiles is a cell, whose sum is stored beside it.
// RUN: charonia-opt %s --begin-sums=instances=132 --split-reductions --form-kernels=instances=132 --verify-kernels --split-input-file | FileCheck %s
// RUN: charonia-opt %s --begin-sums=instances=132 --split-input-file | FileCheck %s --check-prefix=BEGIN
// RUN: charonia-opt %s --begin-sums=instances=132 --form-kernels --verify-kernels --split-input-file | FileCheck %s --check-prefix=CPU

// 196 places of 480 channels: seven cells by 15 runs of channels leave most
// multiprocessors a tile.
// CHECK-LABEL: func.func @mean
// CHECK:         graph.kernel "conv_max_cast_pool"({{.*}}) : ({{.*}}) -> (tensor<1x14x14x480xf16>, tensor<1x7x1x480xf32>)
// CHECK:         graph.kernel "reduce"({{.*}}) : (tensor<1x7x1x480xf32>) -> tensor<1x1x1x480xf32>
// CHECK-NOT:     graph.kernel
// BEGIN-LABEL: func.func @mean
// BEGIN:         graph.pool sum {{.*}} {ceil_mode, channels_last, {{.*}}kernel = array<i64: 2, 16>, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 16>} : (tensor<1x14x14x480xf32>) -> tensor<1x7x1x480xf32>
// BEGIN:         graph.reduce sum {{.*}} {axes = array<i64: 1, 2>, keepdims}
// CPU-LABEL: func.func @mean
// CPU:         graph.kernel "conv_max"
// CPU:         graph.kernel "pool
func.func @mean(%x: tensor<1x14x14x480xf16>) -> (tensor<1x14x14x480xf16>, tensor<1x1x1x480xf32>) {
  %zero = graph.constant dense<0.0> : tensor<f16>
  %w = graph.weight "w" : tensor<480x3x3x1xf16>
  %0 = graph.conv %x, %w {channels_last, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 480 : i64} : (tensor<1x14x14x480xf16>, tensor<480x3x3x1xf16>) -> tensor<1x14x14x480xf16>
  %1 = graph.max %0, %zero : (tensor<1x14x14x480xf16>, tensor<f16>) -> tensor<1x14x14x480xf16>
  %2 = graph.cast %1 {to = f32} : (tensor<1x14x14x480xf16>) -> tensor<1x14x14x480xf32>
  %3 = graph.reduce sum %2 {axes = array<i64: 1, 2>, keepdims} : (tensor<1x14x14x480xf32>) -> tensor<1x1x1x480xf32>
  return %1, %3 : tensor<1x14x14x480xf16>, tensor<1x1x1x480xf32>
}

// -----

// A second sum of the same image finds it in memory; so does one whose rows
// are not all of an image, or of channels that are no vectors.
// BEGIN-LABEL: func.func @others
// BEGIN:         graph.pool sum
// BEGIN-NOT:     graph.pool
// CHECK-LABEL: func.func @others
func.func @others(%x: tensor<1x9x9x24xf32>, %y: tensor<1x9x9x20xf32>)
    -> (tensor<1x9x9x24xf32>, tensor<1x24xf32>, tensor<1x24xf32>, tensor<1x9x24xf32>, tensor<1x9x9x20xf32>, tensor<1x20xf32>) {
  %w = graph.weight "w" : tensor<24x3x3x1xf32>
  %v = graph.weight "v" : tensor<20x3x3x1xf32>
  %0 = graph.conv %x, %w {channels_last, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 24 : i64} : (tensor<1x9x9x24xf32>, tensor<24x3x3x1xf32>) -> tensor<1x9x9x24xf32>
  %1 = graph.reduce sum %0 {axes = array<i64: 1, 2>} : (tensor<1x9x9x24xf32>) -> tensor<1x24xf32>
  %2 = graph.abs %0 : (tensor<1x9x9x24xf32>) -> tensor<1x9x9x24xf32>
  %3 = graph.reduce sum %2 {axes = array<i64: 1, 2>} : (tensor<1x9x9x24xf32>) -> tensor<1x24xf32>
  %4 = graph.reduce sum %0 {axes = array<i64: 1>} : (tensor<1x9x9x24xf32>) -> tensor<1x9x24xf32>
  %5 = graph.conv %y, %v {channels_last, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 20 : i64} : (tensor<1x9x9x20xf32>, tensor<20x3x3x1xf32>) -> tensor<1x9x9x20xf32>
  %6 = graph.reduce sum %5 {axes = array<i64: 1, 2>} : (tensor<1x9x9x20xf32>) -> tensor<1x20xf32>
  return %2, %1, %3, %4, %5, %6 : tensor<1x9x9x24xf32>, tensor<1x24xf32>, tensor<1x24xf32>, tensor<1x9x24xf32>, tensor<1x9x9x20xf32>, tensor<1x20xf32>
}

// -----

// Of a product cells are runs of 64 rows, which tiles have whole; of few rows
// less. Several images have none, since tiles lie across them.
// BEGIN-LABEL: func.func @product
// CHECK-LABEL: func.func @product
// CHECK:         graph.kernel "conv_cast_pool"({{.*}}) : ({{.*}}) -> (tensor<1x14x14x208xf16>, tensor<1x4x208xf32>)
// CHECK:         graph.kernel "reduce{{.*}}"({{.*}}) : (tensor<1x4x208xf32>)
// CHECK-LABEL: func.func @few
// BEGIN-LABEL: func.func @few
// BEGIN:         graph.pool sum {{.*}}kernel = array<i64: 32>{{.*}} : (tensor<1x49x208xf32>) -> tensor<1x2x208xf32>
// CHECK-LABEL: func.func @images
// BEGIN-LABEL: func.func @images
// BEGIN-NOT:     graph.pool
func.func @product(%x: tensor<1x14x14x96xf16>) -> (tensor<1x14x14x208xf16>, tensor<1x1x1x208xf32>) {
  %w = graph.weight "w" : tensor<208x1x1x96xf16>
  %0 = graph.conv %x, %w {channels_last, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x14x14x96xf16>, tensor<208x1x1x96xf16>) -> tensor<1x14x14x208xf16>
  %1 = graph.cast %0 {to = f32} : (tensor<1x14x14x208xf16>) -> tensor<1x14x14x208xf32>
  %2 = graph.reduce sum %1 {axes = array<i64: 1, 2>, keepdims} : (tensor<1x14x14x208xf32>) -> tensor<1x1x1x208xf32>
  return %0, %2 : tensor<1x14x14x208xf16>, tensor<1x1x1x208xf32>
}
func.func @few(%x: tensor<1x7x7x96xf16>) -> (tensor<1x7x7x208xf16>, tensor<1x1x1x208xf32>) {
  %w = graph.weight "w" : tensor<208x1x1x96xf16>
  %0 = graph.conv %x, %w {channels_last, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x7x7x96xf16>, tensor<208x1x1x96xf16>) -> tensor<1x7x7x208xf16>
  %1 = graph.cast %0 {to = f32} : (tensor<1x7x7x208xf16>) -> tensor<1x7x7x208xf32>
  %2 = graph.reduce sum %1 {axes = array<i64: 1, 2>, keepdims} : (tensor<1x7x7x208xf32>) -> tensor<1x1x1x208xf32>
  return %0, %2 : tensor<1x7x7x208xf16>, tensor<1x1x1x208xf32>
}
func.func @images(%x: tensor<3x7x7x96xf16>) -> (tensor<3x7x7x208xf16>, tensor<3x1x1x208xf32>) {
  %w = graph.weight "w" : tensor<208x1x1x96xf16>
  %0 = graph.conv %x, %w {channels_last, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<3x7x7x96xf16>, tensor<208x1x1x96xf16>) -> tensor<3x7x7x208xf16>
  %1 = graph.cast %0 {to = f32} : (tensor<3x7x7x208xf16>) -> tensor<3x7x7x208xf32>
  %2 = graph.reduce sum %1 {axes = array<i64: 1, 2>, keepdims} : (tensor<3x7x7x208xf32>) -> tensor<3x1x1x208xf32>
  return %0, %2 : tensor<3x7x7x208xf16>, tensor<3x1x1x208xf32>
}

// -----

// Rows of a tile may be stored in another order: the kernel walks its product,
// whose rows are cells.
// BEGIN-LABEL: func.func @windows
// CHECK-LABEL: func.func @windows
// CHECK:         graph.kernel "conv_max_cast_pool"({{.*}}) attributes {graph.walks_product} : ({{.*}}) -> (tensor<2x2x7x7x64xf16>, tensor<1x4x64xf32>)
// CHECK:         graph.kernel "reduce
func.func @windows(%x: tensor<1x14x14x96xf16>) -> (tensor<2x2x7x7x64xf16>, tensor<1x1x1x64xf32>) {
  %zero = graph.constant dense<0.0> : tensor<f16>
  %w = graph.weight "w" : tensor<64x1x1x96xf16>
  %0 = graph.conv %x, %w {channels_last, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x14x14x96xf16>, tensor<64x1x1x96xf16>) -> tensor<1x14x14x64xf16>
  %1 = graph.max %0, %zero : (tensor<1x14x14x64xf16>, tensor<f16>) -> tensor<1x14x14x64xf16>
  %2 = graph.cast %1 {to = f32} : (tensor<1x14x14x64xf16>) -> tensor<1x14x14x64xf32>
  %3 = graph.reduce sum %2 {axes = array<i64: 1, 2>, keepdims} : (tensor<1x14x14x64xf32>) -> tensor<1x1x1x64xf32>
  %4 = graph.reshape %1 : (tensor<1x14x14x64xf16>) -> tensor<2x7x2x7x64xf16>
  %5 = graph.transpose %4 {permutation = array<i64: 0, 2, 1, 3, 4>} : (tensor<2x7x2x7x64xf16>) -> tensor<2x2x7x7x64xf16>
  return %5, %3 : tensor<2x2x7x7x64xf16>, tensor<1x1x1x64xf32>
}

// -----

// An image that a later kernel than the convolution's gives: sums begin of
// none, or where it is added up for the later one.
// BEGIN-LABEL: func.func @later
// BEGIN-NOT:     graph.pool
// BEGIN:         graph.reduce sum
// BEGIN:         graph.reduce sum
// BEGIN-NOT:     graph.pool
// CHECK-LABEL: func.func @later
func.func @later(%x: tensor<1x16x27x8xf32>) -> (tensor<1x16x27x8xf32>, tensor<1x1x1x8xf32>) {
  %w = graph.weight "w" : tensor<8x3x3x1xf32>
  %0 = graph.conv %x, %w {channels_last, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 8 : i64} : (tensor<1x16x27x8xf32>, tensor<8x3x3x1xf32>) -> tensor<1x16x27x8xf32>
  %1 = graph.mul %0, %0 : (tensor<1x16x27x8xf32>, tensor<1x16x27x8xf32>) -> tensor<1x16x27x8xf32>
  %2 = graph.reduce sum %1 {axes = array<i64: 1, 2>, keepdims} : (tensor<1x16x27x8xf32>) -> tensor<1x1x1x8xf32>
  %3 = graph.mul %0, %2 : (tensor<1x16x27x8xf32>, tensor<1x1x1x8xf32>) -> tensor<1x16x27x8xf32>
  %4 = graph.reduce sum %3 {axes = array<i64: 1, 2>, keepdims} : (tensor<1x16x27x8xf32>) -> tensor<1x1x1x8xf32>
  return %3, %4 : tensor<1x16x27x8xf32>, tensor<1x1x1x8xf32>
}

// -----

// Cells of a row's columns stay these where whole rows move: the sums stay in
// the kernel that stores the rows in another order than a product gives them,
// or rolled.
// CHECK-LABEL: func.func @rows
// CHECK:         graph.kernel "matmul_add_cast_sum_runs"({{.*}}) attributes {graph.walks_product} : ({{.*}}) -> (tensor<1x8x8x96xf16>, tensor<1x8x8x3xf32>)
// CHECK-NOT:     graph.kernel
func.func @rows(%x: tensor<4x16x48xf16>, %r: tensor<1x8x8x96xf16>) -> (tensor<1x8x8x96xf16>, tensor<1x8x8x3xf32>) {
  %w = graph.weight "w" : tensor<48x96xf16>
  %0 = graph.matmul %x, %w : (tensor<4x16x48xf16>, tensor<48x96xf16>) -> tensor<4x16x96xf16>
  %1 = graph.reshape %0 : (tensor<4x16x96xf16>) -> tensor<2x2x4x4x96xf16>
  %2 = graph.transpose %1 {permutation = array<i64: 0, 2, 1, 3, 4>} : (tensor<2x2x4x4x96xf16>) -> tensor<2x4x2x4x96xf16>
  %3 = graph.reshape %2 : (tensor<2x4x2x4x96xf16>) -> tensor<1x1x8x8x96xf16>
  %4 = graph.broadcast %3 : (tensor<1x1x8x8x96xf16>) -> tensor<1x2x8x8x96xf16>
  %5 = graph.reshape %4 : (tensor<1x2x8x8x96xf16>) -> tensor<1x16x8x96xf16>
  %6 = graph.slice %5 {starts = affine_map<() -> (0, 5, 0, 0)>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x16x8x96xf16>) -> tensor<1x8x8x96xf16>
  %7 = graph.add %r, %6 : (tensor<1x8x8x96xf16>, tensor<1x8x8x96xf16>) -> tensor<1x8x8x96xf16>
  %8 = graph.cast %7 {graph.as_stored, to = f32} : (tensor<1x8x8x96xf16>) -> tensor<1x8x8x96xf32>
  %9 = graph.sum_runs %8 {run = 32 : i64} : (tensor<1x8x8x96xf32>) -> tensor<1x8x8x3xf32>
  return %7, %9 : tensor<1x8x8x96xf16>, tensor<1x8x8x3xf32>
}

// -----

// Two results whose rows lie in different orders, neither the product's, follow
// from that. Where what is multiplied lies as what is stored, that is the order
// to walk in. A CPU stores what rolls by itself.
// CHECK-LABEL: func.func @orders
// CHECK:         graph.kernel "matmul_abs_add"({{.*}}) attributes {graph.walks_product} : ({{.*}}) -> (tensor<6x4x96xf16>, tensor<4x6x96xf16>)
// CHECK-NOT:     graph.kernel
// CPU-LABEL: func.func @orders
// CPU-NOT:     graph.walks_product
// CPU:         graph.kernel "add"
// CHECK-LABEL: func.func @back
// CHECK:         graph.kernel "matmul_abs"({{[^)]*}}) : (
// CPU-LABEL: func.func @back
func.func @orders(%x: tensor<4x6x48xf16>, %r: tensor<4x6x96xf16>) -> (tensor<6x4x96xf16>, tensor<4x6x96xf16>) {
  %w = graph.weight "w" : tensor<48x96xf16>
  %0 = graph.matmul %x, %w : (tensor<4x6x48xf16>, tensor<48x96xf16>) -> tensor<4x6x96xf16>
  %1 = graph.transpose %0 {permutation = array<i64: 1, 0, 2>} : (tensor<4x6x96xf16>) -> tensor<6x4x96xf16>
  %2 = graph.abs %1 : (tensor<6x4x96xf16>) -> tensor<6x4x96xf16>
  %3 = graph.reshape %0 : (tensor<4x6x96xf16>) -> tensor<1x4x6x96xf16>
  %4 = graph.broadcast %3 : (tensor<1x4x6x96xf16>) -> tensor<2x4x6x96xf16>
  %5 = graph.reshape %4 : (tensor<2x4x6x96xf16>) -> tensor<8x6x96xf16>
  %6 = graph.slice %5 {starts = affine_map<() -> (3, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<8x6x96xf16>) -> tensor<4x6x96xf16>
  %7 = graph.add %6, %r : (tensor<4x6x96xf16>, tensor<4x6x96xf16>) -> tensor<4x6x96xf16>
  return %2, %7 : tensor<6x4x96xf16>, tensor<4x6x96xf16>
}
func.func @back(%x: tensor<4x6x48xf16>) -> tensor<4x6x96xf16> {
  %w = graph.weight "w" : tensor<48x96xf16>
  %0 = graph.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<4x6x48xf16>) -> tensor<6x4x48xf16>
  %1 = graph.matmul %0, %w : (tensor<6x4x48xf16>, tensor<48x96xf16>) -> tensor<6x4x96xf16>
  %2 = graph.transpose %1 {permutation = array<i64: 1, 0, 2>} : (tensor<6x4x96xf16>) -> tensor<4x6x96xf16>
  %3 = graph.abs %2 : (tensor<4x6x96xf16>) -> tensor<4x6x96xf16>
  return %3 : tensor<4x6x96xf16>
}
