// RUN: charonia-opt %s -emit-tiles=target=x86-64-v4 -split-input-file -mlir-print-local-scope | FileCheck %s
// RUN: charonia-opt %s -emit-tiles=target=gpu -split-input-file | FileCheck %s --check-prefix=GPU
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

// -----

// A long part among short ones, of which most tiles are: one copy, whatever the row's length. The
// others look at places in the row, and divide none.
// CHECK-LABEL: func.func @long
// CHECK: scf.if
// CHECK-NEXT: tile.load %arg1{{.*}}checks = array<i64>,
// CHECK-NEXT: scf.yield
// CHECK-NEXT: else
// CHECK-NOT: floordiv
// CHECK: tile.load %arg0{{.*}}checks = array<i64: 1>,
// CHECK-NOT: floordiv
// CHECK: tile.store
module {
  func.func @main(%a: tensor<257x1x3xf32>, %b: tensor<257x1000x3xf32>) -> tensor<257x1001x3xf32> {
    %0 = graph.kernel "long" (%a, %b) : (tensor<257x1x3xf32>, tensor<257x1000x3xf32>) -> tensor<257x1001x3xf32> {
    ^bb0(%x: tensor<257x1x3xf32>, %y: tensor<257x1000x3xf32>):
      %1 = graph.concat %x, %y {axis = 1} : (tensor<257x1x3xf32>, tensor<257x1000x3xf32>) -> tensor<257x1001x3xf32>
      graph.yield %1 : tensor<257x1001x3xf32>
    }
    return %0 : tensor<257x1001x3xf32>
  }
}

// -----

// Parts that are as long as a tile are not told apart by branches.
// CHECK-LABEL: func.func @short
// CHECK-NOT: scf.if
// CHECK: tile.store
module {
  func.func @main(%a: tensor<257x10x3xf32>, %b: tensor<257x40x3xf32>) -> tensor<257x50x3xf32> {
    %0 = graph.kernel "short" (%a, %b) : (tensor<257x10x3xf32>, tensor<257x40x3xf32>) -> tensor<257x50x3xf32> {
    ^bb0(%x: tensor<257x10x3xf32>, %y: tensor<257x40x3xf32>):
      %1 = graph.concat %x, %y {axis = 1} : (tensor<257x10x3xf32>, tensor<257x40x3xf32>) -> tensor<257x50x3xf32>
      graph.yield %1 : tensor<257x50x3xf32>
    }
    return %0 : tensor<257x50x3xf32>
  }
}
