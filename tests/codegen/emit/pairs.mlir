// RUN: charonia-opt %s -emit-tiles | FileCheck %s
// RUN: charonia-opt %s -emit-tiles=target=gpu | FileCheck %s --check-prefix=GPU
// Integers of 16 bits are summed in 32: by products of tiles on a CPU, whose loop needs no blocks; one by one on a GPU.
// CHECK-LABEL: func.func @product
// CHECK-COUNT-1: scf.for
// CHECK: tile.dot {{.*}}xi16>, {{.*}}xi16> -> {{.*}}xi32>
// CHECK-NOT: scf.for
// GPU-LABEL: func.func @product
// GPU-NOT: tile.dot
// GPU: arith.extsi {{.*}}xi16> to {{.*}}xi32>
// GPU: arith.muli {{.*}}xi32>

// So are bytes, of which one side has a sign.
// CHECK-LABEL: func.func @bytes
// CHECK: tile.dot {{.*}} {signed_lhs} : {{.*}}xi8>, {{.*}}xi8> -> {{.*}}xi32>
// GPU-LABEL: func.func @bytes
// GPU-NOT: tile.dot
// GPU-DAG: arith.extsi {{.*}}xi8> to {{.*}}xi32>
// GPU-DAG: arith.extui {{.*}}xi8> to {{.*}}xi32>

// So is a single row of bytes, which would be widened one by one elsewhere. Behind three steps of 32
// terms is one of the five that are left.
// CHECK-LABEL: func.func @row
// CHECK: scf.for {{.*}} -> (tensor<1x32xi32>)
// CHECK: tile.dot {{.*}} : tensor<1x32xi8>, tensor<32x32xi8> -> tensor<1x32xi32>
// CHECK: scf.yield
// CHECK: tile.dot {{.*}} : tensor<1x5xi8>, tensor<5x32xi8> -> tensor<1x32xi32>
// CHECK: tile.reduce {{.*}} -> tensor<32xi32>
// GPU-LABEL: func.func @row
// GPU-NOT: tile.dot
module {
  func.func @main(%x: tensor<64x1024xi16>, %w: tensor<1024x64xi16>, %y: tensor<64x1024xi8>, %v: tensor<1024x64xui8>, %z: tensor<1x101xui8>, %u: tensor<101x64xi8>) -> (tensor<64x64xi32>, tensor<64x64xi32>, tensor<1x64xi32>) {
    %0 = graph.kernel "product" (%x, %w) : (tensor<64x1024xi16>, tensor<1024x64xi16>) -> tensor<64x64xi32> {
    ^bb0(%a: tensor<64x1024xi16>, %c: tensor<1024x64xi16>):
      %1 = graph.matmul %a, %c : (tensor<64x1024xi16>, tensor<1024x64xi16>) -> tensor<64x64xi32>
      graph.yield %1 : tensor<64x64xi32>
    }
    %2 = graph.kernel "bytes" (%y, %v) : (tensor<64x1024xi8>, tensor<1024x64xui8>) -> tensor<64x64xi32> {
    ^bb0(%a: tensor<64x1024xi8>, %c: tensor<1024x64xui8>):
      %3 = graph.matmul %a, %c : (tensor<64x1024xi8>, tensor<1024x64xui8>) -> tensor<64x64xi32>
      graph.yield %3 : tensor<64x64xi32>
    }
    %4 = graph.kernel "row" (%z, %u) : (tensor<1x101xui8>, tensor<101x64xi8>) -> tensor<1x64xi32> {
    ^bb0(%a: tensor<1x101xui8>, %c: tensor<101x64xi8>):
      %5 = graph.matmul %a, %c : (tensor<1x101xui8>, tensor<101x64xi8>) -> tensor<1x64xi32>
      graph.yield %5 : tensor<1x64xi32>
    }
    return %0, %2, %4 : tensor<64x64xi32>, tensor<64x64xi32>, tensor<1x64xi32>
  }
}
