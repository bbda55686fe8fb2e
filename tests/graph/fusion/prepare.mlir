// RUN: charonia-opt %s --split-prepare --split-input-file | FileCheck %s
// RUN: charonia-opt %s --pack-weights=panel=16 --split-prepare --split-input-file | FileCheck %s --check-prefix=PACK

// A cast of weights is prepared; a transpose that a dot can read and a broadcast stay.
// CHECK-LABEL: func.func @main
// CHECK:         %[[B:.*]] = graph.weight "b"
// CHECK:         %[[W:.*]] = graph.weight "prepared.0" : tensor<40x8xf16>
// CHECK:         %[[T:.*]] = graph.transpose %[[W]]
// CHECK:         graph.matmul %{{.*}}, %[[T]]
// CHECK:         graph.broadcast %[[B]]
// CHECK-LABEL: func.func @prepare() -> (tensor<40x8xf16> {graph.name = "prepared.0"})
// CHECK:         graph.weight "w"
// CHECK:         graph.cast
// CHECK:         return

// Columns 40 in panels of 16: [3, 8, 16].
// PACK-LABEL: func.func @main
// PACK:         %[[W:.*]] = graph.weight "prepared.0" : tensor<3x8x16xf16>
// PACK:         %[[T:.*]] = graph.transpose %[[W]] {permutation = array<i64: 1, 0, 2>}
// PACK:         %[[R:.*]] = graph.reshape %[[T]] {{.*}} -> tensor<8x48xf16>
// PACK:         %[[S:.*]] = graph.slice %[[R]] {{.*}} -> tensor<8x40xf16>
// PACK:         graph.matmul %{{.*}}, %[[S]]
// PACK-LABEL: func.func @prepare()
// PACK:         graph.pad constant {{.*}} -> tensor<8x48xf16>
// PACK:         graph.reshape {{.*}} -> tensor<8x3x16xf16>
// PACK:         graph.transpose {{.*}} -> tensor<3x8x16xf16>
func.func @main(%x: tensor<4x8xf16>) -> (tensor<4x40xf16>, tensor<64x40xf16>) {
  %w = graph.weight "w" : tensor<40x8xf32>
  %b = graph.weight "b" : tensor<40xf16>
  %0 = graph.cast %w {to = f16} : (tensor<40x8xf32>) -> tensor<40x8xf16>
  %1 = graph.transpose %0 {permutation = array<i64: 1, 0>} : (tensor<40x8xf16>) -> tensor<8x40xf16>
  %2 = graph.matmul %x, %1 : (tensor<4x8xf16>, tensor<8x40xf16>) -> tensor<4x40xf16>
  %3 = graph.broadcast %b : (tensor<40xf16>) -> tensor<64x40xf16>
  return %2, %3 : tensor<4x40xf16>, tensor<64x40xf16>
}

// -----

// What is much larger than the weights it is made of is not stored, its small part is.
// CHECK-LABEL: func.func @main
// CHECK:         %[[S:.*]] = graph.weight "prepared.0" : tensor<8192xf32>
// CHECK:         graph.add %{{.*}}, %[[S]] : (tensor<8192x1xf32>, tensor<8192xf32>)
// CHECK-LABEL: func.func @prepare
// CHECK:         graph.exp
// CHECK-NOT:     graph.add
func.func @main(%x: tensor<8192x8192xf32>) -> tensor<8192x8192xf32> {
  %a = graph.weight "a" : tensor<8192xf32>
  %b = graph.weight "b" : tensor<8192x1xf32>
  %0 = graph.exp %a : (tensor<8192xf32>) -> tensor<8192xf32>
  %1 = graph.add %b, %0 : (tensor<8192x1xf32>, tensor<8192xf32>) -> tensor<8192x8192xf32>
  %2 = graph.mul %1, %x : (tensor<8192x8192xf32>, tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
  return %2 : tensor<8192x8192xf32>
}

// -----

// A filter that comes with its window innermost is transposed once: a dot wants its
// columns or its channels side by side.
// CHECK-LABEL: func.func @main
// CHECK:         %[[F:.*]] = graph.weight "prepared.0" : tensor<16x3x3x8xf16>
// CHECK:         graph.conv %{{.*}}, %[[F]]
// One of a single element is the same bytes either way.
// CHECK:         %[[P:.*]] = graph.weight "p" : tensor<16x8x1x1xf16>
// CHECK:         %[[T:.*]] = graph.transpose %[[P]]
// CHECK:         graph.conv %{{.*}}, %[[T]]
func.func @main(%x: tensor<1x9x9x8xf16>) -> (tensor<1x7x7x16xf16>, tensor<1x9x9x16xf16>) {
  %w = graph.weight "w" : tensor<16x8x3x3xf16>
  %0 = graph.transpose %w {permutation = array<i64: 0, 2, 3, 1>} : (tensor<16x8x3x3xf16>) -> tensor<16x3x3x8xf16>
  %1 = graph.conv %x, %0 {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x9x9x8xf16>, tensor<16x3x3x8xf16>) -> tensor<1x7x7x16xf16>
  %p = graph.weight "p" : tensor<16x8x1x1xf16>
  %2 = graph.transpose %p {permutation = array<i64: 0, 2, 3, 1>} : (tensor<16x8x1x1xf16>) -> tensor<16x1x1x8xf16>
  %3 = graph.conv %x, %2 {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x9x9x8xf16>, tensor<16x1x1x8xf16>) -> tensor<1x9x9x16xf16>
  return %1, %3 : tensor<1x7x7x16xf16>, tensor<1x9x9x16xf16>
}

// -----

// Panels stay panels: the reader finds its columns side by side in them. Filters of
// groups are packed too, their channels are columns.
// PACK-LABEL: func.func @main
// PACK:         %[[W:.*]] = graph.weight "prepared.0" : tensor<3x3x3x8x16xf32>
// PACK:         %[[T:.*]] = graph.transpose %[[W]] {permutation = array<i64: 0, 4, 1, 2, 3>}
// PACK:         %[[R:.*]] = graph.reshape %[[T]] {{.*}} -> tensor<48x3x3x8xf32>
// PACK:         graph.conv %{{.*}}, %[[R]]
// PACK:         graph.weight "prepared.1" : tensor<3x3x3x1x16xf32>
// PACK:         graph.conv {{.*}} groups = 48
func.func @main(%x: tensor<1x9x9x8xf32>) -> tensor<1x5x5x48xf32> {
  %w = graph.weight "w" : tensor<48x8x3x3xf32>
  %0 = graph.transpose %w {permutation = array<i64: 0, 2, 3, 1>} : (tensor<48x8x3x3xf32>) -> tensor<48x3x3x8xf32>
  %1 = graph.conv %x, %0 {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x9x9x8xf32>, tensor<48x3x3x8xf32>) -> tensor<1x7x7x48xf32>
  %v = graph.weight "v" : tensor<48x1x3x3xf32>
  %2 = graph.transpose %v {permutation = array<i64: 0, 2, 3, 1>} : (tensor<48x1x3x3xf32>) -> tensor<48x3x3x1xf32>
  %3 = graph.conv %1, %2 {channels_last, dilations = array<i64: 1, 1>, groups = 48 : i64, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x7x7x48xf32>, tensor<48x3x3x1xf32>) -> tensor<1x5x5x48xf32>
  return %3 : tensor<1x5x5x48xf32>
}

// -----

// What takes more than is affordable stays where it runs with the model: a sum of 2^40
// terms that constants alone give. The little that its operand is made from is prepared.
// CHECK-LABEL: func.func @main() -> tensor<f32>
// CHECK:         %[[W:.*]] = graph.weight "prepared.0" : tensor<1xf32>
// CHECK:         graph.broadcast %[[W]]
// CHECK:         graph.reduce sum
func.func @main() -> tensor<f32> {
  %w = graph.weight "w" : tensor<1xf32>
  %0 = graph.exp %w : (tensor<1xf32>) -> tensor<1xf32>
  %1 = graph.broadcast %0 : (tensor<1xf32>) -> tensor<1099511627776xf32>
  %2 = graph.reduce sum %1 {axes = array<i64: 0>} : (tensor<1099511627776xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

// A product of weights is large, but not beside the weights.
// CHECK-LABEL: func.func @main(%arg0: tensor<4x1024xf32>)
// CHECK:         %[[W:.*]] = graph.weight "prepared.0" : tensor<1024x1024xf32>
// CHECK:         graph.matmul %{{.*}}, %[[W]]
// CHECK-NOT:     graph.matmul
// CHECK:         return
func.func @main(%x: tensor<4x1024xf32>) -> tensor<4x1024xf32> {
  %v = graph.weight "v" : tensor<1024x1024xf32>
  %w = graph.weight "w" : tensor<1024x1024xf32>
  %0 = graph.matmul %v, %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %1 = graph.matmul %x, %0 : (tensor<4x1024xf32>, tensor<1024x1024xf32>) -> tensor<4x1024xf32>
  return %1 : tensor<4x1024xf32>
}

// -----

// What positions give by few operations is computed where it is wanted, with what is expensive of it
// prepared; a small tensor is stored.
// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[S:.*]] = graph.weight "prepared.{{[01]}}" : tensor<512x1xf32>
// CHECK-DAG:     %[[T:.*]] = graph.weight "prepared.{{[01]}}" : tensor<4x4xi1>
// CHECK-DAG:     graph.iota {{.*}} -> tensor<1x512xf32>
// CHECK-DAG:     %[[M:.*]] = graph.mul {{.*}} -> tensor<512x512xf32>
// CHECK:         return %[[M]], %[[T]]
// CHECK-LABEL: func.func @prepare()
func.func @main() -> (tensor<512x512xf32>, tensor<4x4xi1>) {
  %0 = graph.iota {axis = 1 : i64} : () -> tensor<1x512xf32>
  %1 = graph.iota {axis = 0 : i64} : () -> tensor<512x1xf32>
  %2 = graph.exp %1 : (tensor<512x1xf32>) -> tensor<512x1xf32>
  %3 = graph.mul %0, %2 : (tensor<1x512xf32>, tensor<512x1xf32>) -> tensor<512x512xf32>
  %4 = graph.iota {axis = 1 : i64} : () -> tensor<1x4xi64>
  %5 = graph.iota {axis = 0 : i64} : () -> tensor<4x1xi64>
  %6 = graph.compare eq %4, %5 : (tensor<1x4xi64>, tensor<4x1xi64>) -> tensor<4x4xi1>
  return %3, %6 : tensor<512x512xf32>, tensor<4x4xi1>
}

// -----

// Filters of each channel alone are stored with channels side by side, not as a dot
// could read them too.
// CHECK-LABEL: func.func @main
// CHECK:         %[[S:.*]] = graph.weight "prepared.0" : tensor<3x3x1x16xf16>
// CHECK:         %[[V:.*]] = graph.transpose %[[S]] {permutation = array<i64: 3, 0, 1, 2>}
// CHECK:         graph.conv %arg0, %[[V]]
// CHECK-LABEL: func.func @prepare
func.func @main(%x: tensor<1x8x8x16xf16>) -> tensor<1x8x8x16xf16> {
  %w = graph.weight "w" : tensor<16x3x3x1xf16>
  %s = graph.transpose %w {permutation = array<i64: 1, 2, 3, 0>} : (tensor<16x3x3x1xf16>) -> tensor<3x3x1x16xf16>
  %v = graph.transpose %s {permutation = array<i64: 3, 0, 1, 2>} : (tensor<3x3x1x16xf16>) -> tensor<16x3x3x1xf16>
  %0 = graph.conv %x, %v {channels_last, dilations = array<i64: 1, 1>, groups = 16 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x8x8x16xf16>, tensor<16x3x3x1xf16>) -> tensor<1x8x8x16xf16>
  return %0 : tensor<1x8x8x16xf16>
}

// -----

// Columns of which neighbours in memory are no neighbours (taps are innermost) are no panels.
// CHECK-LABEL: func.func @main
// CHECK:         %[[W:.*]] = graph.weight "prepared.0" : tensor<2x2x256x512xf16>
// CHECK:         graph.reshape %[[W]]
// CHECK:         graph.conv
func.func @main(%x: tensor<1x64x64x512xf16>) -> tensor<1x64x64x1024xf16> {
  %w = graph.weight "w" : tensor<512x256x2x2xf16>
  %0 = graph.transpose %w {permutation = array<i64: 2, 3, 1, 0>} : (tensor<512x256x2x2xf16>) -> tensor<2x2x256x512xf16>
  %1 = graph.reshape %0 : (tensor<2x2x256x512xf16>) -> tensor<1024x1x1x512xf16>
  %2 = graph.conv %x, %1 {channels_last, dilations = array<i64: 1, 1>, groups = 1 : i64, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x64x64x512xf16>, tensor<1024x1x1x512xf16>) -> tensor<1x64x64x1024xf16>
  return %2 : tensor<1x64x64x1024xf16>
}

// -----

// The four terms of a column of bytes stay side by side in their panel, behind the last with zeros.
// PACK:         func.func @main(%arg0: tensor<1x101xui8>)
// PACK:         %[[W:.*]] = graph.weight "prepared.0" : tensor<3x26x16x4xi8>
// PACK:         graph.transpose %[[W]] {permutation = array<i64: 0, 1, 3, 2>}
// PACK:         graph.slice {{.*}} -> tensor<3x101x16xi8>
// PACK:         graph.slice {{.*}} -> tensor<101x40xi8>
// PACK:         graph.matmul
func.func @main(%x: tensor<1x101xui8>) -> tensor<1x40xi32> {
  %w = graph.weight "w" : tensor<101x40xi8>
  %0 = graph.matmul %x, %w : (tensor<1x101xui8>, tensor<101x40xi8>) -> tensor<1x40xi32>
  return %0 : tensor<1x40xi32>
}
