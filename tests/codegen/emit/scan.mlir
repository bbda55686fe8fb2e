// RUN: charonia-opt %s -emit-tiles -cse -canonicalize | FileCheck %s --check-prefixes=CPU,ANY
// RUN: charonia-opt %s -emit-tiles=target=sm_90 -cse -canonicalize | FileCheck %s --check-prefixes=GPU,ANY
// A row is read once, in blocks: what a block ends with, the next begins with.
// ANY-LABEL: func.func @row
// CPU:     scf.for {{.*}} iter_args(%[[CARRY:.+]] = %{{.+}}) -> (tensor<f32>)
// CPU:       %[[X:.+]] = tile.load
// CPU-NEXT:  %[[Y:.+]], %[[TOTAL:.+]] = tile.scan %[[X]], %[[CARRY]] {axis = 0 : i64} : tensor<64xf32>, tensor<f32>
// CPU:       tile.store %[[Y]]
// CPU:       scf.yield %[[TOTAL]] : tensor<f32>
// GPU:     scf.for {{.*}} iter_args(%[[CARRY:.+]] = %{{.+}}) -> (tensor<f32>)
// GPU:       tile.scan {{.*}} : tensor<8x128xf32>, tensor<8xf32>
// GPU:       tile.store
// ANY-NOT: scf.for
// Columns are added up an element at a time.
// ANY-LABEL: func.func @columns
// CPU:     scf.for {{.*}} -> (tensor<64xf32>)
// CPU-NOT:   tile.scan
// GPU:       tile.scan {{.*}} {axis = 1 : i64} : tensor<128x8xf32>, tensor<128xf32>
// A part begins with what the totals in front of it come to.
// ANY-LABEL: func.func @parts
// ANY:     %[[START:.+]] = tile.reduce
// ANY:     scf.for {{.*}} iter_args({{.+}} = %[[START]]) -> (tensor<f32>)
// Products of floats are combined one by one: a GPU's thread has all that is taken of a row.
// ANY-LABEL: func.func @products
// GPU-SAME:  tile.warps = 1 : i64
// GPU:     scf.for
// GPU:       tile.load {{.*}} -> tensor<128xf32>
// GPU:       tile.scan {{.*}} {axis = 0 : i64, tile.one_by_one} : tensor<128xf32>, tensor<f32>
module {
  func.func @main(%x: tensor<16000xf32>, %z: tensor<3x500x128xf32>, %t: tensor<64x64xf32>, %p: tensor<64x2000xf32>, %w: tensor<150x1000xf32>)
      -> (tensor<16000xf32>, tensor<3x500x128xf32>, tensor<64x2000xf32>, tensor<150x1000xf32>) {
    %0 = graph.kernel "row" (%x) : (tensor<16000xf32>) -> tensor<16000xf32> {
    ^bb0(%a: tensor<16000xf32>):
      %1 = graph.scan sum %a {axis = 0} : (tensor<16000xf32>) -> tensor<16000xf32>
      graph.yield %1 : tensor<16000xf32>
    }
    %2 = graph.kernel "columns" (%z) : (tensor<3x500x128xf32>) -> tensor<3x500x128xf32> {
    ^bb0(%a: tensor<3x500x128xf32>):
      %1 = graph.scan max %a {axis = 1} : (tensor<3x500x128xf32>) -> tensor<3x500x128xf32>
      graph.yield %1 : tensor<3x500x128xf32>
    }
    %3 = graph.kernel "parts" (%p, %t) : (tensor<64x2000xf32>, tensor<64x64xf32>) -> tensor<64x2000xf32> {
    ^bb0(%a: tensor<64x2000xf32>, %b: tensor<64x64xf32>):
      %1 = graph.scan sum %a, %b {axis = 1} : (tensor<64x2000xf32>, tensor<64x64xf32>) -> tensor<64x2000xf32>
      graph.yield %1 : tensor<64x2000xf32>
    }
    %4 = graph.kernel "products" (%w) : (tensor<150x1000xf32>) -> tensor<150x1000xf32> {
    ^bb0(%a: tensor<150x1000xf32>):
      %1 = graph.scan prod %a {axis = 1} : (tensor<150x1000xf32>) -> tensor<150x1000xf32>
      graph.yield %1 : tensor<150x1000xf32>
    }
    return %0, %2, %3, %4 : tensor<16000xf32>, tensor<3x500x128xf32>, tensor<64x2000xf32>, tensor<150x1000xf32>
  }
}
