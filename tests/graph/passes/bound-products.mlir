// Products of bytes, any two of which add up to 16 bits, as quantizers for CPUs without VNNI make them.
// RUN: charonia-opt %s --bound-products --split-input-file | FileCheck %s

// 255 x 64 + 255 x 64 is 32640.
// CHECK-LABEL: func.func @product(
// CHECK: graph.matmul {{.*}}graph.pairs_fit
// CHECK: graph.matmul %{{[a-z0-9]*}}, %{{[a-z0-9]*}} : (tensor<3x24xui8>
func.func @product(%x: tensor<3x24xui8>) -> (tensor<3x40xi32>, tensor<3x40xi32>) {
  %a = graph.constant dense<-64> : tensor<24x40xi8>
  %b = graph.constant dense<65> : tensor<24x40xi8>
  %y = graph.matmul %x, %a : (tensor<3x24xui8>, tensor<24x40xi8>) -> tensor<3x40xi32>
  %z = graph.matmul %x, %b : (tensor<3x24xui8>, tensor<24x40xi8>) -> tensor<3x40xi32>
  return %y, %z : tensor<3x40xi32>, tensor<3x40xi32>
}

// -----

// Beside bytes with a sign those without may have 127; a weight seen through views. Nothing is known of data.
// CHECK-LABEL: func.func @other(
// CHECK: graph.matmul {{.*}}graph.pairs_fit
// CHECK: graph.matmul %{{[a-z0-9]*}}, %{{[a-z0-9]*}} : (tensor<3x24xi8>
// CHECK: graph.matmul %{{[a-z0-9]*}}, %{{[a-z0-9]*}} : (tensor<3x24xi8>
func.func @other(%x: tensor<3x24xi8>, %w: tensor<24x40xui8>) -> (tensor<3x40xi32>, tensor<3x40xi32>, tensor<3x40xi32>) {
  %a = graph.constant dense<127> : tensor<40x24xui8>
  %b = graph.constant dense<128> : tensor<24x40xui8>
  %t = graph.transpose %a {permutation = array<i64: 1, 0>} : (tensor<40x24xui8>) -> tensor<24x40xui8>
  %y = graph.matmul %x, %t : (tensor<3x24xi8>, tensor<24x40xui8>) -> tensor<3x40xi32>
  %z = graph.matmul %x, %b : (tensor<3x24xi8>, tensor<24x40xui8>) -> tensor<3x40xi32>
  %u = graph.matmul %x, %w : (tensor<3x24xi8>, tensor<24x40xui8>) -> tensor<3x40xi32>
  return %y, %z, %u : tensor<3x40xi32>, tensor<3x40xi32>, tensor<3x40xi32>
}
