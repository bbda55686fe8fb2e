// Integers are packed, what makes floats of them stays in front of the product.
// RUN: charonia-opt %s --pack-weights=panel=16 --split-prepare --split-input-file | FileCheck %s

// 8 bits in bytes. (Scales that lie in memory: tests/e2e/packed_weights_test.py; of a weight whose numbers nobody knows they might be
// infinite, so that floats are packed: the last case.)
// CHECK-LABEL: func.func @main
// CHECK:         %[[Q:.*]] = graph.weight "prepared.0" : tensor<3x64x16xi8>
// CHECK:         graph.reshape {{.*}} -> tensor<64x48xi8>
// CHECK:         %[[I:.*]] = graph.slice {{.*}} -> tensor<64x40xi8>
// CHECK:         %[[F:.*]] = graph.cast %[[I]] {to = f32}
// CHECK:         %[[W:.*]] = graph.mul %[[F]], %{{.*}}
// CHECK:         graph.matmul %{{.*}}, %[[W]]
// CHECK-LABEL: func.func @prepare
// CHECK-NOT:     tensor<64x40xf32> {graph.name
func.func @main(%x: tensor<4x64xf32>) -> tensor<4x40xf32> {
  %q = graph.weight "q" : tensor<64x40xi8>
  %s = graph.constant dense<0.5> : tensor<2x40xf32>
  %0 = graph.cast %q {to = f32} : (tensor<64x40xi8>) -> tensor<64x40xf32>
  %1 = graph.reshape %s : (tensor<2x40xf32>) -> tensor<2x1x40xf32>
  %2 = graph.broadcast %1 : (tensor<2x1x40xf32>) -> tensor<2x32x40xf32>
  %3 = graph.reshape %2 : (tensor<2x32x40xf32>) -> tensor<64x40xf32>
  %4 = graph.mul %0, %3 : (tensor<64x40xf32>, tensor<64x40xf32>) -> tensor<64x40xf32>
  %5 = graph.matmul %x, %4 : (tensor<4x64xf32>, tensor<64x40xf32>) -> tensor<4x40xf32>
  return %5 : tensor<4x40xf32>
}

// -----

// What a mask leaves 4 bits of is packed into words of 8 neighbouring terms: with the
// constant that is taken from them, they have a sign.
// CHECK-LABEL: func.func @main
// CHECK:         graph.weight "prepared.0" : tensor<2x8x16xi32>
// CHECK:         graph.broadcast {{.*}} -> tensor<2x8x8x16xi32>
// CHECK:         graph.iota
// CHECK:         graph.shl
// CHECK:         graph.shr
// CHECK:         %[[F:.*]] = graph.cast {{.*}} {to = f32} : (tensor<64x32xi32>)
// CHECK-NOT:     graph.sub
// CHECK:         %[[W:.*]] = graph.mul %[[F]], %{{.*}}
// CHECK:         graph.matmul %{{.*}}, %[[W]]
func.func @main(%x: tensor<4x64xf32>) -> tensor<4x32xf32> {
  %q = graph.weight "q" : tensor<32x64xui8>
  %s = graph.constant dense<0.5> : tensor<32x1xf32>
  %bits = graph.constant dense<15> : tensor<ui8>
  %eight = graph.constant dense<8.0> : tensor<f32>
  %0 = graph.and %q, %bits : (tensor<32x64xui8>, tensor<ui8>) -> tensor<32x64xui8>
  %1 = graph.cast %0 {to = f32} : (tensor<32x64xui8>) -> tensor<32x64xf32>
  %2 = graph.sub %1, %eight : (tensor<32x64xf32>, tensor<f32>) -> tensor<32x64xf32>
  %3 = graph.mul %2, %s : (tensor<32x64xf32>, tensor<32x1xf32>) -> tensor<32x64xf32>
  %4 = graph.transpose %3 {permutation = array<i64: 1, 0>} : (tensor<32x64xf32>) -> tensor<64x32xf32>
  %5 = graph.matmul %x, %4 : (tensor<4x64xf32>, tensor<64x32xf32>) -> tensor<4x32xf32>
  return %5 : tensor<4x32xf32>
}

// -----

// The scale is what the largest number of a column has of 127.
// CHECK-LABEL: func.func @main
// CHECK:         graph.weight "prepared.0" : tensor<2x64x16xi8>
// CHECK:         graph.matmul
func.func @main(%x: tensor<4x64xf32>) -> tensor<4x32xf32> {
  %q = graph.weight "q" : tensor<64x32xi8>
  %largest = graph.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0, 20.0, 21.0, 22.0, 23.0, 24.0, 25.0, 26.0, 27.0, 28.0, 29.0, 30.0, 31.0, 32.0]> : tensor<32xf32>
  %most = graph.constant dense<127.0> : tensor<f32>
  %s = graph.div %largest, %most : (tensor<32xf32>, tensor<f32>) -> tensor<32xf32>
  %0 = graph.cast %q {to = f32} : (tensor<64x32xi8>) -> tensor<64x32xf32>
  %1 = graph.mul %0, %s : (tensor<64x32xf32>, tensor<32xf32>) -> tensor<64x32xf32>
  %2 = graph.matmul %x, %1 : (tensor<4x64xf32>, tensor<64x32xf32>) -> tensor<4x32xf32>
  return %2 : tensor<4x32xf32>
}

// -----

// Floats are panels of floats, whatever they are multiplied by.
// CHECK-LABEL: func.func @main
// CHECK:         graph.weight "prepared.0" : tensor<2x64x16xf32>
// CHECK-NOT:     graph.mul
// CHECK-LABEL: func.func @prepare
// CHECK:         graph.mul
func.func @main(%x: tensor<4x64xf32>) -> tensor<4x32xf32> {
  %w = graph.weight "w" : tensor<64x32xf32>
  %s = graph.weight "s" : tensor<32xf32>
  %0 = graph.mul %w, %s : (tensor<64x32xf32>, tensor<32xf32>) -> tensor<64x32xf32>
  %1 = graph.matmul %x, %0 : (tensor<4x64xf32>, tensor<64x32xf32>) -> tensor<4x32xf32>
  return %1 : tensor<4x32xf32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK:         graph.weight "prepared.0" : tensor<3x64x16xf32>
// CHECK-NOT:     graph.mul{{ }}
// CHECK:         graph.matmul
func.func @main(%x: tensor<4x64xf32>) -> tensor<4x40xf32> {
  %q = graph.weight "q" : tensor<64x40xi8>
  %s = graph.weight "s" : tensor<40xf32>
  %0 = graph.cast %q {to = f32} : (tensor<64x40xi8>) -> tensor<64x40xf32>
  %1 = graph.mul %0, %s : (tensor<64x40xf32>, tensor<40xf32>) -> tensor<64x40xf32>
  %2 = graph.matmul %x, %1 : (tensor<4x64xf32>, tensor<64x40xf32>) -> tensor<4x40xf32>
  return %2 : tensor<4x40xf32>
}
