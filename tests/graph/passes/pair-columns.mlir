// Two products of the same rows whose results meet become one, and so do the halves of one product's columns.
// RUN: charonia-opt %s -pair-columns=least-rows=128 -split-input-file | FileCheck %s

// Runs of eight columns of both in turn: the weights lie so when the model is built.
// CHECK-LABEL: @two(
// CHECK-DAG:     %[[G:.*]] = graph.weight "g"
// CHECK-DAG:     %[[U:.*]] = graph.weight "u"
// CHECK:         %[[BOTH:.*]] = graph.concat %[[G]], %[[U]] {axis = 1 : i64} : (tensor<64x24xf16>, tensor<64x24xf16>) -> tensor<64x48xf16>
// CHECK:         %[[CUT:.*]] = graph.reshape %[[BOTH]] : (tensor<64x48xf16>) -> tensor<64x1x2x3x8xf16>
// CHECK:         %[[TURN:.*]] = graph.transpose %[[CUT]] {permutation = array<i64: 0, 1, 3, 2, 4>}
// CHECK:         %[[W:.*]] = graph.reshape %[[TURN]] {graph.stored} : (tensor<64x1x3x2x8xf16>) -> tensor<64x48xf16>
// CHECK:         %[[Y:.*]] = graph.matmul %arg0, %[[W]] : {{.*}} -> tensor<128x48xf16>
// CHECK-DAG:     %[[A:.*]] = graph.cell_part %[[Y]] {part = 0 : i64, parts = 2 : i64, run = 8 : i64} : (tensor<128x48xf16>) -> tensor<128x24xf16>
// CHECK-DAG:     %[[B:.*]] = graph.cell_part %[[Y]] {part = 1 : i64, parts = 2 : i64, run = 8 : i64} : (tensor<128x48xf16>) -> tensor<128x24xf16>
// CHECK-NOT:     graph.matmul
// CHECK:         %[[S:.*]] = graph.sigmoid %[[A]]
// CHECK:         graph.mul %[[S]], %[[B]]
func.func @two(%x: tensor<128x64xf16>) -> tensor<128x24xf16> {
  %g = graph.weight "g" : tensor<64x24xf16>
  %u = graph.weight "u" : tensor<64x24xf16>
  %0 = graph.matmul %x, %g : (tensor<128x64xf16>, tensor<64x24xf16>) -> tensor<128x24xf16>
  %1 = graph.matmul %x, %u : (tensor<128x64xf16>, tensor<64x24xf16>) -> tensor<128x24xf16>
  %2 = graph.sigmoid %0 : (tensor<128x24xf16>) -> tensor<128x24xf16>
  %3 = graph.mul %2, %1 : (tensor<128x24xf16>, tensor<128x24xf16>) -> tensor<128x24xf16>
  return %3 : tensor<128x24xf16>
}

// -----

// The second product stands behind readers of the first, and so do its weights: they move in front.
// CHECK-LABEL: @behind(
// CHECK:         graph.weight "u"
// CHECK:         graph.neg
// CHECK:         %[[Y:.*]] = graph.matmul
// CHECK:         graph.cell_part %[[Y]]
// CHECK:         graph.cell_part %[[Y]]
// CHECK:         graph.sigmoid
// CHECK-NOT:     graph.matmul
// CHECK:         return
func.func @behind(%x: tensor<128x64xf16>) -> tensor<128x24xf16> {
  %g = graph.weight "g" : tensor<64x24xf16>
  %0 = graph.matmul %x, %g : (tensor<128x64xf16>, tensor<64x24xf16>) -> tensor<128x24xf16>
  %1 = graph.sigmoid %0 : (tensor<128x24xf16>) -> tensor<128x24xf16>
  %u = graph.weight "u" : tensor<64x24xf16>
  %n = graph.neg %u : (tensor<64x24xf16>) -> tensor<64x24xf16>
  %2 = graph.matmul %x, %n : (tensor<128x64xf16>, tensor<64x24xf16>) -> tensor<128x24xf16>
  %3 = graph.mul %1, %2 : (tensor<128x24xf16>, tensor<128x24xf16>) -> tensor<128x24xf16>
  return %3 : tensor<128x24xf16>
}

// -----

// Of halves what is added to each column lies in the same order. The second half may be the gate.
// CHECK-LABEL: @halves(
// CHECK:         %[[W:.*]] = graph.reshape {{.*}} {graph.stored} : {{.*}} -> tensor<64x48xf16>
// CHECK:         %[[Y:.*]] = graph.matmul %arg0, %[[W]]
// CHECK:         graph.transpose {{.*}} : (tensor<1x2x3x8xf16>) -> tensor<1x3x2x8xf16>
// CHECK:         %[[C:.*]] = graph.reshape {{.*}} {graph.stored} : {{.*}} -> tensor<48xf16>
// CHECK:         %[[Z:.*]] = graph.add %[[Y]], %[[C]]
// CHECK-DAG:     %[[A:.*]] = graph.cell_part %[[Z]] {part = 0
// CHECK-DAG:     %[[B:.*]] = graph.cell_part %[[Z]] {part = 1
// CHECK-NOT:     graph.slice
// CHECK:         %[[S:.*]] = graph.sigmoid %[[B]]
// CHECK:         graph.mul %[[A]], %[[S]]
func.func @halves(%x: tensor<128x64xf16>) -> tensor<128x24xf16> {
  %w = graph.weight "w" : tensor<64x48xf16>
  %c = graph.weight "c" : tensor<48xf16>
  %0 = graph.matmul %x, %w : (tensor<128x64xf16>, tensor<64x48xf16>) -> tensor<128x48xf16>
  %1 = graph.add %0, %c : (tensor<128x48xf16>, tensor<48xf16>) -> tensor<128x48xf16>
  %2 = graph.slice %1 {starts = affine_map<() -> (0, 0)>, steps = array<i64: 1, 1>} : (tensor<128x48xf16>) -> tensor<128x24xf16>
  %3 = graph.slice %1 {starts = affine_map<() -> (0, 24)>, steps = array<i64: 1, 1>} : (tensor<128x48xf16>) -> tensor<128x24xf16>
  %4 = graph.sigmoid %3 : (tensor<128x24xf16>) -> tensor<128x24xf16>
  %5 = graph.mul %2, %4 : (tensor<128x24xf16>, tensor<128x24xf16>) -> tensor<128x24xf16>
  return %5 : tensor<128x24xf16>
}

// -----

// Filters of a convolution are the columns of its last dimension.
// CHECK-LABEL: @filters(
// CHECK:         graph.concat {{.*}} {axis = 0 : i64} : {{.*}} -> tensor<48x3x3x32xf16>
// CHECK:         graph.transpose {{.*}} -> tensor<1x3x2x8x3x3x32xf16>
// CHECK:         %[[Y:.*]] = graph.conv {{.*}} -> tensor<1x12x12x48xf16>
// CHECK-COUNT-2: graph.cell_part %[[Y]]
// CHECK-NOT:     graph.conv
func.func @filters(%x: tensor<1x12x12x32xf16>) -> tensor<1x12x12x24xf16> {
  %g = graph.weight "g" : tensor<24x3x3x32xf16>
  %u = graph.weight "u" : tensor<24x3x3x32xf16>
  %0 = graph.conv %x, %g {channels_last, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x12x12x32xf16>, tensor<24x3x3x32xf16>) -> tensor<1x12x12x24xf16>
  %1 = graph.conv %x, %u {channels_last, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<1x12x12x32xf16>, tensor<24x3x3x32xf16>) -> tensor<1x12x12x24xf16>
  %2 = graph.tanh %0 : (tensor<1x12x12x24xf16>) -> tensor<1x12x12x24xf16>
  %3 = graph.mul %2, %1 : (tensor<1x12x12x24xf16>, tensor<1x12x12x24xf16>) -> tensor<1x12x12x24xf16>
  return %3 : tensor<1x12x12x24xf16>
}

// -----

// Of three that meet two become one; what goes another way stays as it is.
// CHECK-LABEL: @three(
// CHECK-DAG:     %[[Y:.*]] = graph.matmul {{.*}} -> tensor<128x48xf16>
// CHECK-DAG:     graph.matmul {{.*}} -> tensor<128x24xf16>
// CHECK-DAG:     graph.matmul {{.*}} -> tensor<128x24xf16>
// CHECK-NOT:     graph.matmul
func.func @three(%x: tensor<128x64xf16>) -> (tensor<128x24xf16>, tensor<128x24xf16>) {
  %a = graph.weight "a" : tensor<64x24xf16>
  %b = graph.weight "b" : tensor<64x24xf16>
  %c = graph.weight "c" : tensor<64x24xf16>
  %d = graph.weight "d" : tensor<64x24xf16>
  %0 = graph.matmul %x, %a : (tensor<128x64xf16>, tensor<64x24xf16>) -> tensor<128x24xf16>
  %1 = graph.matmul %x, %b : (tensor<128x64xf16>, tensor<64x24xf16>) -> tensor<128x24xf16>
  %2 = graph.matmul %x, %c : (tensor<128x64xf16>, tensor<64x24xf16>) -> tensor<128x24xf16>
  %3 = graph.matmul %x, %d : (tensor<128x64xf16>, tensor<64x24xf16>) -> tensor<128x24xf16>
  %4 = graph.mul %0, %1 : (tensor<128x24xf16>, tensor<128x24xf16>) -> tensor<128x24xf16>
  %5 = graph.mul %4, %2 : (tensor<128x24xf16>, tensor<128x24xf16>) -> tensor<128x24xf16>
  return %5, %3 : tensor<128x24xf16>, tensor<128x24xf16>
}

// -----

// Left alone are columns that are no whole runs,
// CHECK-LABEL: @runs(
// CHECK-NOT:     graph.cell_part
// CHECK:         return
func.func @runs(%x: tensor<128x64xf16>) -> (tensor<128x20xf16>, tensor<128x12xf16>) {
  %g = graph.weight "g" : tensor<64x20xf16>
  %u = graph.weight "u" : tensor<64x20xf16>
  %w = graph.weight "w" : tensor<64x24xf16>
  %0 = graph.matmul %x, %g : (tensor<128x64xf16>, tensor<64x20xf16>) -> tensor<128x20xf16>
  %1 = graph.matmul %x, %u : (tensor<128x64xf16>, tensor<64x20xf16>) -> tensor<128x20xf16>
  %2 = graph.mul %0, %1 : (tensor<128x20xf16>, tensor<128x20xf16>) -> tensor<128x20xf16>
  %3 = graph.matmul %x, %w : (tensor<128x64xf16>, tensor<64x24xf16>) -> tensor<128x24xf16>
  %4 = graph.slice %3 {starts = affine_map<() -> (0, 0)>, steps = array<i64: 1, 1>} : (tensor<128x24xf16>) -> tensor<128x12xf16>
  %5 = graph.slice %3 {starts = affine_map<() -> (0, 12)>, steps = array<i64: 1, 1>} : (tensor<128x24xf16>) -> tensor<128x12xf16>
  %6 = graph.mul %4, %5 : (tensor<128x12xf16>, tensor<128x12xf16>) -> tensor<128x12xf16>
  return %2, %6 : tensor<128x20xf16>, tensor<128x12xf16>
}

// -----

// few rows,
// CHECK-LABEL: @rows(
// CHECK-NOT:     graph.cell_part
// CHECK:         return
func.func @rows(%x: tensor<127x64xf16>) -> tensor<127x24xf16> {
  %g = graph.weight "g" : tensor<64x24xf16>
  %u = graph.weight "u" : tensor<64x24xf16>
  %0 = graph.matmul %x, %g : (tensor<127x64xf16>, tensor<64x24xf16>) -> tensor<127x24xf16>
  %1 = graph.matmul %x, %u : (tensor<127x64xf16>, tensor<64x24xf16>) -> tensor<127x24xf16>
  %2 = graph.mul %0, %1 : (tensor<127x24xf16>, tensor<127x24xf16>) -> tensor<127x24xf16>
  return %2 : tensor<127x24xf16>
}

// -----

// what is multiplied by no weights, other rows, and columns of other weights that are wider,
// CHECK-LABEL: @weights(
// CHECK-NOT:     graph.cell_part
// CHECK:         return
func.func @weights(%x: tensor<128x64xf16>, %y: tensor<128x64xf16>, %v: tensor<64x24xf16>) -> (tensor<128x24xf16>, tensor<128x24xf16>) {
  %g = graph.weight "g" : tensor<64x24xf16>
  %u = graph.weight "u" : tensor<64x24xf16>
  %0 = graph.matmul %x, %g : (tensor<128x64xf16>, tensor<64x24xf16>) -> tensor<128x24xf16>
  %1 = graph.matmul %x, %v : (tensor<128x64xf16>, tensor<64x24xf16>) -> tensor<128x24xf16>
  %2 = graph.mul %0, %1 : (tensor<128x24xf16>, tensor<128x24xf16>) -> tensor<128x24xf16>
  %3 = graph.matmul %y, %u : (tensor<128x64xf16>, tensor<64x24xf16>) -> tensor<128x24xf16>
  %4 = graph.mul %2, %3 : (tensor<128x24xf16>, tensor<128x24xf16>) -> tensor<128x24xf16>
  return %4, %2 : tensor<128x24xf16>, tensor<128x24xf16>
}

// -----

// results that something reads otherwise than element by element, or that are results,
// CHECK-LABEL: @read(
// CHECK-NOT:     graph.cell_part
// CHECK:         return
func.func @read(%x: tensor<128x64xf16>, %y: tensor<128x64xf16>) -> (tensor<128x24xf16>, tensor<128xf16>, tensor<128x24xf16>, tensor<128x24xf16>) {
  %g = graph.weight "g" : tensor<64x24xf16>
  %u = graph.weight "u" : tensor<64x24xf16>
  %0 = graph.matmul %x, %g : (tensor<128x64xf16>, tensor<64x24xf16>) -> tensor<128x24xf16>
  %1 = graph.matmul %x, %u : (tensor<128x64xf16>, tensor<64x24xf16>) -> tensor<128x24xf16>
  %2 = graph.mul %0, %1 : (tensor<128x24xf16>, tensor<128x24xf16>) -> tensor<128x24xf16>
  %3 = graph.reduce sum %1 {axes = array<i64: 1>} : (tensor<128x24xf16>) -> tensor<128xf16>
  %4 = graph.matmul %y, %g : (tensor<128x64xf16>, tensor<64x24xf16>) -> tensor<128x24xf16>
  %5 = graph.matmul %y, %u : (tensor<128x64xf16>, tensor<64x24xf16>) -> tensor<128x24xf16>
  %6 = graph.mul %4, %5 : (tensor<128x24xf16>, tensor<128x24xf16>) -> tensor<128x24xf16>
  return %2, %3, %6, %4 : tensor<128x24xf16>, tensor<128xf16>, tensor<128x24xf16>, tensor<128x24xf16>
}

// -----

// halves beside which something reads the columns, slices that are no halves, and halves that never meet.
// CHECK-LABEL: @slices(
// CHECK-NOT:     graph.cell_part
// CHECK:         return
func.func @slices(%x: tensor<128x64xf16>) -> (tensor<128x24xf16>, tensor<128x48xf16>, tensor<128x24xf16>, tensor<128x24xf16>, tensor<128x24xf16>) {
  %w = graph.weight "w" : tensor<64x48xf16>
  %v = graph.weight "v" : tensor<64x48xf16>
  %t = graph.weight "t" : tensor<64x48xf16>
  %0 = graph.matmul %x, %w : (tensor<128x64xf16>, tensor<64x48xf16>) -> tensor<128x48xf16>
  %1 = graph.slice %0 {starts = affine_map<() -> (0, 0)>, steps = array<i64: 1, 1>} : (tensor<128x48xf16>) -> tensor<128x24xf16>
  %2 = graph.slice %0 {starts = affine_map<() -> (0, 24)>, steps = array<i64: 1, 1>} : (tensor<128x48xf16>) -> tensor<128x24xf16>
  %3 = graph.mul %1, %2 : (tensor<128x24xf16>, tensor<128x24xf16>) -> tensor<128x24xf16>
  %4 = graph.abs %0 : (tensor<128x48xf16>) -> tensor<128x48xf16>
  %5 = graph.matmul %x, %v : (tensor<128x64xf16>, tensor<64x48xf16>) -> tensor<128x48xf16>
  %6 = graph.slice %5 {starts = affine_map<() -> (0, 0)>, steps = array<i64: 1, 2>} : (tensor<128x48xf16>) -> tensor<128x24xf16>
  %7 = graph.slice %5 {starts = affine_map<() -> (0, 1)>, steps = array<i64: 1, 2>} : (tensor<128x48xf16>) -> tensor<128x24xf16>
  %8 = graph.mul %6, %7 : (tensor<128x24xf16>, tensor<128x24xf16>) -> tensor<128x24xf16>
  %9 = graph.matmul %x, %t : (tensor<128x64xf16>, tensor<64x48xf16>) -> tensor<128x48xf16>
  %10 = graph.slice %9 {starts = affine_map<() -> (0, 0)>, steps = array<i64: 1, 1>} : (tensor<128x48xf16>) -> tensor<128x24xf16>
  %11 = graph.slice %9 {starts = affine_map<() -> (0, 24)>, steps = array<i64: 1, 1>} : (tensor<128x48xf16>) -> tensor<128x24xf16>
  %12 = graph.abs %10 : (tensor<128x24xf16>) -> tensor<128x24xf16>
  %13 = graph.abs %11 : (tensor<128x24xf16>) -> tensor<128x24xf16>
  return %3, %4, %8, %12, %13 : tensor<128x24xf16>, tensor<128x48xf16>, tensor<128x24xf16>, tensor<128x24xf16>, tensor<128x24xf16>
}
