// On a GPU what reads cells of a product's columns is computed in its kernel, whose tiles have whole ones. A CPU walks
// rows: the passes that make such operators run for GPUs alone.
// RUN: charonia-opt %s --form-kernels=instances=132 --verify-kernels --split-input-file | FileCheck %s
// RUN: charonia-opt %s --form-kernels --verify-kernels --split-input-file | FileCheck %s --check-prefix=CPU

// A gate and what passes it, what is added behind, and its cast.
// CHECK-LABEL: func.func @gate
// CHECK:         graph.kernel "matmul_add_cell_part_cell_part_sigmoid_mul_add_cast"({{.*}}) -> tensor<131x24xf32>
// CHECK-NOT:     graph.kernel
// CPU-LABEL:   func.func @gate
// CPU:           graph.kernel "matmul_add"
// CPU:           graph.kernel "cell_part
func.func @gate(%x: tensor<131x64xf16>, %w: tensor<64x48xf16>, %b: tensor<48xf16>, %r: tensor<131x24xf16>) -> tensor<131x24xf32> {
  %0 = graph.matmul %x, %w : (tensor<131x64xf16>, tensor<64x48xf16>) -> tensor<131x48xf16>
  %1 = graph.add %0, %b : (tensor<131x48xf16>, tensor<48xf16>) -> tensor<131x48xf16>
  %2 = graph.cell_part %1 {run = 8 : i64, parts = 2 : i64, part = 0 : i64} : (tensor<131x48xf16>) -> tensor<131x24xf16>
  %3 = graph.cell_part %1 {run = 8 : i64, parts = 2 : i64, part = 1 : i64} : (tensor<131x48xf16>) -> tensor<131x24xf16>
  %4 = graph.sigmoid %2 : (tensor<131x24xf16>) -> tensor<131x24xf16>
  %5 = graph.mul %4, %3 : (tensor<131x24xf16>, tensor<131x24xf16>) -> tensor<131x24xf16>
  %6 = graph.add %5, %r : (tensor<131x24xf16>, tensor<131x24xf16>) -> tensor<131x24xf16>
  %7 = graph.cast %6 {to = f32} : (tensor<131x24xf16>) -> tensor<131x24xf32>
  return %7 : tensor<131x24xf32>
}

// -----

// Rotated vectors, stored in their order through a view.
// CHECK-LABEL: func.func @rotated
// CHECK:         graph.kernel "matmul_mul_swap_halves_mul_add"({{.*}}) -> tensor<131x2x32xf16>
// CHECK-NOT:     graph.kernel
// CPU-LABEL:   func.func @rotated
// CPU:           graph.kernel "matmul_mul"
// CPU:           graph.kernel "swap_halves_mul_add"
func.func @rotated(%x: tensor<131x64xf16>, %w: tensor<64x64xf16>, %c: tensor<131x1x32xf16>, %s: tensor<131x1x32xf16>) -> tensor<131x2x32xf16> {
  %0 = graph.matmul %x, %w : (tensor<131x64xf16>, tensor<64x64xf16>) -> tensor<131x64xf16>
  %1 = graph.reshape %0 : (tensor<131x64xf16>) -> tensor<131x2x32xf16>
  %2 = graph.mul %1, %c : (tensor<131x2x32xf16>, tensor<131x1x32xf16>) -> tensor<131x2x32xf16>
  %3 = graph.swap_halves %0 {run = 8 : i64} : (tensor<131x64xf16>) -> tensor<131x64xf16>
  %4 = graph.reshape %3 : (tensor<131x64xf16>) -> tensor<131x2x32xf16>
  %5 = graph.mul %4, %s : (tensor<131x2x32xf16>, tensor<131x1x32xf16>) -> tensor<131x2x32xf16>
  %6 = graph.add %2, %5 : (tensor<131x2x32xf16>, tensor<131x2x32xf16>) -> tensor<131x2x32xf16>
  %7 = graph.reshape %6 : (tensor<131x2x32xf16>) -> tensor<131x2x2x2x8xf16>
  %8 = graph.transpose %7 {permutation = array<i64: 0, 1, 3, 2, 4>} : (tensor<131x2x2x2x8xf16>) -> tensor<131x2x2x2x8xf16>
  %9 = graph.reshape %8 {graph.stored} : (tensor<131x2x2x2x8xf16>) -> tensor<131x2x32xf16>
  return %9 : tensor<131x2x32xf16>
}

// -----

// Cells of another size are not those of the tile, and what reduces parts of them has a kernel of its own.
// CHECK-LABEL: func.func @apart
// CHECK:         graph.kernel "matmul_cell_part_cell_part_mul"(
// CHECK:         graph.kernel "{{.*}}cell_part{{.*}}"
// CHECK:         graph.kernel "reduce
func.func @apart(%x: tensor<131x64xf16>, %w: tensor<64x64xf16>) -> (tensor<131x16xf16>, tensor<131xf16>) {
  %0 = graph.matmul %x, %w : (tensor<131x64xf16>, tensor<64x64xf16>) -> tensor<131x64xf16>
  %1 = graph.cell_part %0 {run = 8 : i64, parts = 2 : i64, part = 0 : i64} : (tensor<131x64xf16>) -> tensor<131x32xf16>
  %2 = graph.cell_part %0 {run = 8 : i64, parts = 2 : i64, part = 1 : i64} : (tensor<131x64xf16>) -> tensor<131x32xf16>
  %3 = graph.mul %1, %2 : (tensor<131x32xf16>, tensor<131x32xf16>) -> tensor<131x32xf16>
  %4 = graph.cell_part %3 {run = 8 : i64, parts = 2 : i64, part = 0 : i64} : (tensor<131x32xf16>) -> tensor<131x16xf16>
  %5 = graph.reduce sum %3 {axes = array<i64: 1>} : (tensor<131x32xf16>) -> tensor<131xf16>
  return %4, %5 : tensor<131x16xf16>, tensor<131xf16>
}
