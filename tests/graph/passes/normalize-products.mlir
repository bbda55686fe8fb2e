// RUN: charonia-opt %s -normalize-products -canonicalize -split-input-file | FileCheck %s

// The kernel that computes rows adds up runs of them and of squared distances
// from each run's mean; the product takes the rows as they are, and weights with
// the scale inside. What the shift gives is added with the bias.
// CHECK-LABEL: @layer
// CHECK:         %[[X:.*]] = graph.add {{.*}} -> tensor<64x96xf16>
// CHECK:         %[[WIDE:.*]] = graph.cast %[[X]] {graph.as_stored, to = f32}
// CHECK-NEXT:    %[[SQUARES:.*]] = graph.sum_runs %[[WIDE]] {run = 32 : i64, squared_distances} : (tensor<64x96xf32>) -> tensor<64x3xf32>
// CHECK-NEXT:    %[[TERMS:.*]] = graph.sum_runs %[[WIDE]] {run = 32 : i64} : (tensor<64x96xf32>) -> tensor<64x3xf32>
// CHECK-NOT:     graph.normalize %
// CHECK:         %[[W:.*]] = graph.cast {{.*}} {to = f16} : (tensor<96x40xf32>) -> tensor<96x40xf16>
// CHECK:         %[[COLUMNS:.*]] = graph.reduce sum {{.*}} {axes = array<i64: 0>} : (tensor<96x40xf32>) -> tensor<40xf32>
// CHECK:         %[[Y:.*]] = graph.normalized_matmul %[[X]], %[[W]], %[[SQUARES]] terms %[[TERMS]] columns %[[COLUMNS]] {epsilon = 1.000000e-05 : f64}
// CHECK:         %[[B:.*]] = graph.cast {{.*}} -> tensor<40xf16>
// CHECK:         %[[Z:.*]] = graph.add %[[Y]], %[[B]]
// CHECK-NEXT:    return %[[Z]]
func.func @layer(%x: tensor<64x48xf16>, %r: tensor<64x96xf16>) -> tensor<64x40xf16> {
  %a = graph.weight "a" : tensor<48x96xf16>
  %g = graph.weight "g" : tensor<96xf16>
  %b = graph.weight "b" : tensor<96xf16>
  %w = graph.weight "w" : tensor<96x40xf16>
  %c = graph.weight "c" : tensor<40xf16>
  %0 = graph.matmul %x, %a : (tensor<64x48xf16>, tensor<48x96xf16>) -> tensor<64x96xf16>
  %1 = graph.add %0, %r : (tensor<64x96xf16>, tensor<64x96xf16>) -> tensor<64x96xf16>
  %2 = graph.normalize %1 {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<64x96xf16>) -> tensor<64x96xf16>
  %3 = graph.mul %2, %g : (tensor<64x96xf16>, tensor<96xf16>) -> tensor<64x96xf16>
  %4 = graph.add %3, %b : (tensor<64x96xf16>, tensor<96xf16>) -> tensor<64x96xf16>
  %5 = graph.matmul %4, %w : (tensor<64x96xf16>, tensor<96x40xf16>) -> tensor<64x40xf16>
  %6 = graph.add %5, %c : (tensor<64x40xf16>, tensor<40xf16>) -> tensor<64x40xf16>
  return %6 : tensor<64x40xf16>
}

// -----

// Of a root mean square there are no means; views move rows, and what is known
// of them.
// CHECK-LABEL: @rms
// CHECK:         %[[SQUARE:.*]] = graph.mul %[[WIDE:.*]], %[[WIDE]]
// CHECK:         %[[SQUARES:.*]] = graph.sum_runs %[[SQUARE]] {run = 32 : i64} : {{.*}} -> tensor<4x16x2xf32>
// CHECK-NOT:     sum_runs
// CHECK:         %[[X:.*]] = graph.transpose {{.*}} -> tensor<16x4x64xf16>
// CHECK:         %[[S:.*]] = graph.transpose %[[SQUARES]] {permutation = array<i64: 1, 0, 2>} : (tensor<4x16x2xf32>) -> tensor<16x4x2xf32>
// CHECK:         graph.normalized_matmul %[[X]], %{{.*}}, %[[S]] {epsilon
func.func @rms(%x: tensor<4x16x48xf16>) -> tensor<16x4x40xf16> {
  %a = graph.weight "a" : tensor<48x64xf16>
  %w = graph.weight "w" : tensor<64x40xf16>
  %0 = graph.matmul %x, %a : (tensor<4x16x48xf16>, tensor<48x64xf16>) -> tensor<4x16x64xf16>
  %1 = graph.normalize %0 {axes = array<i64: 2>, epsilon = 1.0e-5 : f64, rms} : (tensor<4x16x64xf16>) -> tensor<4x16x64xf16>
  %2 = graph.transpose %1 {permutation = array<i64: 1, 0, 2>} : (tensor<4x16x64xf16>) -> tensor<16x4x64xf16>
  %3 = graph.matmul %2, %w : (tensor<16x4x64xf16>, tensor<64x40xf16>) -> tensor<16x4x40xf16>
  return %3 : tensor<16x4x40xf16>
}

// -----

// Of rows that are normalized both ways squares are added up both ways.
// CHECK-LABEL: @both
// CHECK:         %[[SQUARES:.*]] = graph.sum_runs %{{.*}} {run = 32 : i64} :
// CHECK:         %[[DISTANCES:.*]] = graph.sum_runs %{{.*}} {run = 32 : i64, squared_distances} :
// CHECK:         %[[TERMS:.*]] = graph.sum_runs %{{.*}} {run = 32 : i64} :
// CHECK-DAG:     graph.normalized_matmul %{{.*}}, %{{.*}}, %[[DISTANCES]] terms %[[TERMS]]
// CHECK-DAG:     graph.normalized_matmul %{{.*}}, %{{.*}}, %[[SQUARES]] {epsilon
func.func @both(%x: tensor<64x48xf16>) -> (tensor<64x40xf16>, tensor<64x40xf16>) {
  %a = graph.weight "a" : tensor<48x96xf16>
  %w = graph.weight "w" : tensor<96x40xf16>
  %0 = graph.matmul %x, %a : (tensor<64x48xf16>, tensor<48x96xf16>) -> tensor<64x96xf16>
  %1 = graph.normalize %0 {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<64x96xf16>) -> tensor<64x96xf16>
  %2 = graph.matmul %1, %w : (tensor<64x96xf16>, tensor<96x40xf16>) -> tensor<64x40xf16>
  %3 = graph.normalize %0 {axes = array<i64: 1>, epsilon = 1.0e-5 : f64, rms} : (tensor<64x96xf16>) -> tensor<64x96xf16>
  %4 = graph.matmul %3, %w : (tensor<64x96xf16>, tensor<96x40xf16>) -> tensor<64x40xf16>
  return %2, %4 : tensor<64x40xf16>, tensor<64x40xf16>
}

// -----

// What is added where another product ends is normalized there.
// CHECK-LABEL: @beside
// CHECK:         %[[N:.*]] = graph.normalize_rows %{{.*}}, %{{.*}} terms
// CHECK:         graph.normalized_matmul
// CHECK:         graph.add %{{.*}}, %[[N]]
func.func @beside(%x: tensor<64x48xf16>) -> tensor<64x96xf16> {
  %a = graph.weight "a" : tensor<48x96xf16>
  %w = graph.weight "w" : tensor<96x40xf16>
  %v = graph.weight "v" : tensor<40x96xf16>
  %0 = graph.matmul %x, %a : (tensor<64x48xf16>, tensor<48x96xf16>) -> tensor<64x96xf16>
  %1 = graph.normalize %0 {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<64x96xf16>) -> tensor<64x96xf16>
  %2 = graph.matmul %1, %w : (tensor<64x96xf16>, tensor<96x40xf16>) -> tensor<64x40xf16>
  %3 = graph.matmul %2, %v : (tensor<64x40xf16>, tensor<40x96xf16>) -> tensor<64x96xf16>
  %4 = graph.add %3, %1 : (tensor<64x96xf16>, tensor<64x96xf16>) -> tensor<64x96xf16>
  return %4 : tensor<64x96xf16>
}

// -----

// Rows that somebody else has as they are, that no product computes, or that
// are no whole runs, and floats of 32 bits stay as they are.
// CHECK-LABEL: @others
// CHECK-COUNT-4: graph.normalize %
// CHECK-NOT:     normalized_matmul
func.func @others(%x: tensor<64x48xf16>, %y: tensor<64x64xf16>, %z: tensor<64x48xf32>) -> (tensor<64x64xf16>, tensor<64x40xf16>, tensor<64x40xf16>, tensor<64x40xf16>, tensor<64x40xf32>) {
  %a = graph.weight "a" : tensor<48x64xf16>
  %w = graph.weight "w" : tensor<64x40xf16>
  %0 = graph.matmul %x, %a : (tensor<64x48xf16>, tensor<48x64xf16>) -> tensor<64x64xf16>
  %1 = graph.normalize %0 {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<64x64xf16>) -> tensor<64x64xf16>
  %2 = graph.matmul %1, %w : (tensor<64x64xf16>, tensor<64x40xf16>) -> tensor<64x40xf16>
  %3 = graph.normalize %y {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<64x64xf16>) -> tensor<64x64xf16>
  %4 = graph.matmul %3, %w : (tensor<64x64xf16>, tensor<64x40xf16>) -> tensor<64x40xf16>
  %b = graph.weight "b" : tensor<48x40xf16>
  %v = graph.weight "v" : tensor<40x40xf16>
  %5 = graph.matmul %x, %b : (tensor<64x48xf16>, tensor<48x40xf16>) -> tensor<64x40xf16>
  %6 = graph.normalize %5 {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<64x40xf16>) -> tensor<64x40xf16>
  %7 = graph.matmul %6, %v : (tensor<64x40xf16>, tensor<40x40xf16>) -> tensor<64x40xf16>
  %c = graph.weight "c" : tensor<48x64xf32>
  %d = graph.weight "d" : tensor<64x40xf32>
  %8 = graph.matmul %z, %c : (tensor<64x48xf32>, tensor<48x64xf32>) -> tensor<64x64xf32>
  %9 = graph.normalize %8 {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %10 = graph.matmul %9, %d : (tensor<64x64xf32>, tensor<64x40xf32>) -> tensor<64x40xf32>
  return %1, %2, %4, %7, %10 : tensor<64x64xf16>, tensor<64x40xf16>, tensor<64x40xf16>, tensor<64x40xf16>, tensor<64x40xf32>
}

// -----

// Rows that go from windows to their places in the image, and roll there, are
// still rows: their runs are added up where they are added to the image.
// CHECK-LABEL: @windows
// CHECK:         %[[X:.*]] = graph.add {{.*}} -> tensor<1x8x8x96xf16>
// CHECK:         graph.sum_runs {{.*}} -> tensor<1x8x8x3xf32>
// CHECK:         graph.sum_runs {{.*}} -> tensor<1x8x8x3xf32>
// CHECK-NOT:     graph.normalize %
// CHECK:         graph.normalized_matmul %[[X]]
func.func @windows(%x: tensor<4x16x48xf16>, %r: tensor<1x8x8x96xf16>) -> (tensor<1x8x8x40xf16>, tensor<1x8x8x96xf16>) {
  %a = graph.weight "a" : tensor<48x96xf16>
  %w = graph.weight "w" : tensor<96x40xf16>
  %0 = graph.matmul %x, %a : (tensor<4x16x48xf16>, tensor<48x96xf16>) -> tensor<4x16x96xf16>
  %1 = graph.reshape %0 : (tensor<4x16x96xf16>) -> tensor<2x2x4x4x96xf16>
  %2 = graph.transpose %1 {permutation = array<i64: 0, 2, 1, 3, 4>} : (tensor<2x2x4x4x96xf16>) -> tensor<2x4x2x4x96xf16>
  %3 = graph.reshape %2 : (tensor<2x4x2x4x96xf16>) -> tensor<1x8x8x96xf16>
  %4 = graph.broadcast %3 : (tensor<1x8x8x96xf16>) -> tensor<2x8x8x96xf16>
  %5 = graph.reshape %4 : (tensor<2x8x8x96xf16>) -> tensor<1x16x8x96xf16>
  %6 = graph.slice %5 {starts = affine_map<() -> (0, 5, 0, 0)>, steps = array<i64: 1, 1, 1, 1>} : (tensor<1x16x8x96xf16>) -> tensor<1x8x8x96xf16>
  %7 = graph.add %r, %6 : (tensor<1x8x8x96xf16>, tensor<1x8x8x96xf16>) -> tensor<1x8x8x96xf16>
  %8 = graph.normalize %7 {axes = array<i64: 3>, epsilon = 1.0e-5 : f64} : (tensor<1x8x8x96xf16>) -> tensor<1x8x8x96xf16>
  %9 = graph.matmul %8, %w : (tensor<1x8x8x96xf16>, tensor<96x40xf16>) -> tensor<1x8x8x40xf16>
  return %9, %7 : tensor<1x8x8x40xf16>, tensor<1x8x8x96xf16>
}

// -----

// Of windows that reach past the image some rows have no place there; rows of
// several matrices are no tile's.
// CHECK-LABEL: @apart
// CHECK-COUNT-2: graph.normalize %
// CHECK-NOT:     normalized_matmul
func.func @apart(%x: tensor<4x16x48xf16>, %r: tensor<8x7x96xf16>, %y: tensor<4x16x48xf16>, %z: tensor<4x48x96xf16>) -> (tensor<8x7x40xf16>, tensor<64x40xf16>) {
  %a = graph.weight "a" : tensor<48x96xf16>
  %w = graph.weight "w" : tensor<96x40xf16>
  %0 = graph.matmul %x, %a : (tensor<4x16x48xf16>, tensor<48x96xf16>) -> tensor<4x16x96xf16>
  %1 = graph.reshape %0 : (tensor<4x16x96xf16>) -> tensor<2x2x4x4x96xf16>
  %2 = graph.transpose %1 {permutation = array<i64: 0, 2, 1, 3, 4>} : (tensor<2x2x4x4x96xf16>) -> tensor<2x4x2x4x96xf16>
  %3 = graph.reshape %2 : (tensor<2x4x2x4x96xf16>) -> tensor<8x8x96xf16>
  %4 = graph.slice %3 {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<8x8x96xf16>) -> tensor<8x7x96xf16>
  %5 = graph.add %r, %4 : (tensor<8x7x96xf16>, tensor<8x7x96xf16>) -> tensor<8x7x96xf16>
  %6 = graph.normalize %5 {axes = array<i64: 2>, epsilon = 1.0e-5 : f64} : (tensor<8x7x96xf16>) -> tensor<8x7x96xf16>
  %7 = graph.matmul %6, %w : (tensor<8x7x96xf16>, tensor<96x40xf16>) -> tensor<8x7x40xf16>
  %8 = graph.matmul %y, %z : (tensor<4x16x48xf16>, tensor<4x48x96xf16>) -> tensor<4x16x96xf16>
  %9 = graph.reshape %8 : (tensor<4x16x96xf16>) -> tensor<64x96xf16>
  %10 = graph.normalize %9 {axes = array<i64: 1>, epsilon = 1.0e-5 : f64} : (tensor<64x96xf16>) -> tensor<64x96xf16>
  %11 = graph.matmul %10, %w : (tensor<64x96xf16>, tensor<96x40xf16>) -> tensor<64x40xf16>
  return %7, %11 : tensor<8x7x40xf16>, tensor<64x40xf16>
}
