// Rotary embeddings of heads that are columns of one product are computed of the columns, halves of each head in turn.
// RUN: charonia-opt %s -rotate-columns=least-rows=128 -split-input-file -mlir-print-local-scope | FileCheck %s

// All columns are heads that are rotated: the sign of what is swapped goes to the sines. What reads the vectors finds
// them in their order, which is a view.
// CHECK-LABEL: @all(
// CHECK:         %[[W:.*]] = graph.reshape {{.*}} {graph.stored} : (tensor<64x2x2x2x8xf16>) -> tensor<64x64xf16>
// CHECK:         %[[Y:.*]] = graph.matmul %arg0, %[[W]]
// CHECK:         %[[X:.*]] = graph.reshape %[[Y]] : (tensor<128x64xf16>) -> tensor<128x2x32xf16>
// CHECK:         %[[COS:.*]] = graph.mul %[[X]], %{{.*}} : (tensor<128x2x32xf16>, tensor<128x1x32xf16>)
// CHECK:         %[[SWAP:.*]] = graph.swap_halves %[[Y]] {run = 8 : i64} : (tensor<128x64xf16>) -> tensor<128x64xf16>
// CHECK:         %[[V:.*]] = graph.reshape %[[SWAP]] : (tensor<128x64xf16>) -> tensor<128x2x32xf16>
// CHECK:         %[[SIN:.*]] = graph.mul %[[V]], %{{.*}} : (tensor<128x2x32xf16>, tensor<128x1x32xf16>)
// CHECK:         %[[SUM:.*]] = graph.add %[[COS]], %[[SIN]]
// CHECK:         graph.reshape %[[SUM]] : (tensor<128x2x32xf16>) -> tensor<128x2x1x2x2x8xf16>
// CHECK:         graph.reshape {{.*}} {graph.stored} : {{.*}} -> tensor<128x2x32xf16>
// CHECK-NOT:     graph.concat
// CHECK:         return
func.func @all(%x: tensor<128x64xf16>) -> tensor<128x2x32xf16> {
  %w = graph.weight "w" : tensor<64x64xf16>
  %c = graph.weight "cos" : tensor<128x1x32xf16>
  %s = graph.weight "sin" : tensor<128x1x32xf16>
  %0 = graph.matmul %x, %w : (tensor<128x64xf16>, tensor<64x64xf16>) -> tensor<128x64xf16>
  %1 = graph.reshape %0 : (tensor<128x64xf16>) -> tensor<128x2x32xf16>
  %2 = graph.mul %1, %c : (tensor<128x2x32xf16>, tensor<128x1x32xf16>) -> tensor<128x2x32xf16>
  %3 = graph.slice %1 {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<128x2x32xf16>) -> tensor<128x2x16xf16>
  %4 = graph.slice %1 {starts = affine_map<() -> (0, 0, 16)>, steps = array<i64: 1, 1, 1>} : (tensor<128x2x32xf16>) -> tensor<128x2x16xf16>
  %5 = graph.neg %4 : (tensor<128x2x16xf16>) -> tensor<128x2x16xf16>
  %6 = graph.concat %5, %3 {axis = 2 : i64} : (tensor<128x2x16xf16>, tensor<128x2x16xf16>) -> tensor<128x2x32xf16>
  %7 = graph.mul %6, %s : (tensor<128x2x32xf16>, tensor<128x1x32xf16>) -> tensor<128x2x32xf16>
  %8 = graph.add %2, %7 : (tensor<128x2x32xf16>, tensor<128x2x32xf16>) -> tensor<128x2x32xf16>
  return %8 : tensor<128x2x32xf16>
}

// -----

// Queries and keys of a product that gives values, too: what is computed alike is computed once, of all heads, and
// chosen where it is wanted. Angles may be inputs.
// CHECK-LABEL: @some(
// CHECK:         %[[Y:.*]] = graph.matmul
// CHECK:         %[[Z:.*]] = graph.add %[[Y]], %{{.*}} : (tensor<128x128xf16>, tensor<128xf16>)
// CHECK:         %[[X:.*]] = graph.reshape %[[Z]] : (tensor<128x128xf16>) -> tensor<128x4x32xf16>
// CHECK:         graph.swap_halves %[[Z]]
// CHECK:         %[[OWN:.*]] = graph.add
// CHECK:         %[[WHICH:.*]] = graph.constant dense<{{\[\[true\], \[true\], \[true\], \[false\]\]}}> : tensor<4x1xi1>
// CHECK:         %[[EACH:.*]] = graph.select %[[WHICH]], %[[OWN]], %[[X]]
// CHECK:         %[[V:.*]] = graph.reshape {{.*}} {graph.stored} : {{.*}} -> tensor<128x4x32xf16>
// CHECK-DAG:     graph.slice %[[V]] {starts = affine_map<() -> (0, 0, 0)>
// CHECK-DAG:     graph.slice %[[V]] {starts = affine_map<() -> (0, 2, 0)>
// CHECK-DAG:     graph.reshape %[[V]] : (tensor<128x4x32xf16>) -> tensor<128x128xf16>
// CHECK-NOT:     graph.concat
// CHECK-NOT:     graph.swap_halves
func.func @some(%x: tensor<128x64xf16>, %c: tensor<128x1x32xf16>, %s: tensor<128x1x32xf16>) -> (tensor<128x2x32xf16>, tensor<128x1x32xf16>, tensor<128x32xf16>) {
  %w = graph.weight "w" : tensor<64x128xf16>
  %b = graph.weight "b" : tensor<128xf16>
  %0 = graph.matmul %x, %w : (tensor<128x64xf16>, tensor<64x128xf16>) -> tensor<128x128xf16>
  %1 = graph.add %0, %b : (tensor<128x128xf16>, tensor<128xf16>) -> tensor<128x128xf16>
  %q = graph.slice %1 {starts = affine_map<() -> (0, 0)>, steps = array<i64: 1, 1>} : (tensor<128x128xf16>) -> tensor<128x64xf16>
  %k = graph.slice %1 {starts = affine_map<() -> (0, 64)>, steps = array<i64: 1, 1>} : (tensor<128x128xf16>) -> tensor<128x32xf16>
  %v = graph.slice %1 {starts = affine_map<() -> (0, 96)>, steps = array<i64: 1, 1>} : (tensor<128x128xf16>) -> tensor<128x32xf16>
  %q1 = graph.reshape %q : (tensor<128x64xf16>) -> tensor<128x2x32xf16>
  %q2 = graph.mul %q1, %c : (tensor<128x2x32xf16>, tensor<128x1x32xf16>) -> tensor<128x2x32xf16>
  %q3 = graph.slice %q1 {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<128x2x32xf16>) -> tensor<128x2x16xf16>
  %q4 = graph.slice %q1 {starts = affine_map<() -> (0, 0, 16)>, steps = array<i64: 1, 1, 1>} : (tensor<128x2x32xf16>) -> tensor<128x2x16xf16>
  %q5 = graph.neg %q4 : (tensor<128x2x16xf16>) -> tensor<128x2x16xf16>
  %q6 = graph.concat %q5, %q3 {axis = 2 : i64} : (tensor<128x2x16xf16>, tensor<128x2x16xf16>) -> tensor<128x2x32xf16>
  %q7 = graph.mul %q6, %s : (tensor<128x2x32xf16>, tensor<128x1x32xf16>) -> tensor<128x2x32xf16>
  %q8 = graph.add %q2, %q7 : (tensor<128x2x32xf16>, tensor<128x2x32xf16>) -> tensor<128x2x32xf16>
  %k1 = graph.reshape %k : (tensor<128x32xf16>) -> tensor<128x1x32xf16>
  %k2 = graph.mul %k1, %c : (tensor<128x1x32xf16>, tensor<128x1x32xf16>) -> tensor<128x1x32xf16>
  %k3 = graph.slice %k1 {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<128x1x32xf16>) -> tensor<128x1x16xf16>
  %k4 = graph.slice %k1 {starts = affine_map<() -> (0, 0, 16)>, steps = array<i64: 1, 1, 1>} : (tensor<128x1x32xf16>) -> tensor<128x1x16xf16>
  %k5 = graph.neg %k4 : (tensor<128x1x16xf16>) -> tensor<128x1x16xf16>
  %k6 = graph.concat %k5, %k3 {axis = 2 : i64} : (tensor<128x1x16xf16>, tensor<128x1x16xf16>) -> tensor<128x1x32xf16>
  %k7 = graph.mul %k6, %s : (tensor<128x1x32xf16>, tensor<128x1x32xf16>) -> tensor<128x1x32xf16>
  %k8 = graph.add %k2, %k7 : (tensor<128x1x32xf16>, tensor<128x1x32xf16>) -> tensor<128x1x32xf16>
  return %q8, %k8, %v : tensor<128x2x32xf16>, tensor<128x1x32xf16>, tensor<128x32xf16>
}

// -----

// Left alone are few rows,
// CHECK-LABEL: @rows(
// CHECK-NOT:     graph.swap_halves
// CHECK:         return
func.func @rows(%x: tensor<127x64xf16>) -> (tensor<127x2x32xf16>) {
  %w = graph.weight "w" : tensor<64x64xf16>
  %c = graph.weight "cos" : tensor<127x1x32xf16>
  %s = graph.weight "sin" : tensor<127x1x32xf16>
  %0 = graph.matmul %x, %w : (tensor<127x64xf16>, tensor<64x64xf16>) -> tensor<127x64xf16>
  %1 = graph.reshape %0 : (tensor<127x64xf16>) -> tensor<127x2x32xf16>
  %2 = graph.mul %1, %c : (tensor<127x2x32xf16>, tensor<127x1x32xf16>) -> tensor<127x2x32xf16>
  %3 = graph.slice %1 {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<127x2x32xf16>) -> tensor<127x2x16xf16>
  %4 = graph.slice %1 {starts = affine_map<() -> (0, 0, 16)>, steps = array<i64: 1, 1, 1>} : (tensor<127x2x32xf16>) -> tensor<127x2x16xf16>
  %5 = graph.neg %4 : (tensor<127x2x16xf16>) -> tensor<127x2x16xf16>
  %6 = graph.concat %5, %3 {axis = 2 : i64} : (tensor<127x2x16xf16>, tensor<127x2x16xf16>) -> tensor<127x2x32xf16>
  %7 = graph.mul %6, %s : (tensor<127x2x32xf16>, tensor<127x1x32xf16>) -> tensor<127x2x32xf16>
  %8 = graph.add %2, %7 : (tensor<127x2x32xf16>, tensor<127x2x32xf16>) -> tensor<127x2x32xf16>
  return %8 : tensor<127x2x32xf16>
}

// -----

// heads of which no half is whole runs,
// CHECK-LABEL: @width(
// CHECK-NOT:     graph.swap_halves
// CHECK:         return
func.func @width(%x: tensor<128x64xf16>) -> (tensor<128x2x24xf16>) {
  %w = graph.weight "w" : tensor<64x48xf16>
  %c = graph.weight "cos" : tensor<128x1x24xf16>
  %s = graph.weight "sin" : tensor<128x1x24xf16>
  %0 = graph.matmul %x, %w : (tensor<128x64xf16>, tensor<64x48xf16>) -> tensor<128x48xf16>
  %1 = graph.reshape %0 : (tensor<128x48xf16>) -> tensor<128x2x24xf16>
  %2 = graph.mul %1, %c : (tensor<128x2x24xf16>, tensor<128x1x24xf16>) -> tensor<128x2x24xf16>
  %3 = graph.slice %1 {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<128x2x24xf16>) -> tensor<128x2x12xf16>
  %4 = graph.slice %1 {starts = affine_map<() -> (0, 0, 12)>, steps = array<i64: 1, 1, 1>} : (tensor<128x2x24xf16>) -> tensor<128x2x12xf16>
  %5 = graph.neg %4 : (tensor<128x2x12xf16>) -> tensor<128x2x12xf16>
  %6 = graph.concat %5, %3 {axis = 2 : i64} : (tensor<128x2x12xf16>, tensor<128x2x12xf16>) -> tensor<128x2x24xf16>
  %7 = graph.mul %6, %s : (tensor<128x2x24xf16>, tensor<128x1x24xf16>) -> tensor<128x2x24xf16>
  %8 = graph.add %2, %7 : (tensor<128x2x24xf16>, tensor<128x2x24xf16>) -> tensor<128x2x24xf16>
  return %8 : tensor<128x2x24xf16>
}

// -----

// what is multiplied by no weights,
// CHECK-LABEL: @weights(
// CHECK-NOT:     graph.swap_halves
// CHECK:         return
func.func @weights(%x: tensor<128x64xf16>, %w: tensor<64x64xf16>) -> (tensor<128x2x32xf16>) {
  %c = graph.weight "cos" : tensor<128x1x32xf16>
  %s = graph.weight "sin" : tensor<128x1x32xf16>
  %0 = graph.matmul %x, %w : (tensor<128x64xf16>, tensor<64x64xf16>) -> tensor<128x64xf16>
  %1 = graph.reshape %0 : (tensor<128x64xf16>) -> tensor<128x2x32xf16>
  %2 = graph.mul %1, %c : (tensor<128x2x32xf16>, tensor<128x1x32xf16>) -> tensor<128x2x32xf16>
  %3 = graph.slice %1 {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<128x2x32xf16>) -> tensor<128x2x16xf16>
  %4 = graph.slice %1 {starts = affine_map<() -> (0, 0, 16)>, steps = array<i64: 1, 1, 1>} : (tensor<128x2x32xf16>) -> tensor<128x2x16xf16>
  %5 = graph.neg %4 : (tensor<128x2x16xf16>) -> tensor<128x2x16xf16>
  %6 = graph.concat %5, %3 {axis = 2 : i64} : (tensor<128x2x16xf16>, tensor<128x2x16xf16>) -> tensor<128x2x32xf16>
  %7 = graph.mul %6, %s : (tensor<128x2x32xf16>, tensor<128x1x32xf16>) -> tensor<128x2x32xf16>
  %8 = graph.add %2, %7 : (tensor<128x2x32xf16>, tensor<128x2x32xf16>) -> tensor<128x2x32xf16>
  return %8 : tensor<128x2x32xf16>
}

// -----

// vectors that something else reads as they are,
// CHECK-LABEL: @raw(
// CHECK-NOT:     graph.swap_halves
// CHECK:         return
func.func @raw(%x: tensor<128x64xf16>) -> (tensor<128x2x32xf16>, tensor<128x2x32xf16>) {
  %w = graph.weight "w" : tensor<64x64xf16>
  %c = graph.weight "cos" : tensor<128x1x32xf16>
  %s = graph.weight "sin" : tensor<128x1x32xf16>
  %0 = graph.matmul %x, %w : (tensor<128x64xf16>, tensor<64x64xf16>) -> tensor<128x64xf16>
  %1 = graph.reshape %0 : (tensor<128x64xf16>) -> tensor<128x2x32xf16>
  %2 = graph.mul %1, %c : (tensor<128x2x32xf16>, tensor<128x1x32xf16>) -> tensor<128x2x32xf16>
  %3 = graph.slice %1 {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<128x2x32xf16>) -> tensor<128x2x16xf16>
  %4 = graph.slice %1 {starts = affine_map<() -> (0, 0, 16)>, steps = array<i64: 1, 1, 1>} : (tensor<128x2x32xf16>) -> tensor<128x2x16xf16>
  %5 = graph.neg %4 : (tensor<128x2x16xf16>) -> tensor<128x2x16xf16>
  %6 = graph.concat %5, %3 {axis = 2 : i64} : (tensor<128x2x16xf16>, tensor<128x2x16xf16>) -> tensor<128x2x32xf16>
  %7 = graph.mul %6, %s : (tensor<128x2x32xf16>, tensor<128x1x32xf16>) -> tensor<128x2x32xf16>
  %8 = graph.add %2, %7 : (tensor<128x2x32xf16>, tensor<128x2x32xf16>) -> tensor<128x2x32xf16>
  return %8, %1 : tensor<128x2x32xf16>, tensor<128x2x32xf16>
}

// -----

// angles that differ by head,
// CHECK-LABEL: @heads(
// CHECK-NOT:     graph.swap_halves
// CHECK:         return
func.func @heads(%x: tensor<128x64xf16>) -> (tensor<128x2x32xf16>) {
  %w = graph.weight "w" : tensor<64x64xf16>
  %c = graph.weight "cos" : tensor<128x2x32xf16>
  %s = graph.weight "sin" : tensor<128x1x32xf16>
  %0 = graph.matmul %x, %w : (tensor<128x64xf16>, tensor<64x64xf16>) -> tensor<128x64xf16>
  %1 = graph.reshape %0 : (tensor<128x64xf16>) -> tensor<128x2x32xf16>
  %2 = graph.mul %1, %c : (tensor<128x2x32xf16>, tensor<128x2x32xf16>) -> tensor<128x2x32xf16>
  %3 = graph.slice %1 {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<128x2x32xf16>) -> tensor<128x2x16xf16>
  %4 = graph.slice %1 {starts = affine_map<() -> (0, 0, 16)>, steps = array<i64: 1, 1, 1>} : (tensor<128x2x32xf16>) -> tensor<128x2x16xf16>
  %5 = graph.neg %4 : (tensor<128x2x16xf16>) -> tensor<128x2x16xf16>
  %6 = graph.concat %5, %3 {axis = 2 : i64} : (tensor<128x2x16xf16>, tensor<128x2x16xf16>) -> tensor<128x2x32xf16>
  %7 = graph.mul %6, %s : (tensor<128x2x32xf16>, tensor<128x1x32xf16>) -> tensor<128x2x32xf16>
  %8 = graph.add %2, %7 : (tensor<128x2x32xf16>, tensor<128x2x32xf16>) -> tensor<128x2x32xf16>
  return %8 : tensor<128x2x32xf16>
}

// -----

// halves that stay where they are, which are no rotation,
// CHECK-LABEL: @order(
// CHECK-NOT:     graph.swap_halves
// CHECK:         return
func.func @order(%x: tensor<128x64xf16>) -> (tensor<128x2x32xf16>) {
  %w = graph.weight "w" : tensor<64x64xf16>
  %c = graph.weight "cos" : tensor<128x1x32xf16>
  %s = graph.weight "sin" : tensor<128x1x32xf16>
  %0 = graph.matmul %x, %w : (tensor<128x64xf16>, tensor<64x64xf16>) -> tensor<128x64xf16>
  %1 = graph.reshape %0 : (tensor<128x64xf16>) -> tensor<128x2x32xf16>
  %2 = graph.mul %1, %c : (tensor<128x2x32xf16>, tensor<128x1x32xf16>) -> tensor<128x2x32xf16>
  %3 = graph.slice %1 {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<128x2x32xf16>) -> tensor<128x2x16xf16>
  %4 = graph.slice %1 {starts = affine_map<() -> (0, 0, 16)>, steps = array<i64: 1, 1, 1>} : (tensor<128x2x32xf16>) -> tensor<128x2x16xf16>
  %5 = graph.neg %4 : (tensor<128x2x16xf16>) -> tensor<128x2x16xf16>
  %6 = graph.concat %3, %5 {axis = 2 : i64} : (tensor<128x2x16xf16>, tensor<128x2x16xf16>) -> tensor<128x2x32xf16>
  %7 = graph.mul %6, %s : (tensor<128x2x32xf16>, tensor<128x1x32xf16>) -> tensor<128x2x32xf16>
  %8 = graph.add %2, %7 : (tensor<128x2x32xf16>, tensor<128x2x32xf16>) -> tensor<128x2x32xf16>
  return %8 : tensor<128x2x32xf16>
}

// -----

// and parts that are no halves.
// CHECK-LABEL: @parts(
// CHECK-NOT:     graph.swap_halves
// CHECK:         return
func.func @parts(%x: tensor<128x64xf16>) -> (tensor<128x2x32xf16>) {
  %w = graph.weight "w" : tensor<64x64xf16>
  %c = graph.weight "cos" : tensor<128x1x32xf16>
  %s = graph.weight "sin" : tensor<128x1x32xf16>
  %0 = graph.matmul %x, %w : (tensor<128x64xf16>, tensor<64x64xf16>) -> tensor<128x64xf16>
  %1 = graph.reshape %0 : (tensor<128x64xf16>) -> tensor<128x2x32xf16>
  %2 = graph.mul %1, %c : (tensor<128x2x32xf16>, tensor<128x1x32xf16>) -> tensor<128x2x32xf16>
  %3 = graph.slice %1 {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>} : (tensor<128x2x32xf16>) -> tensor<128x2x8xf16>
  %4 = graph.slice %1 {starts = affine_map<() -> (0, 0, 8)>, steps = array<i64: 1, 1, 1>} : (tensor<128x2x32xf16>) -> tensor<128x2x24xf16>
  %5 = graph.neg %4 : (tensor<128x2x24xf16>) -> tensor<128x2x24xf16>
  %6 = graph.concat %5, %3 {axis = 2 : i64} : (tensor<128x2x24xf16>, tensor<128x2x8xf16>) -> tensor<128x2x32xf16>
  %7 = graph.mul %6, %s : (tensor<128x2x32xf16>, tensor<128x1x32xf16>) -> tensor<128x2x32xf16>
  %8 = graph.add %2, %7 : (tensor<128x2x32xf16>, tensor<128x2x32xf16>) -> tensor<128x2x32xf16>
  return %8 : tensor<128x2x32xf16>
}
