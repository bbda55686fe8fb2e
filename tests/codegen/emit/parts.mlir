// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 | FileCheck %s
// RUN: charonia-opt %s -emit-tiles=target=gpu | FileCheck %s --check-prefix=GPU
// Of many parts a tile of a CPU lies in one, and loads that one alone.
// CHECK-LABEL: func.func @join
// CHECK: %[[D:.*]] = arith.cmpi sge
// CHECK: scf.if %[[D]]
// CHECK-NEXT: tile.load %arg3{{.*}} -> tensor<48xf32>
// CHECK: else
// CHECK: scf.if
// CHECK: tile.load %arg2
// CHECK: else
// CHECK: scf.if
// CHECK: tile.load %arg1
// CHECK: else
// CHECK: tile.load %arg0
// GPU-NOT: scf.if
module {
  func.func @main(%x: tensor<1024x48xf32>) -> tensor<1024x192xf32> {
    %0 = graph.kernel "join" (%x, %x, %x, %x) : (tensor<1024x48xf32>, tensor<1024x48xf32>, tensor<1024x48xf32>, tensor<1024x48xf32>) -> tensor<1024x192xf32> {
    ^bb0(%a: tensor<1024x48xf32>, %b: tensor<1024x48xf32>, %c: tensor<1024x48xf32>, %d: tensor<1024x48xf32>):
      %1 = graph.concat %a, %b, %c, %d {axis = 1} : (tensor<1024x48xf32>, tensor<1024x48xf32>, tensor<1024x48xf32>, tensor<1024x48xf32>) -> tensor<1024x192xf32>
      graph.yield %1 : tensor<1024x192xf32>
    }
    return %0 : tensor<1024x192xf32>
  }
}
