// RUN: charonia-opt %s -emit-tiles -mlir-print-local-scope | FileCheck %s
// Columns that are widened in the product serve up to 128 rows, 128 terms at a time; of bytes that lie as floats
// the rows of a tile are those that registers hold.
// CHECK-LABEL: func.func @widened(
// CHECK:         tile.dot {{.*}} : tensor<128x128xf32>, tensor<128x32xf32> -> tensor<128x32xf32>
// CHECK-LABEL: func.func @dense(
// CHECK:         tile.dot {{.*}} : tensor<1{{[0-9]}}x8xf32>, tensor<8x32xf32>
// Rows that are computed themselves are not put aside for so many.
// CHECK-LABEL: func.func @computed(
// CHECK:         tile.dot {{.*}} : tensor<1{{[0-9]}}x8xf32>, tensor<8x32xf32>
module {
  func.func @main(%x: tensor<256x512xf32>, %q: tensor<512x1024xi8>, %w: tensor<512x1024xf32>) -> (tensor<256x1024xf32>, tensor<256x1024xf32>, tensor<256x1024xf32>) {
    %0 = graph.kernel "widened" (%x, %q) : (tensor<256x512xf32>, tensor<512x1024xi8>) -> tensor<256x1024xf32> {
    ^bb0(%a: tensor<256x512xf32>, %b: tensor<512x1024xi8>):
      %1 = graph.cast %b {to = f32} : (tensor<512x1024xi8>) -> tensor<512x1024xf32>
      %2 = graph.matmul %a, %1 : (tensor<256x512xf32>, tensor<512x1024xf32>) -> tensor<256x1024xf32>
      graph.yield %2 : tensor<256x1024xf32>
    }
    %1 = graph.kernel "dense" (%x, %w) : (tensor<256x512xf32>, tensor<512x1024xf32>) -> tensor<256x1024xf32> {
    ^bb0(%a: tensor<256x512xf32>, %b: tensor<512x1024xf32>):
      %2 = graph.matmul %a, %b : (tensor<256x512xf32>, tensor<512x1024xf32>) -> tensor<256x1024xf32>
      graph.yield %2 : tensor<256x1024xf32>
    }
    %3 = graph.kernel "computed" (%x, %q) : (tensor<256x512xf32>, tensor<512x1024xi8>) -> tensor<256x1024xf32> {
    ^bb0(%a: tensor<256x512xf32>, %b: tensor<512x1024xi8>):
      %4 = graph.abs %a : (tensor<256x512xf32>) -> tensor<256x512xf32>
      %5 = graph.cast %b {to = f32} : (tensor<512x1024xi8>) -> tensor<512x1024xf32>
      %6 = graph.matmul %4, %5 : (tensor<256x512xf32>, tensor<512x1024xf32>) -> tensor<256x1024xf32>
      graph.yield %6 : tensor<256x1024xf32>
    }
    return %0, %1, %3 : tensor<256x1024xf32>, tensor<256x1024xf32>, tensor<256x1024xf32>
  }
}
