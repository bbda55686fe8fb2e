// Bytes that a product of one row widens have the terms of a column side by side; of more rows they stay as
// they lie, and so do those whose terms are side by side already. Columns begin where a load may.
// RUN: charonia-opt %s --pack-weights=panel=1 --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @main(
// CHECK:         %[[TURNED:.*]] = graph.weight "{{.*}}" : tensor<40x32x1xi8>
// CHECK:         graph.slice %[[TURNED]]
// CHECK:         graph.matmul
// CHECK-LABEL: func.func @prepare
// CHECK:         graph.pad {{.*}} -> tensor<40x32x1xi8>
func.func @main(%x: tensor<1x24xf16>) -> tensor<1x40xf16> {
  %w = graph.weight "w" : tensor<24x40xi8>
  %s = graph.weight "s" : tensor<40xf16>
  %a = graph.cast %w {to = f16} : (tensor<24x40xi8>) -> tensor<24x40xf16>
  %b = graph.mul %a, %s : (tensor<24x40xf16>, tensor<40xf16>) -> tensor<24x40xf16>
  %y = graph.matmul %x, %b : (tensor<1x24xf16>, tensor<24x40xf16>) -> tensor<1x40xf16>
  return %y : tensor<1x40xf16>
}

// -----

// CHECK-LABEL: func.func @main(
// CHECK:         graph.weight "w" : tensor<24x40xi8>
// CHECK-NOT:     @prepare
func.func @main(%x: tensor<2x24xf16>) -> tensor<2x40xf16> {
  %w = graph.weight "w" : tensor<24x40xi8>
  %s = graph.weight "s" : tensor<40xf16>
  %a = graph.cast %w {to = f16} : (tensor<24x40xi8>) -> tensor<24x40xf16>
  %b = graph.mul %a, %s : (tensor<24x40xf16>, tensor<40xf16>) -> tensor<24x40xf16>
  %y = graph.matmul %x, %b : (tensor<2x24xf16>, tensor<24x40xf16>) -> tensor<2x40xf16>
  return %y : tensor<2x40xf16>
}

// -----

// Square, so that shapes do not tell: [columns, terms].
// CHECK-LABEL: func.func @main(
// CHECK:         graph.weight "w" : tensor<32x32xi8>
// CHECK-NOT:     @prepare
func.func @main(%x: tensor<1x32xf16>) -> tensor<1x32xf16> {
  %w = graph.weight "w" : tensor<32x32xi8>
  %a = graph.cast %w {to = f16} : (tensor<32x32xi8>) -> tensor<32x32xf16>
  %t = graph.transpose %a {permutation = array<i64: 1, 0>} : (tensor<32x32xf16>) -> tensor<32x32xf16>
  %y = graph.matmul %x, %t : (tensor<1x32xf16>, tensor<32x32xf16>) -> tensor<1x32xf16>
  return %y : tensor<1x32xf16>
}
